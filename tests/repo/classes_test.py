"""A class is made or inherited from, never both: two share a protocol, a function or a part."""

import ast
import functools
import os

from absl.testing import absltest

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PACKAGE = os.path.join(_ROOT, 'tf2verify')
# Whoever catches one of several errors names what they have in common.
_ERRORS = ('Error', 'Exception', 'Warning')

# What is inherited besides abstract classes, protocols and errors, and never made.
_NEVER_MADE = {
  'OptionalHooks': 'hooks of a case, which may override them: the other half of its public methods',
  '_NoTruthValue': 'why a verdict has no truth value, for both kinds of verdict',
  '_Observed': 'the entries that two kinds of runs of a recording have in common, of a dataclass',
}
_ABSTRACT = {'ABC', 'Protocol'}


@functools.cache
def _trees():
  return tuple(_parsed())


def _parsed():
  for folder, _, names in os.walk(_PACKAGE):
    for name in sorted(names):
      if name.endswith('.py'):
        path = os.path.join(folder, name)
        with open(path, encoding='utf-8') as file:
          yield os.path.relpath(path, _ROOT), ast.parse(file.read())


def _name(node):
  """Returns the last name of `a.b.C`, `C` or `C[T]`."""
  if isinstance(node, ast.Subscript):
    node = node.value
  return getattr(node, 'attr', getattr(node, 'id', ''))


def _defined(trees):
  """Returns (class, its bases, is final, path and line)."""
  for path, tree in trees:
    for node in ast.walk(tree):
      if isinstance(node, ast.ClassDef):
        bases = [_name(base) for base in node.bases]
        final = any(_name(decorator) == 'final' for decorator in node.decorator_list)
        yield node.name, bases, final, f'{path}:{node.lineno}'


def _made(trees):
  calls = (node for _, tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
  return {_name(call.func) for call in calls}


def _wrong(trees):
  """Returns what inherits from a class that is made, or that is final."""
  classes = list(_defined(trees))
  known = {name for name, *_ in classes if not name.endswith(_ERRORS)}
  never_inherited = {name for name, _, final, _ in classes if final} | _made(trees)
  return [
    f'{place} {name}({base})'
    for name, bases, _, place in classes
    for base in bases
    if base in known & never_inherited
  ]


class ClassesTest(absltest.TestCase):
  def test_no_concrete_class_is_inherited(self):
    self.assertEqual(_wrong(_trees()), [])

  def test_what_is_inherited_is_abstract_or_listed(self):
    classes = {name: bases for name, bases, _, _ in _defined(_trees())}
    inherited = {base for bases in classes.values() for base in bases} & set(classes)
    concrete = {
      name
      for name in inherited
      if not _ABSTRACT.intersection(classes[name]) and not name.endswith(_ERRORS)
    }
    self.assertEqual(concrete, set(_NEVER_MADE))

  def test_both_references_are_final(self):
    final = {name for name, _, is_final, _ in _defined(_trees()) if is_final}
    self.assertContainsSubset(
      {'Tf1Graph', 'RecordedGraph', 'Tf1Training', 'RecordedTraining'}, final
    )

  def test_what_is_made_and_inherited_is_found(self):
    tree = ast.parse('class A: ...\nclass B(m.A): ...\nclass C(abc.ABC): ...\nclass D(C): ...\nA()')
    self.assertEqual(_wrong([('x.py', tree)]), ['x.py:2 B(A)'])
    tree = ast.parse('@typing.final\nclass A: ...\nclass B(A[int]): ...')
    self.assertEqual(_wrong([('x.py', tree)]), ['x.py:3 B(A)'])


if __name__ == '__main__':
  absltest.main()
