"""Variables that one side reads before it updates them, and the other side after it.

A generator that is trained after the discriminator of the same step reads its new weights; trained
from one forward pass, the old ones. So it is with a copy of the weights (a target network, a moving
average), with a loss that is returned, and with statistics that a forward pass counts and
normalizes by. No operation is another one then. Whether that is all that differs can be tried: the
side that reads the old values is given those that it writes itself.
"""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque, written, written_variable
from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.diagnosis.places.source_records import bare_source
from tf2verify.diagnosis.steps.ends import StepEnds, written_tensors
from tf2verify.records.diagnosis import Cause, GraphAspect, GraphDifference, Source
from tf2verify.records.op_graph import TARGET, VARIABLE, OpGraph, TensorKey
from tf2verify.records.wording import listed

RULE = 'read_before_or_after_update'
_UPDATE = 'update of '
_GRADIENT = 'gradient '
_LOSS = 'loss'
_OUTPUT = 'output '
_AFTER = ' after its update'
# Whose graphs are looked at; the values of all are.
_MOST_TARGETS = 24


@dataclasses.dataclass(frozen=True)
class ReadTimes:
  """What is explained by when variables are read.

  Attributes:
    cause: the sentence for the user.
    source: the first operation of either side that reads one of them.
  """

  cause: Cause
  source: Source


def read_times(
  tf1: InspectableRun, tf2: InspectableRun, failing: Collection[str]
) -> ReadTimes | None:
  """Returns that variables are read before their update on one side, where that explains all.

  Args:
    tf1: the tf1 side's run, of a training step or a forward pass.
    tf2: the port's.
    failing: names of the targets that differ.
  """
  for is_port, late, early in ((True, tf2, tf1), (False, tf1, tf2)):
    names = _read_late(late.op_graph, early.op_graph, failing)
    greatest = _left(tf1, tf2, early, names, failing) if names else None
    if greatest is not None:
      return _said(is_port, (late.op_graph, early.op_graph), names, failing, greatest)
  return None


class _Side:
  """The variables of one side, and what is written to them."""

  def __init__(self, graph: OpGraph) -> None:
    self.graph = graph
    self.targets = graph.targets()
    self.leaves = {op.name: n for n, op in enumerate(graph.ops) if op.op_type == VARIABLE}
    # What a graph with writes reads after them, by the variable.
    self.late = {name.partition(_AFTER)[0]: n for name, n in self.leaves.items() if _AFTER in name}
    self.written: dict[str, tuple[int, TensorKey]] = {}
    for name, position in self.targets.items():
      inputs = graph.ops[position].inputs
      if name.startswith(_UPDATE) and len(inputs) == 1:
        self.written.setdefault(written_variable(graph.ops[position]), (position, inputs[0]))

  def behind(self, target: str) -> set[int]:
    """Returns what a target depends on, but for what it yields itself."""
    return self.graph.ancestors([self.targets[target]])

  def new_value(self, name: str) -> int:
    """Returns the operation that yields what a variable becomes, as it is read after that."""
    return self.late.get(name, self.written[name][1][0])

  def reads_new(self, name: str, behind: Collection[int]) -> bool:
    """Returns whether some operations depend on what a variable becomes."""
    new = self.written[name][1][0]
    is_computed = new in behind and self.graph.ops[new].op_type != VARIABLE
    return is_computed or self.late.get(name) in behind


def _read_late(late: OpGraph, early: OpGraph, failing: Collection[str]) -> list[str]:
  """Returns the variables whose new values one graph alone has behind what differs."""
  one, other = _Side(late), _Side(early)
  found: dict[str, None] = {}
  for target in sorted(failing, key=lambda name: name.startswith(_UPDATE))[:_MOST_TARGETS]:
    if target not in one.targets or target not in other.targets:
      continue
    own = written_variable(late.ops[one.targets[target]]) if target.startswith(_UPDATE) else ''
    new, old = one.behind(target), other.behind(target)
    for name in one.written:
      if name == own or name not in other.written or name not in other.leaves:
        continue
      is_old = other.written[name][1][0] not in old and other.late.get(name) not in old
      if one.reads_new(name, new) and is_old and other.leaves[name] in old:
        found[name] = None
  return list(found)


def _left(
  tf1: InspectableRun,
  tf2: InspectableRun,
  early: InspectableRun,
  names: Sequence[str],
  failing: Collection[str],
) -> float | None:
  """Returns what is left of the differences with new values, of tf1's greatest element.

  None where more than rounding is left of any, or not all can be computed so.
  """
  graphs = tf1.op_graph, tf2.op_graph
  given = _new_values(early, names)
  number = 0 if early is tf1 else 1
  wanted = written_tensors(graphs[number], failing)
  new = early.from_other_values(wanted, given) if wanted and given else None
  if new is None:
    return None
  ends = StepEnds(tf1, tf2, failing)
  return left_after(ends, number, new) if ends.are_known else None


