"""Says which private name of TensorFlow or tf-keras a new release has moved."""

import ast
import importlib
import pathlib

from absl.testing import absltest, parameterized

from tf2verify import tensorflow_internals

_FOLDER = pathlib.Path(tensorflow_internals.__file__).parent
_FILES = sorted(path.name for path in _FOLDER.glob('*.py') if path.name != '__init__.py')
_PRIVATE = ('tensorflow.python', 'tf_keras.src')


def _imported(tree):
  """Yields the name that a file gives to a private module or object, and where that is."""
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for alias in node.names:
        if alias.name.startswith(_PRIVATE):
          yield alias.asname or alias.name, (alias.name, ''), node.lineno
    elif isinstance(node, ast.ImportFrom) and (node.module or '').startswith(_PRIVATE):
      for alias in node.names:
        yield alias.asname or alias.name, (node.module, alias.name), node.lineno


def _object(module, name):
  """Returns what `from module import name` does; a module for no name."""
  try:
    found = importlib.import_module(module)
    return getattr(found, name) if name else found
  except AttributeError:
    return importlib.import_module(f'{module}.{name}')


def missing(text):
  """Returns lines and names that the installed TensorFlow does not have.

  Args:
    text: of a file; the first attribute of what it imports is looked at, deeper ones belong
      to objects that only exist while they are used.
  """
  tree, known, found = ast.parse(text), {}, []
  for name, place, line in _imported(tree):
    try:
      known[name] = _object(*place)
    except ImportError as error:
      found.append(f'line {line}: {".".join(filter(None, place))}: {error}')
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
      owner = known.get(node.value.id)
      if owner is not None and not hasattr(owner, node.attr):
        found.append(f'line {node.lineno}: {node.value.id}.{node.attr} is gone')
  return found


class NamesTest(parameterized.TestCase):
  @parameterized.parameters(*_FILES)
  def test_every_name_is_there(self, file):
    self.assertEqual(missing((_FOLDER / file).read_text(encoding='utf-8')), [], file)

  @parameterized.parameters(*_FILES)
  def test_every_file_says_why(self, file):
    self.assertTrue(ast.get_docstring(ast.parse((_FOLDER / file).read_text(encoding='utf-8'))))

  def test_names_that_are_gone(self):
    text = (
      'from tensorflow.python.eager import context, no_module\n'
      'context.context()\ncontext.no_function()\n'
    )
    found = missing(text)
    self.assertLen(found, 2)
    self.assertIn('no_module', found[0])
    self.assertEqual(found[1], 'line 3: context.no_function is gone')


if __name__ == '__main__':
  absltest.main()
