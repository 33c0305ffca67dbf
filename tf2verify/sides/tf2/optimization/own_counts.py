"""Learning rates of the port at other values of the variables that may count its steps."""

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.reference.variables import variable_name
from tf2verify.sides.optimizers.parts import parts_of
from tf2verify.sides.optimizers.state import eager_learning_rate, told


def rates_by_count(
  made: Any, optimizer: Any, counts: Sequence[int]
) -> Iterator[tuple[str, int, list[float]]]:
  """Yields the rates of an optimizer with one variable after the other at counts of steps.

  Args:
    made: what takes the place of an optimizer; what it holds and what the rate of the optimizer is
      computed from is looked through.
    optimizer: one that has updated.
    counts: of steps.

  Yields:
    The name of a variable, its value, and the rates with it at the counts. What none of them
    changes is left out.
  """
  held = vars(optimizer) if hasattr(optimizer, '__dict__') else {}
  computed = [value for value in held.values() if callable(value)]
  for found in parts_of([made, computed]).held_counts():
    variable, rates = found.variable, []
    before = tf.identity(variable)
    try:
      for count in counts:
        variable.assign(tf.cast(count, variable.dtype))
        rate = eager_learning_rate(optimizer)
        rates += [] if rate is None else [rate]
    finally:
      variable.assign(before)
    if len(rates) == len(counts) and len(set(rates)) > 1:
      name = told(found.word) or variable_name(variable)
      yield name, int(before), rates
