"""Tests of tf2verify.sides.graphs.run."""

import unittest.mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.records.op_graph import VARIABLE
from tf2verify.sides.graphs.reading import GraphReader, Target
from tf2verify.sides.graphs.run import GraphRun

v1 = tf.compat.v1
_X = np.array([1.0, -2.0, 3.0], np.float32)


class _Made:
  """A run of a graph with one input and one variable, and how often it was prepared."""

  def __init__(self, build, use_resource=True):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], name='x')
      w = v1.get_variable('w', initializer=tf.constant([2.0, 2.0, 2.0]), use_resource=use_resource)
      nest, writes = build(x, w)
      initializer = w.initializer.name
    self.prepared = 0
    reader = GraphReader(graph, {'w': 'w'}, {'x': 'x'}, {})
    targets = [Target(f'output {n}', (tensor.name,)) for n, tensor in enumerate(nest)]
    op_graph = reader.read(targets, [op.name for op in writes], 'tf1')
    self.names = {op.name: op.tensors[0] for op in op_graph.ops}
    reads = {op.name: op.tensors[0] for op in op_graph.ops if op.op_type == VARIABLE}

    def prepare(session):
      self.prepared += 1
      session.run(initializer)

    self.run = GraphRun(op_graph, graph, {'x:0': _X}, prepare, reads)

  def fetch(self, *names):
    return self.run.fetch([self.names[name] for name in names])

  def alone(self, name, **given):
    request = [self.names[name]], {self.names[key]: value for key, value in given.items()}
    return self.run.recompute([request])[0]


def _dense(x, w):
  net = tf.exp(x, name='exp')
  return [tf.multiply(net, w, name='mul')], []


def _counts(x, w):
  """Reads a variable, writes it, and reads it again twice."""
  before = tf.multiply(x, w.read_value(), name='before')
  with tf.control_dependencies([before]):
    written = w.assign_add(x, read_value=False)
  with tf.control_dependencies([written]):
    after = tf.multiply(x, w.read_value(), name='after')
    again = tf.multiply(x, w.read_value(), name='again')
  return [before, after, again], [written]


class FetchTest(absltest.TestCase):
  def test_any_tensor_can_be_fetched(self):
    made = _Made(_dense)
    exp, mul, w = made.fetch('exp', 'mul', 'w')
    np.testing.assert_array_equal(mul, exp * w)
    np.testing.assert_array_equal(w, [2, 2, 2])
    made.fetch('exp')
    self.assertEqual(made.prepared, 1)
    made.run.close()
    np.testing.assert_array_equal(made.fetch('mul')[0], mul)
    self.assertEqual(made.prepared, 2)
    made.run.close()

  def test_nothing_wanted_runs_nothing(self):
    made = _Made(_dense)
    self.assertEqual(made.run.fetch([]), [])
    self.assertEqual(made.run.recompute([]), [])
    self.assertEqual(made.prepared, 0)

  def test_later_fetches_do_not_see_what_earlier_ones_wrote(self):
    def build(x, w):
      with tf.control_dependencies([v1.assign_add(w, x).op]):
        return [tf.multiply(x, 2.0, name='twice'), tf.exp(w.read_value(), name='exp')], []

    for use_resource in (False, True):
      with self.subTest(use_resource=use_resource):
        made = _Made(build, use_resource)
        first = made.fetch('twice', 'exp')
        for _ in range(2):
          np.testing.assert_array_equal(made.fetch('exp')[0], first[1])
          np.testing.assert_array_equal(made.fetch('twice')[0], first[0])
        np.testing.assert_array_equal(first[1], np.exp(_X + 2))
        made.run.close()

  def test_a_variable_that_is_written_is_given_its_value_in_the_same_session(self):
    def build(x, w):
      with tf.control_dependencies([v1.assign_add(w, x).op]):
        read = w.read_value()
        return [tf.exp(read, name='exp'), tf.negative(read, name='negative')], []

    made = _Made(build)
    made.fetch('exp')
    session = made.run._session
    np.testing.assert_array_equal(made.fetch('negative')[0], -_X - 2)
    self.assertIs(made.run._session, session)
    self.assertEqual(made.prepared, 2)
    made.run.close()

  def test_what_scatters_into_a_tensor_writes_nothing(self):
    def build(x, w):
      rows = tf.tensor_scatter_nd_add(w.read_value(), [[1]], x[:1])
      return [tf.add(rows, tf.scatter_nd([[0]], x[:1], [3]), name='sum')], []

    made = _Made(build)
    first, again = made.fetch('sum')[0], made.fetch('sum')[0]
    np.testing.assert_array_equal(first, again)
    self.assertEqual(made.prepared, 1)
    made.run.close()

  def test_a_restart_is_another_run(self):
    def build(x, w):
      noise = v1.random_uniform([3], seed=4)
      return [tf.multiply(x, w, name='mul'), tf.multiply(x, noise, name='noisy')], []

    made = _Made(build)
    first = made.fetch('mul', 'noisy')
    made.run.give({made.names['w']: np.zeros(3, np.float32)})
    self.assertFalse(made.fetch('mul')[0].any())
    made.run.restart(made.run._prepare, {'x:0': 2 * _X})
    np.testing.assert_array_equal(made.fetch('mul')[0], 2 * first[0])
    np.testing.assert_array_equal(made.fetch('noisy')[0], 2 * first[1])
    made.run.close()

  def test_random_ops_draw_the_same_at_every_fetch(self):
    def build(x, w):
      return [tf.multiply(x, v1.random_uniform([3], seed=4), name='noisy'), w.read_value()], []

    made = _Made(build)
    np.testing.assert_array_equal(made.fetch('noisy')[0], made.fetch('noisy')[0])
    made.run.close()

  def test_what_was_fetched_is_not_computed_again(self):
    made = _Made(_dense)
    first = made.fetch('mul', 'mul')
    with unittest.mock.patch.object(made.run, '_session', None):  # a run would raise
      self.assertIs(made.fetch('mul')[0], first[0])
    self.assertFalse(first[0].flags.writeable)
    made.run.prepare_again()
    made.run._prepare = lambda session: None  # the variable keeps its value
    made.run.give({made.names['exp']: np.zeros(3, np.float32)})
    np.testing.assert_array_equal(made.fetch('mul')[0], [0, 0, 0])
    made.run.close()


