"""A variable after a restore, next to the value that it should have."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf2verify.numerics.restored_values import same


@dataclasses.dataclass(frozen=True, eq=False)
class RestoredValue:
  """A value that is not the expected one."""

  variable: str  # its tf1 name
  actual: np.ndarray  # what the variable holds
  expected: np.ndarray  # what the checkpoint holds for it
  before: np.ndarray  # what it held before
  key: str  # where `expected` is read from
  others: Mapping[str, np.ndarray]  # the values of all keys

  @property
  def kept(self) -> bool:
    """Whether the variable kept the value that it had before."""
    return same(self.actual, self.before)


@dataclasses.dataclass(frozen=True)
class UnreadVariable:
  """A variable that the case's own loader of a TF1 checkpoint left as it was."""

  variable: str  # its tf2 name
  key: str  # that it should be read from
  layer: str  # the class of the layer that is given
  unread: str  # the keys of all such variables, as text
  by_name: bool  # whether `tf.train.Checkpoint` was given this file
  is_key: bool  # whether the checkpoint has a key of the variable's name
  reached: bool  # whether what was given to `tf.train.Checkpoint` leads to the variable
  waits: bool  # whether something was restored that had no variables yet


@dataclasses.dataclass(frozen=True)
class UnrestoredVariable:
  """A variable that was saved by the port, and that restoring left as it was."""

  variable: str  # its name
  layer: str  # the class of the layer
  tracked: bool  # whether attributes of the layer lead to it
  of_keras: bool  # whether its Keras, of version 3, knows it as a variable of the layer
  restores: bool  # whether anything was restored by `tf.train.Checkpoint`
  waits: bool  # whether all of that had no variables yet
  entry: str  # the object path that was looked for; '' without one
  stored: tuple[str, ...]  # the object paths in the file
  unused: tuple[str, ...]  # those of them that nothing looked for
