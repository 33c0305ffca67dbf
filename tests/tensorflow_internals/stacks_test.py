"""The stack that made an operation."""

import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.tensorflow_internals import graphs


def _made_in(file: str) -> tf.Operation:
  """Returns an operation that a line of a file has made."""
  made: dict[str, tf.Tensor] = {}
  with tf.Graph().as_default():
    exec(compile('import tensorflow as tf\nx = tf.constant(1.0)', file, 'exec'), made)
  return made['x'].op


class StackTest(absltest.TestCase):
  def test_the_frames_of_an_operation(self):
    op = _made_in('größe.py')
    self.assertIn('größe.py', [frame.filename for frame in graphs.stack_of(op)])
    self.assertEqual(user_source(op).line, 2)

  def test_the_name_of_a_file_that_is_not_utf_8(self):
    """As of `größe.py`, where the encoding of files is ASCII."""
    op = _made_in('gr\udcc3\udcb6\udcc3\udc9fe.py')
    self.assertEqual(list(graphs.stack_of(op)), [])
    self.assertIsNone(user_source(op))


if __name__ == '__main__':
  absltest.main()
