"""Edits of the port's graph that make a part of it the reference's."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.numerics.relayout import Relayout, relayout_of_shapes
from tf2verify.records.op_graph import (
  CHOICE,
  STOPS,
  TARGET,
  Inserted,
  NodeChange,
  OpGraph,
  TensorKey,
)
from tf2verify.sides.graphs.edits.update_kinds import turned
from tf2verify.sides.graphs.edits.wiring import (
  OF_TF1,
  STALE,
  CannotRepair,
  Wiring,
  bare_copy,
  layout_steps,
)
from tf2verify.sides.graphs.graph_defs.inlining import is_in_branch
from tf2verify.sides.graphs.graph_defs.new_nodes import constant_node, new_node
from tf2verify.sides.graphs.graph_defs.parts import bounds_of, insert, set_attribute, set_kind
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput, exchange
from tf2verify.sides.graphs.rewriting.whole_reductions import with_ranks_followed

# By which an operation has another gradient than that of its type.
GRADIENT_ATTRIBUTE = '_gradient_op_type'
_OF_SETTINGS = 'tf2verify_setting/'
_REPLACED = '/tf2verify_replaced'
_FED = ('Placeholder', 'VarHandleOp', 'VariableV2', 'Variable')
_UPDATES = ('Assign', 'Scatter')
_UPDATE_OF = 'update of '


@dataclasses.dataclass(frozen=True, eq=False)
class GivenValue:
  """What tf1 has somewhere, to be given to the port."""

  tf1: str  # tf1's tensor
  tf2: str  # the port's
  # Returns the value as the port holds it.
  as_tf2: Callable[[np.ndarray], np.ndarray] = lambda value: value


@dataclasses.dataclass(frozen=True, eq=False)
class Transplant:
  """Operations of tf1 that read the port's tensors.

  Attributes:
    inner: NodeDefs, all but the last.
    end: the NodeDef of the last one; its name is that of what it replaces.
    is_target: whether only what the run yields is replaced, not what other operations read.
    is_update: whether that is what a variable is updated with.
    tf1: name of the operation of tf1 that the last one is; '' for none.
    fed: what placeholders among `inner` are given.
    number: which output of the operation that it replaces is what the run yields.
  """

  inner: tuple[Any, ...]
  end: Any
  is_target: bool = False
  is_update: bool = False
  tf1: str = ''
  fed: tuple[GivenValue, ...] = ()
  number: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Repair:
  """One edit: some of these.

  Attributes:
    changes: of attributes and constants.
    transplants: of operations.
    values: that are given.
    passing: names of operations that stop or replace a gradient, and are to pass it on.
    inputs: inputs of operations that are to come by other ways.
    exchanged: pairs of tensors that are each read in place of the other one.
  """

  changes: tuple[NodeChange, ...] = ()
  transplants: tuple[Transplant, ...] = ()
  values: tuple[GivenValue, ...] = ()
  passing: tuple[str, ...] = ()
  inputs: tuple[OtherInput, ...] = ()
  exchanged: tuple[tuple[str, str], ...] = ()

  @property
  def given(self) -> tuple[GivenValue, ...]:
    """All values that the port is given."""
    return (*self.values, *(value for moved in self.transplants for value in moved.fed))

  @property
  def size(self) -> int:
    """How many operations are changed, moved or given."""
    return len(self.changes) + len(self.transplants) + len(self.values)

  def joined(self, other: 'Repair') -> 'Repair':
    """Returns both as one; what both change is changed once."""
    known = {change.what for change in self.changes}
    return Repair(
      (*self.changes, *(change for change in other.changes if change.what not in known)),
      (*self.transplants, *other.transplants),
      (*self.values, *other.values),
      (*self.passing, *other.passing),
      (*self.inputs, *other.inputs),
      (*self.exchanged, *other.exchanged),
    )


def apply(
  repairs: Sequence[Repair], graph_def: Any, other_run: Mapping[str, Any] | None = None
) -> None:
  """Edits a GraphDef of the port.

  Args:
    repairs: the edits, in their order.
    graph_def: edited in place.
    other_run: for another run than the edits were made for, the NodeDefs of tf1 in it, by name;
      they hold sizes of that run. Edits of operations that are not here (dropout, moving averages)
      are left out; so are those in branches of conditions that a run does not take.

  Raises:
    CannotRepair: an operation that is to be edited is not there, or takes no such edit.
  """
  for repair in repairs:
    for change in repair.changes:
      if not _is_left_out(graph_def, change.op, other_run):
        _change(graph_def, change)
    for moved in repair.transplants:
      if not _is_left_out(graph_def, moved.end.name, other_run):
        _transplant(graph_def, moved if other_run is None else _in_run(moved, other_run))
    for name in repair.passing:
      _pass(_named(graph_def, name))
    for one in repair.inputs:
      _rewire(graph_def, one)
    for tensors in repair.exchanged:
      exchange(graph_def, tensors)
  if repairs:
    with_ranks_followed(graph_def)


def transplant(
  nodes: Mapping[str, Any],
  tf1: OpGraph,
  tf2: OpGraph,
  region: tuple[Sequence[int], int],
  partner: int,
  given: Mapping[TensorKey, TensorKey],
  layouts: Mapping[TensorKey, Relayout],
  partners: Sequence[int | None] = (),
) -> Transplant:
  """Returns operations of tf1 that read the port's tensors.

  Args:
    nodes: the NodeDefs of tf1, by name.
    tf1: the tf1 side's graph.
    tf2: the port's.
    region: positions of the operations of tf1, the last one apart.
    partner: position of the port's operation that the last one replaces.
    given: the port's tensor for each tensor of tf1 that enters.
    layouts: how the port holds tensors of tf1, those that enter and that of the last one.
    partners: positions of the port's operations by those of tf1: what enters and is not among
      `given` is made in the port as tf1 makes it, from there on.

  Raises:
    CannotRepair: one of them has a function, say, or reads what cannot be made of the port's.
  """
  inner, end = region
  op, other = tf1.ops[end], tf2.ops[partner]
  is_target = op.op_type == TARGET
  targets = op.op_type == TARGET, other.op_type == TARGET
  is_update = op.attribute('op') is not None
  if targets[0] != targets[1] or (is_target and is_update != (other.attribute('op') is not None)):
    raise CannotRepair('what the run yields is computed differently')
  wiring = Wiring(nodes, tf1, tf2, frozenset(inner), given, layouts, partners)
  made = [n for n in inner if tf1.ops[n].op_type != CHOICE]
  moved = [wiring.copied(n, OF_TF1 + tf1.ops[n].name) for n in made]
  layout = layouts.get((end, 0))
  if not is_target and layout is None:
    last = wiring.copied(end, other.name)
    return Transplant((*wiring.added, *moved), last, tf1=op.name, fed=_fed(wiring))
  if not is_target and layout is not None:
    if len(op.tensors) > 1:
      raise CannotRepair('one of several outputs has a different shape')
    whole = wiring.copied(end, OF_TF1 + op.name)
    *steps, last = layout_steps(layout, f'{whole.name}:0', op.outputs[0][0], other.name)
    return Transplant((*wiring.added, *moved, whole, *steps), last, fed=_fed(wiring))
  name, _, number = other.tensors[0].partition(':')
  if len(op.inputs) != 1 or (is_update and number != '0'):
    raise CannotRepair('what the run yields is not one output')
  source = wiring.name_of(op.inputs[0])
  if is_update:
    (last,) = turned(op, other, tf2, source, name)
  else:
    last = new_node(name, 'Identity', [source], T=op.outputs[0][0])
  nodes_made, fed = (*wiring.added, *moved), _fed(wiring)
  return Transplant(nodes_made, last, True, is_update, fed=fed, number=int(number))


def _fed(wiring: Wiring) -> tuple[GivenValue, ...]:
  return tuple(GivenValue(tf1, tf2) for tf1, tf2 in wiring.fed)


def bypass(tf2: OpGraph, position: int, read: TensorKey) -> Transplant:
  """Returns what passes a tensor of the port on in place of an operation's output.

  Raises:
    CannotRepair: the shapes do not say in which order the elements are passed on.
  """
  op, (producer, number) = tf2.ops[position], read
  dtype, shape = tf2.ops[producer].outputs[number]
  tensor = tf2.ops[producer].tensors[number]
  layout = layout_of_shapes(shape, op.outputs[0][1])
  if layout is not None:
    *steps, last = layout_steps(layout, tensor, dtype, op.name)
    return Transplant(tuple(steps), last)
  return Transplant((), new_node(op.name, 'Identity', [tensor], T=dtype))


def target_bypass(tf2: OpGraph, position: int, read: TensorKey) -> Transplant:
  """Returns what yields a tensor of the port in place of what a run yields.

  Args:
    tf2: the port's graph.
    position: of the target.
    read: the tensor.

  Raises:
    CannotRepair: the target is of several tensors, or one of several that an operation yields.
  """
  op = tf2.ops[position]
  name, _, number = op.tensors[0].partition(':')
  if len(op.tensors) != 1 or number != '0' or op.attribute('op') is not None:
    raise CannotRepair('what the run yields is not one output')
  passed = new_node(name, 'Identity', [tf2.tensor(read)], T=op.outputs[0][0])
  is_update = op.name.startswith(_UPDATE_OF)
  return Transplant((), passed, is_target=True, is_update=is_update)


def layout_of_shapes(
  tf1: tuple[int | None, ...] | None, tf2: tuple[int | None, ...] | None
) -> Relayout | None:
  """Returns how what has one shape is held in the other; None for one shape.

  Raises:
    CannotRepair: the shapes do not say it.
  """
  try:
    return relayout_of_shapes(tf1, tf2)
  except ValueError as error:
    raise CannotRepair(f'the shapes are {tf1} and {tf2}: {error}') from error


def _change(graph_def: Any, change: NodeChange) -> None:
  node = _named(graph_def, change.op)
  for attribute in STALE:
    node.attr.pop(attribute, None)
  try:
    for attribute, value in change.attributes:
      set_attribute(node.attr[attribute], value)
    set_kind(node, change)
    added = [made for one in change.inserted for made in _inserted(graph_def, node, one)]
  except (KeyError, TypeError, ValueError) as error:
    raise CannotRepair(f'{change.op} takes no such attribute: {error}') from error
  graph_def.node.extend(added)
  data = [n for n, name in enumerate(node.input) if not name.startswith('^')]
  for slot, tensor in change.other:
    node.input[data[slot]] = tensor
  for slot, value in change.inputs:
    array = np.asarray(value)
    if slot >= len(data):
      raise CannotRepair(f'{change.op} has no input {slot}')
    constant = constant_node(f'{_OF_SETTINGS}{change.op}/{slot}', array)
    graph_def.node.append(constant)
    node.input[data[slot]] = constant.name


def _inserted(graph_def: Any, node: Any, one: Inserted) -> list[Any]:
  cut = _named(graph_def, one.sliced_as) if one.sliced_as else None
  return insert(node, one, one.tensor, cut, [] if cut is None else bounds_of(cut))


def _pass(node: Any) -> None:
  """Makes an operation that passes its input on do so with its gradient as well."""
  if node.op in STOPS:
    node.op = 'Identity'
  node.attr.pop(GRADIENT_ATTRIBUTE, None)


def _rewire(graph_def: Any, one: OtherInput) -> None:
  node = _named(graph_def, one.op)
  data = [n for n, name in enumerate(node.input) if not name.startswith('^')]
  if one.slot >= len(data):
    raise CannotRepair(f'{one.op} has no input {one.slot}')
  _add(graph_def, one.inner)
  node.input[data[one.slot]] = one.tensor


def _add(graph_def: Any, nodes: Sequence[Any]) -> None:
  known = {node.name: node for node in graph_def.node}
  for node in nodes:
    if node.name not in known:
      graph_def.node.add().CopyFrom(node)
    elif known[node.name] != node:
      raise CannotRepair(f'{node.name} is there already, and reads something else')


def _in_run(moved: Transplant, nodes: Mapping[str, Any]) -> Transplant:
  """Returns operations of tf1 as they are in another run, where their graph has the same ones."""
  return dataclasses.replace(
    moved,
    inner=tuple(
      _with_attributes_of(n, nodes.get(n.name.removeprefix(OF_TF1))) for n in moved.inner
    ),
    end=_with_attributes_of(moved.end, nodes.get(moved.tf1)),
  )


def _with_attributes_of(node: Any, other: Any) -> Any:
  if other is None or other.op != node.op:
    return node
  made = bare_copy(other, node.name)
  made.input.extend(node.input)
  return made


def _transplant(graph_def: Any, moved: Transplant) -> None:
  _add(graph_def, moved.inner)
  replaced = next((node for node in graph_def.node if node.name == moved.end.name), None)
  if replaced is None:
    raise CannotRepair(f'the port has no {moved.end.name} in this run')
  if not moved.is_target:
    replaced.CopyFrom(moved.end)
    return
  if replaced.op in _FED:
    raise CannotRepair('what the run yields is what it is given')
  if replaced.op == 'IdentityN':  # a loop in rounds, which yields more
    replaced.input[moved.number] = moved.end.input[0]
    return
  if moved.number:
    raise CannotRepair(f'what the run yields is one of several outputs of {replaced.name}')
  name, renamed = replaced.name, replaced.name + _REPLACED
  replaced.name = renamed
  for node in graph_def.node:
    keeps = moved.is_update and node.op.removeprefix('Resource').startswith(_UPDATES)
    if not keeps:
      _reads_renamed(node, name, renamed)
  end = graph_def.node.add()
  end.CopyFrom(moved.end)
  _reads_renamed(end, name, renamed)


def _reads_renamed(node: Any, name: str, renamed: str) -> None:
  for slot, read in enumerate(node.input):
    bare, mark, number = read.removeprefix('^').partition(':')
    if bare == name:
      node.input[slot] = ('^' if read.startswith('^') else '') + renamed + mark + number


def _is_left_out(graph_def: Any, name: str, other_run: Mapping[str, Any] | None) -> bool:
  """Returns whether an edit is none of this run, which has no operation of that name."""
  is_conditional = other_run is not None or is_in_branch(name)
  return is_conditional and not any(node.name == name for node in graph_def.node)


def _named(graph_def: Any, name: str) -> Any:
  for node in graph_def.node:
    if node.name == name:
      return node
  raise CannotRepair(f'the port has no {name} in this run')
