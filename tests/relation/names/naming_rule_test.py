"""Tests of tf2verify.relation.names.naming_rule."""

from absl.testing import absltest, parameterized

from tf2verify.relation.names.naming_rule import code, naming_rule

NAMES = ('a/kernel', 'a/bias', 'b/kernel', 'b/bias')


class NamingRuleTest(parameterized.TestCase):
  @parameterized.parameters(
    ('', 'port/', "'port/' + name"),
    ('net/', '', "name.removeprefix('net/')"),
    ('net/', 'port/', "'port/' + name.removeprefix('net/')"),
  )
  def test_a_change_of_prefix(self, old, new, expression):
    renames = [(f'{old}{name}', f'{new}{name}') for name in NAMES]
    rule = naming_rule(renames)
    self.assertEqual((rule.expression, rule.exceptions), (expression, ()))
    for name, other in renames:
      self.assertEqual(eval(rule.expression, {'name': name}), other)

  def test_exceptions_are_kept(self):
    renames = [(name, f'port/{name}') for name in NAMES] + [('scale', 'port/gain')]
    self.assertEqual(naming_rule(renames).exceptions, (('scale', 'port/gain'),))

  def test_no_rule(self):
    self.assertIsNone(naming_rule([]))
    self.assertIsNone(naming_rule([(name, f'port_{n}/x') for n, name in enumerate(NAMES)]))


class CodeTest(absltest.TestCase):
  def declared(self, renames, rule):
    """Returns what a class has after the code was pasted into it."""
    names = {}
    exec(f'class Case:\n{code(renames, rule)}\n', names)
    return names['Case']

  def test_all_forms_give_the_names(self):
    for extra in ((), (('scale', 'port/gain'), ('table', 'port/embeddings'))):
      renames = (*((name, f'port/{name}') for name in NAMES), *extra)
      self.assertEqual(self.declared(renames, None).variable_names, dict(renames))
      rule = naming_rule(renames)
      case = self.declared(renames, rule)()
      for tf1, tf2 in renames:
        self.assertEqual(case.variable_names(tf1), tf2)


if __name__ == '__main__':
  absltest.main()
