"""The two names of what differs."""

from absl.testing import absltest, parameterized

from tf2verify.records.difference import Aspect, Difference, subject_of


class SubjectTest(parameterized.TestCase):
  @parameterized.parameters(
    ('net/w', 'net/w', 'net/w'),
    ('net/w', 'dense/kernel', 'net/w (tf2: dense/kernel)'),
    ("['logits']", "['logits']", "['logits']"),
  )
  def test_of_one_name_or_two(self, tf1, tf2, subject):
    self.assertEqual(subject_of(tf1, tf2), subject)
    found = Difference('gradient', subject, Aspect.VALUES)
    self.assertEqual((found.tf1_subject, found.tf2_subject), (tf1, tf2))


if __name__ == '__main__':
  absltest.main()
