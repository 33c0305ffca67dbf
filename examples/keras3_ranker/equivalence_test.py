"""A ranking model and its training script against a compiled model of Keras 3."""

import numpy as np

import tf2verify
from examples.keras3_ranker import model, port


class Keras3RankerCase(tf2verify.EquivalenceCase):
  variable_names = {
    'ranker/items': 'items/embeddings',
    'ranker/users': 'users/embeddings',
    'ranker/hidden/kernel': 'hidden/kernel',
    'ranker/hidden/bias': 'hidden/bias',
    'ranker/click/kernel': 'click/kernel',
    'ranker/click/bias': 'click/bias',
  }
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.ranker(inputs)

  def make_tf2_layer(self):
    return port.ranker()

  def make_inputs(self):
    numbers = tf2verify.normal_inputs((5, model.NUMBERS))
    item, user = np.array([3, 7, 3, 0, 3], np.int32), np.array([8, 1, 2, 8, 5], np.int32)
    return {'item': item, 'user': user, 'numbers': numbers}

  def make_labels(self):
    return np.array([[1.0], [0.0], [0.0], [1.0], [1.0]], np.float32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss()(labels, outputs)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)


if __name__ == '__main__':
  tf2verify.main()
