"""A stage, run with the reference in each order that its graph leaves open."""

import dataclasses
from collections.abc import Sequence

from tf2verify.errors import NotApplicable
from tf2verify.records.races import Order, OrderKind, Race, unordered
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

_REMEDY = 'order them with tf.control_dependencies'


def checked(stage: Stage, case: CaseUnderTest, alone: bool = False) -> Findings:
  """Returns what a stage finds with the reference in the order that the port is nearest to.

  One order holds for a whole run of the stage. Others than the first are tried only
  where the reference has races and something differs.

  Args:
    stage: the stage.
    case: both sides.
    alone: whether to check only what does not depend on the stages that it needs.
  """
  begin(case, None)
  check = stage.check_alone if alone else stage.check
  findings = check(case)
  races = races_met(case)
  if not races or not stage.compares_sides:
    return findings
  orders = orders_met(case)
  order, best, obstacle = orders[0], findings, ''
  affected = case.tf1.racing.affected() | case.tf1_training.racing.affected()
  tried = [order]
  for other in orders[1:] if _is_open(findings) else ():
    begin(case, other)
    try:
      again = check(case)
    except NotApplicable as reason:  # a recorded graph that is not run here
      obstacle = str(reason)
      break
    tried.append(other)
    if _agreement(again) > _agreement(best):
      order, best = other, again
    if not _is_open(again):
      break
  begin(case, order)  # for a diagnosis of what is left
  if obstacle and best.differences and _explains(affected, case, best):
    return _undecided(best, races, obstacle)
  return _noted(best, _note(races, order, tried, best))


def races_met(case: CaseUnderTest) -> tuple[Race, ...]:
  """Returns the races of the reference in what was run since an order was set."""
  return tuple(dict.fromkeys((*case.tf1.racing.met, *case.tf1_training.racing.met)))


def begin(case: CaseUnderTest, order: Order | None) -> None:
  """Sets the order of the reference's runs to come; None for the first."""
  case.tf1.racing.begin(order)
  case.tf1_training.racing.begin(order)


def orders_met(case: CaseUnderTest) -> tuple[Order, ...]:
  """Returns the orders to try for what was run since an order was set."""
  found = (case.tf1.racing, case.tf1_training.racing)
  return tuple(dict.fromkeys(order for racing in found if racing.met for order in racing.orders()))


def _is_open(findings: Findings) -> bool:
  return bool(findings.differences)


def _agreement(findings: Findings) -> tuple[bool, int, int]:
  """Returns by what the findings of several orders are ranked: no difference, then most agrees."""
  agree = findings.compared.tensors - len(findings.differences)
  return not findings.differences, agree, -len(findings.differences)


def _explains(affected: frozenset[str], case: CaseUnderTest, findings: Findings) -> bool:
  """Returns whether races may explain every difference: of a variable, only if they reach it."""
  named = {tf1 for tf1, _ in case.alignment().pairs}
  subjects = {difference.tf1_subject for difference in findings.differences}
  return all(subject in affected for subject in subjects if subject in named)


def _undecided(findings: Findings, races: Sequence[Race], obstacle: str) -> Findings:
  count = len(findings.differences)
  reason = (
    f'{count} tensor{"s" * (count > 1)} differ{"s" * (count == 1)} from what was recorded, and '
    f'{unordered(races)}: which came first when the '
    f'reference was recorded is not known, and the orders cannot be tried: {obstacle}; {_REMEDY} '
    'and record again'
  )
  return dataclasses.replace(
    findings, differences=(), inconclusive=reason, failed_run=None, failed_tensors=()
  )


def _note(races: Sequence[Race], order: Order, tried: Sequence[Order], findings: Findings) -> str:
  said = f'{unordered(races)}. '
  if not findings.differences:
    where = 'The numbers compared are those of a run '
    if order.kind is OrderKind.RECORDED:
      where = 'The port agrees with the recording, whose accesses came '
    return f'{said}{where}{order}; TensorFlow 1 may use a different order in each run: {_REMEDY}'
  orders = '; '.join(map(str, tried))
  return (
    f'{said}The port agrees with none of the orders that were tried ({orders}); the differences '
    f'shown are those from the nearest, {order}'
  )


def _noted(findings: Findings, note: str) -> Findings:
  compared = dataclasses.replace(findings.compared, blind_spots=findings.compared.blind_spots + 1)
  return dataclasses.replace(
    findings,
    compared=compared,
    notes=(note, *findings.notes),
    blind_spots=(*findings.blind_spots, note),
  )
