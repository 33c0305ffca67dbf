"""The diagnosis of a failed stage: both sides made ready to be looked into."""

import dataclasses

from tf2verify.diagnosis.diagnose import diagnose
from tf2verify.records.diagnosis import Diagnosis
from tf2verify.records.verdict import StageVerdict
from tf2verify.sides.tracing import NotTraceable
from tf2verify.stages.stage import CaseUnderTest, Findings


def diagnose_stage(case: CaseUnderTest, verdict: StageVerdict, findings: Findings) -> Diagnosis:
  """Returns where and why the sides of a case part.

  What goes wrong here is said in the diagnosis: the stage's findings stand without it.

  Args:
    case: the case.
    verdict: the failed stage's.
    findings: what the stage found, with the run to repeat.
  """
  run = findings.failed_run
  if run is None:
    return diagnose(verdict.stage, '', findings.differences, findings.failed_tensors, None)
  try:
    tf1 = case.tf1.inspectable(run)
    pairs = case.alignment().pairs
    tf2_names = {tf2: name for name, tf2 in pairs}
    tf2 = case.tf2.inspectable(dataclasses.replace(run, tf1_names=tf2_names))
  except NotTraceable as error:
    return diagnose(
      verdict.stage,
      run.description,
      findings.differences,
      findings.failed_tensors,
      None,
      str(error),
    )
  try:
    return diagnose(
      verdict.stage,
      run.description,
      findings.differences,
      findings.failed_tensors,
      (tf1, tf2),
    )
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the finding
    why = f'{type(error).__name__}: {error}'
    return Diagnosis(run.description, notes=(f'the diagnosis was given up: {why:.300}',))
  finally:
    tf1.close()
    tf2.close()
