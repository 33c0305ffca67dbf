"""What a training step's variables are known to be, by induction over the steps."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.relation.proof.inductive import states_of
from tf2verify.relation.proof.normal_forms.states import Count, Multiple, Power
from tf2verify.relation.proof.proving import StepStates, prove
from tf2verify.sides.graphs.reading import GraphReader, Target

v1 = tf.compat.v1


def _step(side, step, variables):
  """Returns the graph of a step: a function of variables that returns what they are after it."""
  graph = tf.Graph()
  with graph.as_default():
    before = {
      name: v1.placeholder(value.dtype, value.shape, name=f'variable_{n}')
      for n, (name, value) in enumerate(variables.items())
    }
    after = {name: tf.identity(value) for name, value in step(before).items()}
  names = {tensor.op.name: name for name, tensor in before.items()}
  targets = [Target(f'update of {name}', (value.name,)) for name, value in after.items()]
  return GraphReader(graph, names, {}, {}).read(targets, (), side)


def _numbers(**values):
  return {name: np.asarray(value) for name, value in values.items()}


class StatesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('a power', lambda b: b * 0.9, np.float32(0.9), 0, Power(0.9, 1)),
    ('a power after two steps', lambda b: 0.9 * b, np.float32(0.729), 2, Power(0.9, 1)),
    ('a count', lambda n: n + 1, np.int64(2), 2, Count(0)),
    ('a count that starts at one', lambda n: n + 1, np.int64(1), 0, Count(1)),
    ('a count of floats', lambda n: n + 1.0, np.float32(0.0), 0, Count(0)),
    ('no power: another value', lambda b: b * 0.9, np.float32(0.85), 0, None),
    ('no power: it grows', lambda b: b * 1.1, np.float32(1.0), 0, None),
    ('no power: a sum', lambda b: b * 0.9 + 0.1, np.float32(0.9), 0, None),
    ('no count: by two', lambda n: n + 2, np.int64(0), 0, None),
    ('unchanged', lambda n: n, np.int64(0), 0, None),
  )
  def test_states(self, after, value, steps, expected):
    variables = {'known': np.asarray(value)}
    graph = _step('tf1', lambda before: {'known': after(before['known'])}, variables)
    found = states_of(graph, variables, steps)
    if expected is None:
      self.assertEqual(found, {})
    else:
      self.assertEqual(type(found['known']), type(expected))
      self.assertEqual(found['known'].start, expected.start)

  def _proof(self, base, start=1):
    def tf1(before):
      weight = before['w'] - before['power'] * 0.5
      return {'w': weight, 'power': before['power'] * 0.9}

    def tf2(before):
      count = tf.cast(before['count'] + start, tf.float32)
      return {'w': before['w'] - 0.5 * tf.pow(base, count), 'count': before['count'] + 1}

    weights = np.ones(3, np.float32)
    one = _numbers(w=weights, power=np.float32(0.9))
    other = _numbers(w=weights, count=np.int64(0))
    graphs = _step('tf1', tf1, one), _step('tf2', tf2, other)
    states = StepStates(states_of(graphs[0], one, 0), states_of(graphs[1], other, 0), {})
    return prove(*graphs, {'w': ('float32', (3,))}, ['update of w'], states=states)

  def test_a_power_that_is_kept_and_one_that_is_formed_anew(self):
    self.assertEqual(self._proof(0.9).tested, ())

  def test_another_base(self):
    self.assertEqual(self._proof(0.99).tested, ('update of w',))

  def test_one_step_further(self):
    self.assertEqual(self._proof(0.9, start=2).tested, ('update of w',))

  @parameterized.named_parameters(
    ('less', lambda n: n < 2.0, True),
    ('another bound', lambda n: n < 3.0, False),
    ('at most two', lambda n: n <= 2.0, False),
    ('between two counts', lambda n: n < 1.5, False),
  )
  def test_a_count_that_is_compared_as_a_float(self, is_less, is_proven):
    def tf1(before):
      rate = tf.where(before['count'] < 2, 0.5, 0.25)
      return {'w': before['w'] - rate, 'count': before['count'] + 1}

    def tf2(before):
      rate = tf.where(is_less(tf.cast(before['count'], tf.float32)), 0.5, 0.25)
      return {'w': before['w'] - rate, 'count': before['count'] + 1}

    values = _numbers(w=np.ones(3, np.float32), count=np.int64(0))
    graphs = _step('tf1', tf1, values), _step('tf2', tf2, values)
    states = StepStates(*(states_of(graph, values, 0) for graph in graphs), {})
    proof = prove(*graphs, {'w': ('float32', (3,))}, ['update of w'], states=states)
    self.assertEqual(proof.tested, () if is_proven else ('update of w',))

  @parameterized.parameters((-0.1, -0.1, True), (-0.1, -0.2, False))
  def test_a_slot_in_another_unit(self, factor, rate, is_proven):
    def tf1(before):
      momentum = before['m'] * 0.9 + before['w']
      return {'m': momentum, 'w': before['w'] - 0.1 * momentum}

    def tf2(before):
      velocity = before['v'] * 0.9 + rate * before['w']
      return {'v': velocity, 'w': before['w'] + velocity}

    values = np.ones(3, np.float32)
    graphs = (
      _step('tf1', tf1, {'m': values, 'w': values}),
      _step('tf2', tf2, {'v': factor * values, 'w': values}),
    )
    states = StepStates({}, {}, {'v': Multiple('m', factor)})
    known = dict.fromkeys('mw', ('float32', (3,)))
    proof = prove(*graphs, known, ['update of w', 'update of m'], states=states)
    self.assertCountEqual(proof.tested, () if is_proven else ('update of w', 'update of m'))


if __name__ == '__main__':
  absltest.main()
