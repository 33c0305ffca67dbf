"""The case of the two-tower model."""

import model
import numpy as np
import port

import tf2verify

ITEM = np.array([7, 3, 12, 7, 30, 21], np.int32)


class TwoTowerCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.two_tower(inputs, training)

  def make_tf2_layer(self):
    return port.TwoTower()

  def make_inputs(self):
    random = np.random.RandomState(11)
    history = random.randint(1, model.ITEMS, (6, 5))
    lengths = np.array([5, 3, 1, 4, 0, 5])
    history[np.arange(5) < 5 - lengths[:, None]] = 0
    return {
      'history': history.astype(np.int32),
      'country': np.array([1, 0, 4, 2, 2, 3], np.int32),
      'account_age': np.array([3, 0, 40, 7.5, 1, 365], np.float32),
      'item': ITEM,
      'category': np.array([2, 1, 5, 2, 0, 1], np.int32),
    }

  def make_labels(self):
    return {'items': ITEM, 'rewards': np.array([1, 0.5, 2, 1, 0, 1], np.float32)}

  def tf1_loss(self, outputs, labels):
    return model.retrieval_loss(outputs, labels['items'], labels['rewards'])

  def tf2_loss(self, outputs, labels):
    return port.retrieval_loss(outputs, labels['items'], labels['rewards'])

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.AdamWeightDecay()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
