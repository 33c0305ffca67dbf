"""What the digest of one object asks of the walk over all of them."""

from collections.abc import Callable
from typing import Any, Protocol


class Walk(Protocol):
  """Goes from object to object.

  Attributes:
    known: classes that are not looked into.
    names: of all attributes that code reads.
    strings: all texts that are reached.
    packages: the installed ones that are used, but for those of Python and TensorFlow.
  """

  known: frozenset[type]
  names: set[str]
  strings: set[str]
  packages: dict[str, None]

  def refuse(self, where: str, why: str) -> None:
    """Remembers that something has no digest."""

  def counted(self, where: str) -> bool:
    """Counts an object; returns whether it may still be looked at."""

  def label(self, value: Any, name: str, write: Callable[[Any], None]) -> str:
    """Returns the name of the part that is about an object; the first time it is made."""
