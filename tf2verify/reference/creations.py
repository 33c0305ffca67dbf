"""Which op of a graph belongs to the creation of which variable."""

import sys
from typing import Any, Callable, Iterator, List, Optional, Tuple

from .source_lines import SourceLines


class Creations:
  """Which variables a graph gets, and which of its ops each creation makes."""

  def __init__(self, graph: Any, sources: SourceLines) -> None:
    self.found: List[Tuple[Any, int, int, int]] = []
    self._graph = graph
    self._sources = sources

  def __call__(self, next_creator: Callable[..., Any], **arguments: Any) -> Any:
    """Creates a variable."""
    first = self._graph.version
    variable = next_creator(**arguments)
    stack = [(f.f_code.co_filename, n, f.f_code.co_name) for f, n in _stack()]
    self.found.append((variable, first, self._graph.version, self._sources.of_frames(stack)))
    return variable

  def variables(self) -> Iterator[Tuple[Any, int]]:
    """Yields each variable of the graph once, with the number of its line."""
    names = set()
    for variable, _, _, source in self.found:
      if variable.graph is self._graph and variable.name not in names:
        names.add(variable.name)
        yield variable, source

  def made_by(self, position: int) -> Optional[str]:
    """Returns the variable in whose creation the op at a position was made; None: in none's."""
    found = [entry for entry in self.found if entry[1] <= position < entry[2]]
    if not found:
      return None
    innermost = min(found, key=lambda entry: entry[2] - entry[1])
    return str(innermost[0].name).rsplit(':', 1)[0]


def _stack() -> List[Tuple[Any, int]]:
  """Returns the frames of the caller's caller, the innermost last, with their lines."""
  found = []
  frame: Any = sys._getframe(2)
  while frame is not None:
    found.append((frame, frame.f_lineno))
    frame = frame.f_back
  return found[::-1]
