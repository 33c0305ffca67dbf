"""Tests of maps of bounds of a quantization, of biases in sums, and of fused kernels in loops."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
_STAGES = ('variable_inventory', 'zero_randomness', 'seeded_constant')


def tf1_variable(name, shape, start=None, trainable=True):
  start = v1.random_normal_initializer() if start is None else v1.constant_initializer(start)
  return v1.get_variable(name, shape, initializer=start, trainable=trainable)


def variable(name, shape, start=None, trainable=True):
  value = tf.random.normal(shape) if start is None else tf.fill(shape, start)
  return tf.Variable(value, name=name, trainable=trainable)


class OfPort(tf2verify.EquivalenceCase, abc.ABC):
  port: type[tf.Module]
  shape = (5, 3)

  def make_tf2_layer(self):
    return self.port()

  def make_inputs(self):
    return tf2verify.normal_inputs(self.shape)


def quantized(x, low, high):
  return tf.quantization.fake_quant_with_min_max_vars(x, low, high)


class BoundsPort(tf.Module):
  """Ranges whose variables are made upper bounds first; `used` says which each place reads."""

  used = (0, 1)
  names = ('lo', 'hi')

  def __init__(self):
    super().__init__()
    self.kernels = [variable(f'w{n}', [3, 3]) for n in range(3)]
    self.hi = [variable(f'{self.names[1]}{n}', [], float(n + 1), False) for n in range(2)]
    self.lo = [variable(f'{self.names[0]}{n}', [], -float(n + 1), False) for n in range(2)]

  def quantized(self, x, n):
    return quantized(x, self.lo[n], self.hi[n])

  def __call__(self, x):
    for kernel, n in zip(self.kernels, self.used, strict=False):
      x = self.quantized(x @ kernel, n)
    return x @ self.kernels[2]


class Bounds(OfPort, abc.ABC):
  port = BoundsPort

  def build_tf1_graph(self, x, training):
    for n, scope in enumerate(('one', 'two')):
      low = tf1_variable(f'{scope}/min', [], -float(n + 1), False)
      high = tf1_variable(f'{scope}/max', [], float(n + 1), False)
      x = quantized(x @ tf1_variable(f'{scope}/w', [3, 3]), low, high)
    return x @ tf1_variable('last/w', [3, 3])

  def fill_values(self, name, shape, dtype):
    bounds = {'one/min': -1.5, 'one/max': 2.5, 'two/min': -2.0, 'two/max': 3.0}
    if name in bounds:
      return np.array(bounds[name], dtype)
    return tf2verify.distinct_values(name, shape, dtype)


class SumPort(tf.Module):
  """What TF1 adds to each part of a sum is added to the first part, and to the sum."""

  def __init__(self):
    super().__init__()
    self.offset = variable('offset', [], 0.2)
    self.gate, self.kernel = variable('gate', [4, 1]), variable('kernel', [3, 4])
    self.wide, self.bias = variable('direct', [3]), variable('bias1', [1], 0.1)

  def __call__(self, x):
    deep = tf.tanh(x @ self.kernel) @ self.gate + self.bias
    return deep + tf.linalg.matvec(x, self.wide)[:, None] + self.offset


class Sum(OfPort, abc.ABC):
  port = SumPort

  def build_tf1_graph(self, x, training):
    wide = tf.reduce_sum(x * tf1_variable('wide/w', [3]), 1, keepdims=True)
    wide += tf1_variable('wide/bias', [1], 0.2)
    deep = tf.tanh(x @ tf1_variable('deep/one/kernel', [3, 4]))
    deep = deep @ tf1_variable('deep/two/kernel', [4, 1]) + tf1_variable('deep/two/bias', [1], 0.1)
    return wide + deep


class LoopPort(tf.Module):
  """One kernel for what a step reads, in a loop, in an order of its own."""

  activation = staticmethod(tf.tanh)

  def __init__(self):
    super().__init__()
    self.kernel, self.bias = variable('kernel', [10, 7]), variable('bias', [7], 0.1)
    self.head, self.head_bias = variable('head', [7, 9]), variable('head_bias', [9], 0.0)

  def __call__(self, x):
    count = tf.shape(x)[0]

    def body(t, state, last):
      read = tf.concat([state, last, x[:, t]], 1)
      state = self.activation(read @ self.kernel + self.bias)
      first, second, third = tf.split(state @ self.head + self.head_bias, 3, 1)
      return t + 1, state, tf.reduce_sum(first * tf.exp(second) - third, 1, keepdims=True)

    start = 0, tf.zeros([count, 7]), tf.zeros([count, 1])
    return tf.while_loop(lambda t, *_: t < 4, body, start)[2]


class Loop(OfPort, abc.ABC):
  """The rounds written out, with a kernel for each thing that a step reads."""

  port = LoopPort
  shape = (5, 4, 2)

  def build_tf1_graph(self, x, training):
    wx, wy, wh = (
      tf1_variable(f'cell/w{name}', [rows, 7]) for name, rows in (('x', 2), ('y', 1), ('h', 7))
    )
    bias = tf1_variable('cell/b', [7], 0.1)
    wo, bo = tf1_variable('cell/wo', [7, 9]), tf1_variable('cell/bo', [9], 0.0)
    state, last = tf.zeros([tf.shape(x)[0], 7]), tf.zeros([tf.shape(x)[0], 1])
    for t in range(4):
      state = tf.tanh(x[:, t] @ wx + last @ wy + state @ wh + bias)
      first, second, third = tf.split(state @ wo + bo, 3, 1)
      last = tf.reduce_sum(first * tf.exp(second) - third, 1, keepdims=True)
    return last


class BoundsAndSumsTest(LadderTestCase):
  def failed(self, parent, port=None):
    """Returns the name of the stage that fails first; '' if all pass."""
    made = type('Port', (parent.port,), port or {})
    verdict = tf2verify.verify(type('Case', (parent,), {'port': made}), _STAGES)
    failed = verdict.first_failure
    return '' if failed is None else failed.stage

  def pairs(self, parent, port=None):
    made = type('Port', (parent.port,), port or {})
    found = tf2verify.derive_variable_map(type('Case', (parent,), {'port': made}))
    return {entry.tf1: entry.tf2 for entry in found.entries}

  def test_bounds_go_by_the_input_that_they_are(self):
    self.assertEqual(self.failed(Bounds), '')
    pairs = self.pairs(Bounds)
    self.assertEqual(pairs['one/min',], ('lo0',))
    self.assertEqual(pairs['two/max',], ('hi1',))
    pairs = self.pairs(Bounds, {'names': ('q', 'p')})  # which say nothing
    self.assertEqual(pairs['one/min',] + pairs['two/max',], ('q0', 'p1'))

  def test_exchanged_bounds_are_a_finding(self):
    self.assertEqual(self.failed(Bounds, {'used': (1, 0)}), 'seeded_constant')
    self.assertNotEqual(self.failed(Bounds, {'used': (0, 0)}), '')

  def test_a_bound_that_the_port_turns_round_is_a_finding(self):
    def turned(self, x, n):
      return quantized(x, -self.hi[n], -self.lo[n])

    pairs = self.pairs(Bounds, {'quantized': turned})
    self.assertEqual(pairs['one/min',], ('lo0',))
    self.assertNotEqual(self.failed(Bounds, {'quantized': turned}), '')

  def test_bounds_of_a_place_that_fails_go_by_their_names(self):
    def narrower(self, x, n):
      return tf.clip_by_value(x, self.lo[n], 0.5 * self.hi[n])

    pairs = self.pairs(Bounds, {'quantized': narrower})
    found = {one: pairs[f'{one}/min',] + pairs[f'{one}/max',] for one in ('one', 'two')}
    self.assertEqual(found, {'one': ('lo0', 'hi0'), 'two': ('lo1', 'hi1')})
    self.assertEqual(self.failed(Bounds, {'quantized': narrower}), 'zero_randomness')

  def test_a_bias_goes_with_the_product_that_it_is_added_to(self):
    self.assertEqual(self.failed(Sum), '')
    pairs = self.pairs(Sum)
    self.assertEqual(pairs['deep/two/bias',], ('bias1',))
    self.assertEqual(pairs['wide/bias',], ('offset',))

  def test_one_kernel_in_a_loop_and_several_in_rounds_that_are_written_out(self):
    self.assertEqual(self.failed(Loop), '')
    self.assertEqual(self.pairs(Loop)['cell/wx', 'cell/wy', 'cell/wh'], ('kernel',))
    self.assertEqual(self.pairs(Loop)['cell/wo',], ('head',))

  def test_a_mistake_in_such_a_loop_is_a_finding_of_numbers(self):
    wrong = {'activation': staticmethod(tf.sigmoid)}
    self.assertEqual(self.failed(Loop, wrong), 'zero_randomness')


if __name__ == '__main__':
  absltest.main()
