"""What the graphs of a recording leave open, found without importing them."""

from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.recordings.recording import Recording
from tf2verify.records.observation import SourceLine
from tf2verify.sides.recorded.build import lines_of, parsed
from tf2verify.sides.tf1.graphs.racing import Fetches, GraphRaces, Racing, searched


class RecordedRaces:
  """Reads and writes of variables that recorded graphs do not order."""

  def __init__(self, recording: Recording, racing: Racing) -> None:
    """Takes a recording, whose graphs are read when they are asked for, and the order of runs."""
    self._recording = recording
    self._racing = racing
    self._found: dict[tuple[str, Fetches], GraphRaces] = {}
    self._lines: dict[str, dict[str, SourceLine]] = {}

  def is_model_reordered(self, entry: GraphEntry, gradients: bool = False) -> bool:
    """Returns whether a run of the model is wanted in another order than was recorded."""
    names = [name for _, name in entry.outputs if name is not None]
    names += [tensor for _, tensor in entry.regularization_losses]
    if gradients:
      names += [name for gradient in entry.gradients for name in gradient.tensors]
    return self.are_reordered(entry, Fetches(frozenset((*names, *entry.update_ops))))

  def are_reordered(self, entry: GraphEntry, fetches: Fetches) -> bool:
    """Returns whether a run is wanted in another order than the one that was recorded."""
    key = entry.graph_def, fetches
    if key not in self._found:
      graph_def = parsed(self._recording.graph_def(entry), self._recording.path)
      self._found[key] = searched(graph_def, fetches, lambda op: self.source_of(entry, op))
    found = self._found[key]
    self._racing.meet(found)
    return bool(found.races) and not self._racing.replays

  def source_of(self, entry: GraphEntry, op: str) -> SourceLine | None:
    """Returns the line of the reference's code that made an operation."""
    if entry.graph_def not in self._lines:
      self._lines[entry.graph_def] = lines_of(self._recording, entry)
    return self._lines[entry.graph_def].get(op)
