"""Tests of tf2verify.diagnosis.edit_texts."""

from absl.testing import absltest, parameterized

from tf2verify.diagnosis import edit_texts


class ReplacedTest(parameterized.TestCase):
  @parameterized.parameters(
    ('Mul → Relu', 'Relu → Mul', 'the port computes Relu → Mul, tf1 the same in another order'),
    ('Relu', 'Elu', 'the port computes Elu, tf1 computes Relu'),
    ('Mul → Reshape', 'Reshape', 'the port lacks Mul → Reshape'),
    ('Reshape', 'Mul', 'the port has Mul, which tf1 has not'),
  )
  def test_text(self, tf1, tf2, text):
    self.assertStartsWith(edit_texts._replaced(tf1, tf2), text)


if __name__ == '__main__':
  absltest.main()
