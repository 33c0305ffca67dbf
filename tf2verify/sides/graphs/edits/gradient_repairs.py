"""Operations of tf1 put into the port together with what stops or replaces gradients there.

Such an operation passes its value on, so no value shows it: a graph of operations that compute
has none of it, and it is copied node by node.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf2verify.records.op_graph import STOPS, TARGET, OpGraph, TensorKey
from tf2verify.reference.graph_ops import op_name_of
from tf2verify.relation.operations.op_pairs import is_backward_name
from tf2verify.sides.graphs.edits.repairs import GRADIENT_ATTRIBUTE, Transplant
from tf2verify.sides.graphs.edits.wiring import OF_TF1, CannotRepair, bare_copy
from tf2verify.sides.graphs.graph_defs.inlining import data_inputs
from tf2verify.sides.graphs.graph_defs.new_nodes import new_node
from tf2verify.sides.graphs.reading import PASSING

# What `tf.custom_gradient` calls the gradients that it registers.
_WITH_TENSORS = b'CustomGradient'
_OF_LOOPS = ('Switch', 'Merge', 'Enter', 'Exit', 'NextIteration', 'LoopCond')


class GradientTransplants:
  """Makes operations of tf1 that read the port's tensors, with what the gradient meets there.

  Attributes:
    tf2: the port's graph.
    given: the port's tensor for each tensor of tf1 that has the same values there.
    positions: of operations of tf1, by the names of what computes or holds their values.
  """

  def __init__(
    self,
    nodes: Mapping[str, Any],
    tf1: OpGraph,
    tf2: OpGraph,
    given: Mapping[TensorKey, TensorKey],
  ) -> None:
    """Prepares.

    Args:
      nodes: the NodeDefs of tf1, by name.
      tf1: the tf1 side's graph.
      tf2: the port's.
      given: the port's tensor for each tensor of tf1 that has the same values there.
    """
    self._nodes = nodes
    self._tf1 = tf1
    self.tf2 = tf2
    self.given = given
    self.positions: dict[str, int] = {}
    ambiguous = set()
    for n, op in enumerate(tf1.ops):
      if op.op_type != TARGET:
        name = self._end(op.tensors[0] if op.is_leaf else op.name)
        if name in self.positions:  # a variable before a write and after it
          ambiguous.add(name)
        self.positions[name] = n
    for name in ambiguous:
      del self.positions[name]
    self._aliases: tuple[Any, ...] | None = None

  def at(self, inner: Sequence[int], end: int, partner: int) -> Transplant:
    """Returns operations of tf1 in place of one of the port's, for all that read it.

    Args:
      inner: positions of those before the last one, in order.
      end: position of the last one, or of an output.
      partner: position of the port's operation, or of its output.

    Raises:
      CannotRepair: one of them is a loop, say, or reads what has no counterpart.
    """
    copies = _Copies(self, frozenset(inner))
    for position in inner:
      copies.copy(self._computing(position), OF_TF1 + self._tf1.ops[position].name)
    op, other = self._tf1.ops[end], self.tf2.ops[partner]
    if op.op_type == TARGET:
      read, name = copies.read(op.tensors[0]), other.tensors[0].rpartition(':')[0]
      last = new_node(name, 'Identity', [read], T=op.outputs[0][0])
    else:
      copies.copy(self._computing(end), other.name)
      last = copies.made.pop(other.name)
    return Transplant(self._made(copies, last), last)

  def passed(self, position: int, slot: int) -> tuple[str, tuple[Any, ...]]:
    """Returns an input of an operation of tf1 as the port may read it, and what passes it on.

    Raises:
      CannotRepair: it has no counterpart in the port.
    """
    op, copies = self._tf1.ops[position], _Copies(self, frozenset())
    is_target = op.op_type == TARGET
    read = copies.read(op.tensors[slot] if is_target else data_inputs(self.node(op.name))[slot])
    return read, self._made(copies)

  def _made(self, copies: '_Copies', *more: Any) -> tuple[Any, ...]:
    made = tuple(copies.made.values())
    if any(_is_written_in_python(node) for node in (*made, *more)):
      known = copies.made.keys()
      made += tuple(node for node in self._counterparts() if node.name not in known)
    return made

  def _computing(self, position: int) -> Any:
    op = self._tf1.ops[position]
    node = self.node(op.name)
    if op.functions or node.op in _OF_LOOPS:
      raise CannotRepair(f'{op.name} is a loop, a condition, or a part of one')
    return node

  def _counterparts(self) -> Sequence[Any]:
    """Returns what passes on the port's tensors by the names that they have in tf1.

    A gradient that is written in Python reads any of them.
    """
    if self._aliases is None:
      self._aliases = tuple(self._passing_on())
    return self._aliases

  def _passing_on(self) -> Iterator[Any]:
    for name in self._nodes:
      try:
        position = self.positions.get(self._end(name))
      except CannotRepair:
        continue
      if position is None or (position, 0) not in self.given or is_backward_name(name):
        continue
      producer, number = self.given[position, 0]
      other = self.tf2.ops[producer]
      dtype, _ = other.outputs[number]
      yield new_node(OF_TF1 + name, 'Identity', [other.tensors[number]], T=dtype)

  def _end(self, tensor: str) -> str:
    """Returns the name of the operation that computes what others pass on."""
    name = op_name_of(tensor)
    node = self.node(name)
    while node.op in PASSING and data_inputs(node):
      name = op_name_of(data_inputs(node)[_passed(node, tensor)])
      tensor, node = data_inputs(node)[_passed(node, tensor)], self.node(name)
    return name

  def node(self, name: str) -> Any:
    """Returns a NodeDef of tf1.

    Raises:
      CannotRepair: there is none of this name.
    """
    if name not in self._nodes:
      raise CannotRepair(f'{name} is not in the graph of tf1')
    return self._nodes[name]


class _Copies:
  """The copies of one transplant, by name."""

  def __init__(self, known: 'GradientTransplants', inner: frozenset[int]) -> None:
    self._known = known
    self._inner = inner
    self.made: dict[str, Any] = {}

  def copy(self, node: Any, name: str) -> None:
    """Adds a node, and what it reads as far as that passes on."""
    copied = bare_copy(node, name)
    copied.input.extend(self.read(tensor) for tensor in data_inputs(node))
    self.made[name] = copied

  def read(self, tensor: str) -> str:
    """Returns the port's tensor, or a copy's, for one of tf1."""
    name, number = op_name_of(tensor), _number(tensor)
    node = self._known.node(name)
    if node.op in _OF_LOOPS:
      raise CannotRepair(f'{name} is a part of a loop')
    if node.op in PASSING and data_inputs(node):
      if node.op not in STOPS and GRADIENT_ATTRIBUTE not in node.attr:
        return self.read(data_inputs(node)[_passed(node, tensor)])
      if OF_TF1 + name not in self.made:
        self.copy(node, OF_TF1 + name)
      return f'{OF_TF1}{name}:{number}'
    position = self._known.positions.get(name)
    if position in self._inner:
      return f'{OF_TF1}{name}:{number}'
    if position is not None and (position, number) in self._known.given:
      producer, output = self._known.given[position, number]
      return self._known.tf2.ops[producer].tensors[output]
    if node.op != 'Const':
      raise CannotRepair(f'{name} has no counterpart in the port')
    self.made.setdefault(OF_TF1 + name, bare_copy(node, OF_TF1 + name))
    return f'{OF_TF1}{name}:0'


def marks_before(nodes: Mapping[str, Any], name: str, slot: int) -> tuple[str, ...]:
  """Returns the names of what stops or replaces the gradient of an operation's input.

  Args:
    nodes: the NodeDefs of a graph, by name.
    name: of the operation.
    slot: number of the input.
  """
  read = data_inputs(nodes[name])[slot : slot + 1] if name in nodes else []
  return marks_of_tensor(nodes, read[0]) if read else ()


def marks_of_tensor(nodes: Mapping[str, Any], tensor: str) -> tuple[str, ...]:
  """Returns the names of what stops or replaces the gradient of a tensor that is passed on."""
  found: list[str] = []
  node = nodes.get(op_name_of(tensor))
  while node is not None and node.op in PASSING and data_inputs(node):
    if node.op in STOPS or GRADIENT_ATTRIBUTE in node.attr:
      found.append(node.name)
    tensor = data_inputs(node)[_passed(node, tensor)]
    node = nodes.get(op_name_of(tensor))
  return tuple(found)


def _is_written_in_python(node: Any) -> bool:
  return GRADIENT_ATTRIBUTE in node.attr and node.attr[GRADIENT_ATTRIBUTE].s.startswith(
    _WITH_TENSORS
  )


def _passed(node: Any, tensor: str) -> int:
  return _number(tensor) if node.op == 'IdentityN' else 0


def _number(tensor: str) -> int:
  return int(tensor.partition(':')[2] or 0)
