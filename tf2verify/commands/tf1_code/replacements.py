"""What of TF1 code has to be replaced, with its lines: before it runs here, or in the port."""

import ast
import dataclasses
import re
from collections.abc import Iterator

from tf2verify.commands.tf1_code import contrib
from tf2verify.commands.tf1_code.classes import bases_of
from tf2verify.commands.tf1_code.imports import old_imports
from tf2verify.commands.tf1_code.modules import imported_files, shown_file
from tf2verify.commands.tf1_code.source import Tf1Source
from tf2verify.commands.tf1_code.syntax import called, dotted

# What cannot be done while a module is imported, since there is no graph.
_PLACEHOLDERS = ('placeholder', 'placeholder_with_default', 'sparse_placeholder')
_NEEDS_A_GRAPH = (*_PLACEHOLDERS, 'Session', 'InteractiveSession')
# What a script does, and a module that is imported must not.
_OF_SCRIPTS = ('load_data', 'maybe_download', 'parse_args', 'read_data_sets', 'run')
_AT_IMPORT = 'runs when the module is imported, outside of a graph: move it into a function'
_SCRIPT = 'runs when the module is imported: move it into a function'
# Layers that make variables.
_LAYERS = frozenset(
  (
    'batch_norm', 'batch_normalization', 'conv1d', 'conv2d', 'conv2d_transpose', 'conv3d',
    'convolution2d', 'dense', 'fully_connected', 'layer_norm', 'linear', 'separable_conv2d',
  )
)  # fmt: skip
_OPTIMIZERS = ('apply_gradients', 'create_train_op', 'minimize', 'optimize_loss')
_LONGEST = 60


@dataclasses.dataclass(frozen=True)
class Replacement:
  """A piece of TF1 code that cannot stay.

  Attributes:
    line: its line.
    code: what stands there.
    advice: what to put in its place.
    in_port: whether it may stay in the TF1 code, and not in the port.
    file: what it is in, as seen from the working folder.
  """

  line: int
  code: str
  advice: str
  in_port: bool = False
  file: str = ''

  @property
  def place(self) -> str:
    """The file and the line."""
    return f'{self.file}:{self.line}'


def replacements_of(source: Tf1Source) -> list[Replacement]:
  """Returns what has to be replaced, by line: in a module, and in those that it imports."""
  found = [
    *_of_any_module(source.tree),
    *_of_function(source),
    *_unnamed(source),
    *_of_port(source.tree),
  ]
  files = {source.path: found}
  for path, tree in imported_files(source.path, source.tree).items():
    files[path] = list(_of_any_module(tree))
  return [
    dataclasses.replace(one, file=shown_file(path, source.path))
    for in_port in (False, True)
    for path, ones in files.items()
    for one in sorted({(one.line, one.advice): one for one in ones}.values(), key=_line)
    if one.in_port is in_port
  ]


def _line(one: Replacement) -> int:
  return one.line


def _of_any_module(tree: ast.Module) -> Iterator[Replacement]:
  """Yields what keeps a module from being imported or used, whichever function is called."""
  for node, advice in old_imports(tree):
    yield Replacement(node.lineno, _code(node), advice)  # type: ignore[attr-defined]
  for node in ast.walk(tree):
    if isinstance(node, ast.Call) and called(node) == 'HParams':
      yield Replacement(node.lineno, _code(node), contrib.HPARAMS)
  yield from _at_import(tree)


def _at_import(tree: ast.Module) -> Iterator[Replacement]:
  """Yields what the module makes when it is imported, and not in a function."""
  inside = {
    below
    for node in ast.walk(tree)
    if isinstance(node, (ast.FunctionDef, ast.Lambda)) or _is_main(node)
    for below in ast.walk(node)
  }
  for node in ast.walk(tree):
    if not isinstance(node, ast.Call) or node in inside:
      continue
    name = called(node)
    if name in ('Variable', 'get_variable'):
      advice = 'make it in the function: made at import, it is in no graph, and in no layer'
      yield Replacement(node.lineno, _code(node), advice)
    elif name in _NEEDS_A_GRAPH or _is_optimizer(name):
      yield Replacement(node.lineno, _code(node), _AT_IMPORT)
    elif name in _OF_SCRIPTS:
      yield Replacement(node.lineno, _code(node), _SCRIPT)


