"""Copies of trained variables that a step moves after them: target networks, soft updates."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence, VariableStep
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import listed, number_text

# Of the greatest change of a copy: what the rule may leave, and how far two shares are one.
_UNEXPLAINED = 1e-2
_SAME_SHARE = 1e-2
# Of fewer elements any variable explains the change, by some share.
_TELLING = 3


@dataclasses.dataclass(frozen=True)
class _Following:
  """How one side moves its copies: by a share of the way to the variables they follow."""

  share: float
  is_late: bool  # whether to their values after the update, and not to those before it
  left: float  # the greatest part of a change that this does not explain
  followed: tuple[str, ...]  # the variables, of copies whose elements tell them


def soft_copies(evidence: TrainingEvidence) -> Cause | None:
  """Names another share, or another moment, at which copies follow the trained variables.

  A step of a soft update (Polyak averaging) is share · (variable - copy).
  """
  apart = [pair for pair in evidence.states if pair.differs]
  # A copy of a variable that is only rounded otherwise is none that follows it otherwise.
  copies = [pair for pair in apart if pair.differs_clearly] or apart
  tf1 = _following(evidence, copies, 'tf1')
  turn = _in_other_steps(evidence, copies)
  if turn is not None or tf1 is None:
    return turn
  names = listed([pair.name for pair in copies])
  share = f'{number_text(round(tf1.share, 4))} of the way'
  is_set = abs(tf1.share - 1.0) <= _SAME_SHARE
  how = (
    f'the step of TF1 sets {names} to trained variables of their shapes, as '
    f'{listed(tf1.followed)} ({_when(tf1)})'
    if is_set
    else f'the step of TF1 moves {names} by {share} to trained variables of their shapes '
    f'({_when(tf1)})'
  )
  variables = tuple(pair.name for pair in copies)
  if all(pair.tf2.rests for pair in copies):
    moved = [p.name for p in evidence.states if p not in copies and not p.tf2.rests]
    others = f', and moves {listed(moved)}' if moved else ''
    return Cause(
      f'{how}, as a target network or an average of the weights follows them; that of the port '
      f'leaves them unchanged{others}: are they in the lists that it iterates over '
      '(trainable_variables contains no frozen variables)?',
      explains=(About.UPDATE,),
      variables=variables,
    )
  tf2 = _following(evidence, copies, 'tf2')
  if tf2 is None:
    return None
  if abs(tf1.share - tf2.share) > _SAME_SHARE * tf1.share:
    moves = 'moves them by' if is_set else 'by'
    text = f'{how}, that of the port {moves} {number_text(round(tf2.share, 4))}'
  elif tf1.is_late != tf2.is_late:
    fix = 'after' if tf1.is_late else 'before'
    text = f'{how}, that of the port to {_when(tf2)}: move them {fix} apply_gradients'
  else:
    return None
  return Cause(text, explains=(About.UPDATE,), variables=variables)


def _in_other_steps(evidence: TrainingEvidence, copies: Sequence[StepPair]) -> Cause | None:
  """Names copies that one side makes in this step, and the other one in a later step."""
  for side, resting, number in (('tf1', 'tf2', 1), ('tf2', 'tf1', 0)):
    known = _following(evidence, copies, side)
    names = {pair.name for pair in copies}
    if known is None or not all(pair.of(resting).rests for pair in copies):
      continue
    if not names <= evidence.moved_later[number]:
      continue
    one, other = ('TF1', 'the port') if side == 'tf1' else ('the port', 'TF1')
    return Cause(
      f'{one} moves {listed(sorted(names))} to trained variables of their shapes in step '
      f'{evidence.number}, {other} does not, and moves them in a later step: compare at which '
      'counts of steps they are copied, and whether the step is counted before or after that',
      explains=(About.UPDATE,),
      variables=tuple(sorted(names)),
    )
  return None


def _when(known: _Following) -> str:
  return f'their values {"after" if known.is_late else "before"} the update'


def _following(
  evidence: TrainingEvidence, copies: Sequence[StepPair], side: str
) -> _Following | None:
  """Returns how a side moves all copies; None where one rule does not explain that."""
  found = [
    known
    for is_late in (True, False)
    if copies and (known := _all_alike(evidence, copies, side, is_late)) is not None
  ]
  return min(found, key=lambda known: known.left, default=None)


def _all_alike(
  evidence: TrainingEvidence, copies: Sequence[StepPair], side: str, is_late: bool
) -> _Following | None:
  shares, left, followed = [], [], []
  for pair in copies:
    if pair.tf1.start.size < _TELLING:
      continue
    move = pair.of(side)
    best = min(_shares(evidence, move, side, is_late), key=lambda known: known[1], default=None)
    if best is None or best[1] > _UNEXPLAINED:
      return None
    shares.append(best[0])
    left.append(best[1])
    followed.append(best[2])
  if not shares:
    return None
  share = float(np.median(shares))
  if not 0.0 < share <= 1.0 + _SAME_SHARE:
    return None
  if any(abs(one - share) > _SAME_SHARE * share for one in shares):
    return None
  return _Following(share, is_late, max(left), tuple(followed))


def _shares(
  evidence: TrainingEvidence, move: VariableStep, side: str, is_late: bool
) -> Iterator[tuple[float, float, str]]:
  """Yields by what share a copy moves to variables of its shape, what that leaves, and which."""
  change = move.update
  most = float(np.abs(change).max(initial=0.0))
  if not most:
    return
  for trained in evidence.moves:
    variable = trained.of(side)
    if variable.start.shape != move.start.shape:
      continue
    ahead = (variable.end if is_late else variable.start).astype(np.float64) - move.before
    size = float(np.sum(ahead * ahead))
    if size:
      share = float(np.sum(ahead * change)) / size
      yield share, float(np.abs(change - share * ahead).max()) / most, trained.name
