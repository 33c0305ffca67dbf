"""Which lines of a file are one call or statement."""

import ast
import functools
import linecache
import re

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


def last_line(path: str, line: int) -> int:
  """Returns the last line of the call or statement that starts on a line; that line without one."""
  return _last_lines(''.join(linecache.getlines(path))).get(line, line)


def text(path: str, line: int) -> str:
  """Returns the call or statement that starts on a line, on one line; '' for an unreadable file."""
  lines = [linecache.getline(path, n).strip() for n in range(line, last_line(path, line) + 1)]
  joined = ' '.join(part for part in lines if part)
  return re.sub(r',? (?=[)\]}])', '', re.sub(r'(?<=[(\[{]) ', '', joined))


@functools.lru_cache(maxsize=64)
def _last_lines(source: str) -> dict[int, int]:
  """Returns the last line of what starts on a line, of whatever starts on it and has several."""
  try:
    tree = ast.parse(source)
  except (SyntaxError, ValueError, RecursionError):
    return {}
  found: dict[int, int] = {}
  for node in ast.walk(tree):
    if isinstance(node, _SIMPLE) or (isinstance(node, ast.expr) and not isinstance(node, _HOLDERS)):
      last = node.end_lineno or node.lineno
      if node.lineno < last < node.lineno + _LONGEST:
        found[node.lineno] = max(last, found.get(node.lineno, 0))
  return found
