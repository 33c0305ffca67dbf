"""Which variables of a training step are functions of the number of steps taken."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.relation.proof.normal_forms.polynomials import POLYNOMIAL
from tf2verify.relation.proof.normal_forms.states import Count, Power, State
from tf2verify.relation.proof.normal_forms.terms import Terms
from tf2verify.relation.proof.numbering import Numbering, Variables

# A power in float32 was formed by as many products as there were steps.
_ROUNDING = 1e-4
_HIGHEST = 1_000_000


def states_of(graph: OpGraph, values: Mapping[str, np.ndarray], steps: int) -> dict[str, State]:
  """Returns what variables of a side are, if a step does to them what it always does.

  Args:
    graph: a training step whose writes are results, called `update of NAME`.
    values: of its variables before the step, by name.
    steps: how many steps were taken before it.
  """
  scalars = {name: value for name, value in values.items() if np.shape(value) == ()}
  known: Variables = {name: (value.dtype.name, ()) for name, value in scalars.items()}
  terms = Terms()
  numbering = Numbering(terms, graph, known, graph.side)
  return dict(_found(graph, numbering, terms, scalars, steps))


def _found(
  graph: OpGraph,
  numbering: Numbering,
  terms: Terms,
  scalars: Mapping[str, np.ndarray],
  steps: int,
) -> Iterator[tuple[str, State]]:
  ends = graph.targets()
  for position, op in enumerate(graph.ops):
    end = ends.get(f'update of {op.name}')
    if op.op_type != VARIABLE or op.name not in scalars or end is None:
      continue
    (after,) = numbering.target(end)
    term = terms[after]
    if term.kind != POLYNOMIAL:
      continue
    before, value = numbering.values[position, 0], float(scalars[op.name])
    parts = dict(term.extra)
    if parts == {(before,): 1, (): 1} and value == round(value):
      yield op.name, Count(round(value) - steps)
    elif set(parts) == {(before,)}:
      power = _power(float(parts[before,]), value)
      if power is not None:
        yield op.name, Power(float(parts[before,]), power - steps)


def _power(base: float, value: float) -> int | None:
  """Returns which power of a base a value is; None where it is none."""
  if not 0 < base < 1 or not 0 < value <= 1:
    return None
  exponent = math.log(value) / math.log(base)
  nearest = round(exponent)
  if not 0 <= nearest <= _HIGHEST or not math.isclose(base**nearest, value, rel_tol=_ROUNDING):
    return None
  return nearest
