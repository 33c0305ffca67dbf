"""The actor-critic and its native port."""

import model
import numpy as np
import port

import tf2verify


class ActorCriticCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 4

  def build_tf1_graph(self, inputs, training):
    return model.network(inputs, training)

  def make_tf2_layer(self):
    return port.ActorCritic()

  def make_inputs(self):
    random = np.random.RandomState(3)
    last_action = random.randint(0, model.ACTIONS, size=(4, 2)).astype(np.int32)
    last_action[0, 1] = -1  # a game begins
    return {
      'frames': random.randint(0, 256, size=(4, 2, 3, 14, 14)).astype(np.uint8),
      'last_action': last_action,
      'last_reward': np.array([[0, 0], [1, -1], [0.5, 3], [-2, 0]], np.float32),
    }

  def make_labels(self):
    return {
      'actions': np.array([[0, 3], [2, 1], [1, 1]], np.int32),
      'rewards': np.array([[1, -1], [0.5, 3], [-2, 0]], np.float32),
      'dones': np.array([[0, 0], [0, 1], [0, 0]], np.float32),
    }

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.actor_critic_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.Trainer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return optimizer.train_step(layer, inputs, labels)
