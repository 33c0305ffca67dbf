"""The case of the block with relative position attention."""

import model
import numpy as np
import port

import tf2verify


class RelativeAttentionCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 4
  modes_to_run = ('tf.function', 'keras functional model')

  def build_tf1_graph(self, inputs, training):
    return model.language_model(
      inputs['ids'], inputs['previous'], inputs['memory_mask'], training
    )

  def make_tf2_layer(self):
    return port.RelativeLanguageModel()

  def make_inputs(self):
    random = np.random.RandomState(3)
    mask = np.ones((3, 5), np.float32)
    mask[1] = 0.0
    mask[2, :2] = 0.0
    return {
      'ids': random.randint(0, 19, size=(3, 4)).astype(np.int32),
      'previous': random.randint(0, 19, size=(3, 5)).astype(np.int32),
      'memory_mask': mask,
    }

  def make_labels(self):
    weights = np.array([[1, 1, 1, 1], [1, 0.5, 0, 0], [1, 1, 0.25, 0]], np.float32)
    targets = np.random.RandomState(4).randint(0, 19, size=(3, 4)).astype(np.int32)
    return {'targets': targets, 'weights': weights}

  def tf1_loss(self, outputs, labels):
    return model.lm_loss(outputs['logits'], labels['targets'], labels['weights'])

  def tf2_loss(self, outputs, labels):
    return port.lm_loss(outputs['logits'], labels['targets'], labels['weights'])

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.Trainer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return optimizer.step(layer, inputs, labels)
