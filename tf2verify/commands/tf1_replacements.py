"""What of TF1 code has to be replaced, with its lines: before it runs here, or in the port."""

import ast
import dataclasses
import re
from collections.abc import Iterator

from tf2verify.commands import tf1_contrib
from tf2verify.commands.tf1_source import Tf1Source, called

# Names of TF1 that `tensorflow` no longer has.
_ONLY_IN_V1 = frozenset(
  (
    'ConfigProto', 'GraphKeys', 'Session', 'add_to_collection', 'app', 'assign', 'assign_add',
    'contrib', 'div', 'flags', 'get_collection', 'get_default_graph', 'get_variable',
    'get_variable_scope', 'gfile', 'global_variables_initializer', 'layers', 'log', 'logging',
    'placeholder', 'placeholder_with_default', 'random_normal', 'random_uniform', 'rsqrt',
    'summary', 'to_float', 'to_int32', 'to_int64', 'truncated_normal', 'variable_scope',
  )
)  # fmt: skip
# What cannot be done while a module is imported, since there is no graph.
_NEEDS_A_GRAPH = ('placeholder', 'placeholder_with_default', 'Session', 'InteractiveSession')
_AT_IMPORT = 'runs when the module is imported, outside of a graph: move it into a function'
# Layers that make variables.
_LAYERS = frozenset(
  (
    'batch_norm', 'batch_normalization', 'conv1d', 'conv2d', 'conv2d_transpose', 'conv3d',
    'convolution2d', 'dense', 'fully_connected', 'layer_norm', 'linear', 'separable_conv2d',
  )
)  # fmt: skip
_LONGEST = 60


@dataclasses.dataclass(frozen=True)
class Replacement:
  """A piece of TF1 code that cannot stay.

  Attributes:
    line: its line.
    code: what stands there.
    advice: what to put in its place.
    in_port: whether it may stay in the TF1 code, and not in the port.
  """

  line: int
  code: str
  advice: str
  in_port: bool = False


def replacements_of(source: Tf1Source) -> list[Replacement]:
  """Returns what has to be replaced in the module of a function, by line."""
  found = [
    *_imports(source.tree),
    *_contrib(source.tree),
    *_at_import(source.tree),
    *_of_function(source),
    *_unnamed(source),
    *_of_port(source.tree),
  ]
  unique = {(one.line, one.advice): one for one in found}
  return sorted(unique.values(), key=lambda one: (one.in_port, one.line))


def _dotted(node: ast.AST) -> str:
  """Returns `tf.contrib.slim` of an attribute chain; '' for anything else."""
  if isinstance(node, ast.Name):
    return node.id
  if isinstance(node, ast.Attribute):
    below = _dotted(node.value)
    return f'{below}.{node.attr}' if below else ''
  return ''


def _imports(tree: ast.Module) -> Iterator[Replacement]:
  """Yields `import tensorflow as tf` where names of TF1 are used through it."""
  for node in ast.walk(tree):
    if not isinstance(node, ast.Import):
      continue
    for alias in node.names:
      if alias.name != 'tensorflow':
        continue
      name = alias.asname or alias.name
      used = {
        dotted.split('.')[1]
        for one in ast.walk(tree)
        if isinstance(one, ast.Attribute) and (dotted := _dotted(one)).startswith(f'{name}.')
      }
      if used & _ONLY_IN_V1:
        yield Replacement(node.lineno, _code(node), f'import tensorflow.compat.v1 as {name}')


def _contrib(tree: ast.Module) -> Iterator[Replacement]:
  for node, advice in tf1_contrib.uses(tree):
    yield Replacement(node.lineno, _code(node), advice)  # type: ignore[attr-defined]
  for node in ast.walk(tree):
    if isinstance(node, ast.Call) and called(node) == 'HParams':
      yield Replacement(node.lineno, _code(node), tf1_contrib.HPARAMS)


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
    elif name in _NEEDS_A_GRAPH or name == 'minimize' or name.endswith('Optimizer'):
      yield Replacement(node.lineno, _code(node), _AT_IMPORT)


def _is_main(node: ast.AST) -> bool:
  return isinstance(node, ast.If) and '__main__' in ast.unparse(node.test)


def _of_function(source: Tf1Source) -> Iterator[Replacement]:
  """Yields what a builder of a graph must not do; looked for in the function, or its class."""
  classes = (node for node in source.tree.body if isinstance(node, ast.ClassDef))
  owner = next((node for node in classes if node.name == source.owner), None)
  for node in ast.walk(owner or source.function):
    if isinstance(node, ast.Call):
      name = called(node)
      if name == 'placeholder':
        yield Replacement(node.lineno, _code(node), 'take it as a parameter: inputs are given')
      elif name in ('Session', 'InteractiveSession'):
        yield Replacement(node.lineno, _code(node), 'return the tensors: tf2verify runs them')
      elif name.endswith('Optimizer') or name == 'minimize':
        yield Replacement(
          node.lineno, _code(node), 'leave it out here, and return it in make_tf1_optimizer'
        )
      elif name in ('EstimatorSpec', 'TPUEstimatorSpec'):
        yield Replacement(node.lineno, _code(node), 'return the tensors that are in it')
    elif isinstance(node, ast.Attribute) and _dotted(node.value).endswith('estimator.ModeKeys'):
      texts = {'TRAIN': 'train', 'EVAL': 'eval', 'PREDICT': 'infer'}
      if node.attr in texts:
        advice = f'{texts[node.attr]!r}: tf.estimator is gone since TensorFlow 2.16'
        yield Replacement(node.lineno, _dotted(node), advice)
    elif isinstance(node, ast.Attribute) and _dotted(node.value) == 'FLAGS':
      yield Replacement(
        node.lineno, _dotted(node), 'take it as a parameter: flags are not parsed here'
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
    module = _dotted(node.func).rpartition('.')[0]
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
