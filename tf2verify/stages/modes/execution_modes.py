"""Rung 10: the port computes the same in every execution mode."""

import dataclasses
import gc
from collections.abc import Iterable
from typing import Any

from tf2verify.errors import CaseDefinitionError, NotApplicable
from tf2verify.records.execution_mode import MODES
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.modes.execution_modes import PortModes
from tf2verify.sides.side import RunSpec
from tf2verify.stages.modes.matrix import ModeMatrix
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class ExecutionModes(Stage):
  """Runs the port eagerly and in other modes, from the same values."""

  name = 'execution_modes'
  needs = ('zero_randomness',)
  proves = 'the port computes the same eagerly, in a tf.function, compiled, embedded and replicated'
  repeats_errors_of = ('seeded_constant', 'gradients')
  diagnosed = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares every mode with eager mode, and asks tf1 only where they differ."""
    modes = checked_modes(case.declaration.modes_to_run)
    port = PortModes(case.declaration, case.tf2, case.labels, _runs(case), case.tf2.progress)
    matrix = ModeMatrix(case, port)
    limited = not case.declaration.declares('modes_to_run')
    for mode in modes:
      matrix.run(mode, limited)
    findings, notes = matrix.findings(), port.notes
    del matrix, port
    gc.collect()  # layers and traces, before the next stage makes its own
    note = case.tf2.note_on_name()
    notes += (note,) if note else ()
    return dataclasses.replace(findings, notes=(*findings.notes, *notes))


def checked_modes(modes: Any) -> tuple[str, ...]:
  """Returns the modes that a case asks for, in the order of `MODES`.

  Raises:
    CaseDefinitionError: one of them does not exist.
    NotApplicable: there is none.
  """
  names = ', '.join(map(repr, MODES))
  if isinstance(modes, str) or not isinstance(modes, Iterable):
    raise CaseDefinitionError(f'modes_to_run is {modes!r}; it must be a tuple of some of {names}')
  wanted = tuple(modes)
  unknown = [mode for mode in wanted if mode not in MODES]
  if unknown:
    raise CaseDefinitionError(
      f'modes_to_run names {unknown[0]!r}, which is not an execution mode; the modes are {names}; '
      'eager mode is always run'
    )
  if not wanted:
    raise NotApplicable('modes_to_run is empty')
  return tuple(mode for mode in MODES if mode in wanted)


def _runs(case: CaseUnderTest) -> list[RunSpec]:
  """Returns a run per training mode, with gradients in the one in which the port is trained."""
  trained = True in case.declaration.training_modes
  inputs, _ = case_inputs.varied_inputs(case.inputs)
  fill = case_fill(case)
  names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
  return [
    RunSpec(inputs, training, fill, names, gradients=training is trained)
    for training in case.declaration.training_modes
  ]
