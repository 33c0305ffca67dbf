"""The verdict that follows from what a stage found."""

import dataclasses
from collections.abc import Sequence

from tf2verify.records.experiment import Outcome
from tf2verify.records.status import Status
from tf2verify.records.verdict import StageVerdict
from tf2verify.stages.stage import Findings, Stage


def with_blind_spots(findings: Findings, remarks: Sequence[str]) -> Findings:
  """Returns findings with further blind spots."""
  if not remarks:
    return findings
  # Counted as blind spots, so that a stage that passes shows them as well.
  blind_spots = findings.compared.blind_spots + len(remarks)
  compared = dataclasses.replace(findings.compared, blind_spots=blind_spots)
  return dataclasses.replace(
    findings,
    compared=compared,
    notes=(*findings.notes, *remarks),
    blind_spots=(*findings.blind_spots, *remarks),
  )


def judged(stage: type[Stage], number: int, findings: Findings) -> StageVerdict:
  """Returns the verdict of a stage, the number of its rung given."""
  if findings.differences:
    # Were the differences excused by a wider tolerance, this would be left.
    status, reason = Status.FAILED, findings.inconclusive
  elif findings.inconclusive:
    status, reason = Status.INCONCLUSIVE, findings.inconclusive
  elif not findings.compared.tensors:
    status, reason = Status.INCONCLUSIVE, 'nothing was compared'
  else:
    status, reason = Status.PASSED, ''
  return StageVerdict(
    stage.name,
    number,
    status,
    findings.compared,
    findings.differences,
    reason=reason,
    notes=findings.notes,
    figures=findings.figures,
    deviations=findings.deviations if stage.diagnosed else (),
    tables=findings.tables,
    inventory=findings.inventory,
    random_ops=findings.random_ops,
    curves=findings.curves,
    extents=() if stage.diagnosed else findings.extents,
    blind_spots=findings.blind_spots,
    undecided=findings.undecided,
    proven=findings.proven,
  )


def if_proven(verdict: StageVerdict, findings: Findings) -> StageVerdict:
  """Returns a verdict after its diagnosis; that there is nothing to tell, where it lacks a proof.

  Args:
    verdict: with its diagnosis, if it has one.
    findings: what it was made of; their inspection says whether it takes a proof.
  """
  reason = '' if findings.inspection is None else findings.inspection.unless_proven
  causes = () if verdict.diagnosis is None else verdict.diagnosis.causes
  tried = (cause.experiment for cause in causes)
  is_proven = any(one is not None and one.outcome is Outcome.PROVEN for one in tried)
  if verdict.status is not Status.FAILED or not reason or is_proven:
    return verdict
  return StageVerdict.not_applicable(verdict.stage, verdict.number, reason)
