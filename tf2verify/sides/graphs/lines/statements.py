"""Which lines of a file are one call or statement."""

import ast
import dataclasses
import functools
import linecache
import re
from collections.abc import Container, Iterable, Iterator, Sequence, Set
from typing import TypeGuard

# A call over more lines than these is a whole model, of which one line says nothing.
_LONGEST = 12
_SIMPLE = (
  ast.Assert,
  ast.Assign,
  ast.AnnAssign,
  ast.AugAssign,
  ast.Delete,
  ast.Expr,
  ast.Raise,
  ast.Return,
)
# They only hold others, which start on lines of their own.
_HOLDERS = (ast.Dict, ast.GeneratorExp, ast.List, ast.Set, ast.Tuple)
# A setting: a number or text, or what is made of them.
_SET = (
  ast.BinOp,
  ast.Call,
  ast.Constant,
  ast.Dict,
  ast.IfExp,
  ast.List,
  ast.Tuple,
  ast.UnaryOp,
)


def last_line(path: str, line: int) -> int:
  """Returns the last line of the call or statement that starts on a line; that line without one."""
  return _file(''.join(linecache.getlines(path))).last_lines.get(line, line)


def text(path: str, line: int) -> str:
  """Returns the call or statement that starts on a line, on one line; '' for an unreadable file."""
  lines = [linecache.getline(path, n).strip() for n in range(line, last_line(path, line) + 1)]
  joined = ' '.join(part for part in lines if part)
  return re.sub(r',? (?=[)\]}])', '', re.sub(r'(?<=[(\[{]) ', '', joined))


@dataclasses.dataclass(frozen=True)
class Setting:
  """What sets an argument, or a constant, of a call."""

  first: int  # number of its first line
  last: int  # of its last one
  function: str  # the function that it is in; `<module>` for none


def settings(path: str, line: int, layers: Sequence[int] | None = None) -> tuple[Setting, ...]:
  """Returns what sets the arguments and constants of the call or statement on a line.

  Args:
    path: of the file.
    line: number of the line.
    layers: numbers of the lines of the file that construct those that it runs in; None where
      none are known.

  These are the names that it passes as keywords, `epsilon=eps` and `**options`, assigned to a
  literal or a call earlier in its function; short functions of the module that make such an
  argument, `kernel_initializer=init()`; attributes of `self`, where a method of the class assigns
  them other than from a bare name, but for layers, where several are called; constants of the
  module.
  """
  return _file(''.join(linecache.getlines(path))).settings(line, layers)


@functools.lru_cache(maxsize=64)
def _file(source: str) -> '_File':
  try:
    return _File(ast.parse(source))
  except (SyntaxError, ValueError, RecursionError):
    return _File(ast.Module([], []))