def _is_optimizer(name: str) -> bool:
  """Returns whether a call makes an optimizer or a train op."""
  return name in _OPTIMIZERS or name.endswith('Optimizer')


def _is_main(node: ast.AST) -> bool:
  return isinstance(node, ast.If) and '__main__' in ast.unparse(node.test)


def _of_function(source: Tf1Source) -> Iterator[Replacement]:
  """Yields what a builder of a graph must not do; looked for in the function, or its class."""
  classes = {node.name: node for node in source.tree.body if isinstance(node, ast.ClassDef)}
  owner = classes.get(source.owner)
  places = [owner, *bases_of(owner, classes)] if owner else [source.function]
  for node in (below for place in places for below in ast.walk(place)):
    if isinstance(node, ast.Call):
      name = called(node)
      if name in _PLACEHOLDERS:
        yield Replacement(node.lineno, _code(node), 'take it as a parameter: inputs are given')
      elif name in ('Session', 'InteractiveSession'):
        yield Replacement(node.lineno, _code(node), 'return the tensors: tf2verify runs them')
      elif _is_optimizer(name):
        yield Replacement(
          node.lineno, _code(node), 'leave it out here, and return it in make_tf1_optimizer'
        )
      elif name in ('EstimatorSpec', 'TPUEstimatorSpec'):
        yield Replacement(node.lineno, _code(node), 'return the tensors that are in it')
    elif isinstance(node, ast.Attribute) and dotted(node.value).endswith('estimator.ModeKeys'):
      texts = {'TRAIN': 'train', 'EVAL': 'eval', 'PREDICT': 'infer'}
      if node.attr in texts:
        advice = f'{texts[node.attr]!r}: tf.estimator is gone since TensorFlow 2.16'
        yield Replacement(node.lineno, dotted(node), advice)
    elif isinstance(node, ast.Attribute) and dotted(node.value) == 'FLAGS':
      yield Replacement(
        node.lineno, dotted(node), 'take it as a parameter: flags are not parsed here'
      )


def _unnamed(source: Tf1Source) -> Iterator[Replacement]:
  """Yields layers without a name, outside of scopes: eager mode counts their names up."""
  scoped = {
    below
    for node in ast.walk(source.function)
    if isinstance(node, ast.With)
    and any('variable_scope' in ast.unparse(item.context_expr) for item in node.items)
    for below in ast.walk(node)
  }
  for node in ast.walk(source.function):
    if not isinstance(node, ast.Call) or node in scoped or called(node) not in _LAYERS:
      continue
    module = dotted(node.func).rpartition('.')[0]
    named = any(word.arg in ('name', 'scope') for word in node.keywords)
    if not named and re.search(r'(^|\.)(layers|slim|tf_slim)$', module):
      advice = 'in the port: name it as in TF1, since unnamed layers count up at each call'
      yield Replacement(node.lineno, _code(node), advice, True)


def _of_port(tree: ast.Module) -> Iterator[Replacement]:
  """Yields what works in a graph of TF1 and not in eager code."""
  scopes = {
    item.optional_vars.id
    for node in ast.walk(tree)
    if isinstance(node, ast.With)
    for item in node.items
    if isinstance(item.optional_vars, ast.Name)
  }
  for node in (
    below for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) for below in ast.walk(one)
  ):
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ('tf.Variable', 'Variable'):
      advice = 'in the port: tf.get_variable, since each call would make a new one'
      yield Replacement(node.lineno, _code(node), advice, True)
  for node in ast.walk(tree):
    if not isinstance(node, ast.Attribute):
      continue
    if node.attr == 'value' and isinstance(node.value, ast.Subscript):
      plain = ast.unparse(node.value)[:_LONGEST]
      advice = f'in the port: {plain}; on both sides: tf.compat.dimension_value({plain})'
      yield Replacement(node.lineno, _code(node), advice, True)
    elif node.attr == 'name':
      owner = node.value
      is_op = isinstance(owner, ast.Attribute) and owner.attr == 'op'
      is_tensor = isinstance(owner, ast.Name) and owner.id not in scopes | {'self', 'cls'}
      if is_op or is_tensor:
        advice = 'in the port: a name of your own, since eager tensors have none'
        yield Replacement(node.lineno, _code(node), advice, True)


def _code(node: ast.AST) -> str:
  text = ' '.join(ast.unparse(node).split())
  return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'
