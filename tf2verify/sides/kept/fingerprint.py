"""A digest of all that some functions may read: code, defaults, closures, globals, classes."""

import dataclasses
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from tf2verify.sides.kept import packages
from tf2verify.sides.kept.objects import Part

# A reference that reaches more objects than this is built anew: to look at all would take longer.
_MOST_OBJECTS = 200_000


@dataclasses.dataclass(frozen=True)
class Fingerprint:
  """What was reached, by name, with a digest each."""

  parts: Mapping[str, str]  # name in the code (`model.UNITS`) and digest
  obstacles: tuple[str, ...]  # what was reached that has no digest, with the reason


def fingerprint(
  roots: Iterable[tuple[str, Any]],
  known: Collection[type] = (),
  left_out: Mapping[str, Sequence[tuple[str, Any]]] | None = None,
) -> Fingerprint:
  """Returns the digest of all that is reached from some objects.

  Args:
    roots: names and objects: functions, classes or values.
    known: classes that are not looked into, nor their instances: their members are among the roots.
    left_out: members of those that are no roots, by their names; one that some code names is.
  """
  walk = _Walk(frozenset(known))
  for name, value in roots:
    walk.add(name, value)
  walk.finish()
  left = dict(left_out or {})
  while named := sorted(left.keys() & walk.names):
    for name in named:
      for label, value in left.pop(name):
        walk.add(label, value)
    walk.finish()
  walk.add_what_packages_hold()
  return Fingerprint(walk.parts, tuple(walk.obstacles))


class _Walk:
  """Goes from object to object; what has a name in some module is a part of its own."""

  def __init__(self, known: frozenset[type]) -> None:
    self.known = known
    self.names: set[str] = set()  # of all attributes that the code reads
    self.strings: set[str] = set()
    self.packages: dict[str, None] = {}
    self.parts: dict[str, str] = {}
    self.obstacles: dict[str, None] = {}
    self._taken: set[str] = set()
    self._labels: dict[tuple[int, str], str] = {}
    self._kept: list[Any] = []  # so that no other object gets the identity of one that was seen
    self._pending: list[tuple[str, Callable[[Part], None]]] = []
    self._count = 0

  def add(self, name: str, value: Any) -> None:
    """Takes an object to start from."""
    self._pending.append((self._free(name), lambda part: part.put(value)))

  def finish(self) -> None:
    """Looks at all that is reached."""
    while self._pending:
      name, write = self._pending.pop(0)
      part = Part(self, name)
      write(part)
      self.parts[name] = part.digest()

  def add_what_packages_hold(self) -> None:
    """Looks at what reached code finds by a name or a type, and at the packages that it uses."""
    seen: set[int] = set()

    def put(name: str, value: Any) -> None:
      if id(value) not in seen:
        seen.add(id(value))
        self._kept.append(value)
        self.add(name, value)

    looked: set[str] = set()
    while True:
      packages.registered(self.strings, put)
      while missing := sorted(self.packages.keys() - looked):
        for root in missing:
          looked.add(root)
          self._package(root, put)
      if not self._pending:
        return
      self.finish()

  def _package(self, root: str, put: Callable[[str, Any], None]) -> None:
    found = hashlib.sha256()
    for text in packages.state_of(root, put):
      found.update(text.encode('utf-8', 'surrogatepass') + b'\n')
    self.parts[f'the package {root}, its files or its settings'] = found.hexdigest()

  def refuse(self, where: str, why: str) -> None:
    """Remembers that something has no digest."""
    self.obstacles[f'{where}: {why}'] = None

  def counted(self, where: str) -> bool:
    """Counts an object; returns whether it may still be looked at."""
    self._count += 1
    if self._count > _MOST_OBJECTS:
      self.refuse(where, f'it reaches more than {_MOST_OBJECTS:,} objects')
    return self._count <= _MOST_OBJECTS

  def label(self, value: Any, name: str, write: Callable[['Part'], None]) -> str:
    """Returns the name of the part that is about an object; the first time it is made."""
    key = (id(value), name)
    if key not in self._labels:
      self._kept.append(value)
      self._labels[key] = self._free(name)
      self._pending.append((self._labels[key], write))
    return self._labels[key]

  def _free(self, name: str) -> str:
    found, count = name, 1
    while found in self._taken:
      count += 1
      found = f'{name} ({count})'
    self._taken.add(found)
    return found
