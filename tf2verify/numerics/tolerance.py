"""How much two numbers may differ, by dtype, with the source of every figure."""

import dataclasses
import math
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tf2verify.errors import CaseDefinitionError

_TEXT_KINDS = 'OSUT'


@dataclasses.dataclass(frozen=True)
class Tolerance:
  """The allowance of one element: |tf2 - tf1| <= atol + rtol * |tf1|.

  Attributes:
    rtol: relative to the tf1 value; finite, not negative.
    atol: absolute, in the unit of the tensor; finite, not negative.

  Raises:
    CaseDefinitionError: a figure is not a number, not finite or negative.
  """

  rtol: float
  atol: float

  def __post_init__(self) -> None:
    for field in ('rtol', 'atol'):
      figure = getattr(self, field)
      if isinstance(figure, (bool, np.bool_)) or not isinstance(figure, numbers.Real):
        raise CaseDefinitionError(
          f'Tolerance: {field} = {figure!r} is a {type(figure).__name__}; '
          'it must be a number, for example Tolerance(rtol=1e-6, atol=1e-5)'
        )
      if not math.isfinite(figure) or figure < 0:
        raise CaseDefinitionError(
          f'Tolerance: {field} = {float(figure)!r}; it must be finite and not negative. '
          'Zero means exact equality'
        )
      object.__setattr__(self, field, float(figure))


EXACT = Tolerance(rtol=0.0, atol=0.0)


def dtype_name(dtype: np.dtype[Any]) -> str:
  """Returns numpy's name of a dtype; `str` for every way to hold text or bytes.

  TensorFlow hands out strings as object arrays of bytes, numpy makes `S7` of the
  same value; a quantized dtype is a structured one that its field names.
  """
  if dtype.kind in _TEXT_KINDS:
    return 'str'
  return dtype.names[0] if dtype.names else dtype.name


@dataclasses.dataclass(frozen=True)
class ToleranceTable:
  """Tolerances by dtype. A dtype without an entry is compared exactly.

  Attributes:
    entries: pairs of numpy's dtype name and the tolerance, each name once.
  """

  entries: tuple[tuple[str, Tolerance], ...]

  def for_dtype(self, dtype: np.dtype[Any]) -> Tolerance:
    """Returns the tolerance for a dtype; exact for integers, booleans and strings."""
    name = dtype_name(np.dtype(dtype))
    return next((tolerance for known, tolerance in self.entries if known == name), EXACT)

  def __iter__(self) -> Iterator[tuple[str, Tolerance]]:
    return iter(self.entries)


# float32: TensorFlow guide "Validate correctness & numerical equivalence", which
# compares with rtol=1e-6, atol=1e-5: 8.4 and 84 machine epsilons (2**-23).
_FLOAT32 = Tolerance(rtol=1e-6, atol=1e-5)

# float64: the same multiples of its epsilon (2**-52) are 1.9e-15 and 1.9e-14;
# rounded up to a power of ten.
_FLOAT64 = Tolerance(rtol=1e-14, atol=1e-13)

# 16 bits: kernels accumulate in float32 and round the result once, so what counts
# is the number of roundings in a row, not the length of a sum: four epsilons
# (float16: 2**-10, bfloat16: 2**-7), relative, and absolute for values around 1.
_FLOAT16 = Tolerance(rtol=2**-8, atol=2**-8)
_BFLOAT16 = Tolerance(rtol=2**-5, atol=2**-5)

# 8 bits: a format to store values in. The same value, rounded from either side of
# a tie, is one step apart: rtol is the epsilon, atol the least positive number.
_FLOAT8 = (
  ('float8_e4m3fn', Tolerance(rtol=2**-3, atol=2**-9)),
  ('float8_e4m3fnuz', Tolerance(rtol=2**-3, atol=2**-10)),
  ('float8_e4m3b11fnuz', Tolerance(rtol=2**-3, atol=2**-13)),
  ('float8_e5m2', Tolerance(rtol=2**-2, atol=2**-16)),
  ('float8_e5m2fnuz', Tolerance(rtol=2**-2, atol=2**-17)),
)

# Outputs, losses, initial values and state. A complex number has the tolerance of
# its components, for the modulus of the difference.
VALUE_TOLERANCES = ToleranceTable(
  (
    ('float32', _FLOAT32),
    ('float64', _FLOAT64),
    ('float16', _FLOAT16),
    ('bfloat16', _BFLOAT16),
    ('complex64', _FLOAT32),
    ('complex128', _FLOAT64),
    *_FLOAT8,
  )
)

# Gradients. The guide compares them with the figures it has for values. They are a
# table of their own because a gradient's scale is that of the loss over the
# variable: a case changes one without the other.
GRADIENT_TOLERANCES = ToleranceTable(
  (
    ('float32', Tolerance(rtol=1e-6, atol=1e-5)),
    ('float64', Tolerance(rtol=1e-14, atol=1e-13)),
    ('float16', Tolerance(rtol=2**-8, atol=2**-8)),
    ('bfloat16', Tolerance(rtol=2**-5, atol=2**-5)),
    ('complex64', Tolerance(rtol=1e-6, atol=1e-5)),
    ('complex128', Tolerance(rtol=1e-14, atol=1e-13)),
    *_FLOAT8,
  )
)

