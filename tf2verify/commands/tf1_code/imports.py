"""Imports of TF1 code that TensorFlow 2 has no longer, and what to write instead."""

import ast
from collections.abc import Iterator

from tf2verify.commands.tf1_code import contrib
from tf2verify.commands.tf1_code.installed import in_compat_v1, is_there
from tf2verify.commands.tf1_code.syntax import dotted, one_of

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
_DATA = (
  'not in TensorFlow 2: a case makes its inputs (make_inputs), so leave it to the training script; '
  'MNIST: tf.keras.datasets.mnist'
)
# Names in packages that TensorFlow has no longer.
_ELSEWHERE = {
  'tensorflow.examples': {'input_data': _DATA, 'mnist': _DATA},
  'tensorflow.models': {
    'rnn': 'tf.nn, after import tensorflow.compat.v1 as tf; rnn.rnn is tf.nn.static_rnn',
    'rnn_cell': 'rnn_cell = tf.nn.rnn_cell, after import tensorflow.compat.v1 as tf',
  },
}


def old_imports(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
  """Yields imports that cannot stay, and what to write instead."""
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for alias in node.names:
        name = alias.asname or alias.name
        if alias.name == 'tensorflow' and _is_used_as_v1(tree, name):
          yield node, f'import tensorflow.compat.v1 as {name}{_rest(node)}'
        elif _is_gone(alias.name):
          advice = _elsewhere(alias.name)
          if not advice and (place := in_compat_v1(alias.name)):
            advice = f'import {place} as {alias.asname or place.rpartition(".")[2]}'
          yield node, (advice or contrib.RECORD) + _rest(node)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
      for alias in node.names:
        full = node.module if alias.name == '*' else f'{node.module}.{alias.name}'
        if _is_gone(full):
          advice = _elsewhere(full)
          if not advice and in_compat_v1(full):
            package = in_compat_v1(full) if alias.name == '*' else in_compat_v1(node.module)
            advice = f'from {package} import {ast.unparse(alias)}'
          yield one_of(node, alias), advice or contrib.RECORD
  for node, advice in contrib.uses(tree):
    yield node, f'{advice}{_rest(node)}'


def _is_gone(module: str) -> bool:
  """Returns whether it is of TensorFlow, which has it no longer; contrib has a table of its own."""
  words = module.split('.')
  return words[0] == 'tensorflow' and words[1:2] != ['contrib'] and not is_there(module)


def _elsewhere(module: str) -> str:
  """Returns the advice for a module of a package that is gone; '' for none."""
  words = module.split('.')
  return _ELSEWHERE.get('.'.join(words[:2]), {}).get(words[-1], '')


def _is_used_as_v1(tree: ast.Module, name: str) -> bool:
  used = {
    chain.split('.')[1]
    for one in ast.walk(tree)
    if isinstance(one, ast.Attribute) and (chain := dotted(one)).startswith(f'{name}.')
  }
  return bool(used & _ONLY_IN_V1)


def _rest(node: ast.AST) -> str:
  """Returns what else a statement imports, and has to stay."""
  names = node.names if isinstance(node, ast.Import) else []
  others = [one for one in names if one.name.split('.')[0] != 'tensorflow']
  return f'; import {", ".join(ast.unparse(one) for one in others)}' if others else ''
