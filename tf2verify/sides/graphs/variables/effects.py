"""Which variables of a graph some number depends on, and what reads them."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from tf2verify.records.observation import SourceLine
from tf2verify.reference.graph_ops import op_name_of, reached
from tf2verify.reference.nests import THE_OUTPUT

# What changes the variable that its first input stands for, or several at its beginning.
_REFERENCE_WRITES = ('Assign', 'Apply', 'CountUpTo', 'Scatter', 'SparseApply', 'StridedSliceAssign')
_WRITES = (*_REFERENCE_WRITES, *(f'Resource{word}' for word in _REFERENCE_WRITES))
_VARIABLES = ('VarHandleOp', 'VariableV2', 'Variable')
# They pass on a reference, or, of a handle, the handle.
_PASSING_REFERENCES = ('RefEnter', 'RefIdentity', 'RefMerge', 'RefNextIteration', 'RefSwitch')
_PASSING = ('Enter', 'Identity', 'Merge', 'NextIteration', 'Switch')
_READS = (*_PASSING, *_PASSING_REFERENCES, 'ReadVariableOp')
_RESOURCE = 20  # DT_RESOURCE of types.proto
# Of their inputs these read the shape, or whether there is a value.
_VALUELESS = frozenset(
  {'IsVariableInitialized', 'OnesLike', 'Rank', 'Shape', 'ShapeN', 'Size'}
  | {'VarIsInitializedOp', 'VariableShape', 'ZerosLike'}
)
# What counts by being run.
_ACTING = ('Assert', 'EagerPyFunc', 'PyFunc')


@dataclasses.dataclass(frozen=True)
class Effect:
  """How a variable comes to count."""

  op: str  # name of the operation that reads it
  op_type: str  # of this operation
  reaches: str  # what is computed from it: `output ['logits']`
  graph: str  # which graph: `training graph`
  source: SourceLine | None = None  # the user's line that made the operation, where it is known
  # Whether it counts for nothing but a loss that the layer adds itself, as by `add_loss`.
  is_of_added_loss: bool = False

  def __str__(self) -> str:
    where = f', at {self.source}' if self.source else ''
    return f'{self.op} ({self.op_type}) reads it on the way to {self.reaches} [{self.graph}]{where}'


@dataclasses.dataclass(frozen=True)
class Program:
  """A graph and what counts in it."""

  graph: str  # for reports: `training graph`
  graph_def: Any  # the operations
  handles: Mapping[str, str]  # from variable to the operation that stands for it
  sinks: tuple[tuple[str, str], ...]  # operations whose values are compared, with what they are
  runs: tuple[str, ...]  # operations that are run, besides these
  source_of: Callable[[str], SourceLine | None]  # the user's line of an operation


def output_name(path: str) -> str:
  """Returns how a sentence calls an output."""
  return 'the output' if path == THE_OUTPUT else f'output {path}'


def effects(program: Program, candidates: Collection[str]) -> dict[str, Effect]:
  """Returns which of some variables have an effect, and how.

  A path counts, whatever its operations do. What is written to another variable counts if
  that one is not a candidate, or is read further on: a layer whose output nothing reads
  has no effect although it keeps moving averages. What the program does not know as a
  variable of the model (a slot of an optimizer) is no end by itself either.

  Args:
    program: the graph.
    candidates: names of variables.
  """
  return _Search(program, candidates).found()


def effects_in_any(programs: Iterable[Program], candidates: Collection[str]) -> dict[str, Effect]:
  """Returns which of some variables have an effect in any of several graphs, and how first."""
  found: dict[str, Effect] = {}
  for program in programs:
    found = {**effects(program, candidates), **found}
  return found


class _Search:
  """Goes from what counts to what it is computed from."""

  def __init__(self, program: Program, candidates: Collection[str]) -> None:
    self._program = program
    self._candidates = frozenset(candidates)
    self._nodes = {node.name: node for node in program.graph_def.node}
    self._variables = {handle: name for name, handle in program.handles.items()}
    self._writing = _functions_with(program.graph_def, _WRITES)
    self._acting_functions = _functions_with(program.graph_def, _ACTING)
    self._writes: dict[str, list[str]] = {}
    self._origins: dict[str, str | None] = {}
    # From each operation to the one that it was reached from, and to the end of its path.
    self._next: dict[str, str] = {}
    self._ends: dict[str, str] = {}

  def found(self) -> dict[str, Effect]:
    for node in self._nodes.values():
      for handle in self._targets(node):
        self._writes.setdefault(handle, []).append(node.name)
    pending = [name for name, what in self._program.sinks if self._begin(name, what)]
    pending += [name for name in self._acting() if self._begin(name, _acting_text(name))]
    for handle, variable in self._variables.items():
      if variable not in self._candidates:
        for write in self._writes.get(handle, ()):
          if self._begin(write, f'the value of {variable}'):
            pending.append(write)
    self._search(pending)
    return {
      variable: self._effect(handle)
      for variable, handle in self._program.handles.items()
      if variable in self._candidates and handle in self._next
    }

  def _begin(self, name: str, end: str) -> bool:
    if name in self._ends or name not in self._nodes:
      return False
    self._ends[name] = end
    return True

  def _search(self, pending: list[str]) -> None:
    while pending:
      name = pending.pop()
      node = self._nodes[name]
      before = [] if node.op in _VALUELESS else list(_data_inputs(node))
      if node.op in _VARIABLES or name in self._variables:
        before += self._writes.get(name, [])
      for earlier in before:
        if earlier not in self._ends and earlier in self._nodes:
          self._ends[earlier] = self._ends[name]
          self._next[earlier] = name
          pending.append(earlier)

  def _acting(self) -> Iterator[str]:
    """Yields operations that are run and do something by that."""
    nodes = self._nodes

    def known(tensors: Iterable[str]) -> list[str]:
      return [name for name in map(op_name_of, tensors) if name in nodes]

    start = known([*(name for name, _ in self._program.sinks), *self._program.runs])
    for name in reached(start, lambda name: known(nodes[name].input)):
      node = nodes[name]
      if node.op in _ACTING or not self._acting_functions.isdisjoint(_functions(node)):
        yield name

  def _targets(self, node: Any) -> Iterator[str]:
    """Yields the handles of the variables that an operation may write."""
    if node.op.startswith(_WRITES):
      for name in _data_inputs(node):
        origin = self._origin(name)
        if origin is None:
          return
        yield origin
    elif not self._writing.isdisjoint(_functions(node)):
      yield from filter(None, map(self._origin, _data_inputs(node)))

  def _origin(self, name: str) -> str | None:
    """Returns the variable whose handle or reference an operation passes on."""
    path: list[str] = []
    while name not in self._origins:
      self._origins[name] = None  # a loop passes on what came into it
      path.append(name)
      node = self._nodes.get(name)
      if node is None:
        break
      if name in self._variables or node.op in _VARIABLES:
        self._origins[name] = name
        break
      first = next(_data_inputs(node), None)
      if first is None or not _passes_on(node):
        break
      name = first
    found = self._origins.get(name)
    self._origins.update(dict.fromkeys(path, found))
    return found

  def _effect(self, handle: str) -> Effect:
    name = handle
    while name in self._next:
      name = self._next[name]
      if self._nodes[name].op not in _READS:
        break
    program = self._program
    return Effect(
      name, self._nodes[name].op, self._ends[handle], program.graph, program.source_of(name)
    )


def _data_inputs(node: Any) -> Iterator[str]:
  for name in node.input:
    if not name.startswith('^'):
      yield name.partition(':')[0]


def _passes_on(node: Any) -> bool:
  """Returns whether what an operation yields is the variable that it was given."""
  if node.op in _PASSING:
    return bool(node.attr['T'].type == _RESOURCE)
  return node.op in _PASSING_REFERENCES or node.op.startswith(_WRITES)


def _functions(node: Any) -> Iterator[str]:
  """Yields the names of the functions that an operation calls."""
  for value in node.attr.values():
    if value.HasField('func'):
      yield value.func.name
    for function in value.list.func:
      yield function.name


def _functions_with(graph_def: Any, op_types: tuple[str, ...]) -> frozenset[str]:
  """Returns the functions of a graph with an operation whose type begins so, also deep inside."""
  functions = {known.signature.name: known.node_def for known in graph_def.library.function}
  found = {n for n, nodes in functions.items() if any(m.op.startswith(op_types) for m in nodes)}
  known = -1
  while len(found) > known:
    known = len(found)
    found |= {
      name
      for name, nodes in functions.items()
      if any(not found.isdisjoint(_functions(node)) for node in nodes)
    }
  return frozenset(found)


def _acting_text(name: str) -> str:
  return f'{name}, which every run executes'
