"""Numbers that Python computes for a step of the port, where TF1 has operations of its count.

A schedule in Python leaves a number in the graph of each step, and what Python computes of it
further ones (`1 - 0.05 * rate`). No operation says what they are; they are given what TF1 computes.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.edits.corrections import correction
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.diagnosis.steps.ends import StepEnds, shared_targets, written_tensors
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import CONSTANT, TARGET, VARIABLE, OpGraph
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.sides.graphs.edits.repairs import GivenValue, Repair

_RATE = 'learning rate (of the step)'
_INTEGERS = ('int32', 'int64')
_MOST = 40
# How far from a number of TF1 a wrong one is at most.
_FARTHEST = math.log(1e3)
# Of numbers of 32 bits, and of what is left of 1 without a small one.
_SAME, _SAME_REST = 1e-5, 2e-3


@dataclasses.dataclass(frozen=True)
class _Derived:
  """A number of the port that is another one times a number, or what that leaves of 1."""

  position: int
  factor: float
  is_rest: bool

  def of(self, value: np.ndarray) -> np.ndarray:
    found = self.factor * np.asarray(value, np.float64)
    return np.asarray(1 - found if self.is_rest else found, np.float32)


@dataclasses.dataclass(frozen=True)
class _Number:
  """A number that the port has at some places, and what it may be in tf1."""

  value: float
  positions: tuple[int, ...]  # of the port's constants
  tf1: int  # position of what computes it of the count
  tensor: str  # of tf1
  wanted: float


def python_number_edits(looking: Looking) -> Iterator[Mistake]:
  """Yields numbers of the port in place of which what tf1 computes makes all that differs agree.

  Args:
    looking: the search in a training step of the port as it is.
  """
  graph, run = looking.tf2.op_graph, looking.tf2
  sources = looking.arriving() if looking.is_of_changes and graph.is_of_one_step else []
  targets = shared_targets(looking.tf1.op_graph, graph, looking.targets)
  wanted = written_tensors(graph, targets) if sources else []
  if not wanted:
    return
  compared = StepEnds(looking.tf1, run, targets)
  for number in _numbers(looking)[:_MOST]:
    derived = _derived(looking, number)
    some = [(), derived] if derived else [()]
    for also in some:
      given = {
        graph.ops[n].tensors[0]: make(np.asarray(number.wanted)) for n, make in _made(number, also)
      }
      new = run.refetched(wanted, given)
      if new is None or not compared.are_near(1, new):
        continue
      yield _mistake(looking, number, also)


def _made(
  number: _Number, derived: Sequence[_Derived]
) -> Iterator[tuple[int, Callable[[np.ndarray], np.ndarray]]]:
  """Yields positions of the port's constants, with what makes them of the number of tf1."""
  for n in number.positions:
    yield n, _as_number
  for one in derived:
    yield one.position, one.of


def _as_number(value: np.ndarray) -> np.ndarray:
  return np.asarray(value, np.float32)


def _numbers(looking: Looking) -> list[_Number]:
  """Returns numbers that may be wrong, the nearest to one of tf1 first, its learning rate before.

  A number that tf1 has as well is rather a setting.
  """
  tf1, graph = looking.tf1.op_graph, looking.tf2.op_graph
  rate, is_rate = tf1.targets().get(_RATE), _rate(tf1)
  computed = list(dict.fromkeys([*([] if is_rate is None else [is_rate]), *_of_the_count(tf1)]))
  tensors = {n: tf1.ops[n].tensors[0] for n in computed}
  if rate is not None and is_rate is not None:
    # In another step a condition may choose another number.
    tensors[is_rate] = tf1.ops[rate].tensors[0]
  values = looking.tf1.fetch([tensors[n] for n in computed])
  shared = _constants(tf1)
  found = []
  for n, array in zip(computed, values, strict=True):
    wanted = float(array)
    for value, positions in _constants(graph).items():
      if not wanted > 0 < value or math.isclose(wanted, value, rel_tol=_SAME):
        continue
      apart = abs(math.log(value / wanted))
      if apart < _FARTHEST:
        order = value in shared, n != is_rate, apart
        found.append((order, _Number(value, positions, n, tensors[n], wanted)))
  return [one for _, one in sorted(found, key=lambda known: known[0])]


def _rate(graph: OpGraph) -> int | None:
  """Returns what yields the learning rate of the step, where that is one number of 32 bits.

  It may be a constant: where all that the port computes of its count is one.
  """
  target = graph.targets().get(_RATE)
  position = None if target is None else graph.ops[target].inputs[0][0]
  known = position is not None and graph.ops[position].outputs[:1] == (('float32', ()),)
  return position if known else None


