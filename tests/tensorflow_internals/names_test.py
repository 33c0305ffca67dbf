"""Says which private name of TensorFlow or tf-keras a new release has moved."""

import ast
import importlib
import pathlib

from absl.testing import absltest, parameterized
from tensorflow.python.eager import context as eager_context

from tf2verify import tensorflow_internals

_FOLDER = pathlib.Path(tensorflow_internals.__file__).parent
_REFERENCE = _FOLDER.parent / 'reference'
_FILES = sorted(path for path in _FOLDER.glob('*.py') if path.name != '__init__.py')
_FILES.append(_REFERENCE / 'private_tensorflow.py')
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


def _exported():
  """Returns the private modules that `private_tensorflow` gives to the reference, by name."""
  file = _REFERENCE / 'private_tensorflow.py'
  found = {}
  for name, place, _ in _imported(ast.parse(file.read_text(encoding='utf-8'))):
    try:
      found.setdefault(name, _object(*place))  # the first of two places, by version
    except ImportError:  # `missing` has looked at that
      continue
  return found


def _object(module, name):
  """Returns what `from module import name` does; a module for no name."""
  try:
    found = importlib.import_module(module)
    return getattr(found, name) if name else found
  except AttributeError:
    return importlib.import_module(f'{module}.{name}')


def _elsewhere_in_older_versions(tree):
  """Returns the lines that run only where an import before them has failed."""
  handlers = (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
  within = (node for handler in handlers for node in ast.walk(handler))
  return {node.lineno for node in within if isinstance(node, (ast.Import, ast.ImportFrom))}


def missing(text, exported=()):
  """Returns lines and names that the installed TensorFlow does not have.

  Args:
    text: of a file; the first attribute of what it imports is looked at, deeper ones belong
      to objects that only exist while they are used.
    exported: private modules that another module gives to it, by name.
  """
  tree, known, found = ast.parse(text), dict(exported), []
  older = _elsewhere_in_older_versions(tree)
  for name, place, line in _imported(tree):
    try:
      known[name] = _object(*place)
    except ImportError as error:
      if line in older:
        continue
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
    self.assertEqual(missing(file.read_text(encoding='utf-8')), [], file)

  @parameterized.parameters(*_FILES)
  def test_every_file_says_why(self, file):
    self.assertTrue(ast.get_docstring(ast.parse(file.read_text(encoding='utf-8'))))

  @parameterized.parameters(*sorted(_REFERENCE.glob('*.py')))
  def test_what_the_reference_uses_of_private_modules_is_there(self, file):
    self.assertEqual(missing(file.read_text(encoding='utf-8'), _exported()), [], file)

  def test_names_that_are_gone(self):
    text = (
      'from tensorflow.python.eager import context, no_module\n'
      'context.context()\ncontext.no_function()\n'
    )
    found = missing(text)
    self.assertLen(found, 2)
    self.assertIn('no_module', found[0])
    self.assertEqual(found[1], 'line 3: context.no_function is gone')

  def test_what_another_module_gives(self):
    found = missing('context.context()\ncontext.no_function()\n', {'context': eager_context})
    self.assertEqual(found, ['line 2: context.no_function is gone'])

  def test_another_place_in_older_versions_is_no_loss(self):
    text = 'try:\n  import os\nexcept ImportError:\n  from tensorflow.python import no_module\n'
    self.assertEqual(missing(text), [])


if __name__ == '__main__':
  absltest.main()
