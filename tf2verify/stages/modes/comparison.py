"""The calls of one execution mode next to those of eager mode."""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.numerics.arrays import compare_tensors, describe
from tf2verify.numerics.noise import SHARE, Kind, NoiseVerdict
from tf2verify.numerics.telling import Blank, blank, constant_of
from tf2verify.numerics.tolerance import ToleranceTable
from tf2verify.records import execution_mode as words
from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.execution_mode import ModeCall, ModeRun, ModeTensor
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.verdict_text import scalar
from tf2verify.reference.arrays import widened
from tf2verify.sides.side import training_name
from tf2verify.stages.stage import CaseUnderTest

# The columns of the matrix.
COLUMNS = ('outputs', 'losses', 'gradients', 'state')
_COLUMN_OF = {
  words.OUTPUT: 'outputs',
  words.REGULARIZATION: 'losses',
  words.LOSS: 'losses',
  words.TOTAL_LOSS: 'losses',
  words.GRADIENT: 'gradients',
  words.TOTAL_GRADIENT: 'gradients',
  words.STATE: 'state',
}
# XLA adds up in another order within an operation and has approximations of its own, so
# its rounding is more than that of the other modes, see decision 0021.
XLA_FACTOR = 16.0
# What comes first is the cause of what follows.
_ORDER = tuple(_COLUMN_OF)


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
  """A tensor of a mode, and the same one of eager mode."""

  mode: str  # the mode's name
  training: bool  # the training mode
  number: int  # of the call
  eager: ModeTensor  # what eager mode computed; its array is kept only where the two differ
  other: ModeTensor  # what the mode computed, likewise
  difference: Difference | None  # None where they agree
  # The greatest |mode - eager| of finite elements; 0 where they are identical, bit by bit, NaN
  # where none can be formed.
  greatest: float
  elements: int  # how many were compared
  blank: Blank | None = None  # why they tell nothing where they agree; None where they do
  constant: str = ''  # the element of a tensor whose elements are all the same, as text

  @property
  def key(self) -> TensorKey:
    """Which tensor of its call it is."""
    return self.other.key

  @property
  def name(self) -> str:
    """The variable's name, or the path of the output."""
    return self.other.name

  @property
  def column(self) -> str:
    """The column of the matrix that it belongs to."""
    return column_of(self.other)

  @property
  def rank(self) -> int:
    """Its place in the order of causes."""
    return _ORDER.index(self.other.quantity)


def column_of(tensor: ModeTensor) -> str:
  """Returns the column of the matrix that a tensor belongs to."""
  return _COLUMN_OF[tensor.quantity]


def greatest_difference(one: np.ndarray | None, other: np.ndarray | None) -> float:
  """Returns the greatest difference of two arrays; NaN where there is none to form."""
  if one is None or other is None or one.shape != other.shape or one.dtype.kind not in 'fcV':
    return math.nan
  with np.errstate(all='ignore'):
    distances = np.abs(widened(other) - widened(one))
  finite = distances[np.isfinite(distances)]
  return float(finite.max()) if finite.size else math.nan


def tolerance_of(case: CaseUnderTest, quantity: str) -> ToleranceTable:
  """Returns the allowance for a quantity."""
  if quantity in (words.GRADIENT, words.TOTAL_GRADIENT):
    return case.gradient_tolerance
  return case.regularization_tolerance if quantity == words.REGULARIZATION else case.tolerance


def comparable(drawing: ModeRun, mode: str, call: ModeCall) -> bool:
  """Returns whether the random draws of a call, if any, are those of the eager one.

  From the same seeds XLA draws other numbers. A function draws on in its next call, and
  so does a loop in its next step, where an eager op starts again.
  """
  if call.training not in drawing.draws:
    return True
  return mode != words.JIT and call.number == 1 and call.training not in drawing.draws_in_loops


def pairs_of(case: CaseUnderTest, eager: ModeRun, call: ModeCall, mode: str) -> Iterator[Pair]:
  """Compares a call of a mode with the same one of eager mode."""
  same = next(c for c in eager.calls if (c.training, c.number) == (call.training, call.number))
  ones = {tensor.key: tensor for tensor in same.tensors}
  met = set()
  for tensor in call.tensors:
    met.add(tensor.key)
    one = ones.get(tensor.key, ModeTensor(tensor.quantity, tensor.name, None))
    yield _pair(case, one, tensor, call, mode)
  for key, one in ones.items():
    if key not in met:
      yield _pair(case, one, ModeTensor(one.quantity, one.name, None), call, mode)