def left_after(ends: StepEnds, side: int, new: Sequence[np.ndarray]) -> float | None:
  """Returns what is left of the differences where one side yields other values.

  An optimizer may make a step of the rounding of a gradient that is zero: where the gradient of a
  variable is explained, some elements of its update may be left.

  Args:
    ends: the targets that differ.
    side: 0 if these are values of tf1, 1 for those of the port.
    new: what is written, of each target.

  Returns:
    A part of tf1's greatest element; None where more than rounding is left of any.
  """
  left = ends.left(side, new)
  made = dict(zip(ends.names, new, strict=True))
  of_gradients = [n.removeprefix(_GRADIENT) for n in made if n.startswith(_GRADIENT)]
  updates = [name for n in of_gradients if (name := f'{_UPDATE}{n}') in made]
  if left is not None or not updates:
    return left
  others = [name for name in made if name not in updates]
  left = ends.left(side, [made[name] for name in others], others)
  return left if ends.are_near(side, [made[name] for name in updates], updates) else None


def _new_values(run: InspectableRun, names: Sequence[str]) -> dict[str, np.ndarray]:
  """Returns what variables become, by the tensors that read them."""
  side = _Side(run.op_graph)
  leaves = {name: run.op_graph.ops[side.leaves[name]] for name in names}
  if any(is_opaque(leaf.outputs[0][0]) for leaf in leaves.values()):
    return {}
  before = run.fetch([leaf.tensors[0] for leaf in leaves.values()])
  values = run.fetch([run.op_graph.tensor(side.written[name][1]) for name in names])
  return {
    leaves[name].tensors[0]: written(run.op_graph.ops[side.written[name][0]], old, new)
    for name, old, new in zip(names, before, values, strict=True)
  }


def _said(
  is_port: bool,
  graphs: tuple[OpGraph, OpGraph],
  names: Sequence[str],
  failing: Collection[str],
  greatest: float,
) -> ReadTimes:
  """Returns it in words.

  Args:
    is_port: whether the port is the side that reads new values.
    graphs: of that side, and of the other one.
    names: of the variables.
    failing: names of the targets that differ.
    greatest: what is left of the differences.
  """
  late, early = graphs
  one, other = _Side(late), _Side(early)
  written_there = {one.new_value(name) for name in names}
  reader = _reader(one, written_there, failing)
  old_reader = _reader(other, {other.leaves[name] for name in names}, failing)
  sides = ('the port', 'TF1') if is_port else ('TF1', 'the port')
  when = 'before' if is_port else 'after'
  of = 'call' if _OUTPUT in ' '.join(failing) else 'step'
  cause = Cause(
    f'{sides[0]} computes {_listed(failing)} from {listed(names)} after the update of the same '
    f'{of}{_at(late, reader)}, {sides[1]} from the values before it{_at(early, old_reader)}: '
    f'compute it from the values {when} the update in the port, as TF1 does',
    '',
    RULE,
    numbers=f'from its own new values {sides[1]} computes what {sides[0]} does, to {greatest:.1g}',
  )
  places = ((early, old_reader), (late, reader))[:: 1 if is_port else -1]
  read = next((n for n in names if _reads(late, reader, one.new_value(n))), names[0])
  one_text, other_text = (read, f'{read}{_AFTER}')[:: 1 if is_port else -1]
  source = bare_source(*places)
  difference = GraphDifference(
    GraphAspect.WIRING, source.tf1_op, source.tf1_type, 'variable', one_text, other_text
  )
  return ReadTimes(cause, dataclasses.replace(source, rewired=True, differences=(difference,)))


def _reads(graph: OpGraph, position: int, producer: int) -> bool:
  return any(key[0] == producer for key in graph.ops[position].inputs)


def _reader(side: _Side, of: Collection[int], failing: Collection[str]) -> int:
  """Returns what reads some operations on the way to what differs, of the user's code first."""
  behind = side.graph.ancestors([side.targets[name] for name in failing])
  ops = side.graph.ops
  found = [
    n
    for n in sorted(behind)
    if ops[n].op_type != TARGET and any(key[0] in of for key in ops[n].inputs)
  ]
  return next((n for n in found if ops[n].source is not None), (*found, *sorted(of))[0])


def _at(graph: OpGraph, position: int) -> str:
  line = graph.ops[position].source
  if line is None:
    return ''
  caller = f', called from {line.callers[-1].short}' if line.callers else ''
  return f' ({line.short}{caller})'


def _listed(failing: Collection[str]) -> str:
  """Returns what differs first: losses, then gradients, then what is made of them."""
  if any(name.startswith(_LOSS) for name in failing):
    return 'the loss that the step returns'
  outputs = [n for n in failing if n.startswith(_OUTPUT)]
  if outputs:
    return listed(outputs)
  gradients = [n.removeprefix(_GRADIENT) for n in failing if n.startswith(_GRADIENT)]
  if gradients:
    return f'the gradient of {listed(gradients)}'
  return f'the update of {listed([n.removeprefix(_UPDATE) for n in failing])}'
