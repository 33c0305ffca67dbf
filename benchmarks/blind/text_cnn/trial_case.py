"""The case of the text CNN."""
import numpy as np

import tf2verify
import port
import model


class TextCnnCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.text_cnn(inputs, training)

  def make_tf2_layer(self):
    return port.TextCNN()

  def make_inputs(self):
    tokens = np.random.default_rng(0).integers(1, model.VOCAB, (6, 9), dtype=np.int32)
    tokens[1, 6:] = 0
    tokens[4, 7:] = 0
    return tokens

  def make_labels(self):
    return np.array([0, 3, 2, 1, 3, 0], np.int32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.optimizer()


