"""What a case's verdict does not say."""

import dataclasses

from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.report.html.words import PROVES, word


@dataclasses.dataclass(frozen=True)
class Unchecked:
  """One thing that was not checked, or not to the end."""

  subject: str  # which stage
  text: str  # what, and why


def unchecked(case: CaseVerdict) -> tuple[Unchecked, ...]:
  """Returns what the stages left open, in ladder order."""
  found: list[Unchecked] = []
  by_name = {stage.stage: stage for stage in case.stages}
  for name in dict.fromkeys([*PROVES, *by_name]):
    stage = by_name.get(name)
    if stage is None:
      found.append(Unchecked(name, 'not run'))
    else:
      found += [Unchecked(name, text) for text in _open_questions(stage)]
  return tuple(found)


def _open_questions(stage: StageVerdict) -> list[str]:
  said = []
  if stage.status in (Status.NOT_APPLICABLE, Status.BLOCKED, Status.INCONCLUSIVE):
    said.append(f'{word(stage.status)}: {stage.reason.removeprefix("blocked: ")}')
  if stage.status is Status.ERROR and stage.error is not None:
    said.append(f'not finished: the {stage.error.side} side raised an error')
  compared = stage.compared
  if compared.inconclusive:
    said.append(
      f'{_tensors(compared.inconclusive)} could not be distinguished from zeros, or from rounding '
      'noise as large as the tensor'
    )
  if compared.rounding:
    said.append(
      f'{_tensors(compared.rounding)} beyond the tolerance, by no more than rounding changes them: '
      'not counted as different'
    )
  if compared.blind_spots:
    said.append(f'{compared.blind_spots} blind spots, which its notes name')
  if stage.diagnosis is not None:
    said += [f'in the search for the first divergence: {note}' for note in stage.diagnosis.notes]
  return said


def _tensors(count: int) -> str:
  return '1 tensor' if count == 1 else f'{count:,} tensors'
