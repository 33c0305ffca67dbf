"""What the user is told."""

import sys


def say(text: str) -> None:
  """Writes a line to stderr."""
  sys.stderr.write(text + '\n')
  sys.stderr.flush()


def training_name(training: bool) -> str:
  """Returns a training mode in words."""
  return 'training' if training else 'inference'
