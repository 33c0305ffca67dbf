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
  """A tensor in a checkpoint file."""

  name: str  # its key
  shape: tuple[int, ...]  # of the tensor
  dtype: str  # numpy's name of the dtype (`float32`, `bfloat16`, `str`)

  def __str__(self) -> str:
    return f'{self.shape} {self.dtype}'


@dataclasses.dataclass(frozen=True)
class KeySource:
  """Where a variable's value is read from."""

  variable: str  # the tf1 name
  key: str  # the key that is read
  # For a part of a partitioned variable, which a `Saver` writes as one tensor: where the part
  # begins; None for a whole tensor.
  offset: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True)
class AccountedKey:
  """A key, and what it is for the model."""

  key: CheckpointKey  # the key
  kind: KeyKind  # what it holds
  variable: str  # the tf1 variable that it is, or belongs to; '' for none
  read: bool  # whether a variable's value is read from it


@dataclasses.dataclass(frozen=True)
class MissingKey:
  """A variable that a checkpoint does not hold."""

  variable: str  # the tf1 name
  closest: str = ''  # the unread key that is most like it; '' where none is


@dataclasses.dataclass(frozen=True)
class ChangedKey:
  """A key that does not fit the variable of its name."""

  key: CheckpointKey  # the key
  shape: tuple[int | None, ...]  # of the variable; None stands for a dimension that is not known
  dtype: str  # of the variable


@dataclasses.dataclass(frozen=True)
class KeyAccount:
  """Every key of a checkpoint, next to every variable of the model."""

  keys: tuple[AccountedKey, ...]  # sorted by name
  sources: tuple[KeySource, ...]  # one per variable that can be read, in the order of the variables
  missing: tuple[MissingKey, ...]  # variables without a key
  changed: tuple[ChangedKey, ...]  # keys of another shape or dtype than their variable

  def unread(self, kind: KeyKind) -> tuple[AccountedKey, ...]:
    """Returns the keys of a kind from which nothing is read."""
    return tuple(key for key in self.keys if key.kind is kind and not key.read)

  def counts(self) -> tuple[tuple[str, int, int], ...]:
    """Returns kind, number of keys and number of those read, of the kinds that occur."""
    by_kind = [(kind, [key for key in self.keys if key.kind is kind]) for kind in KeyKind]
    return tuple(
      (kind.value, len(keys), sum(key.read for key in keys)) for kind, keys in by_kind if keys
    )
