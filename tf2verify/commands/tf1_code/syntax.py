"""Small questions about the syntax of TF1 code: names, calls, and what calls pass."""

import ast
from collections.abc import Iterator, Mapping, Sequence


def is_own(node: ast.AST) -> bool:
  """Returns whether it is an attribute of `self`."""
  return (
    isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == 'self'
  )


def text_of(node: ast.AST) -> str:
  """Returns a name, `self.x`, or one of these with a key: `x['key']`; '' for anything else."""
  if isinstance(node, ast.Name):
    return node.id
  if isinstance(node, ast.Subscript):
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    holder = text_of(node.value)
    return with_key(holder, key) if holder and isinstance(key, str) else ''
  return f'self.{node.attr}' if isinstance(node, ast.Attribute) and is_own(node) else ''


def with_key(holder: str, key: str) -> str:
  """Returns the text of what a mapping has under a key, as `text_of` does."""
  return f'{holder}[{key!r}]'


def called(node: ast.Call) -> str:
  """Returns the last word of what a call calls: `conv2d` of `tf.layers.conv2d(...)`."""
  return last_word(node.func)


def last_word(node: ast.expr | None) -> str:
  """Returns `x` of `x` and of `self.x`; '' of anything else."""
  if isinstance(node, ast.Attribute):
    return node.attr
  return node.id if isinstance(node, ast.Name) else ''


def dotted(node: ast.AST) -> str:
  """Returns `tf.contrib.slim` of an attribute chain; '' for anything else."""
  if isinstance(node, ast.Name):
    return node.id
  if isinstance(node, ast.Attribute):
    below = dotted(node.value)
    return f'{below}.{node.attr}' if below else ''
  return ''


def passed(call: ast.Call, names: Sequence[str]) -> Iterator[tuple[str, ast.expr]]:
  """Yields the arguments of a call with the names of the parameters that take them."""
  yield from zip(names, call.args, strict=False)
  for word in call.keywords:
    if word.arg is not None:
      yield word.arg, word.value


def plain_parameters(function: ast.FunctionDef) -> list[str]:
  """Returns the names of the parameters that can be passed by position."""
  return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def inner_function(
  call: ast.Call, functions: Mapping[str, ast.FunctionDef]
) -> ast.FunctionDef | None:
  """Returns which of some functions, or of the own methods, a call calls; None for another one."""
  is_here = isinstance(call.func, ast.Name) or is_own(call.func)
  return functions.get(called(call)) if is_here else None


def one_of(node: ast.ImportFrom, alias: ast.alias) -> ast.ImportFrom:
  """Returns the statement that imports only one of the names."""
  return ast.copy_location(ast.ImportFrom(node.module, [alias], node.level), node)
