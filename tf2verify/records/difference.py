"""Two things compared, and how they differ."""

import dataclasses
import enum
from typing import Any

from tf2verify.records.tensor_key import TensorKey

# |tf1| and |tf2 - tf1| of an element.
FrontierPoint = tuple[float, float]


class Aspect(enum.Enum):
  """What differs, in the order in which it is looked at."""

  CREATION = 'creation'
  PRESENCE = 'presence'
  STRUCTURE = 'structure'
  SHAPE = 'shape'
  DTYPE = 'dtype'
  TRAINABLE = 'trainable'
  ORDER = 'order'
  CLIPPING = 'clipping'
  NON_FINITE = 'non-finite pattern'
  DISTRIBUTION = 'distribution'
  VALUES = 'values'
  REPETITION = 'repetition'
  SIZE = 'accepted size'
  UNREAD = 'use'


@dataclasses.dataclass(frozen=True)
class ArrayDifference:
  """Where two arrays of one shape and dtype differ.

  Attributes:
    shape: of both arrays.
    dtype: of both arrays, numpy's name.
    mismatched: number of elements beyond the allowance.
    size: number of elements.
    index: the worst element.
    tf1: its value on the tf1 side, a Python scalar.
    tf2: its value on the tf2 side.
    greatest_absolute: |tf2 - tf1| there; NaN where it cannot be formed.
    greatest_relative: greatest |tf2 - tf1| / |tf1| of all mismatched elements;
      infinite where tf1 is 0.
    rtol: relative allowance.
    atol: absolute allowance.
    required_atol: the least atol that all elements pass with this rtol; infinite
      where no tolerance would do, None where the dtype is compared exactly.
    required_rtol: the least rtol that all elements pass with this atol, likewise.
    noise: how much rounding alone changes the tensor: the max |perturbed - tf1| of
      runs of the reference with values perturbed by one unit in the last place; None
      where it was not, or could not be, measured.
    sampled: whether a recording holds a part of tf1's tensor: `size` counts the elements
      and means that were compared.
    block: where the worst is the signed mean of several elements, how many; `index` is
      the first of them, `tf1` and `tf2` are the means. 0 elsewhere.
    within_noise: whether rounding may be all of it. In a stage that fails anyway the noise
      is that of a run or two, which excuse nothing.
  """

  shape: tuple[int, ...]
  dtype: str
  mismatched: int
  size: int
  index: tuple[int, ...]
  tf1: Any
  tf2: Any
  greatest_absolute: float
  greatest_relative: float
  rtol: float
  atol: float
  required_atol: float | None = None
  required_rtol: float | None = None
  noise: float | None = None
  sampled: bool = False
  block: int = 0
  within_noise: bool = False


@dataclasses.dataclass(frozen=True)
class Difference:
  """One finding of a stage.

  Attributes:
    quantity: what was compared: `output`, `gradient`, `initial value`, ...
    subject: whose: a variable name, or the path of an output; as `TensorKey.subject`.
    aspect: what about it differs.
    tf1: the tf1 side, as text (empty where `array` says it).
    tf2: the tf2 side, as text.
    run: which run, where a stage has several: `training, constant`.
    array: the numbers, for NON_FINITE and VALUES.
    hint: the likely slip and its fix, where it is known.
    names: of a variable in tf1 and in the port, where they are two.
    sides: what `tf1` and `tf2` are texts of, where that is not TF1 and the port.
  """

  quantity: str
  subject: str
  aspect: Aspect
  tf1: str = ''
  tf2: str = ''
  run: str = ''
  array: ArrayDifference | None = None
  hint: str = ''
  names: tuple[str, str] | None = None
  sides: tuple[str, str] | None = None

  @classmethod
  def of(
    cls,
    key: TensorKey,
    aspect: Aspect,
    tf1: str = '',
    tf2: str = '',
    array: ArrayDifference | None = None,
    hint: str = '',
  ) -> 'Difference':
    """Returns a finding on a tensor."""
    names = (key.name, key.port_name) if key.port_name not in ('', key.name) else None
    return cls(key.quantity, key.subject, aspect, tf1, tf2, key.run, array, hint, names)

  @property
  def tf1_subject(self) -> str:
    """The subject by the tf1 side's name."""
    return self.subject if self.names is None else self.names[0]

  @property
  def tf2_subject(self) -> str:
    """The subject by the tf2 side's name."""
    return self.subject if self.names is None else self.names[1]

  @property
  def key(self) -> TensorKey:
    """Which tensor it is about."""
    return TensorKey(self.quantity, self.tf1_subject, self.run, self.tf2_subject)

  @property
  def may_be_rounding(self) -> bool:
    """Whether it is one of values, and rounding may be all of it."""
    return self.array is not None and self.array.within_noise


class Judgement(enum.Enum):
  """How a pair of tensors was judged that is not the same bit by bit."""

  PASSED = 'passed'
  NEAR_ZERO = 'within the tolerance of zero'
  ROUNDING = 'differs by rounding'
  DEGENERATE = 'as small as its rounding noise'
  FAILED = 'failed'


@dataclasses.dataclass(frozen=True)
class Deviation:
  """Two floating tensors that were compared and are not the same bit by bit.

  Enough to judge the pair by a different tolerance, without the tensors.

  Attributes:
    quantity: as in `Difference`.
    subject: as in `Difference`.
    run: as in `Difference`.
    dtype: of both, numpy's name.
    rtol: relative allowance that it was judged by.
    atol: absolute allowance that it was judged by.
    frontier: |tf1| and |tf2 - tf1| of the few elements that decide for every
      tolerance, by rising |tf1|; empty where only signs of zero or NaN differ.
    magnitude: a lower bound of the greatest |tf1|, from a sample of the elements;
      infinite where one of them is not finite.
    judgement: how the pair was judged.
    noise: as in `ArrayDifference`; measured only for pairs beyond the tolerance.
    ulps: how many elements are how many units in the last place apart: at 0 the equal
      ones, at n those from 2**(n - 1) to 2**n - 1 apart. Of a sample of the elements
      where there are many, and of those finite on both sides.
  """

  quantity: str
  subject: str
  run: str
  dtype: str
  rtol: float
  atol: float
  frontier: tuple[FrontierPoint, ...]
  magnitude: float
  judgement: Judgement
  noise: float | None = None
  ulps: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class ErrorSummary:
  """A summary of the differences of one run: the maximum over its tensors.

  NaN, and infinite in `share` and the tolerances, where something differs in a way that
  is not a number: shape, dtype, presence, the pattern of non-finite elements.

  Attributes:
    run: which run: `step 3`; '' where there is but one.
    differing: how many findings the run has.
    absolute: greatest |tf2 - tf1|.
    relative: greatest |tf2 - tf1| / |tf1|; infinite where tf1 is 0.
    share: greatest |tf2 - tf1| / (atol + rtol * |tf1|), without pairs that rounding
      explains; beyond 1 the run fails.
    required_atol: the least atol that all of these pass, each with its own rtol.
    required_rtol: the least rtol, likewise.
    noise: greatest rounding noise; None where none was measured.
    ulps: as in `Deviation`, of all pairs that are not the same bit by bit together.
  """

  run: str
  differing: int
  absolute: float
  relative: float
  share: float
  required_atol: float
  required_rtol: float
  noise: float | None = None
  ulps: tuple[int, ...] = ()
