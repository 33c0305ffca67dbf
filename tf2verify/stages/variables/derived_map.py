"""A variable map derived from both graphs, and confirmed with numbers."""

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import VariableRecord
from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.records.wording import listed
from tf2verify.relation.derivation.declared_pairs import with_declared
from tf2verify.relation.derivation.map_derivation import derive
from tf2verify.relation.layouts.interchangeable import exchanged, exchanges
from tf2verify.sides.graphs.rewriting.unrolled_loops import LOOPS
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.side import Declaration, Inventory, RunSpec
from tf2verify.sides.tf1.reference import ReferenceGraph
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.traces.tracing import NotTraceable, TracedPort
from tf2verify.stages.variables import step_counter
from tf2verify.stages.variables.map_found import DerivedMap
from tf2verify.stages.variables.map_trials import NotDerivable, Trial, Values

# So many exchanges of two variables are tried.
_MOST_EXCHANGES = 8
# Layouts are tried for so long.
_SECONDS = 30.0


class _Fill:
  """The case's own values; what it leaves out, and tf1 draws, starts as there."""

  description = 'distinct values'

  def __init__(self, declaration: Declaration, tf1: ReferenceGraph) -> None:
    self._declaration, self._tf1 = declaration, tf1

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    with user_code('case', 'fill_values'):
      value = self._declaration.fill_values(name, shape, dtype)
    if value is None:
      return self._tf1.drawn_start(name)
    return np.asarray(value).astype(dtype, copy=False)


def declared_names(declaration: Declaration, tf1: Inventory) -> dict[str, str]:
  """Returns the pairs that a case gives as a mapping, which what is derived has to keep.

  A method gives a name for every variable, so that nothing is left to derive.
  """
  given = getattr(declaration, 'variable_names', None)
  known = {variable.name for variable in tf1.variables}
  if not isinstance(given, Mapping):
    return {}
  return {one: other for one, other in given.items() if one in known}


def derived_map(
  declaration: Declaration, tf1: ReferenceGraph, tf2: Tf2Layer, inputs: Any
) -> DerivedMap:
  """Derives which variables of a port are which of the reference.

  Args:
    declaration: the case; pairs of its `variable_names` are fixed.
    tf1: the reference.
    tf2: the port, whose variables are shown as they are.
    inputs: the checked nest of arrays.

  Raises:
    NotDerivable: a side has no graph to look at.
  """
  training = False not in declaration.training_modes
  names = {variable.name: variable.name for variable in tf1.inventory().variables}
  run = RunSpec(inputs, training, _Fill(declaration, tf1), names)
  try:
    traced = tf2.traced(dataclasses.replace(run, tf1_names={}))
  except NotTraceable as error:
    raise NotDerivable(f'the port cannot be traced as a graph: {error}') from error
  deriving = _Deriving(declaration, tf1, tf2, traced)
  found = deriving.best(run)
  if found.is_certain or not deriving.has_loops:
    return found
  # What a loop does with its variables stands in a function, and in every round of it.
  with contextlib.suppress(NotDerivable):
    inside = deriving.best(dataclasses.replace(run, unrolls=True))
    return max(inside, found, key=lambda one: one.certainty)
  return found


