"""Compares the ranker with its port."""

import model
import numpy as np
import port

import tf2verify


class PriceRankerCase(tf2verify.EquivalenceCase):
  modes_to_run = ('tf.function',)  # the others take longer than all the rest
  training_steps_to_take = 4
  slot_names = {'average': 'averages'}

  def build_tf1_graph(self, inputs, training):
    return model.network(inputs, training)

  def make_tf2_layer(self):
    return port.PriceRanker()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5, 6))

  def make_labels(self):
    grades = np.random.RandomState(4).randint(0, 4, (4, 5)).astype(np.int32)
    grades[1, 3:] = -1
    price = np.random.RandomState(5).uniform(1, 90, (4, 5)).astype(np.float32)
    return {'grades': grades, 'price': price}

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.Trainer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return optimizer.step(layer, inputs, labels)
