"""Variables that the port holds in another layout, in the proof."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.proof.held_variables import Held, PairedVariables
from tf2verify.relation.proof.proving import prove
from tf2verify.sides.graphs.reading import GraphReader, Target

v1 = tf.compat.v1


def _graph(side, function, shapes, update=''):
  """Returns the graph of a function of `x`, of shape (5, 4), and of variables by name."""
  graph = tf.Graph()
  with graph.as_default():
    x = v1.placeholder(tf.float32, (5, 4), name='x')
    placed = {
      name: v1.placeholder(tf.float32, shape, name=f'variable_{n}')
      for n, (name, shape) in enumerate(shapes.items())
    }
    result = tf.identity(function(x, **{n.replace('/', '_'): one for n, one in placed.items()}))
  names = {tensor.op.name: name for name, tensor in placed.items()}
  target = Target(f'update of {update}' if update else 'output y', (result.name,))
  return GraphReader(graph, names, {'x': '(the input)'}, {}).read([target], (), side)


def _tested(tf1, tf2, entry, shapes, tf2_shapes, update=''):
  """Returns the targets that are not proven, of a port that holds its variables as an entry says.

  A pair of one variable and one is called in both graphs as in tf1.
  """
  entry = entry.bound([shapes[n] for n in entry.tf1], [tf2_shapes[n] for n in entry.tf2])
  is_pair = len(entry.tf1) == len(entry.tf2) == 1
  shown = dict(zip(entry.tf2, entry.tf1, strict=True)) if is_pair else {}
  held = {
    shown.get(name, name): Held(entry.tf1, tf2_shapes[name], place, entry)
    for place, name in enumerate(entry.tf2)
  }
  known = {name: ('float32', shape) for name, shape in shapes.items()}
  port = {shown.get(name, name): shape for name, shape in tf2_shapes.items()}
  graphs = _graph('tf1', tf1, shapes, update), _graph('tf2', tf2, port, update)
  return prove(*graphs, PairedVariables(known, held)).tested


def _heads(x, w):
  return tf.reshape(tf.matmul(x, w), (5, 2, 3))


_HEADS = MapEntry(('w',), ('w3',), 'a (b c) -> a b c')
_TURNED = MapEntry(('w',), ('v',), 'a b -> b a')
_SPLIT = MapEntry(('w',), ('q', 'k'), 'd (q+k) -> d q, d k')
_STACKED = MapEntry(('q', 'k'), ('w',), 'd a, d b -> d (a+b)')
_FORGET = MapEntry(('b',), ('c',), '(i+f) -> (i+f)', added=(('f', 1.0),), sizes=(('i', 2),))


class HeldVariablesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('heads', _heads, lambda x, w: tf.einsum('xa,abc->xbc', x, w), _HEADS, (2, 3)),
    (
      'heads by a product of matrices',
      _heads,
      lambda x, w: tf.reshape(x @ tf.reshape(w, (4, 6)), (5, 2, 3)),
      _HEADS,
      (2, 3),
    ),
  )
  def test_heads(self, tf1, tf2, entry, heads):
    shapes = {'w': (4, 6)}, {'w3': (4, *heads)}
    self.assertEqual(_tested(tf1, tf2, entry, *shapes), ())

  def test_heads_that_are_exchanged(self):
    def exchanged(x, w):
      return tf.reshape(tf.einsum('xa,abc->xcb', x, w), (5, 2, 3))

    shapes = {'w': (4, 6)}, {'w3': (4, 2, 3)}
    self.assertEqual(_tested(_heads, exchanged, _HEADS, *shapes), ('output y',))

  @parameterized.parameters((True, ()), (False, ('output y',)))
  def test_a_square_matrix_that_is_kept_the_other_way_round(self, turns, tested):
    found = _tested(
      lambda x, w: tf.matmul(x, w),
      lambda x, w: tf.matmul(x, w, transpose_b=turns),
      _TURNED,
      {'w': (4, 4)},
      {'v': (4, 4)},
    )
    self.assertEqual(found, tested)

  @parameterized.parameters((('q', 'k'), ()), (('k', 'q'), ('output y',)))
  def test_one_variable_in_two(self, order, tested):
    def tf1(x, w):
      queries, keys = tf.split(tf.matmul(x, w) * 0.5, 2, 1)
      return tf.matmul(queries, keys, transpose_b=True)

    def tf2(x, **parts):
      queries, keys = (tf.matmul(x, parts[name]) for name in order)
      return tf.einsum('ad,bd->ab', queries, keys) / 4.0

    found = _tested(tf1, tf2, _SPLIT, {'w': (4, 6)}, {'q': (4, 3), 'k': (4, 3)})
    self.assertEqual(found, tested)

  @parameterized.parameters((0, ()), (1, ('output y',)))
  def test_two_variables_in_one(self, place, tested):
    def tf2(x, w):
      parts = tf.split(tf.matmul(x, w), 2, 1)
      return parts[place] - 2.0 * parts[1 - place]

    found = _tested(
      lambda x, q, k: tf.matmul(x, q) - 2.0 * tf.matmul(x, k),
      tf2,
      _STACKED,
      {'q': (4, 3), 'k': (4, 3)},
      {'w': (4, 6)},
    )
    self.assertEqual(found, tested)

  @parameterized.parameters((1.0, 0.0, ()), (1.0, 1.0, ('output y',)), (0.0, 0.0, ('output y',)))
  def test_a_forget_bias_that_the_port_has_in_its_variable(self, tf1, tf2, tested):
    def cell(forget):
      def compute(x, b):
        gate, forgotten = tf.split(x + b, 2, 1)
        return gate * tf.sigmoid(forgotten + forget)

      return compute

    found = _tested(cell(tf1), cell(tf2), _FORGET, {'b': (4,)}, {'c': (4,)})
    self.assertEqual(found, tested)

  @parameterized.parameters((True, ()), (False, ('update of w',)))
  def test_what_a_variable_holds_after_an_update(self, turns, tested):
    other = np.arange(16, dtype=np.float32).reshape(4, 4)

    def tf1(x, w):
      return w - 0.1 * (tf.matmul(x, x, transpose_a=True) @ other)

    def tf2(x, w):
      gradient = tf.matmul(x, x, transpose_a=True) @ other
      return w - 0.1 * (tf.transpose(gradient) if turns else gradient)

    shapes = {'w': (4, 4)}, {'v': (4, 4)}
    self.assertEqual(_tested(tf1, tf2, _TURNED, *shapes, update='w'), tested)


class FactorTest(parameterized.TestCase):
  @parameterized.parameters((0.5, 0.5, ()), (0.5, 0.25, ('output [0]',)))
  def test_a_factor_of_a_sum_before_and_after_a_product(self, before, after, tested):
    found = related(
      lambda x, b, w: tf.matmul((x + b) * before, w),
      lambda x, b, w: tf.matmul(x + b, w) * after,
      [(5, 4), (4,), (4, 3)],
    )
    self.assertEqual(found.tested, tested)

  def test_scores_of_an_attention(self):
    found = related(
      lambda x, b, y, c: tf.matmul(x + b, y + c, transpose_b=True) / 2.0,
      lambda x, b, y, c: tf.transpose(tf.matmul(y + c, (x + b) * 0.5, transpose_b=True)),
      [(5, 4), (4,), (6, 4), (4,)],
    )
    self.assertEqual(found.tested, ())

  def test_only_one_of_two_terms_has_the_factor(self):
    found = related(
      lambda x, b, w: tf.matmul(x * 0.5 + b, w),
      lambda x, b, w: tf.matmul(x + b, w) * 0.5,
      [(5, 4), (4,), (4, 3)],
    )
    self.assertEqual(found.tested, ('output [0]',))


if __name__ == '__main__':
  absltest.main()
