"""Rows of a table that a batch does not look up: how both sides update them.

The steps of the stage all have one batch, so that the rows that it looks up are always the same.
What TF1 makes of a gradient of `IndexedSlices` depends on the optimizer: Momentum and RMSProp leave
the other rows alone, Adam moves them on. One more step, of the first examples alone, shows it.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.gradient_clips import norm
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.wording import listed
from tf2verify.sides.losses import loss_function
from tf2verify.sides.side import Change
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.stages.training.steps.both_sides import BothSides
from tf2verify.stages.training.steps.clipping_trials import Factors, factors_of, have_same_zeros
from tf2verify.stages.training.steps.quantities import Steps, tolerance_for
from tf2verify.stages.training.steps.updates_apart import Left, updates_apart

QUANTITY = 'update of rows without a gradient'
_RUN = 'a further step, with the first examples only'
_UPDATE = 'update'
# One example of so many is in the further step.
_OF_BATCH = 3
# Of the greatest element of what the step adds.
_CLEAR, _SHOWN = 0.01, 3
# Of the norm of all gradients, that of a table.
_SHARE = 4.0
_REPEATED = (
  'all steps agree, and further ones with the first examples only, several times over, do not: '
  'what is added to {} differs; rows of a table are looked up repeatedly there: compare what is '
  'made of their gradients (IndexedSlices have a row for each look-up, and a norm or a square of '
  'these is another one than that of their sums)'
)
_Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class OtherRows:
  """What is said of such rows.

  Attributes:
    notes: why some were not compared.
    cause: why they may differ; '' where that is not known.
    change: makes the batch of the further step; None where it was not taken.
    apart: variables that another step updates differently, in which rows are looked up repeatedly.
  """

  notes: tuple[str, ...] = ()
  cause: str = ''
  change: Change | None = None
  apart: tuple[str, ...] = ()

  def blind_spots(self, differences: Iterable[Difference]) -> list[str]:
    """Returns what to say of such a step, if no difference in clipping explains it."""
    clips = any(difference.aspect is Aspect.CLIPPING for difference in differences)
    return [_REPEATED.format(listed(self.apart, _SHOWN))] if self.apart and not clips else []


# By whether TF1, and the port, moves rows on that the batch does not look up.
_WHY = {
  (False, True): (
    'for a gradient of IndexedSlices (an embedding_lookup) TF1 updates only the rows of the '
    'batch, as MomentumOptimizer and RMSPropOptimizer do, and the port also updates all other rows '
    'by '
    'their momentum, as Keras optimizers do: give the port an update of only the rows of the '
    'batch, '
    'or accept that the table trains differently'
  ),
  (True, False): (
    'TF1 updates all rows of the table in each step, as AdamOptimizer does for a gradient of '
    'IndexedSlices, and the port updates only the rows of the batch, as a lazy optimizer does'
  ),
}


def compare_rows(
  case: CaseUnderTest,
  both: BothSides,
  inputs: Any,
  left: Left,
  comparison: Comparison,
  told: Sequence[str] = (),
) -> OtherRows:
  """Compares the rows that one more step looks up no longer.

  Args:
    case: both sides.
    both: their steps, which agree.
    inputs: of these steps.
    left: returns what of a pair is more than rounding.
    comparison: takes the findings.
    told: what was said of further steps in which the sides have parted.

  Returns:
    What is said of it besides the differences.
  """
  tables = _tables(both.now())
  if not tables:
    return OtherRows()
  if told:
    return _unknown(tables, 'further steps, see above, differ')
  batch = _batch(inputs)
  if batch < 2:
    return _unknown(tables, 'the batch has one example')
  missing, why = list(tables), ''
  # Of one example alone a batch norm makes rounding: that is tried only where a table needs it.
  for count in dict.fromkeys((max(batch // _OF_BATCH, 1), 1)):
    before, few = both.now(), functools.partial(_first, count, batch)
    try:
      after = both.take_with(few)
    except NotApplicable as reason:
      return _unknown(missing, str(reason))
    except UserCodeError:
      return _unknown(missing, 'a batch of one example several times over is refused')
    found, moves = _compared(case, before, after, missing, left, comparison)
    why = why or _WHY.get(moves, '')
    missing = [name for name in missing if name not in found]
    if not missing:
      break
  said = _unknown(missing, 'every example looks up the same rows') if missing else OtherRows()
  is_found = any(difference.quantity == QUANTITY for difference in comparison.differences)
  return dataclasses.replace(
    said,
    cause=why,
    change=few,
    apart=() if is_found else _repeated(both, before, after, few, left),
  )


def _first(count: int, batch: int, array: _Array) -> _Array:
  """Returns a batch of the first examples, several times over."""
  fits = array.ndim and len(array) == batch
  return np.take(array, np.arange(batch) % count, axis=0) if fits else array


def _compared(
  case: CaseUnderTest,
  before: Steps,
  after: Steps,
  tables: Sequence[str],
  left: Left,
  comparison: Comparison,
) -> tuple[list[str], tuple[bool, bool]]:
  """Compares the rows that the last step does not look up.

  Returns:
    The tables with such rows; and whether TF1, and the port, moves such rows on.
  """
  number, last = len(after.tf1.steps), len(before.tf1.steps)
  earlier = {p.variable: p for p in before.pairs(last) if p.quantity == _UPDATE}
  tf1_moves = port_moves = False
  names, found = dict(after.names), []
  for pair in after.pairs(number):
    if pair.quantity != _UPDATE or pair.variable not in tables:
      continue
    known = left(pair)
    rows = _rows(before, pair.variable) & ~_rows(after, pair.variable)
    if known is None or known.tf1 is None or known.tf2 is None or not rows.any():
      continue
    found.append(pair.variable)
    port = names.get(pair.variable, pair.variable)
    key = TensorKey(QUANTITY, pair.subject, _RUN, '' if port == pair.variable else port)
    allowed = tolerance_for(pair, case.training_tolerance)
    comparison.tensors(key, known.tf1[rows], known.tf2[rows], allowed)
    start = earlier[pair.variable]
    if start.tf1 is not None and start.tf2 is not None:
      tf1_moves |= not np.array_equal(known.tf1[rows], start.tf1[rows])
      port_moves |= not np.array_equal(known.tf2[rows], start.tf2[rows])
  return found, (tf1_moves, port_moves)


def _repeated(
  both: BothSides, before: Steps, after: Steps, change: Change, left: Left
) -> tuple[str, ...]:
  """Returns variables to which the sides add something else if rows are looked up several times.

  In the further step on the first examples alone; or in one more, at gradients of which those of
  the tables are most of a norm of all.

  Args:
    both: the steps of both sides, which agree.
    before: those before the further step.
    after: those with it.
    change: makes its batch.
    left: returns what of a pair is more than rounding.
  """
  found, factors = updates_apart(before, after, left, _CLEAR), _factors(after)
  if found or factors is None:
    return tuple(found)
  try:
    scaled = both.take_scaled(factors, change)
    # A variable of the port may hold a table and something else, of which one factor is wrong.
    is_same = have_same_zeros(factors_of(scaled), factors_of(after))
    return tuple(updates_apart(after, scaled, left, _CLEAR)) if is_same else ()
  except (NotApplicable, UserCodeError):
    return ()


def _factors(steps: Steps) -> Factors | None:
  """Returns by what gradients are multiplied so that tables have most of their norm.

  None where a gradient is not known.
  """
  one, other = steps.tf1.steps[-1].gradients, steps.tf2.steps[-1].gradients
  tables, names = _tables(steps), dict(steps.names)
  known = {record.name: norm(record.value) for record in one if record.value is not None}
  size = math.hypot(*known.values())
  ports = {record.name for record in other if record.value is not None}
  if set(names) < set(known) or {names.get(name, name) for name in known} != ports:
    return None
  # One for all tables: the port may hold several in one variable.
  own = math.hypot(*(known[name] for name in tables if name in known))
  factor = 2.0 ** round(math.log2(_SHARE * size / own)) if own else 1.0
  factors = {name: factor if name in tables else 1.0 for name in known}
  return factors, {names.get(name, name): factor for name, factor in factors.items()}


def _unknown(tables: Sequence[str], why: str) -> OtherRows:
  return OtherRows(
    (
      f'how {", ".join(tables)} is updated in rows that a batch does not look up was not compared: '
      f'{why}',
    )
  )


def _tables(steps: Steps) -> list[str]:
  """Returns the variables of which TF1's gradient has rows alone, by tf1 name."""
  gradients = steps.tf1.steps[-1].gradients
  return [
    record.name
    for record in gradients
    if record.slices is not None and record.value is not None and record.value.ndim
  ]


def _rows(steps: Steps, table: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
  """Returns which rows of a table have a gradient in TF1 in the last step."""
  gradients = {record.name: record.value for record in steps.tf1.steps[-1].gradients}
  value = gradients[table]
  assert value is not None, 'it had one in the step before'
  return np.asarray(np.any(np.reshape(value != 0, (len(value), -1)), axis=1))


def _batch(inputs: Any) -> int:
  """Returns the number of examples: the length that most inputs have; 0 without any.

  Others are of something else, the edges of a graph or the words of a list, and stay as they are.
  """
  sizes = [len(leaf) for leaf in loss_function.leaves_of(inputs).values() if leaf.ndim]
  return max(sizes, key=sizes.count, default=0)
