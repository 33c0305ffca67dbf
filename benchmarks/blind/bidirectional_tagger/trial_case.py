"""The bidirectional tagger and its port under the shim."""

import model
import numpy as np
import port

import tf2verify


class BidirectionalTaggerCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 4

  def build_tf1_graph(self, inputs, training):
    return model.tagger(inputs['ids'], inputs['lengths'], training)

  def make_tf2_layer(self):
    return port.Tagger()

  def make_inputs(self):
    lengths = np.array([5, 3, 1], np.int32)
    ids = np.random.RandomState(1).randint(1, model.VOCABULARY, size=(3, 5)).astype(np.int32)
    ids[0, 3] = ids[0, 1]  # a word that comes twice
    ids[np.arange(5)[None] >= lengths[:, None]] = 0  # padding
    return {'ids': ids, 'lengths': lengths}

  def make_labels(self):
    tags = np.random.RandomState(2).randint(0, model.TAGS, size=(3, 5)).astype(np.int32)
    return {
      'tags': tags,
      'lengths': np.array([5, 3, 1], np.int32),
      'intent': np.array([2, 0, 1], np.int32),
    }

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
