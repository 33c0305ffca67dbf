"""Tests of sides.graphs.edits.wiring and repairs: operations of tf1 that run in the port."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import Inserted, NodeChange
from tf2verify.relation.operations.op_pairs import Pairing
from tf2verify.sides.graphs.edits import repairs as editing
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair
from tf2verify.sides.graphs.reading import GraphReader, Target

v1 = tf.compat.v1
_FED = {
  'rewards': np.array([0.5, -3.0, 2.0], np.float32),
  'dones': np.array([0.0, 1.0, 1.0], np.float32),
}


class _Side:
  """A graph of inputs that have the same names on both sides."""

  def __init__(self, side, build):
    with tf.Graph().as_default() as graph:
      fed = {name: v1.placeholder(tf.float32, [3], name=f'{side}_{name}') for name in _FED}
      net = build(**fed)
    self.graph = graph
    inputs = {f'{side}_{name}': name for name in _FED}
    reader = GraphReader(graph, {}, inputs, {})
    self.end = net.op.name
    self.ops = reader.read([Target('output', (net.name,))], [], side)
    self.nodes = {node.name: node for node in graph.as_graph_def().node}

  def at(self, name):
    return next(n for n, op in enumerate(self.ops.ops) if op.name == name)


def _ran(port, repairs):
  graph_def = port.graph.as_graph_def()
  editing.apply(repairs, graph_def)
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    with v1.Session(graph=graph) as session:
      fed = {f'tf2_{name}:0': value for name, value in _FED.items()}
      return session.run(f'{port.end}:0', fed)


def _transplant(tf1, tf2, inner, ends, given=(), layouts=None, partners=None):
  pairing = Pairing(tf1.ops, tf2.ops)
  known = pairing.tf2_of if partners is None else partners
  entering = {(tf1.at(one), 0): (tf2.at(other), 0) for one, other in given if one is not None}
  region = [tf1.at(name) for name in inner], tf1.at(ends[0])
  return editing.transplant(
    tf1.nodes, tf1.ops, tf2.ops, region, tf2.at(ends[1]), entering, layouts or {}, known
  )


def _masked(rewards, dones):
  return tf.add(rewards, tf.multiply(tf.subtract(1.0, dones, name='left'), 2.0, name='m'), name='s')


def _unmasked(rewards, dones):
  del dones
  return tf.add(rewards, tf.constant(2.0, shape=[3], name='c'), name='s')


class TakenAlongTest(absltest.TestCase):
  def test_input_that_the_port_never_reads(self):
    tf1, tf2 = _Side('tf1', _masked), _Side('tf2', _unmasked)
    self.assertEqual([op.name for op in tf2.ops.unread], ['dones'])
    self.assertEqual(tf1.ops.unread, ())
    moved = _transplant(tf1, tf2, ['left', 'm'], ('s', 's'))
    found = _ran(tf2, [Repair(transplants=(moved,))])
    np.testing.assert_allclose(found, _FED['rewards'] + 2 * (1 - _FED['dones']))

  def test_operations_that_only_tf1_has(self):
    tf1, tf2 = _Side('tf1', _masked), _Side('tf2', _unmasked)
    moved = _transplant(tf1, tf2, [], ('s', 's'))
    found = _ran(tf2, [Repair(transplants=(moved,))])
    np.testing.assert_allclose(found, _FED['rewards'] + 2 * (1 - _FED['dones']))
    with self.assertRaisesRegex(CannotRepair, 'has no counterpart'):
      _transplant(tf1, tf2, [], ('s', 's'), [('rewards', 'rewards')], partners=())

  def test_one_of_several_outputs(self):
    def split(rewards, dones):
      del dones
      return tf.negative(tf.unstack(tf.maximum(rewards, -1.0), name='parts')[1], name='end')

    def sliced(rewards, dones):
      del dones
      return tf.negative(tf.strided_slice(rewards, [1], [2], shrink_axis_mask=1), name='end')

    tf1, tf2 = _Side('tf1', split), _Side('tf2', sliced)
    slice_op = tf2.ops.ops[tf2.at('end')].inputs[0][0]
    region = [], tf1.at('end')
    given = {(tf1.at('parts'), 1): (slice_op, 1)}
    moved = editing.transplant(
      tf1.nodes,
      tf1.ops,
      tf2.ops,
      region,
      tf2.at('end'),
      given,
      {},
      Pairing(tf1.ops, tf2.ops).tf2_of,
    )
    np.testing.assert_allclose(_ran(tf2, [Repair(transplants=(moved,))]), 1.0)

  def test_other_sign(self):
    def negative(rewards, dones):
      each = tf.negative(tf.exp(rewards, name='exp'), name='each')
      return tf.reduce_mean(tf.multiply(each, dones, name='mul'), name='end')

    def positive(rewards, dones):
      each = tf.multiply(tf.exp(rewards, name='exp'), dones, name='mul')
      return tf.negative(tf.reduce_sum(each, name='sum'), name='end')

    tf1, tf2 = _Side('tf1', negative), _Side('tf2', positive)
    layouts = {(tf1.at('mul'), 0): Relayout((3,), None, (3,), negated=True)}
    moved = _transplant(tf1, tf2, [], ('end', 'end'), [('mul', 'mul')], layouts)
    expected = np.mean(-np.exp(_FED['rewards']) * _FED['dones'])
    np.testing.assert_allclose(_ran(tf2, [Repair(transplants=(moved,))]), expected, rtol=1e-6)

  def test_count_of_other_integers(self):
    """A port of Keras 3 counts its steps with int32, say, and tf1 with int64."""

    def counted(dtype):
      def build(rewards, dones):
        del dones
        count = tf.argmax(rewards, output_type=dtype, name='count')
        more = tf.add(count, tf.constant(4, dtype), name='more')
        return tf.multiply(rewards, tf.cast(more, tf.float32, name='as_float'), name='end')

      return build

    tf1, tf2 = _Side('tf1', counted(tf.int32)), _Side('tf2', counted(tf.int64))
    given = [('count', 'count'), ('rewards', 'rewards')]
    moved = _transplant(tf1, tf2, ['more', 'as_float'], ('end', 'end'), given)
    self.assertLen([node for node in moved.inner if node.name.endswith('/cast')], 1)
    found = _ran(tf2, [Repair(transplants=(moved,))])
    np.testing.assert_allclose(found, 6 * _FED['rewards'])


class JoinedTest(absltest.TestCase):
  def test_what_both_change_is_changed_once(self):
    tf2 = _Side('tf2', lambda rewards, dones: tf.multiply(rewards + dones, 0.9, name='end'))
    one = Repair(changes=(NodeChange('end', inputs=((1, np.float32(0.5)),)),))
    joined = one.joined(one)
    self.assertLen(joined.changes, 1)
    expected = 0.5 * (_FED['rewards'] + _FED['dones'])
    np.testing.assert_allclose(_ran(tf2, [joined]), expected)
    other = Repair(changes=(NodeChange('end', inputs=((0, np.float32(0.5)),)),))
    self.assertLen(one.joined(other).changes, 2)


class ChangedKindTest(absltest.TestCase):
  """Operations of another type, with other inputs, or behind what is put in."""

  def _ran(self, change):
    return _ran(_Side('tf2', _masked), [Repair(changes=(change,))])

  def test_another_type(self):
    found = self._ran(NodeChange('s', op_type='Sub'))
    np.testing.assert_allclose(found, _FED['rewards'] - 2 * (1 - _FED['dones']))

  def test_the_other_order(self):
    found = self._ran(NodeChange('left', reads=(1, 0)))
    np.testing.assert_allclose(found, _FED['rewards'] + 2 * (_FED['dones'] - 1))

  def test_left_out(self):
    found = self._ran(NodeChange('m', op_type='Identity', reads=(0,)))
    np.testing.assert_allclose(found, _FED['rewards'] + 1 - _FED['dones'])

  def test_put_in(self):
    found = self._ran(NodeChange('s', inserted=(Inserted(0, 'Abs'), Inserted(1, 'Mul', 0.5))))
    np.testing.assert_allclose(found, np.abs(_FED['rewards']) + 1 - _FED['dones'])

  def test_a_tensor_put_in(self):
    found = self._ran(NodeChange('s', inserted=(Inserted(0, 'Mul', tensor='tf2_dones:0'),)))
    np.testing.assert_allclose(found, _FED['rewards'] * _FED['dones'] + 2 * (1 - _FED['dones']))

  def test_what_cannot_be(self):
    for change in (
      NodeChange('s', op_type='NoSuchOperation'),
      NodeChange('s', reads=(2, 0)),
      NodeChange('s', inserted=(Inserted(2, 'Abs'),)),
    ):
      with self.subTest(change.what), self.assertRaises(CannotRepair):
        self._ran(change)


if __name__ == '__main__':
  absltest.main()
