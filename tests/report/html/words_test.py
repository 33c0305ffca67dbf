from absl.testing import absltest

from tf2verify.records.status import Status
from tf2verify.report.html import words
from tf2verify.stages import STAGES


class WordsTest(absltest.TestCase):
  def test_the_stages_say_the_same_of_themselves(self):
    self.assertEqual(words.PROVES, {stage.name: stage.proves for stage in STAGES})
    self.assertEqual(list(words.PROVES), [stage.name for stage in STAGES])

  def test_stages_that_keep_all_pairs(self):
    of_values = [stage.name for stage in STAGES if stage.diagnosed][2:]
    self.assertEqual(list(words.KEEPS_ALL_PAIRS), of_values)

  def test_every_status_has_a_sign_of_its_own(self):
    self.assertEqual(set(words.SIGNS), set(Status))
    self.assertLen(set(words.SIGNS.values()) | {words.NOT_RUN_SIGN}, len(Status) + 1)


if __name__ == '__main__':
  absltest.main()
