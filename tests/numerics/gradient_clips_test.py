import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.errors import NotApplicable
from tf2verify.numerics.gradient_clips import (
  AFTER,
  BEFORE,
  EACH,
  JOINT,
  Clip,
  clip_in_trial,
  clip_of,
  differs_in_trial,
  equalizing_factors,
  greatest_sizes,
)
from tf2verify.records.observation import Slices, TensorRecord
from tf2verify.records.training import ClippingTrial

_SMALL = {'kernel': np.array([[0.3, -0.4], [0.1, 0.2]]), 'bias': np.array([0.5, -0.1])}


def records(arrays):
  return tuple(TensorRecord(name, value) for name, value in arrays.items())


def times(factor):
  return {name: factor * value for name, value in _SMALL.items()}


def joint(limit):
  def clip(arrays):
    size = np.sqrt(sum(np.sum(value**2) for value in arrays.values()))
    return {name: value * min(1, limit / size) for name, value in arrays.items()}

  return clip


def each(limit):
  return lambda arrays: {
    name: value * min(1, limit / np.linalg.norm(value)) for name, value in arrays.items()
  }


def values(limit):
  return lambda arrays: {name: np.clip(value, -limit, limit) for name, value in arrays.items()}


def multiplied(arrays):
  return {'kernel': 0.5 * arrays['kernel'], 'bias': 0.1 * arrays['bias']}


def halved(arrays):
  return {name: 0.5 * value for name, value in arrays.items()}


def lopsided(arrays):
  return {name: np.clip(value, -1, 2) for name, value in arrays.items()}


def trial(clip):
  return ClippingTrial(
    records(_SMALL), records(clip(_SMALL)), records(times(1e6)), records(clip(times(1e6)))
  )


class ClipTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('joint', joint(5.0), Clip('joint', 5.0)),
    ('each', each(5.0), Clip('each', 5.0)),
    ('values', values(5.0), Clip('values', 5.0)),
    ('none', dict, Clip('none')),
    ('factors', multiplied, Clip('none')),
    ('one_factor', halved, Clip('none')),
  )
  def test_is_seen_with_large_gradients_alone(self, clip, expected):
    found = clip_in_trial(trial(clip))
    self.assertTrue(found.is_like(expected), found)

  def test_one_factor_would_be_a_clip_to_who_sees_one_step(self):
    self.assertEqual(clip_of(records(_SMALL), records(halved(_SMALL))).kind, 'joint')

  def test_another_treatment_is_not_known(self):
    self.assertIsNone(clip_in_trial(trial(lopsided)))
    self.assertIsNone(clip_of((), ()))

  def test_other_limits_are_other_clips(self):
    self.assertFalse(Clip('joint', 5.0).is_like(Clip('joint', 5.1)))
    self.assertFalse(Clip('joint', 5.0).is_like(Clip('each', 5.0)))

  def test_norms_of_a_group_are_not_those_of_the_port(self):
    """Of a gradient that is shown for parts of several variables only the sum of all is known."""
    before = (*records(times(10.0)), TensorRecord('part', np.array([3.0, 4.0]), of_group=True))
    clipped = (*records(each(2.0)(times(10.0))), TensorRecord('part', np.array([0.3, 4.0])))
    self.assertTrue(clip_of(before, clipped).is_like(Clip('each', 2.0)))
    other = (*clipped[:-1], TensorRecord('part', np.array([0.3, 0.4])))
    self.assertIsNone(clip_of([*before[:-1], TensorRecord('part', np.array([3.0, 4.0]))], other))
    # Where the others are left alone, the limit is not known.
    alone = (*records(times(10.0)), other[-1])
    self.assertIsNone(clip_of(before, alone))

  def test_sizes(self):
    sizes = greatest_sizes((*records(_SMALL), TensorRecord('unused', None)))
    self.assertAlmostEqual(sizes['joint'], 0.56**0.5)
    self.assertAlmostEqual(sizes['each'], 0.3**0.5)
    self.assertAlmostEqual(sizes['values'], 0.5)


