"""Tests of tf2verify.stages.comparison.initial_values."""

import numpy as np
from absl.testing import absltest

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import Observation, RandomDraw, TensorRecord
from tf2verify.stages.comparison import initial_values

_RUN = 'inference, constant'
_PAIRS = (('a', 'net/a'), ('b', 'net/b'))
_ONE, _OTHER = np.arange(4.0).reshape(2, 2), np.arange(4.0, 8.0).reshape(2, 2)


def _run(side, values, kinds=('RandomUniform', 'RandomUniform')):
  names = [pair[side == 'tf2'] for pair in _PAIRS]
  return Observation(
    side,
    _RUN,
    '',
    (),
    initial_values=tuple(TensorRecord(n, v.copy()) for n, v in zip(names, values, strict=True)),
    random_draws=tuple(RandomDraw(k, (2, 2), n) for k, n in zip(kinds, names, strict=True)),
  )


def _hint(tf1, tf2, quantity='initial value', run=_RUN):
  found = Difference(quantity, 'b (tf2: net/b)', Aspect.VALUES, run=run)
  return initial_values.explained(found, tf1, tf2, _PAIRS).hint


class OneInitializerTest(absltest.TestCase):
  def test_is_named(self):
    hint = _hint(_run('tf1', (_ONE, _OTHER)), _run('tf2', (_ONE, _ONE)))
    self.assertStartsWith(hint, 'b starts with the very numbers of a in the port')

  def test_same_numbers_on_both_sides_are_one_seed(self):
    self.assertEqual(_hint(_run('tf1', (_ONE, _ONE)), _run('tf2', (_ONE, _ONE))), '')

  def test_constants_are_no_random_numbers(self):
    ones = np.ones((2, 2))
    self.assertEqual(_hint(_run('tf1', (ones, _OTHER)), _run('tf2', (ones, ones))), '')


class SeedTest(absltest.TestCase):
  def test_stateless_on_one_side(self):
    tf1 = _run('tf1', (_ONE, _ONE), ('TruncatedNormal', 'TruncatedNormal'))
    kind = 'StatelessTruncatedNormalV2'
    hint = _hint(tf1, _run('tf2', (_ONE, _OTHER), (kind, kind)))
    self.assertStartsWith(hint, f'b is drawn by TruncatedNormal in tf1 and by {kind} in the port')

  def test_stateless_in_tf1(self):
    kind = 'StatelessRandomUniformV2'
    hint = _hint(_run('tf1', (_ONE, _ONE), (kind, kind)), _run('tf2', (_ONE, _OTHER)))
    self.assertIn('tf1 has one of Keras here, as tf.compat.v1.layers does by default', hint)

  def test_stateless_on_both(self):
    kinds = ('StatelessRandomUniform', 'StatelessRandomUniformV2')
    tf1 = _run('tf1', (_ONE, _ONE), kinds)
    self.assertEqual(_hint(tf1, _run('tf2', (_ONE, _OTHER), kinds)), '')


class DistributionTest(absltest.TestCase):
  def hint(self, tf1, tf2):
    return _hint(_run('tf1', (_ONE, _ONE), (tf1, tf1)), _run('tf2', (_ONE, _OTHER), (tf2, tf2)))

  def test_another_kind_of_initializer(self):
    hint = self.hint('StatelessRandomUniformV2', 'StatelessTruncatedNormalV2')
    self.assertIn('tf1 draws from a uniform distribution (StatelessRandomUniformV2)', hint)
    self.assertIn('from a truncated normal one', hint)
    self.assertIn('glorot_uniform', hint)
    self.assertIn('glorot_normal', self.hint('TruncatedNormal', 'RandomUniform'))
    self.assertIn('random_normal', self.hint('RandomStandardNormal', 'TruncatedNormal'))

  def test_beside_another_meaning_of_a_seed(self):
    hint = self.hint('RandomStandardNormal', 'StatelessTruncatedNormalV2')
    self.assertRegex(hint, 'a seed means nothing across the two.* Beside that, the initializer of')

  def test_the_same_kind(self):
    self.assertEqual(self.hint('RandomUniform', 'RandomUniform'), '')


class OtherFindingsTest(absltest.TestCase):
  def test_are_left_alone(self):
    tf1, tf2 = _run('tf1', (_ONE, _OTHER)), _run('tf2', (_ONE, _ONE))
    self.assertEqual(_hint(tf1, tf2, quantity='output'), '')
    self.assertEqual(_hint(tf1, tf2, run='training, constant'), '')


if __name__ == '__main__':
  absltest.main()
