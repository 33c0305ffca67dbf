"""What a whole recording, which fits its case, cannot show."""

from collections.abc import Iterable, Iterator

from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.recordings.recording import Recording
from tf2verify.sides.recorded.build import parsed


def blind_spots(recording: Recording, training_modes: Iterable[bool]) -> Iterator[str]:
  """Yields a note for everything that a reader of a verdict has to know of a recording.

  Args:
    recording: verified.
    training_modes: those of the case.
  """
  made = recording.manifest.environment.get('tensorflow', '(unknown)')
  if not made.startswith('1.'):
    yield (
      f'the reference is not genuine TensorFlow 1.x: it was recorded by TensorFlow {made}, and '
      'shows what the TF1 code computes there; run tf1_recorder.py where TensorFlow 1.x is'
    )
  if {False, True} <= set(training_modes) and _is_the_same_in_training(recording):
    yield (
      'the recorded graphs of inference and training are the same: the model does nothing '
      'different '
      f'in training, or {recording.manifest.builder.name} ignores its argument for it, and what '
      'differs in training (dropout, batch statistics) is not compared'
    )


def _is_the_same_in_training(recording: Recording) -> bool:
  """Returns whether both modes compute the same by the same operations."""
  by_training = {entry.training: entry for entry in recording.manifest.graphs}
  inference, training = by_training[False], by_training[True]
  if _yields(inference) != _yields(training):
    return False
  ones, others = (
    parsed(recording.graph_def(e), recording.path).node for e in (inference, training)
  )
  # Behind the model, one of them has gradients.
  return all(one == other for one, other in zip(ones, others, strict=False))


def _yields(entry: GraphEntry) -> tuple[object, ...]:
  draws = tuple(draw.op_name for draw in entry.random_draws)
  losses = tuple(name for _, name in entry.regularization_losses)
  return entry.outputs, entry.update_ops, losses, draws
