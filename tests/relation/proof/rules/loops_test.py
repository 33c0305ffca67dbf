"""Tests of tf2verify.relation.proof.rules.loops and lists: loops, and code that goes without."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related, values

_STEPS = 5
# A sequence, the kernel of a cell, and the bias.
_SHAPES = ((3, _STEPS, 4), (6, 4), (4,))


def _cell(x, state, kernel, bias):
  """Reads the kernel of a plain cell; the first two rows are no part of it."""
  return tf.tanh(x @ kernel[2:] + state + bias)


def _written_out(x, kernel, bias, count=_STEPS, start=0.0):
  state = tf.fill((3, 4), start)
  for step in range(count):
    state = _cell(x[:, step], state, kernel, bias)
  return state


def _loop(x, kernel, bias, count=_STEPS, start=0.0):
  def body(step, state):
    return step + 1, _cell(tf.gather(x, step, axis=1), state, kernel, bias)

  return tf.while_loop(lambda step, state: step < count, body, (0, tf.fill((3, 4), start)))[1]


def _scan(x, kernel, bias, backward=False):
  rows = tf.transpose(x, (1, 0, 2))
  rows = rows[::-1] if backward else rows
  return tf.scan(lambda state, row: _cell(row, state, kernel, bias), rows, tf.zeros((3, 4)))


def _all_written_out(x, kernel, bias, backward=False):
  state, found = tf.zeros((3, 4)), []
  for step in range(_STEPS)[:: -1 if backward else 1]:
    state = _cell(x[:, step], state, kernel, bias)
    found.append(state)
  return tf.stack(found)


def _lists(x, kernel, bias):
  del kernel, bias
  rows = tf.TensorArray(tf.float32, _STEPS, element_shape=(3, 4)).unstack(
    tf.transpose(x, (1, 0, 2))
  )
  found = tf.TensorArray(tf.float32, _STEPS, element_shape=(3, 4))

  def body(step, found):
    return step + 2, found.write(step, rows.read(step) * 2.0)

  return tf.while_loop(lambda step, found: step < _STEPS, body, (0, found))[1].stack()


def _every_other(x, kernel, bias):
  del kernel, bias
  rows = tf.unstack(tf.transpose(x, (1, 0, 2)))
  return tf.stack([row * (2.0 if n % 2 == 0 else 0.0) for n, row in enumerate(rows)])


def _lengths(x):
  return tf.cast(tf.abs(x[:, 0, 0]) * 4.0, tf.int32)


def _to_the_longest(x, kernel, bias, goes_on=tf.less, least=1, keeps=True, counts=False):
  """Stops after the longest sequence, as `dynamic_rnn` does, and keeps the state of the others."""
  lengths = _lengths(x)
  end = tf.minimum(_STEPS, tf.maximum(least, tf.reduce_max(lengths)))

  def body(step, state):
    new = _cell(tf.gather(x, step, axis=1), state, kernel, bias)
    live = goes_on(step, lengths)[:, None]
    return step + 1, tf.where(live, new, state) if keeps else new

  step, state = tf.while_loop(lambda step, state: step < end, body, (0, tf.zeros((3, 4))))
  return state + tf.cast(step, tf.float32) if counts else state


def _masked(x, kernel, bias, goes_on=tf.less):
  lengths, state = _lengths(x), tf.zeros((3, 4))
  for step in range(_STEPS):
    new = _cell(x[:, step], state, kernel, bias)
    state = tf.where(goes_on(step, lengths)[:, None], new, state)
  return state


def _until_small(x, kernel, bias):
  """The values tell how many rounds there are."""

  def body(step, state):
    return step + 1, state * 0.5

  del kernel, bias
  wanted = tf.reduce_max(tf.abs(x[:, 0])) > -1.0  # it always is, which no constant tells
  state = (0, x[:, 0])
  return tf.while_loop(lambda step, state: (step < 3) & wanted, body, state)[1]


def _halved(x, kernel, bias):
  del kernel, bias
  return x[:, 0] * 0.125


def _noise(x, kernel, bias):
  del kernel, bias

  def body(step, state):
    return step + 1, state + tf.random.normal((3, 4), seed=1)

  return tf.while_loop(lambda step, state: step < 2, body, (0, x[:, 0]))[1]


def _one_draw_twice(x, kernel, bias):
  del kernel, bias
  return x[:, 0] + 2.0 * tf.random.normal((3, 4), seed=1)


def _decided(x):
  return tf.reduce_sum(x) > -100.0


def _condition(x, kernel, bias, other=3.0):
  state = tf.zeros((3, 4))
  found = _cell(x[:, 0], state, kernel, bias)
  return tf.cond(_decided(x), lambda: found * 2.0, lambda: found * other)


def _condition_around_all(x, kernel, bias, other=3.0, decided=_decided):
  """Its branches read the inputs, where those of `_condition` read what is computed of them."""

  def times(factor):
    return lambda: _cell(x[:, 0], tf.zeros((3, 4)), kernel, bias) * factor

  return tf.cond(decided(x), times(2.0), times(other))


def _where(x, kernel, bias, other=3.0):
  found = _cell(x[:, 0], tf.zeros((3, 4)), kernel, bias)
  return tf.where(_decided(x), found * 2.0, found * other)


def _condition_in_rounds(x, kernel, bias, count=_STEPS):
  def body(step, state):
    new = _cell(tf.gather(x, step, axis=1), state, kernel, bias)
    kept = tf.cond(tf.reduce_max(new) > 0.5, lambda: new, lambda: state)
    return step + 1, kept

  return tf.while_loop(lambda step, _: step < count, body, (0, tf.zeros((3, 4))))[1]


def _choices_written_out(x, kernel, bias, count=_STEPS):
  state = tf.zeros((3, 4))
  for step in range(count):
    new = _cell(x[:, step], state, kernel, bias)
    state = tf.where(tf.reduce_max(new) > 0.5, new, state)
  return state


def _with(function, **changed):
  return lambda *inputs: function(*inputs, **changed)


_SAME = (
  ('loop, written out', _loop, _written_out),
  ('written out, loop', _written_out, _loop),
  ('all states', _scan, _all_written_out),
  ('backward', _with(_scan, backward=True), _with(_all_written_out, backward=True)),
  ('elements without values', _lists, _every_other),
  ('lengths', _to_the_longest, _masked),
  ('lengths of 0', _with(_to_the_longest, least=0), _masked),
  ('branches of a condition', _condition, _condition_around_all),
  ('a condition, a choice', _condition, _where),
  ('conditions in rounds', _condition_in_rounds, _choices_written_out),
  ('no round', _with(_loop, count=0, start=2.0), _with(_written_out, count=0, start=2.0)),
)
_DIFFERENT = (
  ('one round less', _loop, _with(_written_out, count=_STEPS - 1)),
  ('another start', _loop, _with(_written_out, start=1.0)),
  ('in the other direction', _scan, _with(_all_written_out, backward=True)),
  ('conditions of fewer rounds', _condition_in_rounds, _with(_choices_written_out, count=4)),
  ('rows and twice these', _lists, lambda x, *_: tf.transpose(x, (1, 0, 2)) * 2.0),
)
# Whose values are the same: another branch is taken by none.
_UNTAKEN = (
  ('a branch that is not taken', _condition, _with(_condition_around_all, other=4.0)),
  ('a choice that is not taken', _condition, _with(_where, other=4.0)),
  (
    'a condition that is decided otherwise',
    _condition,
    _with(_condition_around_all, decided=lambda x: tf.reduce_sum(x) > -90.0),
  ),
)
_UNKNOWN = (
  ('values tell the rounds', _until_small, _halved),
  (
    'a state that goes on after the lengths',
    _with(_to_the_longest, keeps=False),
    _written_out,
  ),
  (
    'a mask that ends one step later',
    _with(_to_the_longest, goes_on=tf.less_equal),
    _with(_masked, goes_on=tf.less_equal),
  ),
  (
    'a count that lengths tell',
    _with(_to_the_longest, counts=True),
    lambda *inputs: _masked(*inputs) + float(_STEPS),
  ),
  ('numbers drawn in rounds', _noise, _one_draw_twice),
)


class LoopsTest(parameterized.TestCase):
  @parameterized.named_parameters(*_SAME)
  def test_proven_in_rounds(self, one, other):
    self.assertEqual(related(one, other, _SHAPES, in_rounds=True).tested, ())
    for first, second in zip(values(one, _SHAPES), values(other, _SHAPES), strict=True):
      self.assertLess(abs(first - second).max(), 1e-5)

  @parameterized.named_parameters(*_DIFFERENT)
  def test_different_loops(self, one, other):
    self.assertEqual(related(one, other, _SHAPES, in_rounds=True).tested, ('output [0]',))
    if values(one, _SHAPES)[0].shape == values(other, _SHAPES)[0].shape:
      difference = abs(values(one, _SHAPES)[0] - values(other, _SHAPES)[0]).max()
      self.assertGreater(difference, 1e-3)

  @parameterized.named_parameters(*_UNTAKEN)
  def test_different_conditions_of_which_values_show_nothing(self, one, other):
    self.assertEqual(related(one, other, _SHAPES, in_rounds=True).tested, ('output [0]',))
    for first, second in zip(values(one, _SHAPES), values(other, _SHAPES), strict=True):
      self.assertLess(abs(first - second).max(), 1e-5)

  @parameterized.named_parameters(*_UNKNOWN)
  def test_what_constants_do_not_tell(self, one, other):
    self.assertEqual(related(one, other, _SHAPES, in_rounds=True).tested, ('output [0]',))

  def test_loops_without_rounds_are_operations(self):
    self.assertEqual(related(_loop, _loop, _SHAPES).tested, ())
    self.assertEqual(related(_loop, _written_out, _SHAPES).tested, ('output [0]',))

  def test_too_long_a_loop(self):
    long = _with(_loop, count=4000)
    shapes = ((3, 1, 4), *_SHAPES[1:])
    proof = related(long, lambda x, k, b: _written_out(x, k, b, 1), shapes, in_rounds=True)
    self.assertEqual(proof.tested, ('output [0]',))
    self.assertEqual(related(long, long, shapes, in_rounds=True).tested, ())


if __name__ == '__main__':
  absltest.main()
