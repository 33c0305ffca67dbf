"""Variables, or rows of them, that only one side moves."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence, VariableStep
from tf2verify.diagnosis.rules.training.copies import soft_copies
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import listed

_Array = np.ndarray[Any, Any]
# Of the greatest change of a slot.
_ROUNDING = 1e-5
# Of the greatest change of any variable.
_NOTHING = 1e-5
# Rules of optimizers by which a variable goes on where its gradient is zero.
_WITH_MOMENTUM = frozenset(('adam', 'adamax', 'momentum', 'nadam'))


def pruned(evidence: TrainingEvidence) -> Cause | None:
  """Names trainable variables that only the step of one side moves."""
  rests = {pair.name: (pair.tf1.rests, pair.tf2.rests) for pair in _clear(evidence.moves)}
  if all(one for one, _ in rests.values()) or all(other for _, other in rests.values()):
    return None
  # What the port gives a gradient is not left out: it may be zero, or several updates of it
  # cancel. An update that a graph holds need not be one that is fetched, but what gets a
  # gradient of zero rests also where it is.
  idle, given = evidence.idle_in_tf1(), evidence.given_in_port()
  kept_by_tf1 = [n for n, (one, other) in rests.items() if one and not other and n not in idle]
  kept_by_port = [n for n, (one, other) in rests.items() if other and not one and n not in given]
  explains = (About.UPDATE, About.GRADIENTS, About.SHADOWS)
  resting = (kept_by_tf1, evidence.moved_later[0]), (kept_by_port, evidence.moved_later[1])
  for (kept, later), side in zip(resting, ('TF1', 'the port'), strict=True):
    if kept and later.issuperset(kept):
      return Cause(_in_turns(evidence.number, kept, side), explains=explains, variables=tuple(kept))
  if kept_by_tf1:
    text = (
      f'the step of TF1 does not update {listed(kept_by_tf1)}, that of the port does: session.run '
      'runs only what is fetched (the train op of some of the variables), a Python function '
      "everything in it; give apply_gradients the pairs of that train op's variables only"
    )
    return Cause(text, explains=explains, variables=tuple(kept_by_tf1))
  if kept_by_port:
    text = (
      f'the step of TF1 updates {listed(kept_by_port)}, that of the port does not: it leaves them '
      'out of apply_gradients, or out of layer.trainable_variables'
    )
    return Cause(text, explains=explains, variables=tuple(kept_by_port))
  return None


def _clear(moves: Sequence[StepPair]) -> list[StepPair]:
  """Returns variables without those that at most the rounding of a gradient moves.

  The gradient of a bias before a batch norm is zero, and rounding: one side may have nothing of it.
  """
  by_pair = [max(_greatest_change(pair.tf1), _greatest_change(pair.tf2)) for pair in moves]
  least = _NOTHING * max(by_pair, default=0.0)
  return [pair for pair, moved in zip(moves, by_pair, strict=True) if moved == 0 or moved > least]


def _greatest_change(move: VariableStep) -> float:
  start, end = move.whole or (move.start, move.end)
  return float(np.max(np.abs(end.astype(np.float64) - start), initial=0.0))


def _in_turns(number: int, names: Sequence[str], side: str) -> str:
  """Returns what is said of variables that a side does not update in a step, but in a later one."""
  other = 'the port' if side == 'TF1' else 'TF1'
  return (
    f'step {number} of {side} does not update {listed(names)}, that of {other} does; a later step '
    f'of {side} does: they are updated in some steps only, and in different ones on the two sides: '
    'compare the conditions on the count of steps, and when it is counted'
  )


def step_without_effect(evidence: TrainingEvidence) -> Cause | None:
  """Names a step of the port that changes no variable at all."""
  pairs = (*evidence.moves, *evidence.states)
  if any(not pair.tf2.rests for pair in pairs):
    return None
  if all(pair.tf1.rests for pair in evidence.moves):
    return None
  if evidence.moved_later[1]:
    return None  # a later step does: what this one adds is zero at the start
  if evidence.steps[1].learning_rate == 0:
    return None  # a step of that size changes nothing, whatever it is given
  text = (
    'the step of the port changes no variable of the layer: it calls no apply_gradients, calls it '
    'with gradients that are None or zero, or trains a layer other than the given one'
  )
  explains = tuple(about for about in About if about is not About.LEARNING_RATE)
  return Cause(text, explains=explains)


def averages_at_rest(evidence: TrainingEvidence) -> Cause | None:
  """Names moving averages that the step of TF1 updates and that of the port does not."""
  resting = [pair.name for pair in evidence.states if pair.tf2.rests and not pair.tf1.rests]
  if not resting or any(not pair.tf2.rests for pair in evidence.states):
    return None
  if soft_copies(evidence) is not None:
    return None  # no call of the model moves these
  text = (
    f'the step of TF1 updates {listed(resting)}, that of the port leaves them unchanged, as in '
    'inference: call the layer with training=True within the step'
  )
  one, other = (step.loss for step in evidence.steps)
  agree = one is None or other is None or np.allclose(one, other, rtol=1e-4, atol=0.0)
  if agree:
    return Cause(text, explains=(About.UPDATE,), variables=tuple(resting))
  return Cause(text, explains=(About.LOSS, About.GRADIENTS, About.UPDATE, About.SHADOWS))


def lazy_rows(evidence: TrainingEvidence) -> Cause | None:
  """Names rows without gradient that only one side moves: of a variable, or of a slot.

  TF1's RMSProp, Momentum, Adadelta and contrib's LazyAdam update, of a gradient that is
  IndexedSlices, the rows that it holds; the optimizers of Keras let the slots of all rows decay.
  """
  for pair in evidence.moves:
    rows = _rows_without_gradient(pair)
    if rows is None or not rows.any() or rows.all():
      continue
    for role in ('', *(role for role in pair.tf1.slots_after if role in pair.tf2.slots_after)):
      one, other = (_update(move, role) for move in (pair.tf1, pair.tf2))
      if one is None or other is None or one.shape != other.shape:
        continue
      # A slot that the first step makes starts where nobody has seen it.
      ends = (pair.tf1.slots_after[role], pair.tf2.slots_after[role]) if role else (one, other)
      if not _is_different_in(rows, *ends, None if role else pair.allowance):
        continue
      counts = [int(_moving(update)[rows].sum()) for update in (one, other)]
      if bool(counts[0]) != bool(counts[1]):
        return _of_lazy_rows(evidence, pair, role, counts)
  return None


def _of_lazy_rows(
  evidence: TrainingEvidence, pair: StepPair, role: str, counts: Sequence[int]
) -> Cause:
  changing, rester = ('TF1', 'the port') if counts[0] else ('the port', 'TF1')
  what = f'the {role} of {pair.name}' if role else pair.name
  kinds = {one.rule for one in (*evidence.tf1.optimizers, *evidence.tf2.optimizers)}
  how = ', by their momentum,' if not role and kinds <= _WITH_MOMENTUM else ''
  text = (
    f'of {what}, the rows whose gradient is zero at step {evidence.number} '
    f'({sum(counts)} of {len(pair.tf1.start)}) still change in {changing}{how} and '
    f'stay unchanged in {rester}; all other rows agree: '
  )
  names = [one.name for one in (*evidence.tf1.optimizers[:1], *evidence.tf2.optimizers[:1])]
  adam = not evidence.tf1.optimizers or evidence.tf1.optimizers[0].rule in ('', 'adam')
  if changing == 'TF1':
    text += 'the optimizer of the port updates only looked-up rows (LazyAdam), that of TF1 all'
  elif adam or len(names) < 2:
    text += (
      'LazyAdam updates only the rows that were looked up, Adam every row that has a first '
      'moment; keep the lazy optimizer, or write its sparse update for the port'
    )
  else:
    text += (
      f'given the gradient of an embedding lookup, {names[0]} updates only the rows that were '
      'looked '
      f'up, {names[1]} all of them; keep the optimizer of TF1, or write its sparse update for '
      'the port'
    )
  return Cause(text, explains=(About.UPDATE, About.SHADOWS), variables=(pair.name,))


def _update(move: VariableStep, role: str) -> _Array | None:
  """Returns what a step adds to the variable, or to a slot of its shape."""
  if not role:
    return move.update
  before, after = move.slots.get(role), move.slots_after.get(role)
  if before is None or after is None or not before.shape == after.shape == move.start.shape:
    return None
  difference: _Array = after.astype(np.float64) - before
  return difference


def _is_different_in(rows: _Array, one: _Array, other: _Array, allowance: _Array | None) -> bool:
  """Returns whether two arrays differ in some rows, by more than rounding, and in no other."""
  if allowance is None:
    size = max(float(np.abs(one).max(initial=0.0)), float(np.abs(other).max(initial=0.0)))
    allowance = np.full(one.shape, _ROUNDING * size)
  differs = _moving(np.where(np.abs(one - other) > allowance, 1.0, 0.0))
  return bool(differs.any() and not differs[~rows].any())


def _rows_without_gradient(pair: StepPair) -> _Array | None:
  gradients = [move.gradient for move in (pair.tf1, pair.tf2) if move.gradient is not None]
  if not gradients or pair.tf1.start.ndim < 2:
    return None
  rows: _Array = ~np.any([_moving(gradient) for gradient in gradients], axis=0)
  return rows


def _moving(values: _Array) -> _Array:
  """Returns which rows have an element that is not zero."""
  moving: _Array = np.any(values.reshape(len(values), -1) != 0, axis=1)
  return moving
