"""The reference of a case: built here, or read back from a recording."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol, final

from tf2verify.records.accepted import Change
from tf2verify.safe_text import safe_line
from tf2verify.sides import side
from tf2verify.sides.hooks import inputs as case_inputs
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.recorded.graph import RecordedGraph
from tf2verify.sides.recorded.recording import RecordedDeclaration
from tf2verify.sides.recorded.training import RecordedTraining
from tf2verify.sides.tf1.graph import Tf1Graph
from tf2verify.sides.tf1.graphs import initializers as tf1_initializers
from tf2verify.sides.tf1.graphs.changed_reference import ChangedReference
from tf2verify.sides.tf1.graphs.live_graphs import Keeper
from tf2verify.sides.tf1.reference import ReferenceGraph, ReferenceTraining
from tf2verify.sides.tf1.training import Tf1Training


class DeclaredReference(side.Declaration, Protocol):
  """What making a reference needs of a case."""

  def make_inputs(self) -> Any: ...
  def make_labels(self) -> Any: ...


@dataclasses.dataclass(frozen=True, eq=False)
class Reference:
  """The tf1 side of a case, and what both sides are fed."""

  graph: ReferenceGraph  # the forward pass
  training: ReferenceTraining  # losses and training steps
  inputs: Any  # the checked nest of arrays
  labels: Any  # likewise; None without labels

  def close(self) -> None:
    """Lets go of its graphs."""
    self.graph.close()
    self.training.close()


class ReferenceSource(Protocol):
  """Makes the reference of a case, or has it."""

  def reference(
    self, case: DeclaredReference, progress: side.Progress, port_is_of_keras3: Callable[[], bool]
  ) -> Reference:
    """Returns the reference; arguments and errors as of `reference`."""

  def said(self) -> str:
    """Returns what a report has to say of the reference; '' for nothing."""

  def close(self) -> None:
    """Ends the run."""


def reference(
  case: DeclaredReference,
  progress: side.Progress,
  port_is_of_keras3: Callable[[], bool],
  keeper: Keeper | None = None,
  holds_sizes: bool = False,
) -> Reference:
  """Returns the reference of a case; nothing is built yet.

  Args:
    case: the case.
    progress: whom to tell what is done.
    port_is_of_keras3: returns whether initializers are to draw as those of Keras 3; asked when a
      graph is built.
    keeper: has graphs of an earlier run; None where each is built.
    holds_sizes: whether graphs of other sizes are kept, for a further ladder.

  Raises:
    InputsError: the case's inputs cannot be fed.
    RecordingError: the case's recording cannot be used.
    UserCodeError: a hook raised.
  """
  if isinstance(case, RecordedDeclaration):
    return _recorded(case, progress)
  with user_code('case', 'make_inputs'):
    inputs = case.make_inputs()
  inputs = case_inputs.checked_inputs(inputs, made_by=case.make_inputs)
  with user_code('case', 'make_labels'):
    labels = case.make_labels()
  if labels is not None:
    labels = case_inputs.checked_inputs(labels, 'make_labels', case.make_labels)
  return Reference(
    Tf1Graph(case, inputs, progress, port_is_of_keras3, keeper=keeper, holds_sizes=holds_sizes),
    Tf1Training(case, inputs, labels, progress),
    inputs,
    labels,
  )


def changed(
  known: Reference,
  case: DeclaredReference,
  changes: Sequence[Change],
  progress: side.Progress,
  port_is_of_keras3: Callable[[], bool],
) -> tuple[Reference, ChangedReference]:
  """Returns a reference that is built here, with changes; and what they will have changed.

  Args:
    known: the same without; its inputs are fed again.
    case: the case.
    changes: what to change.
    progress: as in `reference`.
    port_is_of_keras3: likewise.
  """
  made = ChangedReference(case, changes)
  declared: Any = made  # it answers by the case's own attributes
  graph = Tf1Graph(declared, known.inputs, progress, port_is_of_keras3)
  training = Tf1Training(declared, known.inputs, known.labels, progress)
  return Reference(graph, training, known.inputs, known.labels), made


def _recorded(case: RecordedDeclaration, progress: side.Progress) -> Reference:
  progress('reading the recording')
  opened = case.open()
  # It answers as a declaration, by the case's own attributes.
  declaration: Any = case
  graph = RecordedGraph(
    declaration, opened.recording, opened.inputs, progress, has_own_loss=case.has_own_loss
  )
  for note in opened.notes:
    graph.remark(note)
  training = RecordedTraining(declaration, graph, opened.labels, progress)
  return Reference(graph, training, opened.inputs, opened.labels)


@final
class OwnReference:
  """Makes a reference that lives as long as its ladder."""

  def __init__(self) -> None:
    self._made: Reference | None = None

  def reference(
    self, case: DeclaredReference, progress: side.Progress, port_is_of_keras3: Callable[[], bool]
  ) -> Reference:
    """Returns the reference."""
    self._made = reference(case, progress, port_is_of_keras3)
    return self._made

  def said(self) -> str:
    """Returns nothing: it is a reference as any other."""
    return ''

  def close(self) -> None:
    """Lets go of its graphs."""
    if self._made is not None:
      self._made.close()
      self._made = None


def conditions(case: object) -> contextlib.AbstractContextManager[None]:
  """Returns what has to hold while a case's port runs beside its reference."""
  if isinstance(case, RecordedDeclaration):
    return tf1_initializers.as_in_tf1()
  return contextlib.nullcontext()


def is_recorded(case: object) -> bool:
  """Returns whether the reference of a case is a recording."""
  return isinstance(case, RecordedDeclaration)


def made_by(case: object, source: ReferenceSource) -> tuple[tuple[str, str], ...]:
  """Returns what a report has to say of a reference that is recorded, or kept; empty for others."""
  if isinstance(case, RecordedDeclaration):
    return case.reference()
  said = safe_line(source.said())
  return (('reference', said),) if said else ()
