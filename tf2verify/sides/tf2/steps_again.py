"""Training steps of the port, taken or traced beside those under way."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.training import TrainingRun, TrainingStep
from tf2verify.sides.optimizers.made_lines import MadeLines
from tf2verify.sides.tf2.graphs.edited_step import EditableStep
from tf2verify.sides.tf2.graphs.step_tracing import SharedNames
from tf2verify.sides.tf2.steps import MakesStep, Tf2Steps

v1 = tf.compat.v1


class Tf2StepsAgain:
  """Steps beside those of a layer that is under way, whose global step they leave alone."""

  def __enter__(self) -> 'Tf2StepsAgain':
    return self

  def __exit__(self, *_: object) -> None:
    pass

  def __init__(self, begin: Callable[[], Tf2Steps]) -> None:
    """Takes what begins them."""
    self._counters: list[Any] = []
    with self._own_counter():
      self._steps = begin()

  def run(self) -> TrainingRun:
    """Returns what is known besides the steps themselves."""
    with self._own_counter():
      return self._steps.run()

  def take(self) -> TrainingStep:
    """Takes a step and reads everything after it."""
    with self._own_counter():
      return self._steps.take()

  def advance(self) -> None:
    """Takes a step and reads nothing; see `Tf2Steps.advance`."""
    with self._own_counter():
      self._steps.advance()

  def give_gradients(self, names: Mapping[str, str], tf1: TrainingStep, traced: bool) -> None:
    """Has the next step take the gradients of one of the reference; see `Tf2Steps.give_gradients`.

    Args:
      names: under which the port's variables are shown, by tf1 name.
      tf1: that step.
      traced: whether the next step is traced, and not taken.
    """
    given = self._steps.give_gradients(names, applied=False)
    (given.begin_trace if traced else given.begin)(tf1)

  def traced(self, names: SharedNames, made: MadeLines) -> MakesStep:
    """Traces the next step, and does not take it; see `Tf2Steps.traced`."""
    with self._own_counter():
      make = self._steps.traced(names, made)

    def step(before: Mapping[str, np.ndarray]) -> EditableStep:
      with self._own_counter():
        return make(before)

    return step

  @contextlib.contextmanager
  def _own_counter(self) -> Iterator[None]:
    known = v1.get_default_graph().get_collection_ref(v1.GraphKeys.GLOBAL_STEP)
    before, known[:] = list(known), self._counters
    try:
      yield
    finally:
      now = v1.get_default_graph().get_collection_ref(v1.GraphKeys.GLOBAL_STEP)
      self._counters, now[:] = list(now), before
