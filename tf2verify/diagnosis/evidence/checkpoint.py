"""A variable after a restore, beside the value that it should have."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf2verify.numerics.restored_values import same


@dataclasses.dataclass(frozen=True, eq=False)
class RestoredValue:
  """A value that is not the expected one.

  Attributes:
    variable: its tf1 name.
    actual: what the variable holds.
    expected: what the checkpoint holds for it.
    before: what it held before.
    key: where `expected` is read from.
    others: the values of all keys.
  """

  variable: str
  actual: np.ndarray
  expected: np.ndarray
  before: np.ndarray
  key: str
  others: Mapping[str, np.ndarray]

  @property
  def kept(self) -> bool:
    """Whether the variable kept the value that it had before."""
    return same(self.actual, self.before)


@dataclasses.dataclass(frozen=True)
class UnreadVariable:
  """A variable that the case's own loader of a TF1 checkpoint left as it was.

  Attributes:
    variable: its tf2 name.
    key: that it should be read from.
    layer: the class of the layer that is given.
    unread: the keys of all such variables, as text.
    by_name: whether `tf.train.Checkpoint` was given this file.
    is_key: whether the checkpoint has a key of the variable's name.
    reached: whether what was given to `tf.train.Checkpoint` leads to the variable.
    waits: whether something was restored that had no variables yet.
  """

  variable: str
  key: str
  layer: str
  unread: str
  by_name: bool
  is_key: bool
  reached: bool
  waits: bool


@dataclasses.dataclass(frozen=True)
class UnrestoredVariable:
  """A variable that was saved by the port, and that restoring left as it was.

  Attributes:
    variable: its name.
    layer: the class of the layer.
    tracked: whether attributes of the layer lead to it.
    restores: whether anything was restored by `tf.train.Checkpoint`.
    waits: whether all of that had no variables yet.
    entry: the object path that was looked for; '' without one.
    stored: the object paths in the file.
    unused: those of them that nothing looked for.
  """

  variable: str
  layer: str
  tracked: bool
  restores: bool
  waits: bool
  entry: str
  stored: tuple[str, ...]
  unused: tuple[str, ...]
