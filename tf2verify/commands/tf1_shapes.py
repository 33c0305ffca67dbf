"""Shapes that the code of a TF1 module shows: of its placeholders and tables."""

import ast
from collections.abc import Iterator, Mapping, Sequence

from tf2verify.commands.tf1_source import Parameter, Tf1Source, called, last_word, text_of


def placeholders(source: Tf1Source) -> dict[str, tuple[str, tuple[int | None, ...] | None, int]]:
  """Returns the placeholders that code of the module passes to the function, or names alike.

  Returns:
    Parameter to dtype, shape (None where it is not written) and line.
  """
  made = {}
  numbers = _numbers(source.tree)
  for node in ast.walk(source.tree):
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
      continue
    if called(node.value) != 'placeholder' or not last_word(node.targets[0]):
      continue
    words = {word.arg: word.value for word in node.value.keywords}
    rest = node.value.args
    dtype = rest[0] if rest else words.get('dtype')
    shape = rest[1] if len(rest) > 1 else words.get('shape')
    name = dtype.attr if isinstance(dtype, ast.Attribute) else 'float32'
    made[last_word(node.targets[0])] = (name, _shape(shape, numbers), node.lineno)
  found = {one.name: made[one.name] for one in source.taken if one.name in made}
  for node in ast.walk(source.tree):
    if isinstance(node, ast.Call) and called(node) in (source.function.name, source.owner):
      is_owner = called(node) == source.owner
      for parameter, value in _passed(node, source.made_with if is_owner else source.parameters):
        if last_word(value) in made:
          found.setdefault(parameter, made[last_word(value)])
  return found


def rows_of_table(tree: ast.Module, call: ast.Call) -> int | None:
  """Returns how many rows the table of a lookup has, or the depth of a one-hot; None if unseen."""
  numbers = _numbers(tree)
  words = {word.arg: word.value for word in call.keywords}
  if called(call) == 'one_hot':
    depth = call.args[1] if len(call.args) > 1 else words.get('depth')
    return (_shape(ast.List([depth]), numbers) or (None,))[0] if depth is not None else None
  table = call.args[0] if call.args else words.get('params')
  made = [
    node.value
    for node in ast.walk(tree)
    if isinstance(node, ast.Assign)
    and isinstance(node.value, ast.Call)
    and called(node.value) == 'get_variable'
    and table is not None
    and text_of(node.targets[0]) == text_of(table) != ''
  ]
  if len(made) != 1:
    return None
  given = {word.arg: word.value for word in made[0].keywords}
  shape = made[0].args[1] if len(made[0].args) > 1 else given.get('shape')
  return (_shape(shape, numbers) or (None,))[0]


def _passed(call: ast.Call, parameters: Sequence[Parameter]) -> Iterator[tuple[str, ast.expr]]:
  for parameter, value in zip(parameters, call.args, strict=False):
    yield parameter.name, value
  for word in call.keywords:
    if word.arg is not None:
      yield word.arg, word.value


def _numbers(tree: ast.Module) -> dict[str, int]:
  """Returns the integers that a module gives names to, and does not change."""
  given: dict[str, list[ast.expr]] = {}
  for node in ast.walk(tree):
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
      given.setdefault(node.targets[0].id, []).append(node.value)
  return {
    name: values[0].value
    for name, values in given.items()
    if len(values) == 1 and isinstance(values[0], ast.Constant) and type(values[0].value) is int
  }


def _shape(node: ast.expr | None, numbers: Mapping[str, int]) -> tuple[int | None, ...] | None:
  if not isinstance(node, (ast.List, ast.Tuple)):
    return None
  values = [
    numbers.get(one.id) if isinstance(one, ast.Name) else getattr(one, 'value', None)
    for one in node.elts
  ]
  return tuple(one if isinstance(one, int) else None for one in values)
