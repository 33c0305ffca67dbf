"""The calls of one execution mode beside those of eager mode."""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.compare.arrays import compare_tensors, describe
from tf2verify.compare.noise import Kind
from tf2verify.compare.tolerance import ToleranceTable
from tf2verify.records import execution_mode as words
from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.execution_mode import ModeCall, ModeRun, ModeTensor
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.sides.side import TF2, training_name
from tf2verify.stages import rounding
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
# What comes first is the cause of what follows.
_ORDER = tuple(_COLUMN_OF)


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
  """A tensor of a mode, and the same one of eager mode.

  Attributes:
    mode: the mode's name.
    training: the training mode.
    number: of the call.
    eager: what eager mode computed; its array is kept only where the two differ.
    other: what the mode computed, likewise.
    difference: None where they agree.
    greatest: the greatest |mode - eager| of finite elements; 0 where they are identical,
      bit by bit, NaN where none can be formed.
    elements: how many were compared.
  """

  mode: str
  training: bool
  number: int
  eager: ModeTensor
  other: ModeTensor
  difference: Difference | None
  greatest: float
  elements: int

  @property
  def key(self) -> str:
    """The name of the tensor within its call."""
    return key_of(self.other)

  @property
  def column(self) -> str:
    """The column of the matrix that it belongs to."""
    return column_of(self.other)

  @property
  def rank(self) -> int:
    """Its place in the order of causes."""
    return _ORDER.index(self.other.quantity)


def key_of(tensor: ModeTensor) -> str:
  """Returns quantity and name, which tell a tensor of one replica from all others."""
  return f'{tensor.quantity} {tensor.name}'


def column_of(tensor: ModeTensor) -> str:
  """Returns the column of the matrix that a tensor belongs to."""
  return _COLUMN_OF[tensor.quantity]


def greatest_difference(one: np.ndarray | None, other: np.ndarray | None) -> float:
  """Returns the greatest difference of two arrays; NaN where there is none to form."""
  if one is None or other is None or one.shape != other.shape or one.dtype.kind not in 'fcV':
    return math.nan
  wide = np.complex128 if one.dtype.kind == 'c' else np.float64
  with np.errstate(all='ignore'):
    distances = np.abs(other.astype(wide) - one.astype(wide))
  finite = distances[np.isfinite(distances)]
  return float(finite.max()) if finite.size else math.nan


def tolerance_of(case: CaseUnderTest, quantity: str) -> ToleranceTable:
  """Returns the allowance for a quantity."""
  if quantity in (words.GRADIENT, words.TOTAL_GRADIENT):
    return case.gradient_tolerance
  return case.regularization_tolerance if quantity == words.REGULARIZATION else case.tolerance


def pairs_of(
  case: CaseUnderTest, eager: ModeRun, found: ModeRun, draws: frozenset[bool]
) -> Iterator[Pair]:
  """Compares every call that can be compared.

  XLA draws other random numbers from the same seeds, and a function draws on where an
  eager op starts again: what depends on draws is left out there.

  Args:
    case: the case.
    eager: the calls of eager mode.
    found: those of another mode.
    draws: the training modes in which the port draws random numbers.
  """
  for call in found.calls:
    if comparable(draws, found.mode, call):
      yield from _call_pairs(case, _same_call(eager, call), call, found.mode)


def comparable(draws: frozenset[bool], mode: str, call: ModeCall) -> bool:
  """Tells whether the random draws of a call, if any, are those of the eager one."""
  return call.training not in draws or (mode != words.JIT and call.number == 1)


def _same_call(eager: ModeRun, call: ModeCall) -> ModeCall:
  return next(c for c in eager.calls if (c.training, c.number) == (call.training, call.number))


def _call_pairs(case: CaseUnderTest, eager: ModeCall, call: ModeCall, mode: str) -> Iterator[Pair]:
  ones = {key_of(tensor): tensor for tensor in eager.tensors}
  met = set()
  for tensor in call.tensors:
    met.add(key_of(tensor))
    one = ones.get(key_of(tensor), ModeTensor(tensor.quantity, tensor.name, None))
    yield _pair(case, one, tensor, call, mode)
  for key, one in ones.items():
    if key not in met:
      yield _pair(case, one, ModeTensor(one.quantity, one.name, None), call, mode)


def _pair(
  case: CaseUnderTest, eager: ModeTensor, other: ModeTensor, call: ModeCall, mode: str
) -> Pair:
  table = tolerance_of(case, other.quantity)
  result = compare_tensors(words.OUTPUT, key_of(other), eager.value, other.value, table)
  greatest = 0.0 if result.identical else greatest_difference(eager.value, other.value)
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
  )


def observation_of(call: ModeCall) -> Observation:
  """Returns a call as an observation whose outputs are all its tensors."""
  records = tuple(TensorRecord(key_of(tensor), tensor.value) for tensor in call.tensors)
  return Observation(TF2, training_name(call.training), call.structure, records)


def suspects_of(case: CaseUnderTest, pairs: Sequence[Pair]) -> list[tuple[Pair, rounding.Suspect]]:
  """Returns the pairs that rounding may explain."""
  found = []
  for pair in pairs:
    one, other = pair.eager.value, pair.other.value
    if pair.difference is None or one is None or other is None:
      continue
    if rounding.may_be_rounding(pair.difference, one):
      allowed = tolerance_of(case, pair.other.quantity).for_dtype(one.dtype)
      found.append((pair, rounding.Suspect(pair.difference, one, other, allowed)))
  return found


@dataclasses.dataclass(frozen=True, eq=False)
class Excused:
  """What rounding explains.

  Attributes:
    rounding: pairs that differ by rounding.
    degenerate: pairs that rounding moves as far as they are large.
    noises: the noise of the others, by the identity of a pair.
    notes: for a report.
  """

  rounding: tuple[Pair, ...] = ()
  degenerate: tuple[Pair, ...] = ()
  noises: dict[int, float] = dataclasses.field(default_factory=dict)
  notes: tuple[str, ...] = ()


def excused(suspects: Sequence[tuple[Pair, rounding.Suspect]], rerun: rounding.Rerun) -> Excused:
  """Judges differences of one call by how far rounding moves the port in eager mode."""
  found = rounding.sort_out([suspect for _, suspect in suspects], rerun)
  if not found.judged:
    return Excused(notes=found.notes)
  judged = [(pair, noise) for (pair, _), (_, noise) in zip(suspects, found.judged, strict=True)]
  return Excused(
    tuple(pair for pair, noise in judged if noise.kind is Kind.ROUNDING),
    tuple(pair for pair, noise in judged if noise.kind is Kind.DEGENERATE),
    {id(pair): noise.noise for pair, noise in judged if noise.kind is Kind.DIFFERENT},
    found.notes,
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
    f'{array.mismatched:,} of {array.size:,} elements {array.shape} {array.dtype} are not those of '
    f'eager mode'
  )
  values = f'{words.EAGER} {_number(array.tf1)}, {mode} {_number(array.tf2)}'
  if math.isnan(array.greatest_absolute):
    return f'{text}; worst{place}: {values}'
  measured = '' if noise is None or math.isnan(noise) else f'; rounding noise {noise:.1g}'
  return (
    f'{text}; greatest difference {array.greatest_absolute:.3g}{place}: {values} (allowed '
    f'{array.atol:.3g} + {array.rtol:.3g}·|eager|{measured})'
  )


def _number(value: object) -> str:
  return f'{value:.8g}' if isinstance(value, float) else repr(value)
