"""Tests of tf2verify.stages.checkpoints.error_line: what was wrong, on one line."""

from absl.testing import absltest

from tf2verify.errors import UserCodeError
from tf2verify.stages.checkpoints.error_line import telling_line


class TellingLineTest(absltest.TestCase):
  def test_sentence_that_keras_breaks(self):
    error = UserCodeError(
      'tf2',
      'save of a .keras file',
      'NotImplementedError: Object GRUD was created by passing\n'
      'non-serializable argument values in `__init__()`.\nMore of it.',
      '',
    )
    found = telling_line(error)
    self.assertIn('by passing non-serializable argument values in `__init__()`.', found)
    self.assertNotIn('More of it', found)
    self.assertNotIn('\n', found)


if __name__ == '__main__':
  absltest.main()