class RecomputeTest(absltest.TestCase):
  def test_part_is_computed_from_given_values(self):
    for use_resource in (False, True):
      with self.subTest(use_resource=use_resource):
        made = _Made(_dense, use_resource)
        [mul] = made.alone('mul', exp=np.float32([1, 2, 3]), w=np.float32([5, 5, 5]))
        np.testing.assert_array_equal(mul, [5, 10, 15])
        self.assertEqual(made.prepared, 0)

  def test_a_part_is_computed_once_from_the_same_values(self):
    made = _Made(_dense)
    given = {'exp': np.float32([1, 2, 3]), 'w': np.float32([5, 5, 5])}
    with unittest.mock.patch.object(made.run, '_run_parts', wraps=made.run._run_parts) as runs:
      first = made.alone('mul', **given)
      self.assertIs(made.alone('mul', **given)[0], first[0])
      self.assertEqual(runs.call_count, 1)
      [other] = made.alone('mul', exp=given['exp'], w=np.float32([6, 5, 5]))
      np.testing.assert_array_equal(other, [6, 10, 15])
      made.alone('mul', exp=given['exp'], w=np.float32([[5, 5, 5]]))
      self.assertEqual(runs.call_count, 3)

  def test_all_reads_of_a_variable_have_the_given_value(self):
    def build(x, w):
      return [tf.add(tf.identity(w), w.read_value() * x, name='sum')], []

    [found] = _Made(build).alone('sum', x=_X, w=np.float32([1, 1, 1]))
    np.testing.assert_array_equal(found, 1 + _X)

  def test_other_shapes_are_tried_and_misfits_are_none(self):
    made = _Made(_dense)
    [mul] = made.alone('mul', exp=np.float32(7.0), w=np.float32([1, 2]))
    np.testing.assert_array_equal(mul, [7, 14])
    self.assertIsNone(made.alone('mul', exp=np.ones(4, np.float32), w=np.ones(3, np.float32)))
    self.assertIsNone(made.alone('mul', exp=np.ones(3, np.int32), w=np.ones(3, np.float32)))

  def test_input_without_a_value_is_none(self):
    self.assertIsNone(_Made(_dense).alone('mul', w=np.ones(3, np.float32)))

  def test_variable_without_a_value_has_its_own(self):
    for use_resource in (False, True):
      [mul] = _Made(_dense, use_resource).alone('mul', exp=_X)
      np.testing.assert_array_equal(mul, _X * 2)

  def test_a_variable_that_was_given_another_value_has_its_own(self):
    made = _Made(_dense)
    made.run.give({made.names['w']: np.zeros(3, np.float32)})
    [mul] = made.alone('mul', exp=_X)
    np.testing.assert_array_equal(mul, _X * 2)

  def test_rows_of_a_variable_are_those_of_a_given_value(self):
    def build(x, w):
      return [tf.add(tf.gather(w, [2, 0]), x[:2], name='sum'), tf.identity(w, name='read')], []

    made = _Made(build)
    self.assertIn('ResourceGather', {node.op for node in made.run.nodes().values()})
    [found] = made.alone('sum', x=_X, w=np.float32([5, 6, 7]))
    np.testing.assert_array_equal(found, [8, 3])
    [found] = made.alone('sum', x=_X)
    np.testing.assert_array_equal(found, [3, 0])

  def test_a_part_takes_along_what_it_needs_alone(self):
    def build(x, w):
      looped = tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s + s), [0, x])[1]
      net = tf.multiply(x, w, name='mul')
      return [net, tf.negative(looped, name='net')], []

    made, imports = _Made(build), []
    known = tf.import_graph_def

    def imported(graph_def, **how):
      imports.append((len(graph_def.node), len(graph_def.library.function)))
      return known(graph_def, **how)

    with unittest.mock.patch.object(tf, 'import_graph_def', imported):
      made.alone('mul', x=_X)
      [net] = made.alone('net', x=_X)
    np.testing.assert_array_equal(net, -4 * _X)
    # The product and two values; the loop has functions.
    self.assertEqual(imports[0], (3, 0))
    self.assertGreater(imports[1][1], 0)
    made.run.close()

  def test_one_misfit_does_not_cost_the_others(self):
    made = _Made(_dense)
    names, three = made.names, np.ones(3, np.float32)
    good = ([names['mul']], {names['exp']: three, names['w']: three})
    bad = ([names['mul']], {names['exp']: np.ones(4, np.float32), names['w']: three})
    found = made.run.recompute([good, bad, good])
    self.assertIsNone(found[1])
    for index in (0, 2):
      np.testing.assert_array_equal(found[index][0], three)

  def test_a_convolution_of_another_rank_is_none(self):
    # oneDNN's kernel ends the process; this is never reached.
    def build(x, w):
      image = tf.reshape(x, [1, 3, 1, 1], name='image')
      net = tf.nn.conv2d(image, tf.reshape(w, [1, 3, 1, 1], name='kernel'), 1, 'SAME', name='conv')
      return [tf.exp(net, name='net')], []

    made = _Made(build)
    kernel = np.ones([1, 3, 1, 1], np.float32)
    self.assertIsNone(made.alone('net', image=np.ones([1, 3, 1], np.float32), kernel=kernel))
    self.assertIsNotNone(made.alone('net', image=np.ones([1, 5, 1, 1], np.float32), kernel=kernel))

  def test_constants_that_are_given_tell_shapes(self):
    def build(x, w):
      image = tf.reshape(tf.stack([x, x], 1), [1, 3, 1, 2], name='image')
      kernel = tf.reshape(w, [1, 3, 1, 1], name='kernel')
      return [tf.exp(tf.nn.conv2d(image[..., :1], kernel, 1, 'SAME'), name='net')], []

    made = _Made(build)
    bounds = [name for name in made.names if '/stack' in name]
    self.assertLen(bounds, 3)
    given = dict(
      zip([*bounds, 'image', 'kernel'], made.fetch(*bounds, 'image', 'kernel'), strict=True)
    )
    np.testing.assert_array_equal(made.alone('net', **given)[0], made.fetch('net')[0])

  def test_a_convolution_of_unknown_rank_is_none_where_values_change(self):
    def build(x, w):
      shape = v1.placeholder_with_default([1, 3, 1, 1], [None], name='shape')
      shape = v1.placeholder_with_default(shape, None)
      image = tf.reshape(x, shape, name='image')
      kernel = tf.reshape(w, [1, 3, 1, 1], name='kernel')
      return [tf.nn.conv2d(image, kernel, 1, 'SAME', name='net')], []

    made = _Made(build)
    self.assertIsNone(made.alone('net', x=_X))
    wanted = [made.names['net']]
    refused = {made.names['image']: np.ones([1, 3, 1], np.float32)}
    self.assertIsNone(made.run.refetched(wanted, refused))
    fitting = {made.names['image']: np.ones([1, 5, 1, 1], np.float32)}
    self.assertIsNotNone(made.run.refetched(wanted, fitting))

  def test_writes_are_left_out(self):
    def build(x, w):
      with tf.control_dependencies([v1.assign_add(w, x).op]):
        return [tf.multiply(x, 2.0, name='twice')], []

    [found] = _Made(build).alone('twice', x=np.float32([1, 1, 1]))
    np.testing.assert_array_equal(found, [2, 2, 2])

  def test_loops_can_run_alone(self):
    def build(x, w):
      net = tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s * w), [0, x], name='loop')[1]
      return [tf.negative(net, name='net')], []

    # The loop captures the handle of the variable, of which no value can be given.
    [found] = _Made(build).alone('net', x=_X + 1)
    np.testing.assert_array_equal(found, -(_X + 1) * 8)


class LateReadTest(absltest.TestCase):
  def test_a_part_reads_what_the_run_has_written(self):
    made = _Made(_counts)
    wanted = _X * (2 + _X)
    for name in ('after', 'again'):
      np.testing.assert_array_equal(made.alone(name, x=_X)[0], wanted)
      # The value before the write, which is given, is another one.
      np.testing.assert_array_equal(made.alone(name, x=_X, w=_X)[0], wanted)
    np.testing.assert_array_equal(made.alone('before', x=_X, w=_X)[0], _X * _X)

  def test_a_part_is_given_what_it_reads_after_a_write(self):
    made = _Made(_counts)
    given = {'w after its update': np.array([3.0, 4.0, 5.0], np.float32)}
    for name in ('after', 'again'):
      (found,) = made.alone(name, x=_X, **given)
      np.testing.assert_array_equal(found, _X * [3, 4, 5])


if __name__ == '__main__':
  absltest.main()
