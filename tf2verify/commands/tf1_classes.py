"""Classes of TF1 code: what their constructors take and keep, and what their methods set."""

import ast
import copy
from collections.abc import Iterable, Iterator

# An attribute of a class that is likely what a model computes, the likeliest first.
_OUTPUTS = (
  'logits',
  'scores',
  'outputs',
  'output',
  'probabilities',
  'probs',
  'predictions',
  'prediction',
)


def methods_of(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
  """Returns the methods of a class by name, without the parameter `self`."""
  found = {}
  for node in owner.body:
    if isinstance(node, ast.FunctionDef):
      method = copy.deepcopy(node)
      if not is_decorated(node, 'staticmethod') and method.args.args:
        del method.args.args[0]
        method.args.defaults = method.args.defaults[-len(method.args.args) :]
      found[node.name] = method
  return found


def is_decorated(function: ast.FunctionDef, word: str) -> bool:
  """Says whether a decorator has a word in its name."""
  return any(word in ast.unparse(one) for one in function.decorator_list)


def kept_as(constructor: ast.FunctionDef, name: str) -> list[str]:
  """Returns `self.x` for each attribute that a constructor keeps a parameter in."""
  return [
    ast.unparse(target)
    for node in ast.walk(constructor)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name
    for target in node.targets
    if is_own(target)
  ]


def is_own(node: ast.AST) -> bool:
  """Says whether it is an attribute of `self`."""
  return (
    isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == 'self'
  )


def returns_something(function: ast.FunctionDef) -> bool:
  """Says whether a function returns a value anywhere."""
  return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))


def sets(functions: Iterable[ast.FunctionDef]) -> list[str]:
  """Returns the attributes that methods set, what is likely the output of a model first."""
  found = dict.fromkeys(name for function in functions for name in _set_by(function))
  likely = [name for word in _OUTPUTS for name in found if name.strip('_') == word]
  return [*dict.fromkeys(likely), *(name for name in reversed(found) if name not in likely)]


def _set_by(function: ast.FunctionDef) -> Iterator[str]:
  for node in ast.walk(function):
    if isinstance(node, ast.Assign):
      for target in node.targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        yield from (one.attr for one in parts if isinstance(one, ast.Attribute) and is_own(one))
