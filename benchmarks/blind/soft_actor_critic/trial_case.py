"""The case of the soft actor-critic."""

import model
import numpy as np
import port

import tf2verify


class Case(tf2verify.EquivalenceCase):
  training_steps_to_take = 4

  def build_tf1_graph(self, inputs, training):
    return model.actor_critic(inputs)

  def make_tf2_layer(self):
    return port.ActorCritic()

  def make_inputs(self):
    n = tf2verify.normal_inputs
    return {'obs': n((6, 5)), 'act': n((6, 2), seed=1), 'obs2': n((6, 5), seed=2)}

  def make_labels(self):
    return {
      'rew': tf2verify.normal_inputs((6,), seed=3),
      'done': np.array([0, 0, 1, 0, 1, 0], np.float32),
    }

  def tf1_loss(self, outputs, labels):
    return model.losses(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.losses(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.Trainer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return optimizer.step(layer, inputs, labels)
