"""Why a planted fault changes nothing that is compared."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.numerics.agreement import agreement
from tf2verify.records.op_graph import TARGET


@dataclasses.dataclass(frozen=True)
class FaultTrace:
  """How far a fault's difference gets in one run."""

  differs: bool  # whether the faulty operations yield other numbers
  # Name and type of the operations that take the difference in and yield the same numbers.
  lost_in: tuple[tuple[str, str], ...] = ()


def is_identical(one: np.ndarray, other: np.ndarray) -> bool:
  """Returns whether two arrays are the same, NaN equal to NaN."""
  return one.shape == other.shape and one.dtype == other.dtype and agreement(one, other).identical


def greatest_change(before: np.ndarray | None, after: np.ndarray) -> float:
  """Returns the greatest difference; infinite where the arrays are of different kinds."""
  return math.inf if before is None else agreement(before, after).absolute


def trace(
  base: InspectableRun, faulty: InspectableRun, operations: Sequence[str], in_loop: bool
) -> FaultTrace:
  """Follows a fault through the graph.

  Args:
    base: the run without the fault.
    faulty: the run with it; operations have the same names.
    operations: the faulty operations.
    in_loop: whether they stand in the body of a loop, of which no tensor can be asked
      for.
  """
  if in_loop:
    return FaultTrace(True)
  graph = base.op_graph
  after = {n for n, op in enumerate(graph.ops) if op.name in operations}
  for position, op in enumerate(graph.ops):
    if any(producer in after for producer, _ in op.inputs):
      after.add(position)
  known = {op.name: op for op in faulty.op_graph.ops}
  asked = {
    n: graph.ops[n].tensors[0]
    for n in sorted(after)
    if graph.ops[n].op_type != TARGET
    and graph.ops[n].name in (*known, *operations)
    and not is_opaque(graph.ops[n].outputs[0][0])
  }
  ones, others = base.fetch(list(asked.values())), faulty.fetch(list(asked.values()))
  pairs = zip(asked, ones, others, strict=True)
  differing = {n for n, one, other in pairs if not is_identical(one, other)}
  lost_in = [
    (graph.ops[n].name, graph.ops[n].op_type)
    for n in asked
    if n not in differing and any(producer in differing for producer, _ in graph.ops[n].inputs)
  ]
  own = {n for n in asked if graph.ops[n].name in operations}
  return FaultTrace(bool(own & differing), tuple(lost_in))


def explained(traces: Sequence[FaultTrace]) -> str:
  """Returns why a fault changes no compared number, in one sentence."""
  lost_in = list(dict.fromkeys(op for one in traces for op in one.lost_in))
  if not any(one.differs for one in traces):
    return 'the operation yields the same numbers from these inputs, with and without the fault'
  if not lost_in:
    return 'its numbers change, but no number that is compared depends on them'
  shown = ', '.join(f'{name} ({op_type})' for name, op_type in lost_in[:3])
  return f'its numbers change, but the difference is lost in {shown}'


def within_tolerance(changes: Mapping[str, float]) -> str:
  """Returns which number a fault changes most, and by how much."""
  name = max(changes, key=lambda one: changes[one])
  return f'largest change {changes[name]:.2g}, of {name}: within tolerance or rounding noise'
