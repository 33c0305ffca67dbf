"""What a stage that passed says it did not see."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.verdict_text import stage_line
from tf2verify.stages.comparison.vacuity import OutputWatch, gradient_notes

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
  )
  def test_tells_little(self, value, text):
    (note,) = notes({'x': value})
    self.assertStartsWith(note, 'output x is ')
    self.assertIn(text, note)
    self.assertIn('[run 0]', note)

  @parameterized.parameters(
    (_RAMP,),
    (np.maximum(_RAMP, 0),),  # a ReLU that lives
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


class HalfDeadPort(Port):
  function = staticmethod(lambda inputs: (dead(inputs), inputs['x']))


class HalfDeadModel(DeadModel, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return dead(inputs), inputs['x']

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
    zero = 'output [0] is zero everywhere, which tells next to nothing of the model'
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
    self.assertIn('; 3 blind spots, see the notes', stage_line(case.stages[2]))
    self.assertNotIn('blind', stage_line(case.stages[1]))


if __name__ == '__main__':
  absltest.main()
