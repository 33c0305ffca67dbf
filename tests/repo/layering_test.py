"""Imports point one way, and TensorFlow is named only where it may be."""

import ast
import functools
import graphlib
import itertools
import os

from absl.testing import absltest

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PACKAGE = os.path.join(_ROOT, 'tf2verify')

# From the lowest layer to the highest; what stands together is one layer.
_LAYERS = (
  ('reference',),  # on its own: it runs where nothing of this package is installed
  ('errors',),
  ('safe_text', 'hooks'),
  ('tensorflow_internals',),
  ('environment',),
  ('records',),
  ('numerics',),
  ('relation',),
  ('recordings',),
  ('sides',),
  ('diagnosis',),
  ('stages',),
  ('report',),
  ('selection', 'acceptance', 'beyond', 'time_for_diagnosis'),
  ('blocked_tests',),
  ('ladder',),
  ('optional_hooks', 'misspelled_hooks', 'hook_signatures'),
  ('case',),
  ('assertion', 'discovery'),
  ('fleet',),
  ('commands',),
  ('__init__',),
  ('__main__',),
)
# The same for the folders of a layer, or of a folder in it; '' stands for the modules beside them.
_WITHIN = {
  'relation': (
    ('names', 'operations'),
    ('layouts',),
    ('derivation', 'proof'),
    ('',),
  ),
  'relation/proof': (
    ('normal_forms',),
    ('rules',),
    ('',),
    ('differences',),
  ),
  'sides': (
    ('process',),
    ('graphs',),
    ('',),
    ('losses',),
    ('hooks',),
    ('optimizers',),
    ('tf1', 'tf2'),
    ('recorded',),
    ('kept',),
    ('repetition', 'modes'),
  ),
  'sides/graphs': (
    ('lines', 'graph_defs', 'variables'),
    ('rewriting',),
    ('',),
    ('edits',),
  ),
  'sides/tf1': (
    ('graphs',),
    ('sessions',),
    ('',),
  ),
  'sides/tf2': (
    ('traces', 'layers'),
    ('files', 'optimization'),
    ('graphs',),
    ('',),
  ),
  'diagnosis': (
    ('formulas',),
    ('evidence',),
    ('divergence',),
    ('patterns',),
    ('rules',),
    ('places', 'proposals'),
    ('edits',),
    ('gradients', 'steps'),
    ('search',),
    ('',),
  ),
  'diagnosis/divergence': (
    ('tensors',),
    ('judging',),
    ('',),
    ('effects',),
  ),
  'diagnosis/patterns': (
    ('numbers',),
    ('operations',),
    ('',),
  ),
  'stages': (
    ('variables',),
    ('',),
    ('failures', 'comparison'),
    ('passes',),
    ('experiments',),
    ('losses', 'training', 'checkpoints', 'modes', 'repetition'),
  ),
  'stages/comparison': (
    ('noise',),
    ('',),
    ('proof', 'seeded'),
  ),
  'stages/passes': (
    ('further_runs',),
    ('',),
  ),
  'stages/training': (
    ('steps',),
    ('rounding',),
    ('graphs',),
    ('further_steps',),
    ('',),
  ),
  'commands': (
    ('conversion', 'tf1_code'),
    ('',),
  ),
}
_MAY_NAME_TENSORFLOW = ('reference', 'sides', 'environment', 'tensorflow_internals')
# What no release promises; only these files may name it, the reference since it is shipped alone.
_PRIVATE = ('tensorflow.python', 'tensorflow.core', 'tf_keras.src', 'keras.src')
_MAY_NAME_PRIVATE = ('reference', 'tensorflow_internals')
_TENSORFLOW = ('tensorflow', 'tf_keras', 'tf_slim', 'keras')
_MOST_LINES = 50  # of a function, without its signature and docstring
# Longer ones that are left; none may grow beyond these lines, and none may be added.
_LONG_FUNCTIONS = {
  'diagnosis.diagnose._inspected': 58,
  'reference.losses.record_losses': 56,
  'reference.step_entries.record_steps': 51,
  'sides.tf1.graphs.train_graph.add_train_op': 58,
}
_RANK = {name: rank for rank, layer in enumerate(_LAYERS) for name in layer}


def _modules():
  for folder, _, names in os.walk(_PACKAGE):
    for name in sorted(names):
      if name.endswith('.py'):
        path = os.path.join(folder, name)
        yield path, os.path.relpath(path, _PACKAGE).split(os.sep)[0].removesuffix('.py')


@functools.cache
def _tree(path):
  with open(path, encoding='utf-8') as file:
    return ast.parse(file.read())


@functools.cache
def _imports(path):
  return tuple(_imported(_tree(path)))


def _imported(tree):
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for alias in node.names:
        yield alias.name, node.lineno
    elif isinstance(node, ast.ImportFrom):
      for alias in node.names:
        yield f'{node.module}.{alias.name}', node.lineno


def _dotted(path):
  name = os.path.relpath(path, _ROOT).removesuffix('.py').replace(os.sep, '.')
  return name.removesuffix('.__init__')