def _pair(
  case: CaseUnderTest, eager: ModeTensor, other: ModeTensor, call: ModeCall, mode: str
) -> Pair:
  if other.quantity in (words.GRADIENT, words.TOTAL_GRADIENT):
    eager, other = _without_zeros(eager, other), _without_zeros(other, eager)
  table = tolerance_of(case, other.quantity)
  result = compare_tensors(other.key, eager.value, other.value, table)
  greatest = 0.0 if result.identical else greatest_difference(eager.value, other.value)
  found, value = None, eager.value
  if value is not None and result.difference is None:
    found = blank(value, table.for_dtype(value.dtype), result.identical)
  constant = constant_of(value) if value is not None and found is Blank.SAME else ''
  if result.difference is None:  # five modes of a large model would fill the memory
    eager, other = (dataclasses.replace(tensor, value=None) for tensor in (eager, other))
  return Pair(
    mode,
    call.training,
    call.number,
    eager,
    other,
    result.difference,
    greatest,
    result.elements,
    found,
    constant,
  )


def _without_zeros(one: ModeTensor, other: ModeTensor) -> ModeTensor:
  """Returns a gradient as absent, where it is zero and the other mode has none.

  A loop of the graph yields zeros for what no result depends on, a loop in Python yields nothing.
  """
  is_zero = other.value is None and one.value is not None and not np.any(one.value)
  return dataclasses.replace(one, value=None) if is_zero else one


@dataclasses.dataclass(frozen=True, eq=False)
class Judged:
  """A pair beyond the tolerance, beside the noise of the port in eager mode."""

  pair: Pair  # what differs
  noise: NoiseVerdict  # how far rounding moves the tensor
  # Whether it is a gradient, or the state after the call, of a call whose outputs and losses agree
  # up to rounding. An activation next to the kink of a relu is on the other side then, by rounding
  # alone.
  behind_equals: bool = False

  @property
  def kind(self) -> Kind:
    """What the difference is, given how the mode rounds."""
    found = self.noise
    if self.behind_equals and found.kind is Kind.DIFFERENT:
      return Kind.DEGENERATE
    within = math.isfinite(found.noise) and found.ratio <= XLA_FACTOR
    if self.pair.mode == words.JIT and found.kind is Kind.DIFFERENT and within:
      return Kind.DEGENERATE if found.noise >= SHARE * found.size else Kind.ROUNDING
    return found.kind


def rounding_note(found: Sequence[Judged]) -> str:
  """Returns what a reader has to know of differences that rounding explains."""
  behind = [item for item in found if item.behind_equals and item.noise.kind is Kind.DIFFERENT]
  if len(behind) == len(found):
    worst = max(found, key=lambda item: item.pair.greatest)
    modes = dict.fromkeys(item.pair.mode for item in found)
    return (
      f'{len(found)} gradients differ under {", ".join(modes)}, by up to {worst.pair.greatest:.2g} '
      f'({worst.pair.name}), although outputs and losses are equal: '
      f'{"XLA" if words.JIT in modes else "the mode"} rounds differently, and an activation close '
      'to the kink of a relu is on its other side; the inputs cannot decide it'
    )
  worst = max(found, key=lambda item: item.noise.ratio)
  count = '1 tensor differs' if len(found) == 1 else f'{len(found)} tensors differ'
  pair = worst.pair
  return (
    f'{count} beyond the tolerance, by no more than rounding explains (worst: {pair.mode}, '
    f'{training_name(pair.training)}, {pair.key}: difference {worst.noise.difference:.2g}, noise '
    f'of eager mode {worst.noise.noise:.2g})'
  )


def difference_of(pair: Pair, noise: float | None, hint: str = '') -> Difference:
  """Returns the finding that a report shows: both values are the port's."""
  assert pair.difference is not None
  found = pair.difference
  if found.array is not None:
    said = _array_text(found.array, pair.mode, noise)
  elif found.aspect is Aspect.PRESENCE:
    said = f'{words.EAGER} {describe(pair.eager.value)}, {pair.mode} {describe(pair.other.value)}'
  else:
    said = f'{words.EAGER} {found.tf1}, {pair.mode} {found.tf2}'
  replica = f' on replica {pair.other.replica}' if pair.mode == words.REPLICAS else ''
  run = f'{pair.mode}{replica}, {training_name(pair.training)}'
  if pair.number == 2:
    run += ', second call'
  return Difference(
    pair.other.quantity, pair.other.name, found.aspect, tf2=said, run=run, hint=hint
  )


def _array_text(array: ArrayDifference, mode: str, noise: float | None) -> str:
  place = f' at {array.index}' if array.index else ''
  text = (
    f'{array.mismatched:,} of {array.size:,} elements {array.shape} {array.dtype} differ from '
    'eager '
    f'mode'
  )
  values = f'{words.EAGER} {scalar(array.tf1)}, {mode} {scalar(array.tf2)}'
  if math.isnan(array.greatest_absolute):
    return f'{text}; worst{place}: {values}'
  measured = '' if noise is None or math.isnan(noise) else f'; rounding noise {noise:.1g}'
  return (
    f'{text}; max absolute difference {array.greatest_absolute:.3g}{place}: {values} (allowed '
    f'{array.atol:.3g} + {array.rtol:.3g}·|eager|{measured})'
  )
