import os
from unittest import mock

from absl.testing import absltest

import tf2verify  # noqa: F401

# isort: split
import tensorflow as tf

from tf2verify.errors import RecordingError
from tf2verify.sides.recorded import graph_safety
from tf2verify.sides.recorded.build import parsed

v1 = tf.compat.v1


def _refused(build):
  graph = tf.Graph()
  with graph.as_default():
    build()
  return graph_safety.refused_ops(graph.as_graph_def())


def _types(build):
  return [op.op_type for op in _refused(build)]


def _model():
  inputs = v1.placeholder(tf.float32, (2, 3))
  weights = v1.get_variable('w', (3, 2), use_resource=True)
  old = v1.get_variable('old', (2,), use_resource=False)
  table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), 0)
  v1.assign_add(weights, tf.ones((3, 2)))
  found = tf.nn.dropout(tf.matmul(inputs, weights) + old, 0.5)
  found = v1.Print(found, [table.lookup(tf.constant([1]))])
  loop = tf.while_loop(lambda n, _: n < 3, lambda n, x: (n + 1, tf.nn.relu(x)), [0, found])
  tf.cond(tf.reduce_sum(found) > 0, lambda: loop[1], lambda: found)
  v1.assert_equal(tf.shape(found)[0], 2)
  v1.train.AdamOptimizer().minimize(tf.reduce_sum(loop[1]))
  tf.print('x')


class GraphSafetyTest(absltest.TestCase):
  def test_what_models_are_made_of_runs(self):
    self.assertEqual(_types(_model), [])

  def test_what_leaves_the_session_does_not(self):
    for op_type, build in {
      'ReadFile': lambda: tf.io.read_file('/etc/passwd'),
      'WriteFile': lambda: tf.io.write_file('/tmp/x', 'y'),
      'MatchingFiles': lambda: tf.io.matching_files('/*'),
      'PyFunc': lambda: v1.py_func(lambda: 1.0, [], tf.float32),
      'EagerPyFunc': lambda: tf.py_function(lambda: 1.0, [], tf.float32),
      'FIFOQueueV2': lambda: v1.FIFOQueue(3, tf.float32),
      'SaveV2': lambda: tf.raw_ops.SaveV2(
        prefix='p', tensor_names=['a'], shape_and_slices=[''], tensors=[tf.constant(1.0)]
      ),
      'RestoreV2': lambda: tf.raw_ops.RestoreV2(
        prefix='p', tensor_names=['a'], shape_and_slices=[''], dtypes=[tf.float32]
      ),
      'ImmutableConst': lambda: tf.raw_ops.ImmutableConst(
        dtype=tf.float32, shape=[1], memory_region_name='/etc/passwd'
      ),
      'Abort': lambda: tf.raw_ops.Abort(),
      'DecodeProtoV2': lambda: tf.io.decode_proto(['x'], 'm', ['a'], [tf.int32]),
    }.items():
      with self.subTest(op_type):
        self.assertIn(op_type, _types(build))

  def test_an_operation_that_may_name_a_file_does_only_without_one(self):
    self.assertEqual(_types(lambda: tf.print('x')), [])
    self.assertEqual(_types(lambda: tf.print('x', output_stream='file:///tmp/x')), ['PrintV2'])
    vocabulary = {'vocab_file': '/etc/passwd', 'unigrams': ()}
    for given, refused in ((vocabulary, ['FixedUnigramCandidateSampler']), ({}, [])):
      options = {'unigrams': (0.5, 0.5), **given}
      self.assertEqual(
        _types(
          lambda options=options: tf.random.fixed_unigram_candidate_sampler(
            tf.zeros((1, 1), tf.int64), 1, 1, True, 2, **options
          )
        ),
        refused,
      )

  def test_functions_are_looked_into(self):
    @tf.function
    def reads():
      return tf.io.read_file('/etc/passwd')

    refused = _refused(reads)
    self.assertEqual([(op.op_type, op.in_function) for op in refused], [('ReadFile', True)])

  def test_an_unknown_type_is_told_from_a_harmful_one(self):
    graph_def = v1.GraphDef()
    graph_def.node.add(name='a', op='OpOfContrib')
    graph_def.node.add(name='b', op='ReadFile', input=['c'])
    refused = graph_safety.refused_ops(graph_def)
    self.assertEqual([(op.name, op.known) for op in refused], [('a', False), ('b', True)])
    text = graph_safety.refusal_text(refused)
    self.assertIn('this TensorFlow has no OpOfContrib (a)', text)
    self.assertIn('a recording is not run with ReadFile (b)', text)

  def test_graphs_beyond_the_limits_are_refused(self):
    graph_def = v1.GraphDef()
    for number in range(30):
      graph_def.node.add(name=str(number), op='NoOp')
    function = graph_def.library.function.add()
    for number in range(30):
      function.node_def.add(name=str(number), op='NoOp')
    graph_safety.check_nodes(graph_def, 'rec')
    data = graph_def.SerializeToString()
    graph_safety.check_bytes(data, 'rec')
    with (
      mock.patch.dict(os.environ, {graph_safety.NODES: '59'}),
      self.assertRaisesRegex(RecordingError, 'rec has 60 operations, and 59 are imported'),
    ):
      graph_safety.check_nodes(graph_def, 'rec')
    with mock.patch.dict(os.environ, {graph_safety.NODES: '60'}):
      graph_safety.check_nodes(graph_def, 'rec')
    with (
      mock.patch.dict(os.environ, {graph_safety.NODES: 'many'}),
      self.assertRaisesRegex(RecordingError, "is 'many'; it must be a whole number of at least 1"),
    ):
      graph_safety.check_nodes(graph_def, 'rec')
    large = b'x' * (2 * 2**20 + 1)
    with (
      mock.patch.dict(os.environ, {graph_safety.MEBIBYTES: '2'}),
      self.assertRaisesRegex(RecordingError, f'or set {graph_safety.MEBIBYTES}=3'),
    ):
      graph_safety.check_bytes(large, 'rec')

  def test_a_recording_with_too_large_a_graph(self):
    one = v1.GraphDef()
    one.node.add(name='a', op='NoOp')
    one.node.add(name='b', op='NoOp')
    data = one.SerializeToString()
    self.assertLen(parsed(data, 'rec').node, 2)
    with (
      mock.patch.dict(os.environ, {graph_safety.NODES: '1'}),
      self.assertRaisesRegex(RecordingError, 'rec has 2 operations, and 1 are imported'),
    ):
      parsed(data, 'rec')

  def test_no_operation_that_reads_files_or_python_is_taken_for_harmless(self):
    # Whatever this TensorFlow has: a type of another family would have to be looked at.
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    known = op_def_pb2.OpList()
    known.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    words = ('file', 'dataset', 'iterator', 'pyfunc', 'queue', 'rpc', 'restore', 'host', 'socket')
    arguments = ('filename', 'file_pattern', 'address', 'descriptor_source')
    for op in known.op:
      if not graph_safety._is_harmless(op.name, op.is_stateful):
        continue
      with self.subTest(op.name):
        self.assertFalse(any(word in op.name.lower() for word in words))
        named = [a.name for a in (*op.input_arg, *op.attr)]
        self.assertFalse([name for name in named if name in arguments])


if __name__ == '__main__':
  absltest.main()