def _modules_imported(path, modules):
  """Returns those of some modules that a file imports, a function's imports included."""
  names = [name for name, _ in _imports(path)]
  return {
    next((known for known in (name, name.rpartition('.')[0]) if known in modules), '')
    for name in names
  } - {''}


def _lines(function):
  """Returns how many lines the statements of a function take."""
  has_docstring = ast.get_docstring(function) is not None
  body = function.body[1:] if has_docstring else function.body
  return function.end_lineno - body[0].lineno + 1 if body else 0


class LayeringTest(absltest.TestCase):
  def test_every_module_has_a_layer(self):
    self.assertEqual({layer for _, layer in _modules()} - set(_RANK), set())

  def test_no_module_imports_a_higher_layer(self):
    wrong = []
    for path, layer in _modules():
      if layer == '__init__':
        continue  # gives the public names, lazily
      for name, line in _imports(path):
        parts = name.split('.')
        target = parts[1] if parts[0] == 'tf2verify' and len(parts) > 1 else None
        if target in _RANK and _RANK[target] > _RANK[layer]:
          wrong.append(f'{os.path.relpath(path, _ROOT)}:{line} imports {name}')
    # cli imports these only once the environment is known to work.
    self.assertEqual(wrong, [])

  def test_every_folder_of_a_layer_has_a_rank(self):
    for layer, ranks in _WITHIN.items():
      inside = os.scandir(os.path.join(_PACKAGE, layer))
      folders = {entry.name for entry in inside if entry.is_dir() and entry.name != '__pycache__'}
      self.assertEqual(folders, {name for names in ranks for name in names} - {''})

  def test_no_folder_of_a_layer_imports_a_higher_one(self):
    wrong = []
    for (path, _), layer in itertools.product(_modules(), _WITHIN):
      here = os.path.relpath(path, os.path.join(_PACKAGE, layer)).split(os.sep)
      if here[0] == os.pardir or here == ['__init__.py']:  # the registry of stages
        continue
      rank = {name: n for n, names in enumerate(_WITHIN[layer]) for name in names}
      folder = here[0] if len(here) > 1 else ''
      prefix = f'tf2verify.{layer.replace("/", ".")}.'
      for name, line in _imports(path):
        if name.startswith(prefix):
          inside = name.removeprefix(prefix).split('.')[0]
          target = inside if inside in rank else ''
          if target != folder and rank[target] >= rank[folder]:
            wrong.append(f'{os.path.relpath(path, _ROOT)}:{line} imports {name}')
    self.assertEqual(wrong, [])

  def test_no_circle_of_imports(self):
    modules = {_dotted(path): path for path, layer in _modules() if layer != '__init__'}
    wanted = {name: _modules_imported(path, modules) - {name} for name, path in modules.items()}
    # What a verdict renders itself by: they import it only to name its type.
    for text in ('verdict_html', 'verdict_json', 'verdict_text'):
      wanted[f'tf2verify.records.{text}'].discard('tf2verify.records.verdict')
    try:
      order = list(graphlib.TopologicalSorter(wanted).static_order())
    except graphlib.CycleError as error:
      self.fail(' -> '.join(error.args[1]))
    self.assertLess(order.index('tf2verify.errors'), order.index('tf2verify.case'))

  def test_tensorflow_is_named_only_where_it_may_be(self):
    wrong = [
      f'{os.path.relpath(path, _ROOT)}:{line} imports {name}'
      for path, layer in _modules()
      if layer not in _MAY_NAME_TENSORFLOW
      for name, line in _imports(path)
      if name.split('.')[0] in _TENSORFLOW
    ]
    self.assertEqual(wrong, [])

  def test_private_names_of_tensorflow_are_in_one_folder(self):
    wrong = [
      f'{os.path.relpath(path, _ROOT)}:{line} imports {name}'
      for path, layer in _modules()
      if layer not in _MAY_NAME_PRIVATE
      for name, line in _imports(path)
      if name.startswith(_PRIVATE)
    ]
    self.assertEqual(wrong, [])

  def test_a_planted_import_is_seen(self):
    self.assertGreater(_RANK['stages'], _RANK['sides'])
    with open(os.path.join(_PACKAGE, 'sides', 'side.py'), encoding='utf-8') as file:
      self.assertNotIn('tf2verify.stages', file.read())

  def test_modules_stay_small(self):
    long = []
    for path, _ in _modules():
      with open(path, encoding='utf-8') as file:
        lines = len(file.readlines())
      if lines > 400:
        long.append(f'{os.path.relpath(path, _ROOT)}: {lines} lines')
    self.assertEqual(long, [])

  def test_functions_stay_small(self):
    long = {}
    for path, _ in _modules():
      for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef) and _lines(node) > _MOST_LINES:
          long[f'{_dotted(path).removeprefix("tf2verify.")}.{node.name}'] = _lines(node)
    self.assertEqual(long.keys() - _LONG_FUNCTIONS.keys(), set())
    self.assertEqual(_LONG_FUNCTIONS.keys() - long.keys(), set(), 'take it out of the list')
    for name, lines in long.items():
      self.assertLessEqual(lines, _LONG_FUNCTIONS[name], name)


if __name__ == '__main__':
  absltest.main()
