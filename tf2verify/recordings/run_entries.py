"""What a manifest says of runs: the fields of `records.observation.Observation`."""

import dataclasses

from tf2verify.recordings.array_entries import TensorEntry, Tensors, tensor, tensors
from tf2verify.recordings.fields import (
  count,
  flag,
  maybe,
  one_of,
  pair,
  parsed,
  record,
  several,
  text,
)

RegularizationLosses = tuple[tuple[tuple[str, ...], TensorEntry | None], ...]


@dataclasses.dataclass(frozen=True)
class _Observed:
  """What every run yields; pairs of names and tensors."""

  training: bool = parsed(flag)
  outputs: Tensors = parsed(tensors)
  regularization_losses: RegularizationLosses = parsed(several(pair(several(text), maybe(tensor))))
  regularization_total: TensorEntry | None = parsed(maybe(tensor))
  initial_values: Tensors = parsed(tensors)
  state_after: Tensors = parsed(tensors)
  gradients: Tensors = parsed(tensors)
  noise_runs: int = parsed(count)


@dataclasses.dataclass(frozen=True)
class FilledEntry(_Observed):
  """A run from filled variables."""

  kind: str = parsed(one_of('filled'))  # `filled`
  fill: str = parsed(text)  # the fill's description
  inputs: str = parsed(one_of('varied', 'given'))  # `varied` or `given`
  with_gradients: bool = parsed(flag)  # whether gradients were taken


@dataclasses.dataclass(frozen=True)
class SeededEntry(_Observed):
  """A run from seeded initial values."""

  kind: str = parsed(one_of('seeded'))  # `seeded`
  mode: str = parsed(one_of('constant', 'num_random_ops'))  # `constant` or `num_random_ops`


RunEntry = FilledEntry | SeededEntry
_filled, _seeded = record(FilledEntry), record(SeededEntry)


def run(value: object) -> RunEntry:
  """Takes a run of either kind."""
  seeded = isinstance(value, dict) and value.get('kind') == 'seeded'
  return _seeded(value) if seeded else _filled(value)