def _constants(graph: OpGraph) -> dict[float, tuple[int, ...]]:
  """Returns where a graph has numbers that a line of the user makes, by their values."""
  found: dict[float, list[int]] = {}
  for n, op in enumerate(graph.ops):
    if op.op_type != CONSTANT or op.outputs[0] != ('float32', ()) or is_backward(op):
      continue
    value = constant_or_number(graph, n)
    if op.source is not None and value is not None and math.isfinite(value.item()):
      found.setdefault(value.item(), []).append(n)
  return {value: tuple(places) for value, places in found.items()}


def _of_the_count(graph: OpGraph) -> list[int]:
  """Returns the numbers that follow from counts of steps alone and of which others are made."""
  of_counts: dict[int, bool] = {}  # False: of constants alone
  for n, op in enumerate(graph.ops):
    if op.op_type == CONSTANT:
      of_counts[n] = False
    elif op.op_type == VARIABLE:
      if op.outputs[0][0] in _INTEGERS and op.outputs[0][1] == ():
        of_counts[n] = True
    elif op.op_type != TARGET and op.inputs and all(of in of_counts for of, _ in op.inputs):
      of_counts[n] = any(of_counts[of] for of, _ in op.inputs)
  consumers = graph.consumers()
  return [
    n
    for n, is_of_count in of_counts.items()
    if is_of_count and graph.ops[n].outputs[:1] == (('float32', ()),)
    if any(reader not in of_counts for reader, _ in consumers[n])
  ]


def _derived(looking: Looking, number: _Number) -> tuple[_Derived, ...]:
  """Returns what the port's Python has computed of a number with one that tf1 has."""
  known = _constants(looking.tf1.op_graph)
  # A product with what follows from the count may be a constant of tf1 as well.
  shares = (one / number.wanted for one in known)
  factors = [1.0, *(one for one in (*known, *shares) if one > 0)]
  found = []
  for value, positions in _constants(looking.tf2.op_graph).items():
    if value == number.value or value in known:
      continue
    factor = next((k for k in factors if _is_near(value, k * number.value, _SAME)), None)
    rest = next((k for k in factors if _is_near(1 - value, k * number.value, _SAME_REST)), None)
    if rest is not None:
      found += [_Derived(n, rest, True) for n in positions]
    elif factor is not None and factor != 1.0:
      found += [_Derived(n, factor, False) for n in positions]
  return tuple(found)


def _is_near(value: float, wanted: float, tolerance: float) -> bool:
  return math.isclose(value, wanted, rel_tol=tolerance)


def _mistake(looking: Looking, number: _Number, derived: Sequence[_Derived]) -> Mistake:
  tf1, graph = looking.tf1.op_graph, looking.tf2.op_graph
  place = looking.place(looking.arriving()[0])
  op, known = graph.ops[number.positions[0]], tf1.ops[number.tf1]
  what = f'{known.name} ({known.op_type}), which tf1 computes of its count,'
  if number.tf1 == _rate(tf1):
    what = 'the learning rate'
  own, wanted = value_text(number.value), value_text(number.wanted)
  where = '' if known.source is None else f' ({known.source.short})'
  text = (
    f'{what} is {wanted} in tf1 in the step that is shown{where}; the port has the number {own} '
    f'there{_lines(graph, number.positions)}'
  )
  rests = [one for one in derived if one.is_rest]
  if rests:
    value = constant_or_number(graph, rests[0].position)
    assert value is not None, 'it is a constant'
    share = '' if rests[0].factor == 1 else f'{value_text(rests[0].factor)} times '
    text += f', and 1 without {share}that number{_lines(graph, [one.position for one in rests])}'
  text += ": with tf1's in every step all agrees, correct what computes it"
  said = GraphDifference(GraphAspect.CORRECTED, op.name, op.op_type, '', wanted, own, text)
  values = tuple(
    GivenValue(number.tensor, graph.ops[n].tensors[0], make) for n, make in _made(number, derived)
  )
  outputs = tuple(np.asarray(one, np.float32) for one in (number.value, number.wanted))
  return correction(place, op, known, said, (outputs[0], outputs[1]), Repair(values=values), graph)


def _lines(graph: OpGraph, positions: Sequence[int]) -> str:
  sources = (graph.ops[n].source for n in positions)
  found = dict.fromkeys(one.short for one in sources if one is not None)
  return f' at {", ".join(found)}' if found else ''
