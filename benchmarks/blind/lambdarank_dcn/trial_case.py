"""The case of the ranker."""

import model
import numpy as np
import port

import tf2verify


class RankerCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.ranker(inputs, training)

  def make_tf2_layer(self):
    return port.Ranker()

  def make_inputs(self):
    random = np.random.RandomState(31)

    def hashes(*shape):  # signed, as the log writer's fingerprints are
      return random.randint(-(2**31), 2**31, size=shape, dtype=np.int64)

    words = np.array([[4, 1, 2, 0, 3], [2, 3, 4, 1, 2], [1, 4, 3, 2, 0]])
    present = np.arange(4) < words[:, :, None]
    terms = hashes(3, 5, 4)
    terms[0, 2, 1] = 31 * 1234567  # in the bucket 0
    terms[1, 1, 0] = -31 * 7654321
    weights = random.uniform(0.2, 3.0, size=(3, 5, 4))
    return {
      'terms': terms * present,
      'term_weights': (weights * present).astype(np.float32),
      'query': hashes(3),
      'user': hashes(3),
      'document': hashes(3, 5),
      'category': random.randint(0, 12, size=(3, 5), dtype=np.int64),
      'dense': (random.normal(size=(3, 5, 3)) * [1.0, 20.0, 300.0]).astype(np.float32),
    }

  def make_labels(self):
    return {
      'lengths': np.array([5, 3, 4], np.int32),
      'clicks': np.array([[1, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]], np.float32),
      'relevance': np.array([[2, 0, 1, 3, 0], [0, 2, 1, 0, 0], [1, 1, 1, 1, 0]], np.float32),
    }

  def tf1_loss(self, outputs, labels):
    return model.ranker_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.ranker_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
