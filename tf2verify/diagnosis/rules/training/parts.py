"""Variables, or rows of them, that only one side moves."""

from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import MovePair, TrainingEvidence
from tf2verify.diagnosis.rules.wording import listed
from tf2verify.records.diagnosis import About, Cause

_Array = np.ndarray[Any, Any]


def pruned(evidence: TrainingEvidence) -> Cause | None:
  """Names trainable variables that only the step of one side moves."""
  rests = {pair.name: (pair.tf1.rests, pair.tf2.rests) for pair in evidence.moves}
  if all(one for one, _ in rests.values()) or all(other for _, other in rests.values()):
    return None
  # What the port gives a gradient is not left out: it may be zero, or several updates of it
  # cancel. An update that a graph holds need not be one that is fetched, but what gets a
  # gradient of zero rests also where it is.
  idle, given = evidence.idle_in_tf1(), evidence.given_in_port()
  kept_by_tf1 = [n for n, (one, other) in rests.items() if one and not other and n not in idle]
  kept_by_port = [n for n, (one, other) in rests.items() if other and not one and n not in given]
  explains = (About.UPDATE, About.GRADIENTS, About.SHADOWS)
  if kept_by_tf1:
    text = (
      f'the step of TF1 does not update {listed(kept_by_tf1)}, that of the port does: session.run '
      'runs what is fetched (the train op of some of the variables), a Python function everything '
      "in it; give apply_gradients the pairs of that train op's variables only"
    )
    return Cause(text, explains=explains, variables=tuple(kept_by_tf1))
  if kept_by_port:
    text = (
      f'the step of TF1 updates {listed(kept_by_port)}, that of the port does not: it leaves them '
      'out of apply_gradients, or out of layer.trainable_variables'
    )
    return Cause(text, explains=explains, variables=tuple(kept_by_port))
  return None


def step_at_rest(evidence: TrainingEvidence) -> Cause | None:
  """Names a step of the port that changes no variable at all."""
  pairs = (*evidence.moves, *evidence.states)
  if any(not pair.tf2.rests for pair in pairs):
    return None
  if all(pair.tf1.rests for pair in evidence.moves):
    return None
  if evidence.steps[1].learning_rate == 0:
    return None  # a step of that size changes nothing, whatever it is given
  text = (
    'the step of the port changes no variable of the layer: it calls no apply_gradients, calls it '
    'with gradients that are None or zero, or trains another layer than the one that it is given'
  )
  explains = tuple(about for about in About if about is not About.LEARNING_RATE)
  return Cause(text, explains=explains)


def averages_at_rest(evidence: TrainingEvidence) -> Cause | None:
  """Names moving averages that the step of TF1 updates and that of the port does not."""
  resting = [pair.name for pair in evidence.states if pair.tf2.rests and not pair.tf1.rests]
  if not resting or any(not pair.tf2.rests for pair in evidence.states):
    return None
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
  """Names rows without gradient that only one side moves."""
  for pair in evidence.moves:
    rows = _rows_without_gradient(pair)
    if rows is None or not rows.any() or rows.all():
      continue
    if not _rests(_where_differs(pair)[~rows]):
      continue
    one, other = (_moving(move.update)[rows] for move in (pair.tf1, pair.tf2))
    if one.any() == other.any():
      continue
    mover, rester = ('TF1', 'the port') if one.any() else ('the port', 'TF1')
    text = (
      f'of {pair.name}, the rows whose gradient is zero at step {evidence.number} '
      f'({int(one.sum() + other.sum())} of {len(rows)}) still change in {mover}, by their '
      f'momentum, and stay unchanged in {rester}; all other rows agree: '
    )
    text += (
      'LazyAdam updates the rows that were looked up alone, Adam every row that has a first '
      'moment; keep the lazy optimizer, or write its sparse update for the port'
      if mover == 'the port'
      else 'the optimizer of the port updates looked-up rows alone (LazyAdam), that of TF1 all'
    )
    return Cause(text, explains=(About.UPDATE, About.SHADOWS), variables=(pair.name,))
  return None


def _rows_without_gradient(pair: MovePair) -> _Array | None:
  gradients = [move.gradient for move in (pair.tf1, pair.tf2) if move.gradient is not None]
  if not gradients or pair.tf1.start.ndim < 2:
    return None
  rows: _Array = ~np.any([_moving(gradient) for gradient in gradients], axis=0)
  return rows


def _where_differs(pair: MovePair) -> _Array:
  apart = np.abs(pair.tf1.update - pair.tf2.update)
  return np.where(apart > pair.room, apart, 0.0)


def _moving(values: _Array) -> _Array:
  """Returns which rows have an element that is not zero."""
  moving: _Array = np.any(values.reshape(len(values), -1) != 0, axis=1)
  return moving


def _rests(values: _Array) -> bool:
  return not np.any(values)