class SlicesTest(absltest.TestCase):
  # The rows of a table as they are, and with the norm that repeated ones had before they were
  # added up.
  _ROWS = TensorRecord('table', np.array([3.0, 4.0]), Slices(2, 5.0))
  _REPEATED = TensorRecord('table', np.array([3.0, 4.0]), Slices(2, 4.0))
  _DENSE = TensorRecord('bias', np.array([3.0]))

  def scaled(self, table, factor, rows=2):
    value = table.value * factor
    slices = Slices(rows, (table.slices.norm if rows == 2 else 5.0) * factor)
    return (
      TensorRecord('table', value, slices),
      TensorRecord('bias', self._DENSE.value * factor),
    )

  def test_limit_is_of_the_rows_as_they_are(self):
    found = clip_of((self._REPEATED, self._DENSE), self.scaled(self._REPEATED, 0.2))
    self.assertTrue(found.is_like(Clip('joint', 1.0)), found)

  def test_rows_that_are_added_up_after_clipping(self):
    found = clip_of((self._REPEATED, self._DENSE), self.scaled(self._REPEATED, 0.2, rows=1))
    self.assertTrue(found.is_like(Clip('joint', 1.0)), found)

  def test_rows_that_are_made_dense_after_clipping_or_before(self):
    raw = self._REPEATED, self._DENSE
    for limit, size in ((0.5, 5.0), (0.3, 34**0.5)):
      made = [r.value * limit / size for r in raw]
      applied = [TensorRecord(r.name, value) for r, value in zip(raw, made, strict=True)]
      self.assertTrue(clip_of(raw, applied).is_like(Clip('joint', limit)))

  def test_dense_gradients_have_one_norm(self):
    found = clip_of((self._ROWS, self._DENSE), self.scaled(self._ROWS, 0.2))
    self.assertTrue(found.is_like(Clip('joint', 34**0.5 / 5)), found)
    self.assertAlmostEqual(greatest_sizes((self._ROWS, self._DENSE))['joint'], 34**0.5)
    self.assertAlmostEqual(greatest_sizes((self._REPEATED, self._DENSE))['joint'], 5.0)


