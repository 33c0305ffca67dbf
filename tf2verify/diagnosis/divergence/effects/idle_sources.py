"""Which sources in loops are no mistakes, seen from what is compared.

What the rounds of a loop compute past the end of a sequence a mask takes away; a sequence may be
reversed by its length, or as a whole; the gates of a cell may lie in another order, or have
a bias added earlier. Such pairs yield something else, and what comes of it is the same.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.effects.all_rounds import AllRounds
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.numerics.relayout import agreement_as_held
from tf2verify.records import rounds
from tf2verify.reference.arrays import widened
from tf2verify.sides.graphs.edits.repairs import GivenValue

# With TF1's values at one source what is compared is this much of the distance nearer; with those
# at another, which is idle then, it is not.
_MENDED = 0.3
_UNMENDED = 0.99
_MOST_TRIED = 32


def idle_sources(divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun) -> list[int]:
  """Returns the ends of sources in loops that are no mistakes.

  With TF1's values there, in all rounds, the port's outputs are no nearer to TF1's, with the
  port's TF1's are no nearer to the port's, and another source explains most of the difference.

  Args:
    divergence: the search.
    tf1: the tf1 side's run.
    tf2: the tf2 side's.
  """
  ops = tf1.op_graph.ops
  alike: dict[tuple[str, int | None], list[FoundSource]] = {}
  for source in divergence.all_sources():
    if not source.agreement.is_rounding:
      name = rounds.without(ops[source.regions.tf1.end].name)
      alike.setdefault((name, source.output), []).append(source)
  forward = [(n, m) for n, m in divergence.ends if not is_opaque(ops[n].outputs[0][0])]
  in_loops = {
    key for key, group in alike.items() if rounds.numbers_of(ops[group[0].regions.tf1.end].name)
  }
  if len(alike) < 2 or not forward or not in_loops:
    return []
  trial = _Trial(divergence, tf1, tf2, forward)
  tried = dict(itertools.islice(alike.items(), _MOST_TRIED))
  mended = {key: trial.mended(group[0]) for key, group in tried.items()}
  if not trial.before or min(mended.values()) > _MENDED * trial.before:
    return []
  least = trial.before * _UNMENDED
  idle = [
    group
    for key, group in tried.items()
    if key in in_loops
    and least <= mended[key] < math.inf
    and least <= trial.spoilt(group[0]) < math.inf
  ]
  return list(dict.fromkeys(source.regions.tf1.end for group in idle for source in group))


class _Trial:
  """Runs either side with the other one's values at a source.

  Attributes:
    before: how far apart the sides are as they are.
  """

  def __init__(
    self,
    divergence: Divergence,
    tf1: InspectableRun,
    tf2: InspectableRun,
    forward: Sequence[tuple[int, int]],
  ) -> None:
    self._tf1, self._tf2 = tf1, tf2
    self._everywhere = AllRounds(divergence.pairing)
    self._right = _Ends(tf1, [tf1.op_graph.ops[n].tensors[0] for n, _ in forward])
    self._wrong = _Ends(tf2, [tf2.op_graph.ops[m].tensors[0] for _, m in forward])
    self.before = distance(self._right.values, [self._wrong.values]) or 0.0

  def mended(self, source: FoundSource) -> float:
    """Returns how far the port is from TF1 with its values at a source."""
    pairs = self._pairs(source)
    values = self._tf1.fetch([one for one, _ in pairs])
    layout = source.layout
    held = values if layout is None else [layout.to_tf2(value) for value in values]
    given = {other: value for (_, other), value in zip(pairs, held, strict=True)}
    return self._wrong.apart_from(self._right.values, given)

  def spoilt(self, source: FoundSource) -> float:
    """Returns how far TF1 is from the port with its values at a source."""
    pairs = self._pairs(source)
    values = self._tf2.fetch([other for _, other in pairs])
    layout = source.layout
    held = values if layout is None else [layout.to_tf1(value) for value in values]
    given = {one: value for (one, _), value in zip(pairs, held, strict=True)}
    return self._right.apart_from(self._wrong.values, given)

  def _pairs(self, source: FoundSource) -> list[tuple[str, str]]:
    """Returns the tensors of both sides at a source, in all rounds; none if it has no value."""
    op = self._tf1.op_graph.ops[source.regions.tf1.end]
    other = self._tf2.op_graph.ops[source.regions.tf2.end]
    number = source.output
    if number is None or number >= min(len(op.tensors), len(other.tensors)):
      return []
    one = GivenValue(op.tensors[number], other.tensors[number])
    found = self._everywhere.values(one, op.name, other.name)
    return [(known.tf1, known.tf2) for known in found]


class _Ends:
  """What one side yields of what is compared."""

  def __init__(self, run: InspectableRun, tensors: Sequence[str]) -> None:
    self._run = run
    self._tensors = tensors
    self.values = run.fetch(tensors)

  def apart_from(self, wanted: Sequence[np.ndarray], given: Mapping[str, np.ndarray]) -> float:
    """Returns how far it is from arrays, with values given; infinite where it does not run so."""
    found = self._run.refetched(self._tensors, given) if given else None
    if found is None or [one.shape for one in found] != [one.shape for one in wanted]:
      return math.inf
    apart = distance(wanted, [found])
    return math.inf if apart is None else apart


def distance(
  wanted: Sequence[np.ndarray], answers: Sequence[list[np.ndarray] | None]
) -> float | None:
  """Returns how far answers are from what is wanted; infinite if one cannot be computed."""
  if not answers:
    return None
  if any(answer is None for answer in answers):
    return math.inf
  found = [array for answer in answers if answer is not None for array in answer]
  return sum(_share(one, other) for one, other in zip(wanted, found, strict=True))


def _share(tf1: np.ndarray, tf2: np.ndarray) -> float:
  """Returns the mean difference of the elements, each over its own magnitude: 0 to 1.

  So no large element hides the others. What agrees up to rounding has none.
  """
  found, layout = agreement_as_held(tf1, tf2)
  if found.is_rounding and not found.is_doubtful:
    return 0.0
  held = tf2 if layout is None else layout.to_tf1(tf2)
  if held.shape != tf1.shape or held.dtype != tf1.dtype or not tf1.size:
    return 1.0
  if tf1.dtype.kind not in 'fcV':
    return float(np.mean(tf1 != held))
  one, other = widened(tf1), widened(held)
  same = (one == other) | (np.isnan(one) & np.isnan(other))
  with np.errstate(all='ignore'):
    share = np.abs(one - other) / (np.abs(one) + np.abs(other))
  return float(np.where(same, 0.0, np.where(np.isfinite(share), share, 1.0)).mean())
