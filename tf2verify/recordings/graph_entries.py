"""What a manifest says of a TF1 graph."""

import dataclasses

from tf2verify.recordings.array_entries import shape
from tf2verify.recordings.fields import (
  Malformed,
  count,
  flag,
  key,
  maybe,
  named,
  pair,
  parsed,
  record,
  several,
  text,
)

_loose_shape = several(maybe(count))


@dataclasses.dataclass(frozen=True)
class SourceEntry:
  """A line of the code that was recorded; see `records.observation.SourceLine`."""

  path: str
  line: int
  function: str
  code: str


def source(value: object) -> SourceEntry:
  """Takes a line of code: an array of four."""
  if not isinstance(value, list) or len(value) != 4:
    raise Malformed('is not an array of path, line, function and code')
  path, line, function, code = value
  return SourceEntry(text(path), count(line), text(function), text(code))


@dataclasses.dataclass(frozen=True)
class VariableEntry:
  """A variable: the fields of `sides.tf1.graphs.build.GraphVariable` and of its record.

  Attributes:
    source: index of its line among the graph's sources.
  """

  name: str = parsed(text)
  shape: tuple[int | None, ...] = parsed(_loose_shape)
  dtype: str = parsed(text)
  trainable: bool = parsed(flag)
  trainable_flag: bool = parsed(flag)
  collections: tuple[str, ...] = parsed(several(text))
  source: int | None = parsed(maybe(count))
  read: str = parsed(text)
  initializer: str = parsed(text)
  value: str = parsed(text)
  shares_value: bool = parsed(flag)
  may_change: bool = parsed(flag)
  local: bool = parsed(flag)
  global_step: bool = parsed(flag)


@dataclasses.dataclass(frozen=True)
class DrawEntry:
  """A random op; see `records.observation.RandomDraw`.

  Attributes:
    source: index of its line among the graph's sources.
  """

  op_type: str = parsed(text)
  shape: tuple[int | None, ...] = parsed(_loose_shape)
  variable: str | None = parsed(maybe(text))
  source: int | None = parsed(maybe(count))
  in_loop: bool = parsed(flag)
  op_name: str | None = parsed(maybe(text))
  feeds_outputs: bool = parsed(flag)


@dataclasses.dataclass(frozen=True)
class GradientEntry:
  """A gradient by tensor name; see `sides.tf1.graphs.build.GraphGradient`."""

  variable: str = parsed(text)
  values: str | None = parsed(maybe(text))
  indices: str | None = parsed(maybe(text))
  shape: tuple[int, ...] = parsed(shape)

  @property
  def tensors(self) -> tuple[str, ...]:
    """Names of the tensors that give it; empty if unconnected."""
    return tuple(name for name in (self.values, self.indices) if name is not None)


@dataclasses.dataclass(frozen=True)
class GraphEntry:
  """A graph; see `sides.tf1.graphs.build.BuiltGraph`.

  Attributes:
    training: the training mode.
    graph_def: id of the bytes of the GraphDef.
    constant_graph_def: id of that for seed mode `constant`; None where setting every
      `seed2` to 0 gives it.
    sources: lines of code.
    op_sources: id of an int32 array: for every node the index of its line, -1 for none.
  """

  training: bool = parsed(flag)
  graph_def: str = parsed(key)
  constant_graph_def: str | None = parsed(maybe(key))
  sources: tuple[SourceEntry, ...] = parsed(several(source))
  op_sources: str = parsed(key)
  placeholders: tuple[tuple[str, str], ...] = parsed(named(text))
  structure: str = parsed(text)
  outputs: tuple[tuple[str, str | None], ...] = parsed(named(maybe(text)))
  variables: tuple[VariableEntry, ...] = parsed(several(record(VariableEntry)))
  regularization_losses: tuple[tuple[tuple[str, ...], str], ...] = parsed(
    several(pair(several(text), text))
  )
  update_ops: tuple[str, ...] = parsed(several(text))
  table_initializers: tuple[str, ...] = parsed(several(text))
  random_draws: tuple[DrawEntry, ...] = parsed(several(record(DrawEntry)))
  seed_obstacle: str = parsed(text)
  operation_seeds: int = parsed(count)
  gradients: tuple[GradientEntry, ...] = parsed(several(record(GradientEntry)))


graph = record(GraphEntry)
