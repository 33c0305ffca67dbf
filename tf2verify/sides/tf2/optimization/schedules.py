"""Learning-rate schedules of Keras optimizers, asked for the rate at any count of steps."""

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import tensorflow as tf
import tf_keras

from tf2verify.errors import NotApplicable
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.optimizers.state import is_keras
from tf2verify.tensorflow_internals import keras, keras3

# What an argument of a schedule may be.
Number = bool | int | float


def _classes() -> tuple[type, ...]:
  """Returns the classes of schedules of the Keras that are there."""
  known = (tf_keras, keras3.loaded())
  return tuple(k.optimizers.schedules.LearningRateSchedule for k in known if k is not None)


class Schedule:
  """The schedule of the one optimizer that updates in a step."""

  def __init__(self, optimizers: Sequence[Any], constants: bool = False) -> None:
    """Takes the optimizers of a step.

    Args:
      optimizers: those that update.
      constants: whether a number is a schedule, too.

    Raises:
      NotApplicable: it is not one Keras optimizer, or its rate is no schedule.
    """
    if len(optimizers) != 1 or not is_keras(optimizers[0]):
      raise NotApplicable('the port does not update with one Keras optimizer')
    optimizer = optimizers[0]
    is_legacy = isinstance(optimizer, keras.LEGACY_OPTIMIZER)
    found = optimizer._hyper.get('learning_rate') if is_legacy else optimizer._learning_rate
    self._schedule: Any = found
    if not isinstance(found, _classes()):
      # An optimizer of the user's own may call it otherwise.
      if not constants or found is None or callable(found):
        raise NotApplicable("the learning rate of the port's optimizer is no schedule")
      number = float(keras3.held(found))
      self._schedule = lambda _: number
    self._iterations = keras3.held(optimizer.iterations)
    # As the optimizer calls it: a schedule may count on the dtype.
    self._dtype = tf.float32 if is_legacy else self._iterations.dtype

  @classmethod
  def of_each(cls, optimizers: Sequence[Any]) -> 'list[Schedule]':
    """Returns the schedules of those that can be asked, numbers among them."""
    found = []
    for optimizer in optimizers:
      with contextlib.suppress(NotApplicable):
        found.append(cls([optimizer], constants=True))
    return found

  @property
  def count(self) -> int:
    """The count of steps so far."""
    return int(self._iterations)

  def rates(self, counts: Sequence[int]) -> list[float]:
    """Returns the rates at counts of steps.

    Raises:
      UserCodeError: the schedule raised.
    """
    with user_code(side.TF2, 'the learning-rate schedule'):
      return [float(self._schedule(tf.constant(count, self._dtype))) for count in counts]

  def numbers(self) -> dict[str, Number]:
    """Returns the numbers that the schedule was given, as far as it keeps them."""
    held = getattr(self._schedule, '__dict__', {})
    return {
      name: value
      for name, value in held.items()
      if isinstance(value, (bool, int, float)) and not name.startswith('_')
    }

  def with_number(self, name: str, value: Number) -> 'Schedule':
    """Returns the same schedule with another number."""
    found = copy.copy(self)
    found._schedule = copy.copy(self._schedule)
    setattr(found._schedule, name, value)
    return found

  @contextlib.contextmanager
  def scaled(self, factor: float) -> Iterator[None]:
    """Has schedules of its class give another rate until exit."""
    cls = type(self._schedule)
    known = cls.__call__

    def call(schedule: Any, step: Any) -> Any:
      return known(schedule, step) * factor

    with mock.patch.object(cls, '__call__', call):
      yield
