"""Shapes that the code of a TF1 module shows: of its placeholders and tables."""

import ast
from collections.abc import Mapping

from tf2verify.commands.tf1_code.source import Tf1Source
from tf2verify.commands.tf1_code.syntax import called, inner_function, last_word, passed, text_of

_PLACEHOLDERS = ('placeholder', 'placeholder_with_default', 'sparse_placeholder')


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
      taken = source.made_with if is_owner else source.parameters
      for parameter, value in passed(node, [one.name for one in taken]):
        if last_word(value) in made:
          found.setdefault(parameter, made[last_word(value)])
  return found


def placeholders_inside(source: Tf1Source) -> list[tuple[str, int]]:
  """Returns name and line of the placeholders that a function makes or reads from its module."""
  inside: dict[str, ast.FunctionDef] = {}
  waiting = [source.function, *([source.functions['__init__']] if source.made_with else [])]
  while waiting:
    function = waiting.pop()
    inside[function.name] = function
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    inner = [inner_function(call, source.functions) for call in calls]
    waiting += [one for one in inner if one is not None and one.name not in inside]
  nodes = [node for function in inside.values() for node in ast.walk(function)]
  read = {node.id for node in nodes if isinstance(node, ast.Name)}
  outside = (node for node in source.tree.body if isinstance(node, ast.Assign))
  nodes += [node for node in outside if last_word(node.targets[0]) in read]
  found = {node.value: last_word(node.targets[0]) for node in nodes if isinstance(node, ast.Assign)}
  calls = (node for node in nodes if isinstance(node, ast.Call))
  made = [*calls, *(value for value in found if isinstance(value, ast.Call))]
  return sorted(
    {(found.get(one) or called(one), one.lineno) for one in made if called(one) in _PLACEHOLDERS},
    key=lambda one: one[1],
  )


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
