"""Tests of recurrences that one side writes out in Python, and the other one loops over."""

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.diagnosis.divergence.tensors.written_rounds import Repeats, pair_in_written_rounds
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import Pairing

v1 = tf.compat.v1
_STEPS = 5
_SHAPES = {'w': (3, 4), 'u': (4, 4), 'gate': (3, 4)}


def _step(x, state, average, weights):
  gate = tf.sigmoid(tf.matmul(x, weights['gate']))
  new = tf.tanh(tf.matmul(x, weights['w']) + tf.matmul(state, weights['u']))
  new = gate * state + (1.0 - gate) * new
  return new, 0.7 * average + 0.2 * (new - state)


def _step_of_the_port(mistake):
  def step(x, state, average, weights):
    gate = tf.sigmoid(tf.matmul(x, weights['gate']))
    new = tf.tanh(tf.matmul(x, weights['w']) + tf.matmul(state, weights['u']))
    new = gate * state + (new if mistake == 'gate' else new - gate * new)
    if mistake == 'decay':
      return new, 0.6 * average + 0.2 * (new - state)
    if mistake == 'change':
      return new, 0.7 * average + 0.2 * new
    if mistake == 'average':
      return new, 0.7 * average + 0.2 * (new - average)
    return new, 0.7 * average + 0.2 * (new - state)

  return step


def _run(how, step, inputs, weights):
  """Runs a recurrence; `written` in Python, `looped` in a loop of the graph."""
  state = average = tf.zeros([tf.shape(inputs)[0], 4])
  if how == 'written':
    for n in range(_STEPS):
      state, average = step(inputs[:, n], state, average, weights)
  else:

    def body(n, state, average):
      return n + 1, *step(inputs[:, n], state, average, weights)

    _, state, average = tf.while_loop(lambda n, *_: n < _STEPS, body, [0, state, average])
  return tf.concat([state, average], 1)


class _Port(keras.layers.Layer):
  def __init__(self, how, mistake):
    super().__init__(name='net')
    self.how, self.mistake = how, mistake

  def build(self, _):
    self.kept = {n: self.add_weight(name=n, shape=shape) for n, shape in _SHAPES.items()}

  def call(self, inputs):
    return _run(self.how, _step_of_the_port(self.mistake), inputs, self.kept)


def _case(tf1, port, mistake):
  class Case(tf2verify.EquivalenceCase):
    training_modes = (False,)

    def build_tf1_graph(self, inputs, training):
      weights = {name: v1.get_variable(name, shape) for name, shape in _SHAPES.items()}
      return _run(tf1, _step, inputs, weights)

    def make_tf2_layer(self):
      return _Port(port, mistake)

    def make_inputs(self):
      return tf2verify.normal_inputs((2, _STEPS, 3))

  return Case


class LadderTest(parameterized.TestCase):
  @parameterized.parameters(('looped', 'written'), ('written', 'looped'))
  def test_a_state_that_goes_wrong_is_proven_in_all_rounds(self, tf1, port):
    said = {
      'gate': 'the port lacks',
      'decay': '(Mul) is 0.6 in the port, 0.7 in tf1',
      'change': 'the port lacks Sub',
      'average': '(Sub) reads',
    }
    for mistake, text in said.items():
      with self.subTest(mistake):
        verdict = tf2verify.verify(_case(tf1, port, mistake), stages=['zero_randomness'])
        failure = verdict.first_failure
        self.assertIsNotNone(failure)
        (cause,) = failure.diagnosis.causes
        self.assertTrue(cause.is_proven, failure.to_text())
        self.assertIn(text, cause.text)

  @parameterized.parameters(('looped', 'written'), ('written', 'looped'))
  def test_right(self, tf1, port):
    verdict = tf2verify.verify(_case(tf1, port, ''), stages=['zero_randomness'])
    self.assertIsNone(verdict.first_failure)


def _graph(side, ops):
  """Returns a graph of operations that read the one before; each is a name, a type and a line."""
  made = [OpRecord('x', 'input', (), outputs=(('float32', (2,)),), tensors=('x:0',))]
  for number, (name, op_type, line) in enumerate(ops):
    source = SourceLine('model.py', line, 'call', '')
    kept = {'outputs': (('float32', (2,)),), 'tensors': (f'{name}:0',), 'source': source}
    made.append(OpRecord(name, op_type, ((number, 0),), **kept))
  return OpGraph(side, tuple(made))


class PairingTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    steps = [('a', 'Mul', 1), ('b', 'Sub', 2)]
    self.tf1 = _graph(
      'tf1',
      [(f'while/round_{n}/{name}', kind, line) for n in range(3) for name, kind, line in steps],
    )

  def paired(self, ops, known):
    pairing = Pairing(self.tf1, _graph('tf2', ops))
    pairing.part(*range(1, len(self.tf1.ops)))
    for pair in known:
      pairing.add(*pair)
    pair_in_written_rounds(pairing, known)
    return {n: m for n, m in pairing.pairs() if n}

  def test_line_makes_one_operation_of_a_type_a_round(self):
    ops = [(f'{kind}_{n}', kind, 7) for n in range(3) for kind in ('Sub', 'Mul')]
    self.assertEqual(self.paired(ops, [(1, 2)]), {1: 2, 3: 4, 5: 6})

  def test_line_makes_two_a_round(self):
    ops = [(f'mul_{n}', 'Mul', 7) for n in range(6)]
    self.assertEqual(self.paired(ops, [(1, 2)]), {1: 2, 3: 4, 5: 6})

  def test_not_where_a_line_makes_no_whole_number_a_round(self):
    ops = [(f'mul_{n}', 'Mul', 7) for n in range(4)]
    self.assertEqual(self.paired(ops, [(1, 1)]), {1: 1})

  def test_not_where_a_pair_is_of_another_round(self):
    ops = [(f'mul_{n}', 'Mul', 7) for n in range(3)]
    self.assertEqual(self.paired(ops, [(1, 2)]), {1: 2})

  def test_not_where_two_of_the_line_are_like_the_one_of_the_loop(self):
    ops = [(f'mul_{n}', 'Mul', 7) for n in range(6)]
    self.assertEqual(self.paired(ops, [(1, 1), (3, 4)]), {1: 1, 3: 4})

  def test_not_where_a_round_has_none(self):
    later = [(f'while/round_{n}/a', 'Mul', 1) for n in (1, 2, 3)]
    self.tf1 = _graph('tf1', later)
    self.assertEqual(self.paired([(f'mul_{n}', 'Mul', 7) for n in range(3)], [(1, 1)]), {1: 1})
    repeats = Repeats(self.tf1)
    self.assertIsNone(repeats.later(1, 1, 3))
    self.assertEqual(repeats.count(1), 0)

  def _with_steps(self, of_tf1, of_port):
    """Makes tf1 of three rounds with some products each, and returns the port's operations."""

    def steps(count, line):
      return [
        step
        for n in range(3)
        for step in (
          *((f'mul_{n}_{k}', 'Mul', line) for k in range(count)),
          (f'sub_{n}', 'Sub', line + 1),
        )
      ]

    self.tf1 = _graph('tf1', steps(of_tf1, 1))
    return steps(of_port, 7)

  def test_where_both_sides_write_their_rounds_out(self):
    ops = self._with_steps(2, 3)
    # The second of two products in each round, and the third of three.
    self.assertEqual(self.paired(ops, [(2, 3), (5, 7)]), {2: 3, 5: 7, 8: 11})

  def test_not_where_pairs_of_both_contradict_each_other(self):
    ops = self._with_steps(2, 2)
    self.assertEqual(self.paired(ops, [(1, 8), (2, 1)]), {1: 8, 2: 1})

  def test_one_run_of_a_line_is_no_loop(self):
    self.tf1 = _graph('tf1', [(f'mul_{n}', 'Mul', 1) for n in range(6)])
    ops = [(f'product_{n}', 'Mul', 7) for n in range(6)]
    self.assertEqual(self.paired(ops, [(1, 1)]), {1: 1})

  def test_same_operation_in_another_round(self):
    repeats = Repeats(_graph('tf2', [(f'mul_{n}', 'Mul', 7) for n in range(6)]))
    self.assertEqual(repeats.later(2, 1, 3), 4)
    self.assertEqual(repeats.later(4, -1, 3), 2)
    self.assertIsNone(repeats.later(6, 1, 3))
    self.assertIsNone(repeats.later(0, 1, 3))  # an input
    self.assertIsNone(repeats.later(2, 1, 4))


if __name__ == '__main__':
  absltest.main()
