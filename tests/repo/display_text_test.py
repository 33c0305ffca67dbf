"""No control flow reads text that was made for a reader: what decides is a field."""

import ast
import os

from absl.testing import absltest

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PACKAGE = os.path.join(_ROOT, 'tf2verify')
# Fields and variables that hold sentences for a reader, and what renders one.
_SENTENCES = {
  'explanation',
  'headline',
  'hint',
  'reason',
  'remark',
  'said',
  'summary',
  'text',
  'why',
  'why_not',
}
# Of these, names that variables have for other texts as well: a file's, a notation's.
_OFTEN_OTHERS = {'said', 'text'}
_RENDERING = {'to_text', 'outcome_text', 'stage_text', 'case_text', 'cause_text'}
_READING = {
  'count',
  'endswith',
  'find',
  'index',
  'partition',
  'removeprefix',
  'removesuffix',
  'rpartition',
  'rsplit',
  'split',
  'startswith',
}
# What decides nothing by that, or reads what the user wrote.
_OF_OTHERS = {
  ('relation/variable_map_file.py', '_alone'),  # a line of the file, to know what it says
  ('relation/variable_map_file.py', 'to_text'),  # a reason on one line
  ('report/html/unchecked.py', '_open_questions'),  # a word that the line begins with already
}


def _is_sentence(node):
  if isinstance(node, ast.Attribute):
    return node.attr in _SENTENCES
  if isinstance(node, ast.Name):
    return node.id in _SENTENCES - _OFTEN_OTHERS
  return isinstance(node, ast.Call) and _name(node.func) in _RENDERING


def _name(node):
  return getattr(node, 'attr', getattr(node, 'id', ''))


def _is_words(node):
  """Returns whether a node is a text, and not '', which stands for nothing to say."""
  return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ''


def _reads(node):
  """Returns whether a node decides by what a sentence says."""
  if isinstance(node, ast.Compare):
    sides = [node.left, *node.comparators]
    return any(map(_is_sentence, sides)) and any(map(_is_words, sides))
  if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
    return node.func.attr in _READING and _is_sentence(node.func.value)
  return False


def _found(tree):
  """Returns (function, line) of what reads sentences."""
  for function in ast.walk(tree):
    if isinstance(function, ast.FunctionDef):
      yield from ((function.name, n.lineno) for n in ast.walk(function) if _reads(n))


class DisplayTextTest(absltest.TestCase):
  def test_no_sentence_is_taken_apart(self):
    found = {}
    for folder, _, names in os.walk(_PACKAGE):
      for name in sorted(names):
        if name.endswith('.py'):
          path = os.path.join(folder, name)
          with open(path, encoding='utf-8') as file:
            tree = ast.parse(file.read())
          short = os.path.relpath(path, _PACKAGE).replace(os.sep, '/')
          for function, line in _found(tree):
            found.setdefault((short, function), line)
    self.assertEqual({key: line for key, line in found.items() if key not in _OF_OTHERS}, {})
    self.assertEqual(set(_OF_OTHERS) - set(found), set(), 'take it out of the list')

  def test_what_reads_a_sentence_is_found(self):
    tree = ast.parse("def f(cause, why):\n  return 'mean' in cause.text or why.startswith('no ')")
    self.assertEqual([name for name, _ in _found(tree)], ['f', 'f'])
    tree = ast.parse("def f(cause):\n  return cause.text == '' or cause.rule == 'mean'")
    self.assertEqual(list(_found(tree)), [])


if __name__ == '__main__':
  absltest.main()
