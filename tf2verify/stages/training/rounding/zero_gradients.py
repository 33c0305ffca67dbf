"""Gradients that cancel exactly in TF1, and leave rounding in the port.

The bias of a score of which only differences are used: where TF1 computes both scores with one
formula, the two parts of its gradient are the same bits. A port that computes both at once adds
up the parts in another order.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from tf2verify.stages.training.steps.quantities import (
  APPLIED,
  GRADIENT,
  SHADOW,
  SLOT,
  UPDATE,
  QuantityPair,
  greatest,
)

# Of the greatest element of a quantity in the whole model: what rounding leaves of zero.
ROUNDING_OF_ZERO = 2.0**-20
_GRADIENTS = (GRADIENT, APPLIED)
_FOLLOWING = (SLOT, UPDATE, SHADOW)


def with_rounding_of_zeros(pairs: Sequence[QuantityPair]) -> list[QuantityPair]:
  """Returns pairs with an allowance for rounding where TF1 has nothing but zeros.

  For a variable whose gradient is zero everywhere in TF1, and so small in the port that rounding
  can leave it; and for what its optimizer makes of that.

  Args:
    pairs: all of a step.
  """
  sizes = greatest_of_kinds(pairs)
  known: dict[str, list[bool]] = {}
  for pair in pairs:
    if pair.quantity in _GRADIENTS:
      allowed = ROUNDING_OF_ZERO * sizes.get(kind_of(pair), 0.0)
      known.setdefault(pair.variable, []).append(_is_rounding_of_zero(pair, allowed))
  return [
    dataclasses.replace(pair, extra_atol=pair.extra_atol + ROUNDING_OF_ZERO * sizes[kind_of(pair)])
    if pair.quantity in (*_GRADIENTS, *_FOLLOWING) and all(known.get(pair.variable, [False]))
    else pair
    for pair in pairs
  ]


def greatest_of_kinds(pairs: Iterable[QuantityPair]) -> dict[tuple[str, str], float]:
  """Returns the greatest |element| of tf1 by the kind of quantity, over all variables."""
  sizes: dict[tuple[str, str], float] = {}
  for pair in pairs:
    if pair.tf1 is not None:
      sizes[kind_of(pair)] = max(sizes.get(kind_of(pair), 0.0), greatest(pair.tf1))
  return sizes


def kind_of(pair: QuantityPair) -> tuple[str, str]:
  """Returns what a pair is of: a slot of its role, `momentum of dense/kernel`."""
  return pair.quantity, pair.subject.rpartition(' of ')[0] if pair.quantity == SLOT else ''


def _is_rounding_of_zero(pair: QuantityPair, allowed: float) -> bool:
  if pair.tf1 is None or pair.tf2 is None or np.any(pair.tf1):
    return False
  return 0.0 < greatest(pair.tf2) <= allowed
