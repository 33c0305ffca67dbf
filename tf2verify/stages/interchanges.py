"""A stage, run with interchangeable variables paired either way.

Two biases in one sum have no effect of their own on the outputs, so that neither graphs nor numbers
tell which is which. Initial values and steps of the optimizers may.
"""

import dataclasses
import re
from collections.abc import Sequence

from tf2verify.errors import NotApplicable
from tf2verify.relation.layouts.interchangeable import Exchange
from tf2verify.stages import orders
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage
from tf2verify.stages.variables.pairing import interchanged

# A name in what is said of a variable, of a slot, say.
_WORD = re.compile(r'[^\s\[\]:,]+')


def checked(
  stage: Stage, case: CaseUnderTest, alone: bool = False, passed: Sequence[Stage] = ()
) -> Findings:
  """Returns what a stage finds with the pairs of interchangeable variables that agree.

  They are kept for the stages that follow.

  Args:
    stage: the stage.
    case: both sides.
    alone: whether to check only what does not depend on the stages that it needs.
    passed: the stages that have passed, which have to pass with other pairs, too: what one of them
      decides is decided.
  """
  findings = orders.checked(stage, case, alone)
  # Before variables are paired none is interchangeable, and a port that cannot be called has none.
  if not findings.differences or not stage.compares_sides or not case.is_paired:
    return findings
  derived = case.pairing.derived
  for exchange in () if derived is None else derived.interchangeable:
    if _concerns(findings, exchange):
      again = _with_exchange(stage, case, alone, passed, exchange, findings)
      findings = findings if again is None else again
  return findings


def _with_exchange(
  stage: Stage,
  case: CaseUnderTest,
  alone: bool,
  passed: Sequence[Stage],
  exchange: Exchange,
  findings: Findings,
) -> Findings | None:
  """Returns what a stage finds with an exchange; None, and all as before, if it does not help."""
  pairing, starts = case.pairing, dict(case.judged_starts)
  again = None
  try:
    case.judged_starts.clear()
    case.pair_by(interchanged(pairing, exchange, case.declaration, case.tf1, case.tf2))
    made = orders.checked(stage, case, alone)
    helps = not _concerns(made, exchange) and len(made.differences) < len(findings.differences)
    if helps and not any(orders.checked(one, case).differences for one in passed):
      # What a diagnosis looks into is the run that was last.
      again = orders.checked(stage, case, alone) if made.differences else made
  except NotApplicable:
    pass
  finally:
    if again is None:
      case.pair_by(pairing)
      case.judged_starts.clear()
      case.judged_starts.update(starts)
  if again is None:
    return None
  pairs = ' and '.join(f'{entry.tf1[0]} with {entry.tf2[0]}' for entry in exchange)
  note = f'{pairs} of the port is paired, since this stage agrees only so, and outputs either way'
  return dataclasses.replace(again, notes=(note, *again.notes))


def _concerns(findings: Findings, exchange: Exchange) -> bool:
  """Returns whether anything that differs is one of the variables, or belongs to it."""
  names = {name for entry in exchange for name in entry.tf1}
  return any(
    not names.isdisjoint(_WORD.findall(difference.tf1_subject))
    for difference in findings.differences
  )
