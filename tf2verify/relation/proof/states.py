"""Variables of a training step that are a known function of the steps taken, or of another.

TF1's Adam keeps powers of its decays and multiplies them in each step; Keras keeps a count and
forms the powers anew. That both are the same follows by induction: a variable that every step
multiplies by a constant c, and that is c to the power of n before one step, is c to the power
of n and the steps since. `inductive.py` finds such variables; here is what they stand for.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf2verify.relation.proof.elementwise import elementwise
from tf2verify.relation.proof.polynomials import total
from tf2verify.relation.proof.terms import Terms

STEPS = 'steps taken'


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
