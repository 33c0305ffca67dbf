import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.modes.errors import one_line


def _raised(function, *arguments):
  try:
    function(*arguments)
  except Exception as error:  # noqa: BLE001 - whatever it is
    return error
  raise AssertionError('nothing was raised')


def _branch(net):
  return net if net > 0 else -net


class OneLineTest(absltest.TestCase):
  def test_type_message_and_line(self):
    error = _raised(tf.function(_branch, autograph=False), tf.constant(1.0))
    text = one_line(error)
    self.assertStartsWith(text, 'OperatorNotAllowedInGraphError: Using a symbolic `tf.Tensor` as')
    self.assertEndsWith(text, 'in _branch: return net if net > 0 else -net)')
    self.assertNotIn('\n', text)

  def test_message_of_autograph(self):
    def shaped(net):
      for _ in net:
        wrong = tf.ones([2]) + tf.ones([3])
      return wrong

    text = one_line(_raised(tf.function(shaped), tf.ones([2])))
    self.assertStartsWith(text, 'UnboundLocalError: ' if 'Unbound' in text else 'ValueError: ')
    self.assertIn('in shaped', text)

  def test_without_a_message_or_a_line(self):
    self.assertEqual(one_line(KeyError()), 'KeyError')

  def test_long_message(self):
    self.assertLessEqual(len(one_line(ValueError('x' * 1000))), 240)

  def test_missing_kernels_of_xla(self):
    message = (
      'Detected unsupported operations when trying to compile graph f[] on XLA_CPU_JIT: AsString '
      "(No registered 'AsString' OpKernel for XLA_CPU_JIT devices compatible with node {{node "
      "AsString}}), Print (No registered 'Print' OpKernel for XLA_CPU_JIT devices ...)"
    )
    error = tf.errors.InvalidArgumentError(None, None, message)
    self.assertEqual(one_line(error), 'XLA has no kernel for AsString, Print')


if __name__ == '__main__':
  absltest.main()
