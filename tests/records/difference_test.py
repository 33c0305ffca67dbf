"""The two names of what differs."""

from absl.testing import absltest, parameterized

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.tensor_key import TensorKey


class NamesTest(parameterized.TestCase):
  @parameterized.parameters(
    ('net/w', '', 'net/w'),
    ('net/w', 'net/w', 'net/w'),
    ('net/w', 'dense/kernel', 'net/w (tf2: dense/kernel)'),
    ("['logits']", '', "['logits']"),
    ('a (tf2: b)', '', 'a (tf2: b)'),  # a name is not taken apart
  )
  def test_one_or_two(self, tf1, tf2, subject):
    key = TensorKey('gradient', tf1, 'training', tf2)
    self.assertEqual(key.subject, subject)
    self.assertEqual(str(key), f'gradient {subject} [training]')
    found = Difference.of(key, Aspect.VALUES)
    self.assertEqual((found.tf1_subject, found.tf2_subject), (tf1, tf2 or tf1))
    self.assertEqual(found.subject, subject)
    self.assertEqual(found.key, key)

  def test_the_name_of_the_port_is_no_part_of_the_key(self):
    run = {TensorKey('gradient', 'net/w'): 1.0}
    self.assertEqual(run[TensorKey('gradient', 'net/w', port_name='dense/kernel')], 1.0)
    self.assertNotIn(TensorKey('gradient', 'net/w', 'training'), run)
    self.assertNotIn(TensorKey('slot', 'net/w'), run)


if __name__ == '__main__':
  absltest.main()
