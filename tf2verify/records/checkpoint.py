"""The keys of a TF1 checkpoint, and what becomes of each."""

import dataclasses
import enum


class KeyKind(enum.Enum):
  """What a key of a name-based checkpoint holds."""

  MODEL = 'model variable'
  SHADOW = 'EMA shadow'
  SLOT = 'optimizer slot'
  OPTIMIZER = 'optimizer state'
  GLOBAL_STEP = 'global step'
  LEFT_OUT = 'left out by the port'
  UNKNOWN = 'unknown'


@dataclasses.dataclass(frozen=True)
class CheckpointKey:
  """A tensor in a checkpoint file.

  Attributes:
    name: its key.
    shape: of the tensor.
    dtype: numpy's name of the dtype (`float32`, `bfloat16`, `str`).
  """

  name: str
  shape: tuple[int, ...]
  dtype: str

  def __str__(self) -> str:
    return f'{self.shape} {self.dtype}'


@dataclasses.dataclass(frozen=True)
class KeySource:
  """Where a variable's value is read from.

  Attributes:
    variable: the tf1 name.
    key: the key that is read.
    offset: for a part of a partitioned variable, which a `Saver` writes as one tensor:
      where the part begins; None for a whole tensor.
  """

  variable: str
  key: str
  offset: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True)
class AccountedKey:
  """A key, and what it is for the model.

  Attributes:
    key: the key.
    kind: what it holds.
    variable: the tf1 variable that it is, or belongs to; '' for none.
    read: whether a variable's value is read from it.
  """

  key: CheckpointKey
  kind: KeyKind
  variable: str
  read: bool


@dataclasses.dataclass(frozen=True)
class MissingKey:
  """A variable that a checkpoint does not hold.

  Attributes:
    variable: the tf1 name.
    closest: the unread key that is most like it; '' where none is.
  """

  variable: str
  closest: str = ''


@dataclasses.dataclass(frozen=True)
class ChangedKey:
  """A key that does not fit the variable of its name.

  Attributes:
    key: the key.
    shape: of the variable; None stands for a dimension that is not known.
    dtype: of the variable.
  """

  key: CheckpointKey
  shape: tuple[int | None, ...]
  dtype: str


@dataclasses.dataclass(frozen=True)
class KeyAccount:
  """Every key of a checkpoint, beside every variable of the model.

  Attributes:
    keys: sorted by name.
    sources: one per variable that can be read, in the order of the variables.
    missing: variables without a key.
    changed: keys of another shape or dtype than their variable.
  """

  keys: tuple[AccountedKey, ...]
  sources: tuple[KeySource, ...]
  missing: tuple[MissingKey, ...]
  changed: tuple[ChangedKey, ...]

  def unread(self, kind: KeyKind) -> tuple[AccountedKey, ...]:
    """Returns the keys of a kind from which nothing is read."""
    return tuple(key for key in self.keys if key.kind is kind and not key.read)

  def counts(self) -> tuple[tuple[str, int, int], ...]:
    """Returns kind, number of keys and number of those read, of the kinds that occur."""
    by_kind = [(kind, [key for key in self.keys if key.kind is kind]) for kind in KeyKind]
    return tuple(
      (kind.value, len(keys), sum(key.read for key in keys)) for kind, keys in by_kind if keys
    )
