"""What keeps a recording from being made."""


class RecorderError(Exception):
  """What keeps a recording from being made, and what to do, on one line."""
