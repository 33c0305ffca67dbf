"""What a manifest says, as records."""

import dataclasses

from tf2verify.recordings import training_entries
from tf2verify.recordings.array_entries import ArrayEntry, Nest, nest
from tf2verify.recordings.fields import (
  anything,
  by_key,
  count,
  digest,
  flag,
  key,
  maybe,
  named,
  one_of,
  parsed,
  record,
  several,
  text,
)
from tf2verify.recordings.graph_entries import GraphEntry, graph
from tf2verify.recordings.run_entries import FilledEntry, RunEntry, SeededEntry, run
from tf2verify.recordings.training_entries import CheckpointEntry, LossesEntry, StepsEntry


@dataclasses.dataclass(frozen=True)
class SourceFile:
  """A file of the user's code."""

  path: str = parsed(text)  # relative to the folder in which it was recorded
  sha256: str = parsed(digest)  # of its bytes


@dataclasses.dataclass(frozen=True)
class BuilderEntry:
  """What built the graphs."""

  name: str = parsed(text)  # `module:function`
  # The user's files that it imported.
  sources: tuple[SourceFile, ...] = parsed(several(record(SourceFile)))


@dataclasses.dataclass(frozen=True)
class IntermediateRun:
  """Tensors of a run between inputs and outputs."""

  run: int = parsed(count)  # index among the runs
  tensors: tuple[tuple[str, str], ...] = parsed(named(key))  # name and id of the array


@dataclasses.dataclass(frozen=True)
class IntermediatesEntry:
  """Intermediate tensors.

  Attributes:
    level: `none`, `summary` (a few elements of each) or `full`.
    runs: those that they were taken of.
  """

  level: str = parsed(one_of('none', 'summary', 'full'))
  runs: tuple[IntermediateRun, ...] = parsed(several(record(IntermediateRun)))


@dataclasses.dataclass(frozen=True)
class Manifest:
  """All that a recording holds; docs/recordings.md describes every field."""

  sha256: str = parsed(digest)
  made: str = parsed(text)
  environment: dict[str, str] = parsed(by_key(text))
  builder: BuilderEntry = parsed(record(BuilderEntry))
  arguments: dict[str, object] = parsed(by_key(anything))
  training_modes: tuple[bool, ...] = parsed(several(flag))
  arrays: dict[str, ArrayEntry] = parsed(by_key(record(ArrayEntry)))
  inputs: Nest = parsed(nest)
  varied_inputs: Nest = parsed(nest)
  replaced_inputs: tuple[str, ...] = parsed(several(text))
  labels: Nest | None = parsed(maybe(nest))
  fills: dict[str, dict[str, str | None]] = parsed(by_key(by_key(maybe(digest))))
  graphs: tuple[GraphEntry, ...] = parsed(several(graph))
  runs: tuple[RunEntry, ...] = parsed(several(run))
  losses: LossesEntry | None = parsed(maybe(training_entries.losses))
  steps: StepsEntry | None = parsed(maybe(training_entries.steps))
  checkpoint: CheckpointEntry | None = parsed(maybe(training_entries.checkpoint))
  intermediates: IntermediatesEntry = parsed(record(IntermediatesEntry))

  def graph(self, training: bool) -> GraphEntry | None:
    """Returns the graph of a training mode; None where it was not recorded."""
    return next((found for found in self.graphs if found.training == training), None)

  def filled(
    self, training: bool, fill: str, inputs: str, with_gradients: bool
  ) -> FilledEntry | None:
    """Returns a run from filled variables; None where it was not recorded.

    Args:
      training: the training mode.
      fill: the fill's description.
      inputs: `varied` or `given`.
      with_gradients: whether its gradients are wanted.
    """
    wanted = training, fill, inputs, with_gradients
    for found in self.runs:
      if isinstance(found, FilledEntry) and wanted == (
        found.training,
        found.fill,
        found.inputs,
        found.with_gradients,
      ):
        return found
    return None

  def seeded(self, mode: str, training: bool) -> SeededEntry | None:
    """Returns a run from seeded initial values; None where it was not recorded."""
    for found in self.runs:
      if isinstance(found, SeededEntry) and (found.mode, found.training) == (mode, training):
        return found
    return None