class _File:
  """What starts on the lines of a file."""

  def __init__(self, tree: ast.Module) -> None:
    self.last_lines: dict[int, int] = {}
    self._starting: dict[int, list[ast.AST]] = {}
    self._functions: list[_Function] = []
    self._classes: list[ast.ClassDef] = []
    # Whole numbers are sizes, which show in the shapes.
    self._constants = _assignments(tree.body, ast.Name, with_sizes=False)
    self._makers = {
      node.name: node
      for node in tree.body
      if isinstance(node, ast.FunctionDef) and _length(node) <= _LONGEST
    }
    for node in ast.walk(tree):
      if isinstance(node, _Function):
        self._functions.append(node)
      elif isinstance(node, ast.ClassDef):
        self._classes.append(node)
      elif _is_shown(node) and _length(node) <= _LONGEST:
        self._starting.setdefault(node.lineno, []).append(node)
        if _length(node) > 1:
          last = node.lineno + _length(node) - 1
          self.last_lines[node.lineno] = max(last, self.last_lines.get(node.lineno, 0))

  def settings(self, line: int, layers: Sequence[int] | None) -> tuple[Setting, ...]:
    """Returns what sets the arguments and constants of what is computed on a line."""
    nodes = [node for start in self._starting.get(line, ()) for node in ast.walk(start)]
    around = [function for function in self._functions if _is_in(line, function)]
    own: _Assigned = {}
    arguments: set[str] = set()
    for function in around:
      own |= _assignments(ast.walk(function), ast.Name)
      arguments |= {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    found: dict[ast.stmt, None] = {}
    for call in (node for node in nodes if isinstance(node, ast.Call)):
      for value in (keyword.value for keyword in call.keywords):
        made = value.func if isinstance(value, ast.Call) else value
        if isinstance(value, ast.Name):
          before = [node for node in own.get(value.id, ()) if node.lineno < line]
          found.update(dict.fromkeys(before[-1:]))
        if isinstance(made, ast.Name) and made.id in self._makers and made.id not in own:
          found[self._makers[made.id]] = None
    called = {
      call.func.attr
      for call in nodes
      if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and _of_self(call.func)
    }
    for node in nodes:
      if isinstance(node, ast.Name) and node.id not in own and node.id not in arguments:
        found.update(dict.fromkeys(self._constants.get(node.id, ())))
      elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _of_self(node):
        found.update(dict.fromkeys(self._set_by(line, node.attr, called, layers)))
    return tuple(
      Setting(node.lineno, node.lineno + _length(node) - 1, self._function(node.lineno))
      for node in found
      if _length(node) <= _LONGEST and not _length(node) > line - node.lineno >= 0
    )

  def _set_by(
    self, line: int, attribute: str, called: Set[str], layers: Sequence[int] | None
  ) -> Iterator[ast.stmt]:
    """Yields what sets an attribute of `self` that is read on a line."""
    attributes = self._attributes(line)
    calls = [node for name in called for node in attributes.get(name, ())]
    if layers and any(_is_in(one, node) for one in layers for node in calls):
      return  # it is computed in a layer that the line calls, from what that was given
    for node in attributes.get(attribute, ()):
      # Of several layers that a line calls, the one that is meant is known by its construction.
      is_one_of_several = layers is not None or len(called) > 1
      if attribute not in called or not is_one_of_several or not _makes(node, self._makers):
        yield node

  def _attributes(self, line: int) -> '_Assigned':
    classes = [cls for cls in self._classes if _is_in(line, cls)]
    return _assignments(ast.walk(classes[-1]), ast.Attribute) if classes else {}

  def _function(self, line: int) -> str:
    names = [function.name for function in self._functions if _is_in(line, function)]
    return names[-1] if names else '<module>'


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Assigned = dict[str, list[ast.stmt]]


def _assignments(
  nodes: Iterable[ast.AST], target_type: type[ast.expr], with_sizes: bool = True
) -> _Assigned:
  """Returns the assignments of a literal or of a call to a name, or attribute, by the name."""
  found: _Assigned = {}
  for node in nodes:
    if not isinstance(node, ast.Assign | ast.AnnAssign):
      continue
    for target, value in _targets(node):
      if not isinstance(target, target_type) or not isinstance(value, _SET):
        continue
      if not with_sizes and isinstance(value, ast.Constant) and type(value.value) is int:
        continue
      if isinstance(target, ast.Name):
        found.setdefault(target.id, []).append(node)
      elif isinstance(target, ast.Attribute) and _of_self(target):
        found.setdefault(target.attr, []).append(node)
  return found


def _targets(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[ast.expr, ast.expr | None]]:
  """Yields what is assigned, and its value; of `a, b = 1, 2` each with its own."""
  for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
    both = target, node.value
    if isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
      names, values = target.elts, node.value.elts
      if len(names) == len(values) and not any(isinstance(n, ast.Starred) for n in names + values):
        yield from zip(names, values, strict=True)
        continue
    yield both


def _is_shown(node: ast.AST) -> TypeGuard[ast.stmt | ast.expr]:
  """Returns whether a node is a call or statement that is shown as a whole."""
  return isinstance(node, _SIMPLE) or (
    isinstance(node, ast.expr) and not isinstance(node, _HOLDERS)
  )


def _makes(node: ast.stmt, makers: Container[str]) -> bool:
  """Returns whether an assignment is of an object of a class, as named by PEP 8, or of a maker."""
  value = getattr(node, 'value', None)
  if not isinstance(value, ast.Call):
    return False
  name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, 'id', '')
  return name[:1].isupper() or name in makers


def _of_self(node: ast.Attribute) -> bool:
  return isinstance(node.value, ast.Name) and node.value.id == 'self'


def _length(node: ast.stmt | ast.expr) -> int:
  return (node.end_lineno or node.lineno) - node.lineno + 1


def _is_in(line: int, node: ast.stmt) -> bool:
  return 0 <= line - node.lineno < _length(node)