# Regularization losses. A weight decay of 1e-6 makes losses below the values' atol,
# which then tells a loss from its double no more. A sum of squares or magnitudes
# cancels nothing, so its error is relative: ten times the values' rtol, and no atol
# but for sums of nothing but zeros.
REGULARIZATION_TOLERANCES = ToleranceTable(
  tuple((name, Tolerance(10 * value.rtol, 0.0)) for name, value in VALUE_TOLERANCES)
)

# What training steps compute. atol is a share of the greatest element of the tensor
# here: an update is as small as the learning rate. Settings of optimizers are float32 on
# either side, whatever the variables are: 2**-23 of the learning rate, rounded up.
TRAINING_TOLERANCES = ToleranceTable(
  tuple(
    (name, Tolerance(max(value.rtol, 1e-6), max(value.atol, 1e-6)))
    for name, value in VALUE_TOLERANCES
  )
)

FLOATING_DTYPES = tuple(name for name, _ in VALUE_TOLERANCES)


def as_table(
  declared: Tolerance | Mapping[Any, Tolerance] | ToleranceTable | None,
  default: ToleranceTable,
  attribute: str = 'tolerance',
) -> ToleranceTable:
  """Returns the table that a case's declaration stands for.

  Args:
    declared: one `Tolerance` for every floating (and complex) dtype; a mapping from
      dtype (name, numpy or TensorFlow dtype) to `Tolerance`, which overrides
      `default` entry by entry; a whole table; or None for `default`.
    default: the table where the case declares nothing.
    attribute: what the case calls it, for the message.

  Raises:
    CaseDefinitionError: `declared` is something else, or names a dtype that is
      unknown, named twice, or always compared exactly.
  """
  if declared is None:
    return default
  if isinstance(declared, ToleranceTable):
    return declared
  if isinstance(declared, Tolerance):
    return ToleranceTable(tuple((name, declared) for name in FLOATING_DTYPES))
  if isinstance(declared, Mapping):
    overrides = _overrides(declared, attribute)
    kept = tuple((name, value) for name, value in default if name not in overrides)
    return ToleranceTable((*overrides.items(), *kept))
  raise CaseDefinitionError(
    f'{attribute} = {declared!r}: it must be a Tolerance, a mapping from dtype to Tolerance, '
    f'or None{_likely_slip(declared)}'
  )


def _overrides(declared: Mapping[Any, Tolerance], attribute: str) -> dict[str, Tolerance]:
  overrides: dict[str, Tolerance] = {}
  for key, tolerance in declared.items():
    name = _floating_name(key, attribute)
    if name in overrides:
      raise CaseDefinitionError(f'{attribute} has two entries for {name}; leave one of them')
    if not isinstance(tolerance, Tolerance):
      raise CaseDefinitionError(
        f'{attribute}[{key!r}] = {tolerance!r}: it must be a Tolerance{_likely_slip(tolerance)}'
      )
    overrides[name] = tolerance
  return overrides


def _floating_name(key: Any, attribute: str) -> str:
  # np.dtype does not know a TensorFlow dtype, and takes None for float64.
  dtype = getattr(key, 'as_numpy_dtype', key)
  name = dtype if isinstance(dtype, str) else None
  if name not in FLOATING_DTYPES:
    try:
      name = None if dtype is None else dtype_name(np.dtype(dtype))
    except TypeError:
      name = None
  if name is None:
    raise CaseDefinitionError(
      f'{attribute} has an entry for {key!r}, which is not a dtype; '
      f'allowed are {", ".join(FLOATING_DTYPES)}'
      + ('. rtol and atol belong in Tolerance(rtol=…, atol=…)' if key in ('rtol', 'atol') else '')
    )
  if name not in FLOATING_DTYPES:
    raise CaseDefinitionError(
      f'{attribute} has an entry for {name}, which is always compared exactly; '
      f'a tolerance can be given for {", ".join(FLOATING_DTYPES)}'
    )
  return name


def _likely_slip(declared: Any) -> str:
  if declared is Tolerance:
    return '. This is the class; maybe you meant Tolerance(rtol=1e-6, atol=1e-5)'
  if isinstance(declared, numbers.Real) and not isinstance(declared, bool):
    return (
      '. One number does not say whether it is relative or absolute; '
      f'maybe you meant Tolerance(rtol={float(declared)!r}, atol={float(declared)!r})'
    )
  if isinstance(declared, (tuple, list)) and len(declared) == 2:
    return f'. Maybe you meant Tolerance(rtol={declared[0]!r}, atol={declared[1]!r})'
  return ''
