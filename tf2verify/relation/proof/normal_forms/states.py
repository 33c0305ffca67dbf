"""Variables of a training step that are a known function of the steps taken, or of another.

TF1's Adam keeps powers of its decays and multiplies them in each step; Keras keeps a count and
forms the powers anew. That both are the same follows by induction: a variable that every step
multiplies by a constant c, and that is c to the power of n before one step, is c to the power
of n and the steps since. `inductive.py` finds such variables; here is what they stand for.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.elementwise import elementwise
from tf2verify.relation.proof.normal_forms.polynomials import is_ring, polynomial, total
from tf2verify.relation.proof.normal_forms.terms import Terms

STEPS = 'steps taken'
# In which counts of steps are compared.
_WHOLE = 'int64'


@dataclasses.dataclass(frozen=True)
class Count:
  """A variable to which every step adds 1."""

  start: int  # what it holds before the first step

  def term(self, terms: Terms, dtype: str) -> int:
    """Returns the term of the variable before a step."""
    return _steps(terms, dtype, self.start)

  def after(self, steps: int) -> float:
    """Returns its value once some steps were taken."""
    return steps + self.start


@dataclasses.dataclass(frozen=True)
class Power:
  """A variable that every step multiplies by a number between 0 and 1."""

  base: float
  start: int  # the power of it that the variable holds before the first step

  def term(self, terms: Terms, dtype: str) -> int:
    """Returns the term of the variable before a step."""
    base = terms.constant(np.asarray(self.base, dtype), dtype)
    return elementwise(terms, 'Pow', [base, _steps(terms, dtype, self.start)], dtype, ())

  def after(self, steps: int) -> float:
    """Returns its value once some steps were taken."""
    return float(self.base ** max(steps + self.start, 0))


State = Count | Power
States = Mapping[str, State]


@dataclasses.dataclass(frozen=True)
class Multiple:
  """A variable of the port that holds a multiple of one of the reference."""

  of: str  # the reference's variable, by its name in the graph
  factor: float


def steps_as(terms: Terms, dtype: str) -> int:
  """Returns the term of the number of steps taken, in a dtype."""
  return terms.add(STEPS, (), None, dtype, ())


def _steps(terms: Terms, dtype: str, start: int) -> int:
  one = terms.constant(np.asarray(1, dtype), dtype)
  return total(terms, ((steps_as(terms, dtype), 1), (one, start)), dtype, ())


def counted_as(terms: Terms, number: int, dtype: str) -> int | None:
  """Returns a whole multiple of the steps taken, plus a whole number, in another dtype.

  None for anything else.
  """
  if terms.shape(number) != () or not is_ring(dtype) or not is_ring(terms.dtype(number)):
    return None
  found = polynomial(terms, number)
  atoms = {atom for monomial in found for atom in monomial}
  if any(terms[atom].kind != STEPS for atom in atoms) or not atoms:
    return None
  if any(len(monomial) > 1 or count != round(count) for monomial, count in found.items()):
    return None
  kind = np.dtype('float32' if dtype in ('bfloat16', 'float16') else dtype)
  parts = [(steps_as(terms, dtype), count) for monomial, count in found.items() if monomial]
  parts.append((terms.constant(np.asarray(1, kind), dtype), found.get((), 0)))
  return total(terms, parts, dtype, ())


def whole_counts(terms: Terms, numbers: Sequence[int]) -> Sequence[int]:
  """Returns what is compared, as integers where it is a count of steps and whole numbers.

  One side counts in floats, of which each is a whole number as well.
  """
  counts = [counted_as(terms, number, _WHOLE) for number in numbers]
  if not any(count is not None for count in counts):
    return numbers
  found: list[int] = []
  for number, count in zip(numbers, counts, strict=True):
    value = terms.single(number)
    if count is None and (value is None or value % 1 != 0 or terms.shape(number) != ()):
      return numbers
    whole = terms.constant(np.asarray(value, _WHOLE), _WHOLE) if count is None else count
    found.append(whole)
  return found
