import numpy as np

import model
import port
import tf2verify

_D, _U = 4, 6
_SIZES = {'x': _D, 'h': _U, 'm': _D, 'z': _U, 'r': _U, 'c': _U}
_GATES = {'z': _U, 'r': _U, 'c': _U}
_Entry = tf2verify.MapEntry


def _same(tf1, tf2, axes):
  return _Entry((tf1,), (tf2,), f'{axes} -> {axes}')


class GruDCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 4
  variable_map = tf2verify.VariableMap(
    (
      _same('gru_d/cell/input_decay/weights', 'grud/cell/input_decay', 'a'),
      _same('gru_d/cell/input_decay/biases', 'grud/cell/input_decay_bias', 'a'),
      _same('gru_d/cell/state_decay/weights', 'grud/cell/state_decay', 'a b'),
      _same('gru_d/cell/state_decay/biases', 'grud/cell/state_decay_bias', 'a'),
      _Entry(
        ('gru_d/cell/gates/weights', 'gru_d/cell/candidate/weights'),
        ('grud/cell/kernel', 'grud/cell/recurrent_kernel', 'grud/cell/mask_kernel'),
        '(x+h+m) (r+z), (x+h+m) c -> x (z+r+c), h (z+r+c), m (z+r+c)',
        _SIZES,
      ),
      _Entry(
        ('gru_d/cell/gates/biases', 'gru_d/cell/candidate/biases'),
        ('grud/cell/bias',),
        '(r+z), c -> (z+r+c)',
        _GATES,
      ),
      _same('gru_d/attention/weights', 'grud/attention/kernel', 'a b'),
      _same('gru_d/attention/biases', 'grud/attention/bias', 'a'),
      _same('gru_d/attention/query', 'grud/attention/query', 'a'),
      _same('gru_d/head/weights', 'grud/head/kernel', 'a b'),
      _same('gru_d/head/biases', 'grud/head/bias', 'a'),
    )
  )

  def build_tf1_graph(self, inputs, training):
    return model.gru_d(
      inputs['features'], inputs['observed'], inputs['elapsed'], inputs['lengths'], 3, is_training=training
    )

  def make_tf2_layer(self):
    return port.GRUD(3, name='grud')

  def make_inputs(self):
    random = np.random.RandomState(3)
    return {
      'features': tf2verify.normal_inputs((5, 7, _D)),
      'observed': (random.uniform(size=(5, 7, _D)) < 0.6).astype(np.float32),
      'elapsed': random.uniform(0.2, 3.0, size=(5, 7, _D)).astype(np.float32),
      'lengths': np.array([7, 4, 2, 6, 5], np.int32),
    }

  def make_labels(self):
    return np.array([[1, 0, -1], [0, 0, 1], [-1, 1, 0], [0, 1, 0], [1, -1, -1]], np.float32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs['logits'], labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs['logits'], labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
