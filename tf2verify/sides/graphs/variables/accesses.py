"""Which operations of one session.run read and write the variables of a graph."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from tf2verify.tensorflow_internals import graphs

_REFERENCES = ('VariableV2', 'Variable')
_READS = ('ReadVariableOp', 'ResourceGather', 'ResourceGatherNd')
# They look at what a variable is, not at its value.
_NEUTRAL = (
  'VarIsInitializedOp',
  'VariableShape',
  'IsVariableInitialized',
  'DisableCopyOnRead',
  'Shape',
  'ShapeN',
  'Size',
  'Rank',
  'ZerosLike',
  'OnesLike',
)
_FLOW = ('Enter', 'Switch', 'Merge', 'NextIteration', 'Exit')
_PASSING = ('Identity', 'IdentityN', *_FLOW, *(f'Ref{kind}' for kind in ('Identity', *_FLOW)))
# What they give shares the memory of what they are given.
_ALIASES = (
  *('Identity', 'IdentityN', 'StopGradient', 'PreventGradient', 'Snapshot', 'CheckNumerics'),
  *('Reshape', 'Squeeze', 'ExpandDims', *_FLOW),
)
_WITHOUT_EFFECT = ('ReadVariableOp', 'Identity', 'IdentityN', 'StopGradient', 'Snapshot')
_ADDING = ('AssignAdd', 'AssignSub', 'ScatterAdd', 'ScatterSub')
_FUNCTION_ATTRIBUTES = ('body', 'cond', 'then_branch', 'else_branch', 'f')
_INTEGERS = (3, 4, 5, 6, 9, 10, 17, 22, 23)  # of DataType

# A tensor: an operation's name, and the number of its output.
Tensor = tuple[str, int]
# A predicate by its root, and the branch that is taken.
Branch = tuple[str, int]


@dataclasses.dataclass(frozen=True)
class Access:
  """A read or a write of a variable by one operation."""

  variable: str  # by name
  op: str  # name
  writes: bool  # whether it writes
  adds: bool = False  # whether it adds or subtracts integers, so that two of them may change places
  branches: frozenset[Branch] = frozenset()  # of a conditional that has to be taken


class SessionRun:
  """The operations that one session.run executes.

  Attributes:
    nodes: NodeDefs by name, of the whole graph.
    index: the place of each node, which is the order in which they were made.
    data: of what runs, the tensors that it is given.
    controls: of what runs, the names of what it waits for besides that.
  """

  def __init__(self, graph_def: Any, fetches: Iterable[str]) -> None:
    """Takes a graph and the names of the tensors and operations that are fetched."""
    self.nodes = {node.name: node for node in graph_def.node}
    self.index = {name: number for number, name in enumerate(self.nodes)}
    self.data: dict[str, list[Tensor]] = {}
    self.controls: dict[str, list[str]] = {}
    self._library = {f.signature.name: f for f in graph_def.library.function}
    self._summaries: dict[tuple[str, int], frozenset[bool]] = {}
    fetched = list(fetches)
    self._fetched = {name.partition(':')[0] for name in fetched if ':' in name}
    self._collect([name.partition(':')[0] for name in fetched])
    self._consumers: dict[Tensor, list[tuple[str, int]]] = {}
    for name, tensors in self.data.items():
      for number, tensor in enumerate(tensors):
        self._consumers.setdefault(tensor, []).append((name, number))

  def _collect(self, pending: list[str]) -> None:
    while pending:
      name = pending.pop()
      if name in self.data or name not in self.nodes:
        continue
      data, controls = [], []
      for given in self.nodes[name].input:
        if given.startswith('^'):
          controls.append(given[1:])
        else:
          op, _, number = given.partition(':')
          data.append((op, int(number or 0)))
      self.data[name], self.controls[name] = data, controls
      pending += controls
      pending += [op for op, _ in data]

  def before(self, name: str) -> Iterator[str]:
    """Yields the operations that one waits for."""
    for op, _ in self.data[name]:
      yield op
    yield from self.controls[name]

  def root(self, tensor: Tensor) -> tuple[Tensor, bool]:
    """Returns the tensor that a predicate is computed from, and whether it is negated."""
    negated = False
    while tensor[0] in self.data and self.nodes[tensor[0]].op in ('Identity', 'LogicalNot'):
      negated ^= self.nodes[tensor[0]].op == 'LogicalNot'
      tensor = self.data[tensor[0]][0]
    return tensor, negated

  def branch(self, predicate: Tensor, taken: int) -> Branch:
    """Returns a branch of a conditional by the root of its predicate."""
    (op, number), negated = self.root(predicate)
    return f'{op}:{number}', taken ^ int(negated)

  def accesses(self) -> dict[str, tuple[Access, ...]]:
    """Returns the reads and writes of every variable, in the order of the operations' making."""
    found: dict[str, dict[Access, None]] = {}
    for name in self.data:
      node = self.nodes[name]
      if node.op == 'VarHandleOp' or node.op in _REFERENCES:
        variable = node.attr['shared_name'].s.decode() or name
        integer = node.attr['dtype'].type in _INTEGERS
        follow = self._of_resource if node.op == 'VarHandleOp' else self._of_reference
        for op, writes, branches in follow(name):
          adds = writes and integer and any(word in self.nodes[op].op for word in _ADDING)
          access = Access(variable, op, writes, adds, branches)
          found.setdefault(variable, {})[access] = None
    return {
      variable: tuple(sorted(accesses, key=lambda access: self.index[access.op]))
      for variable, accesses in found.items()
    }

  def calls(self) -> Iterator[tuple[str, str, dict[int, str]]]:
    """Yields each function that is called with a variable that it writes.

    Yields:
      The operation that calls it, the function's name, and the names of the variables by the
      number of the argument.
    """
    given: dict[str, dict[int, str]] = {}
    for name in self.data:
      node = self.nodes[name]
      if node.op == 'VarHandleOp':
        variable = node.attr['shared_name'].s.decode() or name
        for call, number, _ in self._followed((name, 0), _PASSING):
          given.setdefault(call, {})[number] = variable
    for call, variables in given.items():
      node = self.nodes[call]
      # The first input of a conditional is what it goes by.
      shift = int('then_branch' in node.attr or 'branches' in node.attr)
      functions = [node.attr[key].func.name for key in _FUNCTION_ATTRIBUTES if key in node.attr]
      if 'branches' in node.attr:
        functions += [function.name for function in node.attr['branches'].list.func]
      arguments = {number - shift: variable for number, variable in variables.items()}
      for function in dict.fromkeys(functions):
        if any(True in self._summary(function, number) for number in arguments):
          yield call, function, arguments

  def _of_resource(self, handle: str) -> Iterator[tuple[str, bool, frozenset[Branch]]]:
    for name, number, _ in self._followed((handle, 0), _PASSING):
      node = self.nodes[name]
      if node.op in _NEUTRAL:
        continue
      if node.op in _READS:
        if self._is_used(name):
          yield name, False, frozenset()
      elif any(key in node.attr for key in (*_FUNCTION_ATTRIBUTES, 'branches')):
        yield from self._of_call(name, number)
      else:
        yield name, True, frozenset()

  def _followed(
    self, start: Tensor, passing: tuple[str, ...], first: str = ''
  ) -> Iterator[tuple[str, int, frozenset[Branch]]]:
    """Yields what consumes a tensor, or what passes it on, with the branches on the way.

    Args:
      start: the tensor.
      passing: types of the operations that pass it on.
      first: the one consumer of it that counts; '' for all.
    """
    pending = [(start, frozenset[Branch]())]
    seen = set(pending)
    while pending:
      tensor, branches = pending.pop()
      for name, number in self._consumers.get(tensor, ()):
        kind = self.nodes[name].op
        if tensor == start and first not in ('', name):
          continue
        if kind not in passing:
          yield name, number, branches
          continue
        outputs = (number,) if kind == 'IdentityN' else (0, 1) if 'Switch' in kind else (0,)
        for output in outputs:
          taken = branches
          if 'Switch' in kind:
            taken |= {self.branch(self.data[name][1], output)}
          if ((name, output), taken) not in seen:
            seen.add(((name, output), taken))
            pending.append(((name, output), taken))

  def _of_call(self, name: str, number: int) -> Iterator[tuple[str, bool, frozenset[Branch]]]:
    node = self.nodes[name]
    if 'then_branch' in node.attr:
      for key, taken in (('then_branch', 1), ('else_branch', 0)):
        branch = self.branch(self.data[name][0], taken)
        for writes in self._summary(node.attr[key].func.name, number - 1):
          yield name, writes, frozenset([branch])
    elif 'branches' in node.attr:
      (op, output), _ = self.root(self.data[name][0])
      for taken, function in enumerate(node.attr['branches'].list.func):
        for writes in self._summary(function.name, number - 1):
          yield name, writes, frozenset([(f'{op}:{output}', taken)])
    else:
      called = [node.attr[key].func.name for key in _FUNCTION_ATTRIBUTES if key in node.attr]
      for writes in frozenset().union(*(self._summary(called_, number) for called_ in called)):
        yield name, writes, frozenset()

  def _summary(self, function: str, argument: int) -> frozenset[bool]:
    """Returns whether a function reads (False), and writes (True), a variable that it is given."""
    key = (function, argument)
    if key not in self._summaries:
      self._summaries[key] = frozenset()  # for one that calls itself
      self._summaries[key] = frozenset(self._within(function, argument))
    return self._summaries[key]

  def _within(self, function: str, argument: int) -> Iterator[bool]:
    known = self._library.get(function)
    if known is None or not 0 <= argument < len(known.signature.input_arg):
      return
    names, before = {known.signature.input_arg[argument].name}, 0
    while len(names) != before:
      before = len(names)
      given = [
        (node, number)
        for node in known.node_def
        for number, tensor in enumerate(node.input)
        if tensor.partition(':')[0] in names
      ]
      names |= {node.name for node, _ in given if node.op in _PASSING}
    for node, number in given:
      if node.op in _READS:
        yield False
      elif 'branches' in node.attr:
        for branch in node.attr['branches'].list.func:
          yield from self._summary(branch.name, number - 1)
      elif any(key in node.attr for key in _FUNCTION_ATTRIBUTES):
        shift = 1 if 'then_branch' in node.attr else 0
        for key in _FUNCTION_ATTRIBUTES:
          if key in node.attr:
            yield from self._summary(node.attr[key].func.name, number - shift)
      elif node.op not in _NEUTRAL and node.op not in _PASSING:
        yield True

  def _is_used(self, name: str) -> bool:
    """Returns whether anything depends on the value of an operation, not only on its end."""
    pending, seen = [name], {name}
    while pending:
      name = pending.pop()
      if name in self._fetched:
        return True
      for consumer, _ in self._consumers.get((name, 0), ()):
        kind = self.nodes[consumer].op
        if kind not in _WITHOUT_EFFECT and kind not in _NEUTRAL:
          return True
        if kind not in _NEUTRAL and consumer not in seen:
          seen.add(consumer)
          pending.append(consumer)
    return False

  def _of_reference(self, variable: str) -> Iterator[tuple[str, bool, frozenset[Branch]]]:
    """Yields accesses to a reference variable.

    What reads it is given its memory, which writes change in place: each operation that
    uses the value reads it when it runs.
    """
    pending, seen = [(variable, 0)], {(variable, 0)}
    while pending:
      for name, number in self._consumers.get(pending.pop(), ()):
        node = self.nodes[name]
        if not _is_reference(node, number):
          yield from ((op, False, branches) for op, branches in self._uses(name, number))
          continue
        if node.op not in _NEUTRAL and node.op not in _PASSING:
          yield name, True, frozenset()
        for tensor in ((name, output) for output in _references_given(node)):
          if tensor not in seen:
            seen.add(tensor)
            pending.append(tensor)

  def _uses(self, name: str, number: int) -> Iterator[tuple[str, frozenset[Branch]]]:
    """Yields the operations that use a value, with the branches in which they are given it.

    Args:
      name: of what is given the value; what hands it on does not use it.
      number: of the input.
    """
    if self.nodes[name].op not in _ALIASES:
      if self.nodes[name].op not in _NEUTRAL:
        yield name, frozenset()
      return
    if name in self._fetched:
      yield name, frozenset()
    for op, _, branches in self._followed(self.data[name][number], _ALIASES, name):
      if self.nodes[op].op not in _NEUTRAL:
        yield op, branches


def _arguments(node: Any, arguments: Any) -> Iterator[bool]:
  """Yields of each input, or output, of a node whether it is a reference."""
  for argument in arguments:
    count = 1
    if argument.number_attr:
      count = node.attr[argument.number_attr].i
    elif argument.type_list_attr:
      count = len(node.attr[argument.type_list_attr].list.type)
    yield from [argument.is_ref] * count


def output_starts(node: Any) -> dict[str, int]:
  """Returns the number of a node's first tensor of each of its outputs, by the output's name."""
  found: dict[str, int] = {}
  definition, number = graphs.op_definition(node.op), 0
  for argument in () if definition is None else definition.output_arg:
    found[argument.name] = number
    number += len(list(_arguments(node, [argument])))
  return found


def _is_reference(node: Any, number: int) -> bool:
  definition = graphs.op_definition(node.op)
  if definition is None:
    return False
  flags = list(_arguments(node, definition.input_arg))
  return number < len(flags) and flags[number]


def _references_given(node: Any) -> list[int]:
  definition = graphs.op_definition(node.op)
  if definition is None:
    return []
  return [n for n, is_ref in enumerate(_arguments(node, definition.output_arg)) if is_ref]
