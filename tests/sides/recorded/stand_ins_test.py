import numpy as np
from absl.testing import absltest

import tf2verify  # noqa: F401

# isort: split
import tensorflow as tf

from tf2verify.sides.recorded.stand_ins import with_stand_ins

v1 = tf.compat.v1


def _run(stood_in, wanted, feeds):
  graph = tf.Graph()
  with graph.as_default():
    tf.import_graph_def(stood_in.graph_def, name='')
  with v1.Session(graph=graph) as session:
    return session.run(wanted, {stood_in.placeholders[name]: v for name, v in feeds.items()})


class StandInsTest(absltest.TestCase):
  def test_one_output_becomes_a_placeholder_of_its_dtype(self):
    graph = tf.Graph()
    with graph.as_default():
      tf.strings.length(tf.io.read_file('/etc/passwd', name='read'), name='length')
    stood_in = with_stand_ins(graph.as_graph_def(), {'read'})
    self.assertEqual(_run(stood_in, 'length:0', {'read:0': b'four'}), 4)
    self.assertIn('ReadFile', {node.op for node in graph.as_graph_def().node})

  def test_several_outputs_keep_their_numbers(self):
    graph = tf.Graph()
    with graph.as_default():
      parts = tf.split(tf.ones((4, 2)), 2, name='parts')
      tf.identity(parts[1] * 2, name='twice')
    stood_in = with_stand_ins(graph.as_graph_def(), {'parts'})
    found = _run(stood_in, 'twice:0', {'parts:1': np.full((2, 2), 3.0)})
    np.testing.assert_array_equal(found, np.full((2, 2), 6.0))

  def test_an_unknown_operation_has_the_dtype_of_its_reader(self):
    graph_def = v1.GraphDef()
    graph_def.node.add(name='custom', op='OpOfContrib')
    reader = graph_def.node.add(name='reader', op='AddV2', input=['custom', 'custom:2'])
    reader.attr['T'].type = tf.int64.as_datatype_enum
    stood_in = with_stand_ins(graph_def, {'custom'})
    found = _run(stood_in, 'reader:0', {'custom:0': 2, 'custom:1': 0, 'custom:2': 3})
    self.assertEqual((found, found.dtype), (5, np.int64))

  def test_what_nobody_reads_does_nothing_and_may_be_waited_for(self):
    graph_def = v1.GraphDef()
    graph_def.node.add(name='custom', op='OpOfContrib')
    graph_def.node.add(name='after', op='NoOp', input=['^custom'])
    stood_in = with_stand_ins(graph_def, {'custom'})
    self.assertEqual(stood_in.placeholders, {})
    self.assertIsNone(_run(stood_in, 'after', {}))


if __name__ == '__main__':
  absltest.main()
