"""Tests of tf2verify.diagnosis.divergence.effects.no_effect."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.diagnosis.hand_made import both
from tests.stages import tiny_models
from tf2verify.diagnosis.places.looking import Looking

v1 = tf.compat.v1
_RANDOM = np.random.default_rng(0)
_X = _RANDOM.standard_normal((4, 3)).astype(np.float32)
_W = _RANDOM.standard_normal((3, 3)).astype(np.float32)
_MASK = np.float32([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]])


_GARBAGE = np.full((4, 3), 3.0, np.float32)
_OTHER = np.full((4, 3), 7.0, np.float32)


def _masked(garbage=_GARBAGE, before=0.5, after=1.0, used=False, is_port=False):
  """Past the end of a sequence there is something else, which a mask takes away later.

  Args:
    garbage: what is there.
    before: a number that the states are computed from.
    after: a number at the mask.
    used: whether the mask is left out.
    is_port: whether the mask is written in another way.
  """

  def build(g):
    x = g.op('Mul', 'first', g.input(_X), g.constant(np.float32(before)))
    net = g.op('Where', 'states', x, compute=lambda x: np.where(_MASK > 0, x, garbage))
    mask = np.ones_like(_MASK) if used else _MASK
    if is_port:
      net = g.op(
        'Select', 'weighted', net, compute=lambda x: np.where(mask > 0, np.float32(after) * x, 0)
      )
    else:
      net = g.op('Mul', 'weighted', net, g.constant(mask))
    net = g.op('MatMul', 'values', net, g.variable('w', _W))
    g.target('output', net)

  return build


def _looked(tf1, tf2):
  one, two = (side.run() for side in both(tf1, tf2))
  looking = Looking(one, two, ())
  found = [s for s in looking.arriving() if not s.agreement.is_rounding]
  names = [op.name for op in one.op_graph.ops]
  return [[names[s.regions.tf1.end] for s in part] for part in (found, looking.without_effect)]


class NoEffectTest(absltest.TestCase):
  def test_masked_garbage_is_not_where_the_sides_part(self):
    found, without = _looked(_masked(), _masked(_OTHER, after=1.5, is_port=True))
    self.assertEqual((found, without), (['values'], ['states']))

  def test_infinity_that_one_side_multiplies_by_zero_is_no_number(self):
    found, without = _looked(_masked(), _masked(_OTHER * np.inf, after=1.5, is_port=True))
    self.assertEqual(found[0], 'states')
    self.assertEmpty(without)

  def test_garbage_that_is_used_counts(self):
    found, without = _looked(_masked(used=True), _masked(_OTHER, after=1.5, used=True, is_port=1))
    self.assertEqual(found, ['states', 'values'])
    self.assertEmpty(without)

  def test_fault_in_front_of_it_comes_first(self):
    found, _ = _looked(_masked(), _masked(_OTHER, before=0.25, is_port=True))
    self.assertEqual(found[0], 'first')

  def test_what_fades_out_is_not_named_for_want_of_another(self):
    """A factor at another place, before a difference that begins as rounding."""

    def build(factor, rest):
      def built(g):
        net = g.op('Mul', 'there', g.input(_X), g.constant(np.float32(factor)))
        net = g.op('Mul', 'back', net, g.constant(np.float32(1 / factor)))
        net = g.op('MatMul', 'values', net, g.variable('w', _W))
        other = g.op('Mul', 'rest', g.input(_X, 'y'), g.constant(np.float32(rest)))
        other = g.op('Sub', 'cancelled', other, g.input(_X, 'z'))
        g.target('output', g.op('Mul', 'product', net, other))

      return built

    found, without = _looked(build(2.0, 1.0 + 1e-6), build(4.0, 1.0 + 2e-6))
    self.assertEmpty(found)
    self.assertEqual(without, ['there'])

  def test_nothing_is_passed_over_where_nothing_fails(self):
    _, without = _looked(_masked(), _masked(_OTHER, is_port=True))
    self.assertEmpty(without)


class Attention(tiny_models.OneModel, abc.ABC):
  """Attention over sequences of different lengths, of which the sides fill up the rest otherwise.

  TF1 has zeros there and adds -1e9 to the scores; the port repeats a state, and has -inf.
  """

  scale = 0.5

  def make_inputs(self):
    return {'x': tf2verify.normal_inputs((3, 5, 4)), 'lengths': np.array([5, 2, 3], np.int32)}

  def states(self, inputs):
    return tf.tanh(tf.einsum('btd,dh->bth', inputs['x'], v1.get_variable('kernel', [4, 6])))

  def mask(self, inputs, dtype):
    return tf.sequence_mask(inputs['lengths'], tf.shape(inputs['x'])[1], dtype)

  def model(self, inputs, training):
    mask = self.mask(inputs, tf.float32)
    states = self.states(inputs) * mask[:, :, None]
    scores = 0.5 * tf.reduce_sum(states * v1.get_variable('query', [6]), 2) + (mask - 1.0) * 1e9
    return tf.reduce_sum(tf.nn.softmax(scores)[:, :, None] * states, 1)

  def port(self, inputs, training):
    mask = self.mask(inputs, tf.bool)
    states = self.states(inputs)
    states = tf.where(mask[:, :, None], states, states[:, :1])
    products = tf.reduce_sum(states * v1.get_variable('query', [6]), 2)
    scores = tf.where(mask, self.scale * products, -np.inf)  # the scale
    return tf.reduce_sum(tf.nn.softmax(scores)[:, :, None] * states, 1)


class AttentionTest(absltest.TestCase):
  def test_the_line_of_the_mistake_is_named(self):
    right = tf2verify.verify(type('Right', (Attention,), {}), stages=['zero_randomness'])
    self.assertIs(right.status, tf2verify.Status.PASSED, right.to_text())
    wrong = tf2verify.verify(
      type('Wrong', (Attention,), {'scale': 0.4}), stages=['zero_randomness']
    )
    found = wrong.stages[-1].diagnosis
    lines = [found.sources[0].tf2_source, *found.sources[0].tf2_lines]
    self.assertTrue(any('the scale' in line.code for line in lines), wrong.to_text())
    self.assertFalse(any('states[:, :1]' in line.code for line in lines), wrong.to_text())


if __name__ == '__main__':
  absltest.main()
