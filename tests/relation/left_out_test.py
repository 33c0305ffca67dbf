from absl.testing import absltest, parameterized

from tf2verify.errors import CaseDefinitionError
from tf2verify.relation.left_out import declaration, declared_reasons

KNOWN = ['d/kernel', 'unused/kernel', 'unused/bias', 'aux']
UNPAIRED = ['unused/kernel', 'unused/bias', 'aux']


def reasons(declared):
  return declared_reasons('tf1_only_variables', declared, UNPAIRED, KNOWN)


class DeclaredTest(parameterized.TestCase):
  def test_names_and_patterns(self):
    self.assertEqual(reasons({}), {})
    self.assertEqual(reasons({'aux:0': 'why'}), {'aux': 'why'})
    found = reasons({'unused/bias': 'first', 'unused/*': 'then'})
    self.assertEqual(found, {'unused/bias': 'first', 'unused/kernel': 'then'})
    self.assertEqual(reasons({'*/kernel': 'why'}), {'unused/kernel': 'why'})

  @parameterized.parameters(
    (['aux'], 'is a list; it must be a mapping'),
    ({'aux': ''}, 'the reason why the other side has no such variable'),
    ({'aux': None}, "maps 'aux' to None"),
    ({'unusd/kernel': 'why'}, "not a tf1 variable. Maybe you meant 'unused/kernel'"),
    ({'zzz/*': 'why'}, "not a tf1 variable. The tf1 side has 'd/kernel'"),
    ({'d/kernel': 'why'}, 'the tf2 side has d/kernel as well: take it out'),
    ({'d/*': 'why'}, 'the tf2 side has d/kernel as well: take it out'),
  )
  def test_mistakes(self, declared, words):
    with self.assertRaises(CaseDefinitionError) as caught:
      reasons(declared)
    self.assertIn(words, str(caught.exception))


class DeclarationTest(absltest.TestCase):
  def test_whole_scopes_become_patterns(self):
    line = declaration('tf1_only_variables', ['unused/kernel', 'unused/bias', 'aux'], KNOWN, 'no')
    self.assertEqual(line, "tf1_only_variables = {'unused/*': 'no', 'aux': 'no'}")

  def test_a_scope_that_is_not_left_out_whole(self):
    line = declaration('tf2_only_variables', ['unused/kernel'], KNOWN, 'no')
    self.assertEqual(line, "tf2_only_variables = {'unused/kernel': 'no'}")

  def test_what_is_proposed_can_be_declared(self):
    line = declaration('tf1_only_variables', UNPAIRED, KNOWN, 'no')
    declared = eval(line.partition(' = ')[2])
    self.assertEqual(reasons(declared), dict.fromkeys(UNPAIRED, 'no'))


if __name__ == '__main__':
  absltest.main()
