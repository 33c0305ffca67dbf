"""The case of the Q-network."""

import model
import numpy as np
import port

import tf2verify

VARIABLES = {}
for network in ('online', 'target'):
  for layer in ('conv1', 'conv2'):
    for name in ('kernel', 'bias'):
      VARIABLES[f'{network}/{layer}/{name}'] = f'double_dqn/{network}/{layer}/{name}'
  for layer in ('value_hidden', 'value', 'advantage_hidden', 'advantage'):
    for old, new in (
      ('w', 'kernel'),
      ('b', 'bias'),
      ('w_sigma', 'kernel_sigma'),
      ('b_sigma', 'bias_sigma'),
    ):
      VARIABLES[f'{network}/{layer}/{old}'] = f'double_dqn/{network}/{layer}/{new}'


class DoubleDQNCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 3
  variable_names = VARIABLES

  def build_tf1_graph(self, inputs, training):
    return model.double_dqn(inputs, training)

  def make_tf2_layer(self):
    return port.DoubleDQN()

  def make_inputs(self):
    random = np.random.RandomState(23)
    return {
      'state': random.randint(0, 256, size=(6, 10, 10, 3)).astype(np.uint8),
      'next_state': random.randint(0, 256, size=(6, 10, 10, 3)).astype(np.uint8),
    }

  def make_labels(self):
    random = np.random.RandomState(29)
    dones = np.zeros((6, 3), bool)
    dones[1, 2] = True
    dones[2, 0] = True
    dones[4, 1] = True
    legal = np.ones((6, 5), bool)
    legal[0, :3] = False
    legal[3, [0, 2, 4]] = False
    legal[5, 3:] = False
    return {
      'action': np.array([2, 0, 4, 1, 3, 1], np.int32),
      'rewards': (3.0 * random.normal(size=(6, 3))).astype(np.float32),
      'dones': dones,
      'next_legal': legal,
      'weights': random.uniform(0.2, 1.0, size=6).astype(np.float32),
    }

  def tf1_loss(self, outputs, labels):
    return model.dqn_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.dqn_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
