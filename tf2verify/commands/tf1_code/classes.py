"""Classes of TF1 code: what their constructors take and keep, and what their methods set."""

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping

from tf2verify.commands.tf1_code.syntax import called, is_own, last_word, passed, plain_parameters

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


def methods_of(
  owner: ast.ClassDef, classes: Mapping[str, ast.ClassDef]
) -> dict[str, ast.FunctionDef]:
  """Returns the methods of a class by name, without the parameter `self`.

  Also those inherited from classes of the module; the own ones come last. What a constructor does
  by that of a base class is written out in it.

  Args:
    owner: the class.
    classes: of the module, by name.
  """
  return _methods(owner, classes, ())


def bases_of(
  owner: ast.ClassDef, classes: Mapping[str, ast.ClassDef], below: tuple[str, ...] = ()
) -> list[ast.ClassDef]:
  """Returns the classes of the module that a class inherits from, directly or not."""
  found = []
  for base in (classes.get(last_word(one)) for one in owner.bases):
    if base is not None and base.name not in (*below, owner.name):
      found += [base, *bases_of(base, classes, (*below, owner.name))]
  return found


def _methods(
  owner: ast.ClassDef, classes: Mapping[str, ast.ClassDef], below: tuple[str, ...]
) -> dict[str, ast.FunctionDef]:
  found: dict[str, ast.FunctionDef] = {}
  # Of two bases, the first counts.
  for base in reversed([classes.get(last_word(one)) for one in owner.bases]):
    if base is not None and base.name not in (*below, owner.name):
      found.update(_methods(base, classes, (*below, owner.name)))
  for node in owner.body:
    if isinstance(node, ast.FunctionDef):
      method = copy.deepcopy(node)
      if not is_decorated(node, 'staticmethod') and method.args.args:
        del method.args.args[0]
        method.args.defaults = method.args.defaults[-len(method.args.args) :]
      inherited = found.pop(node.name, None)  # so that the own ones are the last
      if node.name == '__init__' and inherited is not None:
        method.body = [line for one in method.body for line in _written_out(one, inherited)]
      found[node.name] = method
  return found


def _written_out(statement: ast.stmt, inherited: ast.FunctionDef) -> list[ast.stmt]:
  """Returns what a call of the constructor of a base class does; other statements as they are."""
  call = statement.value if isinstance(statement, ast.Expr) else None
  if not (isinstance(call, ast.Call) and called(call) == '__init__'):
    return [statement]
  by_super = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)
  values = call.args if by_super else call.args[1:]  # Base.__init__(self, ...)
  without_self = ast.Call(call.func, list(values), call.keywords)
  given = dict(passed(without_self, plain_parameters(inherited)))
  body = copy.deepcopy(inherited.body)
  return [_Renamed(given).visit(one) for one in body]


class _Renamed(ast.NodeTransformer):
  """Puts what a call passes in the place of the parameters."""

  def __init__(self, given: Mapping[str, ast.expr]) -> None:
    self._given = given

  def visit_Name(self, node: ast.Name) -> ast.AST:
    """Returns what is passed for a name that is read."""
    is_read = isinstance(node.ctx, ast.Load) and node.id in self._given
    return copy.deepcopy(self._given[node.id]) if is_read else node


def is_decorated(function: ast.FunctionDef, word: str) -> bool:
  """Returns whether a decorator has a word in its name."""
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


def returns_something(function: ast.FunctionDef) -> bool:
  """Returns whether a function returns a value anywhere."""
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
