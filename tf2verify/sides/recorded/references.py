"""The reference of a case: built here, or read back from a recording."""

import contextlib
import dataclasses
from typing import Any, Protocol

from tf2verify.sides import inputs as case_inputs
from tf2verify.sides import side
from tf2verify.sides.recorded.graph import RecordedGraph
from tf2verify.sides.recorded.recording import RecordedDeclaration
from tf2verify.sides.recorded.training import RecordedTraining
from tf2verify.sides.tf1 import initializers as tf1_initializers
from tf2verify.sides.tf1.graph import Tf1Graph
from tf2verify.sides.tf1.reference import ReferenceGraph, ReferenceTraining
from tf2verify.sides.tf1.training import Tf1Training
from tf2verify.sides.user_code import user_code


class DeclaredReference(side.Declaration, Protocol):
  """What making a reference needs of a case."""

  def make_inputs(self) -> Any: ...
  def make_labels(self) -> Any: ...


@dataclasses.dataclass(frozen=True, eq=False)
class Reference:
  """The tf1 side of a case, and what both sides are fed.

  Attributes:
    graph: the forward pass.
    training: losses and training steps.
    inputs: the checked nest of arrays.
    labels: likewise; None without labels.
  """

  graph: ReferenceGraph
  training: ReferenceTraining
  inputs: Any
  labels: Any


def reference(case: DeclaredReference, progress: side.Progress) -> Reference:
  """Returns the reference of a case; nothing is built yet.

  Raises:
    InputsError: the case's inputs cannot be fed.
    RecordingError: the case's recording cannot be used.
    UserCodeError: a hook raised.
  """
  if isinstance(case, RecordedDeclaration):
    return _recorded(case, progress)
  with user_code('case', 'make_inputs'):
    inputs = case.make_inputs()
  inputs = case_inputs.checked_inputs(inputs)
  with user_code('case', 'make_labels'):
    labels = case.make_labels()
  labels = None if labels is None else case_inputs.checked_inputs(labels, 'make_labels')
  return Reference(
    Tf1Graph(case, inputs, progress), Tf1Training(case, inputs, labels, progress), inputs, labels
  )


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
  training = RecordedTraining(declaration, graph, opened.inputs, opened.labels, progress)
  return Reference(graph, training, opened.inputs, opened.labels)


def conditions(case: object) -> contextlib.AbstractContextManager[None]:
  """Returns what has to hold while a case's port runs beside its reference."""
  if isinstance(case, RecordedDeclaration):
    return tf1_initializers.as_in_tf1()
  return contextlib.nullcontext()


def made_by(case: object) -> tuple[tuple[str, str], ...]:
  """Returns what made a recorded reference, for a report; empty for one that is built here."""
  return case.reference() if isinstance(case, RecordedDeclaration) else ()
