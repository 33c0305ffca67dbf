"""Initial values that fresh layers start with under other seeds."""

import time
from typing import Any, Protocol

import numpy as np

from tf2verify.errors import LayerError, UserCodeError
from tf2verify.numerics.distributions import points
from tf2verify.reference.variables import variable_name
from tf2verify.sides.process import randomness
from tf2verify.sides.side import Declaration
from tf2verify.sides.tf2.layers.port import Port, array_of

# Layers are made anew for so long, for all variables of a case together.
_SECONDS = 2.0
# Of a larger value some elements are kept, which show whether it is the same every time.
_LARGEST = 200_000


class Layers(Protocol):
  """What makes and calls the layers of a case."""

  def fresh_port(self) -> Port: ...
  def call(self, port: Port, inputs: Any, training: bool, call: str) -> Any: ...


class Redrawn:
  """What variables start with that are given a tensor, in layers made under other seeds.

  Such a value is there before its variable is, so that no function makes it again: the
  layer is made again, and serves all its variables.
  """

  def __init__(self, layers: Layers, declaration: Declaration, inputs: Any) -> None:
    """Takes what makes and calls layers, the case, and the inputs for a call."""
    self._layers = layers
    self._declaration = declaration
    self._inputs = inputs
    self._is_called = False
    self._values: list[dict[str, np.ndarray]] = []
    self._seconds = 0.0
    self._failed = False

  def values(self, variable: str, times: int) -> list[np.ndarray]:
    """Returns initial values of a variable, at most so many as were asked for.

    Args:
      variable: its name.
      times: how many are wanted. There are fewer where they take too long, none where the
        layer cannot be made again; of a variable of more than 200,000 elements each is
        what `points` takes of them.
    """
    if self._values and variable not in self._values[0] and not self._is_called:
      self._is_called = True  # its call makes the variable
      self._values = []
    while len(self._values) < times and not self._failed and self._has_time():
      start = time.perf_counter()
      try:
        self._values.append(self._drawn(len(self._values) + 1))
      except (UserCodeError, LayerError):
        self._failed = True
      self._seconds += time.perf_counter() - start
    return [known[variable] for known in self._values[:times] if variable in known]

  def repeats(self, variable: str, value: np.ndarray) -> bool | None:
    """Returns whether a layer of other seeds starts with the same value; None if not known."""
    found = self.values(variable, 1)
    if not found:
      return None
    known = kept(value)
    return known.shape == found[0].shape and known.tobytes() == found[0].tobytes()

  def _has_time(self) -> bool:
    done = len(self._values)
    # Two at any rate, unless the first alone has taken all the time.
    return self._seconds < _SECONDS if done != 1 else self._seconds < 2 * _SECONDS

  def _drawn(self, number: int) -> dict[str, np.ndarray]:
    with randomness.seeded(randomness.NUM_RANDOM_OPS, randomness.SEED + number):
      port = self._layers.fresh_port()
      if self._is_called or not port.recorder.creations:
        self._is_called = True
        training = self._declaration.training_modes[0]
        self._layers.call(port, self._inputs, training, 'a call of other seeds')
    return {
      variable_name(creation.variable): kept(array_of(creation.initial_value))
      for creation in port.recorder.creations
      if creation.make_value is None and creation.initial_value is not None
    }


def kept(value: np.ndarray) -> np.ndarray:
  """Returns what is kept of an initial value: all of it, or some elements, copied."""
  return value.copy() if value.size <= _LARGEST else points(value)
