"""The loops of TensorFlow 1 in what one session.run executes."""

from collections.abc import Callable, Iterable, Iterator

from tf2verify.sides.graphs.variables.accesses import SessionRun

_ENTERS = ('Enter', 'RefEnter')
_EXITS = ('Exit', 'RefExit')


class Loops:
  """Which operations are in a loop, and which go round in it.

  Not all that is in a loop goes round with the rest: the gradient of a loop adds operations
  to it that wait for its end.
  """

  def __init__(self, run: SessionRun) -> None:
    """Takes what is executed."""
    self._run = run
    self._frames: dict[str, tuple[str, ...]] = {}
    self._consumers: dict[str, list[str]] = {}
    self._units: dict[str, str] = {}
    if any(run.nodes[name].op in _ENTERS for name in run.data):
      for name in run.data:
        for before in run.before(name):
          self._consumers.setdefault(before, []).append(name)
      self._find_frames()
      self._find_units()

  def __bool__(self) -> bool:
    return bool(self._frames)

  def is_within(self, op: str) -> bool:
    """Returns whether an operation is in a loop; `Enter` of the outermost one is not."""
    return bool(self._frames.get(op))

  def unit(self, op: str) -> str:
    """Returns the name that all operations have which go round together; its own elsewhere."""
    return self._units.get(op, op)

  def ends(self, op: str) -> list[str]:
    """Returns what to wait for outside of all loops, so that an operation is over."""
    if not self.is_within(op):
      return [op]
    return [
      name
      for name in self._reached(op, lambda known: self._consumers.get(known, ()))
      if self._run.nodes[name].op in _EXITS and len(self._frames[name]) == 1
    ]

  def starts(self, op: str) -> list[str]:
    """Returns what has to wait outside of all loops, so that an operation begins later."""
    if not self.is_within(op):
      return [op]
    return [
      name
      for name in self._reached(op, self._run.before)
      if self._run.nodes[name].op in _ENTERS and not self.is_within(name)
    ]

  def _reached(self, op: str, step: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yields what steps lead to, to the border of the outermost loop."""
    loop, pending, seen = self._frames[op][0], [op], {op}
    while pending:
      known = pending.pop()
      yield known
      frames = self._frames[known]
      is_exit = self._run.nodes[known].op in _EXITS and len(frames) == 1
      if frames and frames[0] == loop and not (is_exit and known != op):
        new = [name for name in step(known) if name not in seen]
        seen.update(new)
        pending += new

  def _find_frames(self) -> None:
    run, frames = self._run, self._frames
    pending: list[tuple[str, tuple[str, ...]]] = [(name, ()) for name in run.data]
    while pending:
      name, given = pending.pop()
      if name in frames and len(frames[name]) >= len(given):
        continue
      frames[name] = given
      node, leaving = run.nodes[name], given
      if node.op in _ENTERS:
        leaving = (*given, node.attr['frame_name'].s.decode())
      elif node.op in _EXITS:
        leaving = given[:-1]
      if leaving:
        pending += [(consumer, leaving) for consumer in self._consumers.get(name, ())]

  def _find_units(self) -> None:
    """Finds the strongly connected components of the loops (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    waiting: set[str] = set()
    for root in (name for name, frames in self._frames.items() if frames):
      if root in index:
        continue
      calls: list[tuple[str, Iterator[str]]] = [(root, iter(()))]
      while calls:
        op, rest = calls.pop()
        if op not in index:
          index[op] = low[op] = len(index)
          stack.append(op)
          waiting.add(op)
          rest = iter([name for name in self._run.before(op) if self.is_within(name)])
        inner = self._next_of(op, rest, index, low, waiting)
        if inner:
          calls += [(op, rest), (inner, iter(()))]
          continue
        if calls:
          outer = calls[-1][0]
          low[outer] = min(low[outer], low[op])
        if low[op] == index[op]:
          self._pop_unit(op, stack, waiting)

  def _next_of(
    self,
    op: str,
    rest: Iterator[str],
    index: dict[str, int],
    low: dict[str, int],
    waiting: set[str],
  ) -> str:
    """Returns the next operation that was not seen before; '' where none is left."""
    for name in rest:
      if name not in index:
        return name
      if name in waiting:
        low[op] = min(low[op], index[name])
    return ''

  def _pop_unit(self, op: str, stack: list[str], waiting: set[str]) -> None:
    members = [stack.pop()]
    while members[-1] != op:
      members.append(stack.pop())
    waiting.difference_update(members)
    if len(members) > 1:
      for member in members:
        self._units[member] = f'loop of {op}'
