"""The recorder as one file: what is joined, and what would not be the same in one file."""

import ast
import importlib
import pathlib
import sys

from absl.testing import absltest

from tests.recorder import shipped
from tf2verify import reference
from tf2verify.commands import recorder

_FOLDER = pathlib.Path(reference.__file__).parent


class OneFileTest(absltest.TestCase):
  def test_it_holds_what_the_package_holds(self):
    text = recorder.recorder_text()
    defined = {
      node.name: ast.dump(node)
      for node in ast.parse(text).body
      if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    for module in recorder.modules():
      tree = ast.parse((_FOLDER / f'{module.name}.py').read_text(encoding='utf-8'))
      for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
          self.assertEqual(defined.pop(node.name), ast.dump(node), module.name)
    self.assertEmpty(defined)

  def test_its_constants_are_those_of_the_package(self):
    for module in recorder.modules():
      package = importlib.import_module(f'tf2verify.reference.{module.name}')
      for name in module.names:
        value = getattr(package, name)
        if isinstance(value, str | int | float | tuple) and name not in (
          '_OWN_FILE',
          '_OWN_FOLDER',
        ):
          self.assertEqual(getattr(shipped.tf1_recorder, name), value, name)

  def test_it_needs_numpy_tensorflow_and_the_standard_library(self):
    tree = ast.parse(recorder.recorder_text())
    names = set()
    for node in ast.walk(tree):
      if isinstance(node, ast.ImportFrom):
        self.assertEqual(node.level, 0)
        names.add(node.module.split('.')[0])
      elif isinstance(node, ast.Import):
        names |= {alias.name.split('.')[0] for alias in node.names}
    # TensorFlow has needed absl since 1.13.
    self.assertEqual(names - sys.stdlib_module_names, {'absl', 'numpy', 'tensorflow'})

  def test_it_is_readable_by_python_2_up_to_the_line_that_refuses_it(self):
    text = recorder.recorder_text()
    self.assertTrue(text.isascii())  # Python 2 wants a declaration for anything else
    before = text.partition('# Python 2 stops here')[0]
    self.assertEqual(before.count('\n_PYTHON: str'), 1)
    self.assertNotRegex(before.rpartition('\n')[0], r'\ndef |\nclass |->')

  def test_docstrings_of_modules_are_comments(self):
    one = recorder.parsed('one', '"""One."""\n\nLIMIT = 1\n')
    other = recorder.parsed('other', '"""Other.\n\nMore of 007.\n"""\n\nNEXT = 2\n')
    text = recorder.joined((other, one))
    self.assertIn('\n# other: Other.\n#\n# More of 007.\n\nNEXT = 2\n', text)
    ast.parse(text)

  def test_a_name_of_two_modules_is_refused(self):
    one, other = (recorder.parsed(name, '"""Doc."""\n\nLIMIT = 1\n') for name in ('one', 'other'))
    with self.assertRaisesRegex(ValueError, 'one and other both define LIMIT'):
      recorder.joined((one, other))

  def test_an_import_that_means_nothing_in_one_file_is_refused(self):
    for line in ('from . import arrays', 'from .arrays import digest as d', 'from ..case import x'):
      with self.subTest(line), self.assertRaisesRegex(ValueError, 'one, line 3: .*would have no'):
        recorder.parsed('one', f'"""Doc."""\n\n{line}\n')
    with self.assertRaisesRegex(ValueError, 'within a function'):
      recorder.parsed('one', '"""Doc."""\n\ndef f():\n  from .arrays import digest\n')


if __name__ == '__main__':
  absltest.main()
