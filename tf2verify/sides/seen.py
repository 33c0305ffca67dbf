"""Objects that were met before."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any


class Seen:
  """Objects by their identity, which are not kept alive by this.

  An optimizer holds its slots and the variables that it updates: of every run of a large model,
  that would be gigabytes.
  """

  def __init__(self, known: Iterable[Callable[[], Any]] = ()) -> None:
    """Takes what returns each object, or None where it is gone."""
    self._known = list(known)

  def __contains__(self, one: Any) -> bool:
    return one is not None and any(known() is one for known in self._known)

  def add(self, one: Any) -> None:
    """Adds an object; one without weak references is kept."""
    try:
      self._known.append(weakref.ref(one))
    except TypeError:
      self._known.append(lambda: one)

  def copy(self) -> 'Seen':
    """Returns those that were met so far."""
    return Seen(self._known)