class _Deriving:
  """Derives maps from graphs of a case.

  Attributes:
    has_loops: whether one of the graphs had any.
  """

  def __init__(
    self, declaration: Declaration, tf1: ReferenceGraph, tf2: Tf2Layer, traced: TracedPort
  ) -> None:
    self._declaration = declaration
    self._tf1 = tf1
    self._inventories = tf1.inventory(), tf2.inventory()
    self._traced = traced
    self._until = time.monotonic() + _SECONDS
    self.has_loops = False

  def best(self, run: RunSpec) -> DerivedMap:
    """Returns the map that fits best.

    Raises:
      NotDerivable: a side has no graph to look at.
    """
    given: Values = {}
    own = {name: np.asarray(v.numpy()) for name, v in self._traced.variables.items()}
    unknown = [v.name for v in self._inventories[1].variables if v.name not in own]
    if unknown:  # Keras repeats the scope of a layer whose class is private, `_Encoder`
      raise NotDerivable(
        f'the port names its variables differently where it is traced as a graph: {unknown[0]!r} '
        f'is not among {", ".join(map(repr, sorted(own)[:3]))}'
      )
    try:
      reference = self._tf1.inspectable(run)
    except NotApplicable as error:  # a recorded graph that is not run here
      raise NotDerivable(str(error)) from error
    try:
      values = dataclasses.replace(self._traced, values=lambda name: given.get(name, own[name]))
      port = (values.unrolled() if run.unrolls else values).run()
    except NotTraceable as error:
      reference.close()
      raise NotDerivable(f'the port cannot be traced as a graph: {error}') from error
    try:
      return self._best_of(run, reference, port, given, own)
    finally:
      reference.close()
      port.close()

  def _best_of(
    self, run: RunSpec, reference: GraphRun, port: GraphRun, given: Values, own: Values
  ) -> DerivedMap:
    ones, others = self._inventories
    graphs = reference.op_graph, port.op_graph
    self.has_loops |= any(op.op_type in LOOPS for graph in graphs for op in graph.ops)
    declared = declared_names(self._declaration, ones)
    own_names = [variable.name for variable in others.variables]
    left = run.tf1_names.keys() - declared.keys(), set(own_names) - set(declared.values())
    counter = step_counter.step_counter(self._declaration, self._tf1, others, left)
    best: DerivedMap | None = None
    for found in derive(*graphs, ones.variables, others.variables):
      fixed = with_declared(found, declared, own_names)
      fixed = with_declared(fixed, counter, own_names, step_counter.REASON)
      trial = Trial(fixed, run, ones, reference, port, given, own, self._until)
      judged = dataclasses.replace(trial.judged(others), declared=len(declared))
      # An exchange that a derivation shows says more than one that fits a little further.
      tells_less = best is not None and bool(best.exchanged) and not judged.outputs_agree
      if best is None or (judged.rank > best.rank and not tells_less):
        best = judged
        if best.outputs_agree:
          best = self._with_interchangeable(best, trial, found.alike)
      if best.outputs_agree or time.monotonic() > self._until:
        break
    assert best is not None
    unread = () if best.outputs_agree else _unread(graphs, ones.variables, others.variables)
    return dataclasses.replace(best, doubts=(*unread, *best.doubts))

  def _with_interchangeable(
    self, found: DerivedMap, trial: Trial, alike: Sequence[Sequence[str]]
  ) -> DerivedMap:
    """Adds which variables can be exchanged without any effect on the outputs, and says so."""
    entries = found.variable_map.entries
    shapes = [
      {v.name: tuple(size or 0 for size in v.shape) for v in side.variables}
      for side in self._inventories
    ]
    tried = itertools.islice(exchanges(entries, alike, *shapes), _MOST_EXCHANGES)
    known = tuple(
      one
      for one in tried
      if time.monotonic() < self._until and trial.agrees(exchanged(entries, one))
    )
    doubts = [
      f'{one.tf1[0]} and {other.tf1[0]} are interchangeable: the outputs agree with {other.tf2[0]} '
      f'and {one.tf2[0]} of the port, in this order or the other; a stage that agrees in one order '
      'only decides'
      for one, other in known
    ]
    return dataclasses.replace(found, interchangeable=known, doubts=(*found.doubts, *doubts))


def _unread(
  graphs: tuple[OpGraph, OpGraph],
  ones: Sequence[VariableRecord],
  others: Sequence[VariableRecord],
) -> tuple[str, ...]:
  """Returns which variables the port makes for nothing, where TF1 reads all of its own."""
  read = [{op.name for op in graph.ops if op.op_type == VARIABLE} for graph in graphs]
  left = [v.name for v in others if v.name not in read[1] and v.trainable]
  if not left or any(v.name not in read[0] for v in ones if v.trainable):
    return ()
  return (
    f'the outputs of the port do not read {listed(left, most=5)}, while those of TF1 read all of '
    'their variables: what these are for is missing in the port',
  )
