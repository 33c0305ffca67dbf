"""A gate behind a product, a matrix or rows in another order, and what is forgotten in a line."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_WIDTH, _STEPS = 4, 3


class Port(tf.Module):
  """Loops in Python, and all candidates in one batch."""

  def __init__(self, wrong):
    super().__init__()
    self.wrong = wrong
    self.kernel = tf.Variable(tf.ones([_WIDTH, _WIDTH]), name='kernel')
    self.mix = tf.Variable(tf.ones([_WIDTH, _WIDTH]), name='mix')

  def state(self, net):
    state = tf.tanh(net[:, 0])
    for step in range(1, _STEPS):
      gate = tf.sigmoid(net[:, step])
      if self.wrong == 'gate':
        new = tf.nn.softplus(net[:, step] + gate * (state @ self.kernel))
      else:
        new = tf.nn.softplus(net[:, step] + (gate * state) @ self.kernel)
      state = 0.5 * state + new
    return state

  def scores(self, state, items):
    if self.wrong == 'transposed':
      state = tf.reduce_logsumexp(self.mix[None] + state[:, :, None], 1)
    else:
      state = tf.reduce_logsumexp(self.mix[None] + state[:, None, :], 2)
    rows = self.turned(state, 2) if self.wrong == 'rows' else tf.repeat(state, 2, axis=0)
    return tf.reshape(tf.einsum('bi,bi->b', tf.reshape(items, [-1, _WIDTH]), rows), [-1, 2])

  def turned(self, net, times):
    return tf.tile(net, [times, 1])

  def discounted(self, net):
    alive = tf.sigmoid(tf.transpose(net[..., 1]))
    gains = tf.transpose(net[..., 0]) * alive
    total = tf.zeros_like(gains[0])
    for step in range(_STEPS):
      if self.wrong == 'factor':
        total = 0.9 * total + gains[step]
      else:
        total = 0.9 * total * alive[step] + gains[step]
    return total

  def grouped(self, net):
    groups = tf.range(tf.shape(net)[0]) % 2
    if self.wrong == 'mean':
      return tf.math.unsorted_segment_mean(net[:, 0], groups, 2)
    return tf.math.unsorted_segment_sum(net[:, 0], groups, 2)

  def __call__(self, inputs):
    net, items = inputs['net'], inputs['items']
    return {
      'scores': self.scores(self.state(net), items),
      'total': self.discounted(net),
      'groups': self.grouped(net),
    }


class Candidates(tf2verify.EquivalenceCase, abc.ABC):
  """Scores of two candidates, by a state that TF1 computes with `tf.scan`."""

  wrong = ''

  def build_tf1_graph(self, inputs, training):
    kernel, mix = (v1.get_variable(name, [_WIDTH, _WIDTH]) for name in ('kernel', 'mix'))
    net = tf.transpose(inputs['net'], [1, 0, 2])

    def renewed(state, new):
      candidate = tf.concat([new, tf.sigmoid(new) * state], 1)
      both = tf.concat([tf.eye(_WIDTH), kernel], 0)
      return state * 0.5 + tf.nn.softplus(tf.matmul(candidate, both))

    state = tf.scan(renewed, net[1:], tf.tanh(net[0]))[-1]
    mixed = tf.math.log(tf.matmul(tf.exp(state), tf.exp(mix), transpose_b=True))
    scores = tf.matmul(inputs['items'], mixed[:, :, None])

    alive = tf.sigmoid(net[..., 1])
    discounts = tf.math.cumprod(0.9 * alive, 0, exclusive=True, reverse=True)
    places = tf.one_hot(tf.range(tf.shape(net)[1]) % 2, 2)
    return {
      'scores': tf.squeeze(scores, 2),
      'total': tf.reduce_sum(net[..., 0] * alive * discounts, 0),
      'groups': tf.tensordot(places, inputs['net'][:, 0], [[0], [0]]),
    }

  def make_tf2_layer(self):
    return Port(self.wrong)

  def make_inputs(self):
    return {
      'net': tf2verify.normal_inputs((5, _STEPS, _WIDTH)),
      'items': tf2verify.normal_inputs((5, 2, _WIDTH), seed=1),
    }


class Crossing(tf2verify.EquivalenceCase, abc.ABC):
  """Layers that multiply by the first input: in the first of them, both inputs are that."""

  wrong = False

  def build_tf1_graph(self, inputs, training):
    net = inputs
    for n in range(2):
      weights = v1.get_variable(f'weights_{n}', [_WIDTH])
      net = inputs * tf.reduce_sum(net * weights, 1, keepdims=True) + tf.tanh(net)
    return net

  def make_tf2_layer(self):
    return Crosses(self.wrong)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, _WIDTH))


class Crosses(tf.Module):
  def __init__(self, wrong):
    super().__init__()
    self.wrong = wrong
    self.weights = [tf.Variable(tf.ones([_WIDTH]), name=f'weights_{n}') for n in range(2)]

  def crossed(self, first, net, weights):
    return tf.tanh(net) + first * tf.linalg.matvec(net, weights)[:, None]

  def __call__(self, inputs):
    net = inputs
    for weights in self.weights:
      both = (net, inputs) if self.wrong else (inputs, net)
      net = self.crossed(*both, weights)
    return net


class NeighboringEditsTest(absltest.TestCase):
  def found(self, wrong):
    """Returns the one cause, which has to be proven, and the line that is shown."""
    found, text = causes_of(self, Candidates, wrong=wrong)
    self.assertLen(found, 1, text)
    self.assertIn('proven', text)
    return found[0], text[text.index('first divergence') :]

  def test_right(self):
    self.assertEqual(causes_of(self, Candidates)[0], [])
    self.assertEqual(causes_of(self, Crossing)[0], [])

  def test_a_gate_is_applied_after_the_product(self):
    cause, text = self.found('gate')
    self.assertRegex(
      cause, r'\(Mul\) multiplies .*mat_?mul\w* .* by Sigmoid.* in the port; done to'
    )
    self.assertIn('each of the 2 times that it runs', cause)
    self.assertIn('gate * (state @ self.kernel)', text)

  def test_a_matrix_is_not_transposed(self):
    cause, _ = self.found('transposed')
    self.assertRegex(cause, r'reads variable mix in the port; with the axes 0 and 1 .*transposed')

  def test_rows_are_repeated_in_another_order(self):
    cause, _ = self.found('rows')
    self.assertRegex(cause, r'repeats all elements 2 times in turn in the port \(tf.tile\); with ')

  def test_a_factor_is_forgotten_in_a_loop(self):
    cause, text = self.found('factor')
    self.assertRegex(cause, r'lacks a factor in the port: with Sigmoid.* made by `alive = ')
    self.assertIn('total = 0.9 * total + gains[step]', text)

  def test_a_mean_of_segments(self):
    cause, _ = self.found('mean')
    self.assertRegex(cause, r'divides .* in the port; without that it yields what tf1 does')

  def test_arguments_are_exchanged_in_layers_of_which_the_first_has_one_input(self):
    [cause], text = causes_of(self, Crossing, wrong=True)
    self.assertRegex(
      cause, r'has .*net.* and .* in place of each other|in place of each other', text
    )
    self.assertIn('which calls it', cause)
    self.assertIn('proven', text)


if __name__ == '__main__':
  absltest.main()
