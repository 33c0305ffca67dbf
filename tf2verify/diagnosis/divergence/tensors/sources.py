"""Runs that can be looked into, and the sources of differences between two of them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.numerics.agreement import Agreement, agreement
from tf2verify.numerics.relayout import Relayout, agreement_as_held, agreement_but_for_sign
from tf2verify.records.op_graph import TARGET, NodeChange, OpGraph, OpRecord, TensorKey


class InspectableRun(Protocol):
  """One side's run, of which every tensor can be asked for."""

  op_graph: OpGraph
  # How variables are held that lie on the tf1 side differently, by their tf1 names.
  layouts: Mapping[str, Relayout]

  def nodes(self) -> Mapping[str, Any]:
    """Returns the NodeDefs of the graph by name."""

  def fetch(self, tensors: Sequence[str]) -> list[np.ndarray]:
    """Returns tensors by name."""

  def refetched(
    self, tensors: Sequence[str], given: Mapping[str, np.ndarray]
  ) -> list[np.ndarray] | None:
    """Returns tensors where the graph is given values of others; None where it cannot be."""

  def from_other_values(
    self, tensors: Sequence[str], given: Mapping[str, np.ndarray]
  ) -> list[np.ndarray] | None:
    """Returns tensors as they are for variables of other values; None where it cannot be."""

  def give(self, values: Mapping[str, np.ndarray]) -> None:
    """Gives the graph values, by tensor name, in place of what it computes, from now on."""

  def recompute(
    self, requests: Sequence[tuple[Sequence[str], Mapping[str, np.ndarray]]]
  ) -> list[list[np.ndarray] | None]:
    """Computes tensors from given ones; None for what cannot be computed so."""

  def recompute_changed(
    self,
    wanted: Sequence[str],
    given: Mapping[str, np.ndarray],
    trials: Sequence[Sequence[NodeChange]],
  ) -> list[list[np.ndarray] | None]:
    """Computes tensors from given ones, for each trial with operations changed."""

  def recompute_trials(
    self,
    trials: Sequence[tuple[Sequence[str], Mapping[str, np.ndarray], Sequence[NodeChange]]],
  ) -> list[list[np.ndarray] | None]:
    """Computes tensors from given ones, each with operations changed, all at once."""


@dataclasses.dataclass(frozen=True, eq=False)
class FoundSource:
  """A source, with its outputs."""

  regions: RegionPair  # the operation on both sides, with unpaired operations before it
  agreement: Agreement  # of its outputs, from the same inputs
  alone: bool  # whether it was run alone to see it
  tf1: np.ndarray  # the output that differs most, tf1 side
  tf2: np.ndarray  # the same from the tf1 side's inputs; another shape where shapes differ
  output: int | None = None  # its number; None where it is what an update makes of a variable
  # How the port holds the elements of that output; None for the same shape.
  layout: Relayout | None = None
  # Which elements are more than rounding, where the others are so large that they hide them; None
  # where all count.
  elements: np.ndarray | None = None

  @property
  def tf2_as_tf1(self) -> np.ndarray:
    """The tf2 output as tf1 holds it, where that is another shape of the same elements."""
    return self.tf2 if self.layout is None else self.layout.to_tf1(self.tf2)

  def apart_from(self, other: np.ndarray) -> Agreement:
    """Returns how far another array that the port may yield is from what tf1 yields."""
    found, layout = agreement_as_held(self.tf1, other)
    if self.layout is not None and self.layout.elements is not None:  # no value shows that order
      layout = self.layout
      found = agreement(self.tf1, layout.to_tf1(other))
    if self.elements is None:
      return found
    held = other if layout is None else layout.to_tf1(other)
    if held.shape != self.tf1.shape:
      return found
    return agreement(self.tf1[self.elements], held[self.elements])


def without_echoes(sources: list[FoundSource]) -> list[FoundSource]:
  """Leaves out sources whose unpaired operations another source before them has, too."""
  kept: list[FoundSource] = []
  tf1_seen, tf2_seen = set[int](), set[int]()
  for source in sources:
    tf1, tf2 = set(source.regions.tf1.inner), set(source.regions.tf2.inner)
    if not (tf1 & tf1_seen or tf2 & tf2_seen):
      kept.append(source)
    tf1_seen |= tf1
    tf2_seen |= tf2
  return kept


def found_source(
  pair: RegionPair,
  ones: list[np.ndarray],
  others: list[np.ndarray],
  numbers: Sequence[int | None],
  alone: bool,
  op: OpRecord,
  views: Mapping[TensorKey, Relayout],
) -> FoundSource | None:
  """Returns the source that an operation is; None where it yields the same."""
  known = [views.get((pair.tf1.end, number or 0)) for number in numbers]
  held = [
    compared(one, other, op, view) for one, other, view in zip(ones, others, known, strict=True)
  ]
  found = [one for one, _ in held]
  if all(one.identical for one in found):
    return None
  worst = max(range(len(found)), key=lambda n: (found[n].relative, -n))
  layout = held[worst][1]
  return FoundSource(pair, found[worst], alone, ones[worst], others[worst], numbers[worst], layout)


def compared(
  one: np.ndarray, other: np.ndarray, op: OpRecord, view: Relayout | None = None
) -> tuple[Agreement, Relayout | None]:
  """Compares in either side's shape and sign, but for an end: these are what a caller sees.

  What belongs to a variable has the shape that it has on each side.

  Args:
    one: what tf1 yields.
    other: what the port yields.
    op: the operation of tf1.
    view: how the port holds the variable that it belongs to; see `variable_views`.
  """
  if view is not None and (one.shape, other.shape) == (view.tf1_shape, view.tf2_shape):
    return agreement(view.to_tf2(one), other), view
  if op.is_of_variable:
    return agreement_as_held(one, other)
  return (
    (agreement(one, other), None) if op.op_type == TARGET else agreement_but_for_sign(one, other)
  )