class ComparedTrialsTest(parameterized.TestCase):
  PAIRS = (('scope/kernel', 'kernel'), ('scope/bias', 'bias'))

  def of_tf1(self, clip, factor=1e6):
    def named(arrays):
      return records({f'scope/{name}': value for name, value in arrays.items()})

    large = times(factor)
    return ClippingTrial(named(_SMALL), named(clip(_SMALL)), named(large), named(clip(large)))

  @parameterized.named_parameters(
    ('joint', joint(5.0), joint(5.0)),
    ('lopsided', lopsided, lopsided),
  )
  def test_alike(self, tf1, tf2):
    self.assertIsNone(differs_in_trial(self.of_tf1(tf1), trial(tf2), self.PAIRS))

  @parameterized.named_parameters(
    ('limit', joint(5.0), joint(5.1)),
    ('kind', joint(5.0), each(5.0)),
    ('lopsided', lopsided, values(2.0)),
    ('of_a_part', joint(5.0), lambda arrays: {**joint(5.0)(arrays), 'bias': arrays['bias']}),
  )
  def test_different(self, tf1, tf2):
    found = differs_in_trial(self.of_tf1(tf1), trial(tf2), self.PAIRS)
    self.assertIsNotNone(found)
    self.assertIn(found[0], ('scope/kernel', 'scope/bias'))
    self.assertNotAlmostEqual(found[1] / found[2], 1.0, places=2)

  def test_one_side_leaves_the_gradients_as_they_are(self):
    self.assertIsNotNone(differs_in_trial(None, trial(lopsided), self.PAIRS))
    self.assertIsNotNone(differs_in_trial(self.of_tf1(lopsided), None, self.PAIRS))
    self.assertIsNone(differs_in_trial(None, trial(dict), self.PAIRS))

  def test_large_gradients_that_are_not_the_same_are_not_compared(self):
    with self.assertRaises(NotApplicable):
      differs_in_trial(self.of_tf1(lopsided, 1.01e6), trial(lopsided), self.PAIRS)

  def trials_of(self, factors, bias_of_tf1, bias_of_port):
    large = {'kernel': 1e6 * _SMALL['kernel'], 'bias': factors * _SMALL['bias']}
    sides = []
    for prefix, bias in (('scope/', bias_of_tf1), ('', bias_of_port)):
      made = {'kernel': _SMALL['kernel'], 'bias': np.asarray(bias)}
      raw, applied = (
        records({f'{prefix}{name}': value for name, value in arrays.items()})
        for arrays in (large, made)
      )
      sides.append(ClippingTrial(raw, applied, raw, applied))
    return sides

  def test_what_was_set_to_zero_tells_nothing(self):
    tf1, tf2 = self.trials_of(0.0, [1e-3, 2e-3], [2e-3, 1e-3])
    self.assertIsNone(differs_in_trial(tf1, tf2, self.PAIRS))

  def test_what_cancels_is_rounding(self):
    tf1, tf2 = self.trials_of(1e6, [1e-7, -1e-7], [2e-7, 1e-7])
    self.assertIsNone(differs_in_trial(tf1, tf2, self.PAIRS))
    tf1, tf2 = self.trials_of(1e6, [1e-3, -1e-3], [2e-3, 1e-3])
    self.assertEqual(differs_in_trial(tf1, tf2, self.PAIRS)[0], 'scope/bias')

  def test_a_small_gradient_may_differ_by_what_cancels_in_it(self):
    sides = []
    for prefix, shift, factor in (('scope/', 0.0, 1.0), ('', 2e-3, 1.0), ('', 2e-3, 1.2)):
      large = {'kernel': 1e6 * _SMALL['kernel'], 'bias': (1 + shift) * 1e4 * _SMALL['bias']}
      applied = {name: 1e-6 * factor * value for name, value in large.items()}
      raw, made = (
        records({f'{prefix}{name}': value for name, value in arrays.items()})
        for arrays in (large, applied)
      )
      sides.append(ClippingTrial(raw, made, raw, made))
    self.assertIsNone(differs_in_trial(sides[0], sides[1], self.PAIRS))
    self.assertIsNotNone(differs_in_trial(sides[0], sides[2], self.PAIRS))

  def test_factors_make_each_gradient_equally_large(self):
    small = {'kernel': _SMALL['kernel'], 'bias': 1e-5 * _SMALL['bias']}
    of_tf1 = {f'scope/{name}': value * (1 + 1e-6) for name, value in small.items()}
    factors, of_port = equalizing_factors(records(of_tf1), records(small), self.PAIRS)
    for name, value in small.items():
      self.assertEqual(factors[f'scope/{name}'], of_port[name])
      self.assertBetween(np.linalg.norm(of_port[name] * value), 5e5, 1e6)

  def test_a_gradient_that_is_rounding_is_multiplied_by_zero(self):
    of_tf1 = {'scope/kernel': _SMALL['kernel'], 'scope/bias': np.array([1e-9, -2e-9])}
    port = {'kernel': _SMALL['kernel'], 'bias': np.array([0.0, 3e-9])}
    factors, _ = equalizing_factors(records(of_tf1), records(port), self.PAIRS)
    self.assertEqual(factors['scope/bias'], 0.0)
    self.assertGreater(factors['scope/kernel'], 1.0)

  def test_gradients_of_other_variables_have_no_factors(self):
    self.assertIsNone(equalizing_factors(records(_SMALL), records(_SMALL), self.PAIRS))


def cleared(arrays):
  """Returns gradients with the first row of the kernel set to 0, as one of padding."""
  kernel = arrays['kernel'] * np.array([[0.0], [1.0]])
  return {**arrays, 'kernel': kernel}


class BesideZerosTest(parameterized.TestCase):
  # The norms are 0.55 and 0.51; of what is left of the kernel, 0.22.
  @parameterized.product(
    clip=((joint, JOINT), (each, EACH)), limit=(0.2, 0.1), when=((BEFORE, AFTER))
  )
  def test_is_told_when_elements_are_set_to_0(self, clip, limit, when):
    made, kind = clip
    scaled = made(limit)
    after = scaled(cleared(_SMALL)) if when == BEFORE else cleared(scaled(_SMALL))
    found = clip_of(records(_SMALL), records(after))
    self.assertEqual((found.kind, found.clears), (kind, when))
    self.assertAlmostEqual(found.limit, limit)

  def test_is_not_told(self):
    self.assertIsNone(clip_of(records(_SMALL), records(cleared(multiplied(_SMALL)))))
    self.assertIsNone(clip_of(records(_SMALL), records(cleared(_SMALL))))
    nothing = {name: np.zeros_like(value) for name, value in _SMALL.items()}
    self.assertIsNone(clip_of(records(_SMALL), records({**_SMALL, 'kernel': nothing['kernel']})))


if __name__ == '__main__':
  absltest.main()
