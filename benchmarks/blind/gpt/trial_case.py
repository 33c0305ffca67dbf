"""The case of the small GPT."""

import model
import numpy as np
import port

import tf2verify


def tokens():
  ids = np.random.RandomState(3).randint(1, model.VOCAB, size=(3, 8)).astype(np.int32)
  ids[1, 6:] = model.PAD
  ids[2, 4:] = model.PAD
  return ids


class GptCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.gpt(inputs, training)

  def make_tf2_layer(self):
    return port.GPT(name='model')

  def make_inputs(self):
    return tokens()

  def make_labels(self):
    return tokens()

  def tf1_loss(self, outputs, labels):
    return model.lm_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.lm_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
