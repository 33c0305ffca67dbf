import dataclasses
import warnings
from unittest import mock

from absl.testing import absltest

from tf2verify.diagnosis import causes
from tf2verify.diagnosis.rules.rule import Rule, Sentence
from tf2verify.errors import NotApplicable, RuleWarning


@dataclasses.dataclass(frozen=True)
class Seen:
  number: int


def _raises(error):
  def find(seen):
    raise error

  return find


def _rules(error):
  return (
    Rule('faulty', Seen, _raises(error)),
    Rule('of_others', str, _raises(AssertionError('not its evidence'))),
    Rule('right', Seen, Sentence(lambda seen: seen.number == 3, 'it is {0.number}')),
  )


class CausesTest(absltest.TestCase):
  def test_a_rule_that_raises_is_left_out_with_a_warning(self):
    rules = _rules(IndexError('no such step'))
    with mock.patch.object(causes, 'RULES', rules), warnings.catch_warnings(record=True) as told:
      warnings.simplefilter('always')
      self.assertEqual(causes.first_cause(Seen(3)), 'it is 3')
      self.assertEqual([cause.rule for cause in causes.causes_of(Seen(3))], ['right'])
      self.assertEqual(causes.first_cause(Seen(4)), '')
    self.assertLen(told, 3)
    self.assertIs(told[0].category, RuleWarning)
    self.assertIn("'faulty', and that raised IndexError: no such step", str(told[0].message))

  def test_an_error_of_a_run_is_left_to_the_stage(self):
    rules = _rules(NotApplicable('no run'))
    with mock.patch.object(causes, 'RULES', rules), self.assertRaises(NotApplicable):
      causes.first_cause(Seen(3))


if __name__ == '__main__':
  absltest.main()
