"""The case of the flow."""

import model
import numpy as np
import port

import tf2verify


def renamed(name):
  """The port's name of a variable of TF1."""
  name = name.removeprefix('model/')
  for old, new in (
    ('level', 'flow_'),
    ('_step', '_'),
    ('pool', 'factor_'),
    ('f1/l_1', 'hidden_1'),
    ('f1/l_2', 'hidden_2'),
    ('f1/l_last', 'coupling'),
    ('invconv', 'mix'),
    ('actnorm', 'norm'),
    ('y_emb', 'by_class'),
  ):
    name = name.replace(old, new)
  name = name.replace('factor_0/conv/', 'factor_0/predict/').replace('prior/conv/', 'prior/common/')
  scope, last = name.rsplit('/', 1)
  scaled = scope.rsplit('/', 1)[-1] in ('coupling', 'predict', 'common', 'by_class', 'classifier')
  if last == 'W' and scope.endswith('mix'):
    last = 'kernel'
  elif last == 'W':
    last = 'dense/kernel' if scope.endswith(('by_class', 'classifier')) else 'conv/kernel'
  elif scaled:
    last = {'b': 'output/bias', 'logs': 'output/log_scale'}[last]
  else:
    last = {'b': 'shift', 'logs': 'log_scale'}[last]
  return f'glow/{scope}/{last}'


class GlowCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def variable_names(self, name):
    return renamed(name)

  def fill_values(self, name, shape, dtype):
    """Log scales are small and the mixing invertible, as they are in a flow that trains."""
    values = tf2verify.distinct_values(name, shape, dtype)
    if name.endswith('invconv/W'):
      return np.eye(shape[0], dtype=dtype) + 0.2 * values
    return 0.1 * values if name.endswith('/logs') else 0.5 * values

  def build_tf1_graph(self, inputs, training):
    return model.glow(inputs, training)

  def make_tf2_layer(self):
    return port.Glow()

  def make_inputs(self):
    random = np.random.RandomState(5)
    images = random.randint(0, 256, size=(4, 8, 8, 3)).astype(np.uint8)
    return {'x': images, 'y': np.array([2, 0, 3, 0], np.int32)}

  def make_labels(self):
    return self.make_inputs()

  def tf1_loss(self, outputs, labels):
    return model.glow_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.flow_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.Trainer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return optimizer.step(layer, inputs, labels)
