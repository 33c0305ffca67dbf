"""The diagnosis of a failed stage: both sides made ready to be looked into."""

import dataclasses

from tf2verify.diagnosis.diagnose import diagnose
from tf2verify.diagnosis.places import VariableLines
from tf2verify.diagnosis.versions import with_versions
from tf2verify.errors import NotApplicable
from tf2verify.records.diagnosis import Diagnosis
from tf2verify.records.verdict import StageVerdict
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import FilledRun
from tf2verify.sides.tf2.tracing import NotTraceable
from tf2verify.stages.stage import CaseUnderTest, Findings, by_name


def diagnose_stage(case: CaseUnderTest, verdict: StageVerdict, findings: Findings) -> Diagnosis:
  """Returns where and why the sides of a case part.

  What goes wrong here is said in the diagnosis: the stage's findings stand without it.

  Args:
    case: the case.
    verdict: the failed stage's.
    findings: what the stage found, with the run to repeat.
  """
  run = findings.failed_run
  description = '' if run is None else run.description
  found = verdict.stage, description, findings.differences, findings.failed_tensors
  sides: tuple[GraphRun, GraphRun] | None = None
  not_traceable = not_run = ''
  try:
    try:
      sides = None if run is None else _sides(case, run)
    except NotTraceable as error:
      not_traceable = str(error)
    except NotApplicable as error:  # a recorded graph that is not run here
      not_run = f'no operation is named: {error}'
    diagnosis = diagnose(*found, sides, not_traceable, _variable_lines(case, findings))
    if not_run:
      return dataclasses.replace(diagnosis, notes=(*diagnosis.notes, not_run))
    here = None if run is None else case.tf1.recorded_here(run)
    if here is None:
      return diagnosis
    tf1 = None if sides is None else sides[0]
    return with_versions(diagnosis, findings.failed_tensors, here, tf1)
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the finding
    why = f'{type(error).__name__}: {error}'
    return Diagnosis(description, notes=(f'the diagnosis was given up: {why:.300}',))
  finally:
    for side in sides or ():
      side.close()


def _variable_lines(case: CaseUnderTest, findings: Findings) -> dict[str, VariableLines]:
  """Returns where each side makes its variables, if initial values differ."""
  if all(difference.quantity != 'initial value' for difference in findings.differences):
    return {}
  ones, others = by_name(case.tf1.inventory()), by_name(case.tf2.inventory())
  return {
    tf1: (ones[tf1].source, others[tf2].source)
    for tf1, tf2 in case.alignment().pairs
    if tf1 in ones and tf2 in others
  }


def _sides(case: CaseUnderTest, run: FilledRun) -> tuple[GraphRun, GraphRun]:
  tf1 = case.tf1.inspectable(run)
  tf2_names = {tf2: tf1_name for tf1_name, tf2 in case.alignment().pairs}
  return tf1, case.tf2.inspectable(dataclasses.replace(run, tf1_names=tf2_names))
