"""Outputs of the model to which one of two losses hands no gradient."""

from collections.abc import Sequence

from tf2verify.diagnosis.evidence.losses import StoppedOutput, StoppedOutputs
from tf2verify.records.diagnosis import Cause

_MOST_LINES = 2


def stopped_output(evidence: StoppedOutputs) -> Cause | None:
  """A `stop_gradient` in a loss, lost, added or at another tensor.

  Looks for outputs by which one side's loss has a gradient, and the other side's has none.
  """
  tf1, tf2 = (_text(one) for one in (evidence.tf1, evidence.tf2))
  if tf1 and tf2:
    text = f'tf1 {tf1}, and the port {tf2}: stop it where tf1 does'
  elif tf1:
    text = f'tf1 {tf1}, and the port does not: put tf.stop_gradient there'
  else:
    text = f'the port {tf2}, and tf1 does not: remove what stops it'
  if not all(one.is_read for one in (*evidence.tf1, *evidence.tf2)):
    text = text.partition(': ')[0] + ': read the same outputs as tf1'
  return Cause(
    text,
    numbers='nothing else of the losses and their gradients differs' if evidence.is_all else '',
  )


def _text(stopped: Sequence[StoppedOutput]) -> str:
  """Returns what a side does to its outputs; '' where it does nothing to any."""
  read = [one for one in stopped if one.is_read]
  unread = [one.place for one in stopped if not one.is_read]
  said = [f'stops the gradient at {" and ".join(map(_at_lines, read))}'] if read else []
  said += [f'does not read {" and ".join(unread)} in its loss'] if unread else []
  return ' and '.join(said)


def _at_lines(one: StoppedOutput) -> str:
  lines = [line.short for line in one.lines]
  shown = ', '.join(lines[:_MOST_LINES]) + (', …' if len(lines) > _MOST_LINES else '')
  return f'{one.place} ({shown})' if lines else one.place
