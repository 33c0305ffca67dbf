"""The verdict that follows from what a stage found."""

import dataclasses
from collections.abc import Sequence

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
