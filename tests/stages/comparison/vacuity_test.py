"""What a stage that passed says it did not see."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.numerics.telling import Blank
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.verdict_text import stage_line
from tf2verify.stages.comparison.vacuity import OutputWatch, Telling, gradient_notes

v1 = tf.compat.v1
_RAMP = np.linspace(-1, 1, 40, dtype=np.float32)


def notes(*runs):
  watch = OutputWatch()
  for number, outputs in enumerate(runs):
    records = tuple(TensorRecord(name, value) for name, value in outputs.items())
    watch.add(Observation('tf1', f'run {number}', '', records))
  return watch.notes()


class OutputWatchTest(parameterized.TestCase):
  @parameterized.parameters(
    (np.zeros((2, 3), np.float32), 'zero everywhere'),
    (np.zeros((), np.float32), 'zero everywhere'),
    (np.full(5, 0.25, np.float32), 'the same number everywhere'),
    (np.maximum(_RAMP - 0.95, 0), 'saturated'),
    (np.repeat(np.float32([0, 1]), 20), 'saturated'),
    (np.tile(np.float32([1, 0]), (8, 1)), 'saturated'),  # a softmax, the same in all rows
    (np.tile(np.float32([7, 7, 2]), (8, 1)), 'saturated'),
  )
  def test_tells_little(self, value, text):
    (note,) = notes({'x': value})
    self.assertStartsWith(note, 'output x is ')
    self.assertIn(text, note)
    self.assertIn('[run 0]', note)

  @parameterized.parameters(
    (_RAMP,),
    (np.maximum(_RAMP, 0),),  # a ReLU that lives
    (np.tile(np.float32([0.3, -0.2]), (8, 1)),),  # a variable, for each example
    (np.repeat(np.float32([[0.3], [-0.2]]), 10, 1),),
    (np.float32(0.5),),
    (np.float32([0, 1]),),
    (np.full(3, np.nan, np.float32),),  # said elsewhere
    (np.zeros(3, np.int32),),
    (np.zeros((0, 3), np.float32),),
    (None,),
  )
  def test_nothing_to_say(self, value):
    self.assertEmpty(notes({'x': None if value is None else np.asarray(value)}))

  def test_one_run_that_varies_is_enough(self):
    self.assertEmpty(notes({'x': np.zeros(40)}, {'x': _RAMP.astype(np.float64)}))
    self.assertLen(notes({'x': np.zeros(40)}, {'x': np.zeros(40)}), 1)

  def test_three_names_are_shown(self):
    (note,) = notes({f'x{n}': np.zeros(2) for n in range(5)})
    self.assertStartsWith(note, '5 outputs are zero everywhere')
    self.assertEndsWith(note, ': x0, x1, x2, …')

  def test_gradients(self):
    zero, some = TensorRecord('a', np.zeros(3)), TensorRecord('b', _RAMP)
    self.assertEqual(gradient_notes([zero, some]), ['gradient a is zero everywhere on both sides'])
    self.assertEmpty(gradient_notes([some, TensorRecord('c', None)]))


def dead(inputs):
  """A model that uses one of its variables and one of its inputs, behind a dead ReLU."""
  with v1.variable_scope('net'):
    v1.get_variable('unused', (2,))
    used = v1.get_variable('used', (3,))
  return tf.nn.relu(-1.0 - tf.square(inputs['x'] * used))


class Port(tf.keras.layers.Layer):
  function = staticmethod(dead)

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return self.function(inputs)


class DeadModel(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return dead(inputs)

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    x = tf2verify.normal_inputs((2, 3))
    return {'x': x, 'labels': x}


def half_dead(inputs):
  return dead(inputs), inputs['x'] * v1.get_variable('live', (3,))


class HalfDeadPort(Port):
  function = staticmethod(half_dead)


class HalfDeadModel(DeadModel, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return half_dead(inputs)

  def make_tf2_layer(self):
    return HalfDeadPort()


class StagesTest(absltest.TestCase):
  def test_a_model_that_yields_only_zeros_tells_nothing(self):
    class DeadCase(DeadModel):
      pass

    verdict = tf2verify.verify(DeadCase, ['zero_randomness']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE)
    self.assertStartsWith(verdict.reason, 'every output is zero on both sides')

  def test_notes_of_stages_that_pass(self):
    class HalfDeadCase(HalfDeadModel):
      pass

    case = tf2verify.verify(HalfDeadCase)
    self.assertIs(case.status, tf2verify.Status.PASSED, case.to_text())
    found = {stage.stage: stage.notes for stage in case.stages}
    zero = 'output [0] is zero everywhere, which shows next to nothing of the model'
    self.assertEqual(
      found['zero_randomness'],
      (
        f'{zero} [inference, distinct values]',
        'variable net/unused is without influence on any output, regularization loss or update op '
        'of tf1',
        "input ['labels'] is never read on the way to any output of tf1",
      ),
    )
    self.assertEqual(
      found['seeded_constant'], (f'{zero} [inference, constant; training, constant]',)
    )
    self.assertIn('gradient net/used is zero everywhere on both sides', found['gradients'])
    counts = [stage.compared.blind_spots for stage in case.stages if stage.number in (3, 4, 6)]
    self.assertEqual(counts, [3, 1, 1])
    self.assertIn('; 3 blind spots', stage_line(case.stages[2]))
    self.assertNotIn('blind', stage_line(case.stages[1]))


class TellingTest(parameterized.TestCase):
  """Comparing nothing, in disguise: every stage judges by one place."""

  def _seen(self, *runs):
    telling = Telling()
    for number, (quantity, name, blank, constant) in enumerate(runs):
      telling.add(TensorKey(quantity, name, f'run {number}'), blank, constant)
    return telling

  def test_one_run_that_tells_is_enough(self):
    telling = self._seen(('loss', 'a', Blank.ZERO, ''), ('loss', 'a', None, ''))
    self.assertEmpty(telling.notes())
    self.assertEmpty(telling.reason())

  def test_another_constant_in_another_run_tells(self):
    one, other = ('output', 'x', Blank.SAME, '1'), ('output', 'x', Blank.SAME, '2')
    self.assertEmpty(self._seen(one, other).reason())
    self.assertIn('always yields this value', self._seen(one, one).reason())

  def test_what_else_was_compared_makes_it_a_blind_spot(self):
    telling = self._seen(('output', 'x', Blank.EMPTY, ''), ('gradient', 'w', None, ''))
    self.assertLen(telling.notes(), 1)
    self.assertEmpty(telling.reason())
    telling.judged_by = ('output',)
    self.assertIn('output x is without elements', telling.reason())

  def test_a_learning_rate_alone_tells_nothing(self):
    telling = self._seen(
      ('learning rate', '(of the step)', None, ''),
      ('slot', 'beta1 power', None, ''),
      ('update', 'w', Blank.ZERO, ''),
    )
    self.assertIn('zero everywhere', telling.reason())

  def test_a_variable_that_starts_at_zero_tells(self):
    self.assertEmpty(self._seen(('initial value', 'b', Blank.ZERO, '')).reason())
    self.assertNotEmpty(self._seen(('initial value', 'b', Blank.TOLERANCE, '')).reason())


def dense(inputs, units=3):
  return v1.layers.dense(inputs, units, name='d')


class Shim(tf.keras.layers.Layer):
  def __init__(self, function):
    super().__init__()
    self._function = function

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return self._function(inputs)


def log_beside(function):
  return lambda x: tf.concat([x, tf.math.log(-tf.abs(function(x)) - 1.0)], -1)


_WIDE = tf2verify.Tolerance(rtol=1e6, atol=1e-5)
_ROWS = tf2verify.normal_inputs((4, 5))


def verified(model, port, inputs=_ROWS, stages=('zero_randomness',), **attributes):
  class Case(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      return model(inputs)

    def make_tf2_layer(self):
      return Shim(port)

    def make_inputs(self):
      return inputs

  for name, value in attributes.items():
    setattr(Case, name, value)
  return tf2verify.verify(Case, list(stages)).stages[-1]


class NothingComparedTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('no element', lambda x: dense(x)[:0], lambda x: 2 * dense(x)[:0], 'without elements'),
    (
      'booleans',
      lambda x: dense(x) > 1e6,
      lambda x: -7 * dense(x) > 1e6,
      'always yields this value',
    ),
    (
      'integers',
      lambda x: tf.cast(dense(x) > 1e6, tf.int64) + 4,
      lambda x: tf.cast(-dense(x) > 1e6, tf.int64) + 4,
      'always yields this value',
    ),
    (
      'texts',
      lambda x: tf.where(dense(x) > 1e6, 'yes', 'no'),
      lambda x: tf.where(3 * dense(x) > 1e6, 'yes', 'no'),
      'always yields this value',
    ),
    (
      'infinities',
      lambda x: tf.exp(tf.abs(dense(x)) + 1e6),
      lambda x: tf.exp(5 * tf.abs(dense(x)) + 1e6),
      'without a finite number',
    ),
    (
      'finite by the inputs alone',
      log_beside(dense),
      log_beside(lambda x: 3 * dense(x)),
      'no output depends on any variable',
    ),
  )
  def test_a_wrong_port_is_not_passed(self, model, port, text):
    verdict = verified(model, port)
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())
    self.assertIn(text, verdict.reason)

  def test_finite_by_inputs_that_were_varied(self):
    verdict = verified(log_beside(dense), log_beside(lambda x: 3 * dense(x)), np.ones_like(_ROWS))
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())

  @parameterized.parameters(
    {'tolerance': _WIDE},
    {'tolerance': {'float32': _WIDE}},
    {'tolerance': tf2verify.Tolerance(rtol=1.0, atol=0.0)},
    {'tolerance': tf2verify.Tolerance(rtol=1e-6, atol=1e6)},
  )
  def test_a_tolerance_that_everything_passes(self, **attributes):
    wrong = verified(dense, lambda x: 2 * dense(x), **attributes)
    self.assertIs(wrong.status, tf2verify.Status.INCONCLUSIVE, wrong.to_text())
    self.assertIn('zeros, or twice as much, would also pass', wrong.reason)
    right = verified(dense, dense, **attributes)
    self.assertIs(right.status, tf2verify.Status.PASSED, right.to_text())

  def test_regularization_beside_outputs_that_tell_nothing(self):
    def model(factor):
      regularizer = tf.keras.regularizers.L2(0.1)

      def outputs(x):
        return factor * v1.layers.dense(x, 3, name='d', kernel_regularizer=regularizer) > 1e6

      return outputs

    verdict = verified(model(1.0), model(-7.0))
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())

  def test_gradients_by_a_wide_tolerance(self):
    verdict = verified(
      dense,
      five_times,
      stages=['gradients'],
      gradient_tolerance=_WIDE,
    )
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())

  def test_the_part_that_tells_nothing_is_named(self):
    verdict = verified(
      lambda x: (net := dense(x), net > 1e6), lambda x: (net := dense(x), -7 * net > 1e6)
    )
    self.assertIs(verdict.status, tf2verify.Status.PASSED)
    multiplied, same = verdict.blind_spots
    self.assertIn('output [1] is the same in all elements', same)
    self.assertIn('the port computes Mul with -7', multiplied)
    self.assertEqual(verdict.compared.blind_spots, 2)

  @parameterized.named_parameters(
    ('argmax', lambda x: tf.argmax(dense(x), -1)),
    ('top k', lambda x: tuple(tf.nn.top_k(dense(x), 2))),
    ('no variable', lambda x: (tf.argmax(x, -1), 2.0 * x)),
    ('lengths', lambda x: (dense(x), tf.cast(tf.reduce_sum(x, -1), tf.int32))),
    ('scalar', lambda x: tf.reduce_sum(dense(x))),
    ('zero in one run', lambda x: tf.nn.relu(dense(x) - 0.01)),
  )
  def test_no_word_about_what_tells(self, model):
    verdict = verified(model, model)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertEmpty(verdict.blind_spots)


def five_times(x):
  net = dense(x)
  return 5.0 * net - tf.stop_gradient(4.0 * net)


if __name__ == '__main__':
  absltest.main()
