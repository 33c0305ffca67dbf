"""Random numbers of a port that change nothing, whatever they are: noise that is multiplied by 0.

TF1 draws nothing there, or in a branch that is not run. Seen by experiment: each such draw is
answered by both ends of its range, and by numbers that are spread over it.
"""

import collections
from collections.abc import Callable, Collection, Sequence

import numpy as np

from tf2verify.records.observation import Observation, RandomDraw
from tf2verify.sides.process.answered_draws import KINDS, By

# Of more draws than that it is not tried, which takes three calls of the port for each.
_MOST = 8
Observe = Callable[[Collection[int], By], Observation]
_Kind = tuple[str, tuple[int | None, ...]]


def without_idle(
  observe: Observe, drawn: Sequence[RandomDraw], of_tf1: Sequence[RandomDraw]
) -> tuple[Observation, tuple[RandomDraw, ...]] | None:
  """Returns a run of the port in which draws without an effect do not count, and these draws.

  Args:
    observe: runs the port, some draws of `KINDS` answered by such numbers, and not counted.
    drawn: what a run draws.
    of_tf1: what tf1 draws; only what the port draws more often is tried.

  Returns:
    None where all of them have an effect.
  """
  known = _answerable(drawn)
  further = collections.Counter(map(_kind, known)) - collections.Counter(map(_kind, of_tf1))
  candidates = [n for n, draw in enumerate(known) if _kind(draw) in further]
  if not 0 < len(candidates) <= _MOST:
    return None

  def run(draws: Collection[int]) -> Observation | None:
    first, *others = (observe(draws, by) for by in By)
    left = [draw for n, draw in enumerate(known) if n not in draws]
    is_answered = list(map(_kind, _answerable(first.random_draws))) == list(map(_kind, left))
    return first if is_answered and all(_are_same(first, other) for other in others) else None

  idle = [n for n in candidates if run((n,)) is not None]
  found = run(idle) if idle else None
  return None if found is None else (found, tuple(known[n] for n in idle))


def _answerable(draws: Sequence[RandomDraw]) -> list[RandomDraw]:
  return [draw for draw in draws if draw.op_type in KINDS]


def _kind(draw: RandomDraw) -> _Kind:
  return draw.op_type, draw.shape


def _are_same(one: Observation, other: Observation) -> bool:
  """Returns whether two runs of a side yield the same bits."""
  seen = []
  for run in (one, other):
    records = (*run.outputs, *run.state_after)
    values = [record.value for record in records]
    values += [loss.value for loss in run.regularization_losses]
    seen.append([None if value is None else np.asarray(value) for value in values])
  return len(seen[0]) == len(seen[1]) and all(
    mine is its or (mine is not None and its is not None and _are_equal(mine, its))
    for mine, its in zip(*seen, strict=True)
  )


def _are_equal(one: np.ndarray, other: np.ndarray) -> bool:
  return one.shape == other.shape and one.tobytes() == other.tobytes()
