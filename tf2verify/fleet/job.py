"""What a process of the fleet is asked for, and what it tells on the way."""

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

CHECK, DISCOVER, VERIFY = 'check', 'discover', 'verify'

# What a process tells, line by line.
STARTED, DOING, STAGE, FOUND, DONE, REFUSED = (
  'started',
  'doing',
  'stage',
  'found',
  'done',
  'refused',
)
# Any of these is the last that there is to tell.
OUTCOMES = (FOUND, DONE, REFUSED)
# Exit status of a process in which something raised that is not an error of the case.
UNCAUGHT = 70


@dataclasses.dataclass(frozen=True)
class Job:
  """Something to be done in a process of its own.

  Attributes:
    number: tells it from others of this run of the fleet.
    kind: `CHECK`: are there stages of these names? `DISCOVER`: name the cases of a target.
      `VERIFY`: climb the ladder with one.
    target: a file or a module as `run` takes it; to verify, with `::Case`.
    stages: names of the stages to run; None for all.
    folder: of the job alone; gone when it has ended.
  """

  number: int
  kind: str
  target: str
  stages: tuple[str, ...] | None
  folder: str

  @property
  def events(self) -> str:
    """The file that the process tells its events to."""
    return os.path.join(self.folder, 'events')

  @property
  def log(self) -> str:
    """The file that gets what the process prints."""
    return os.path.join(self.folder, 'log')

  @property
  def scratch(self) -> str:
    """The folder for temporary files, which a process that is killed leaves behind."""
    return os.path.join(self.folder, 'tmp')

  @classmethod
  def from_fields(cls, fields: dict[str, Any]) -> 'Job':
    """Returns the job that `dataclasses.asdict` has taken apart."""
    stages = fields['stages']
    return cls(**{**fields, 'stages': None if stages is None else tuple(stages)})


class EventWriter:
  """Tells events to a file: whole lines, there for good once written.

  The case may close every descriptor of its process, and open files of its own in their
  place; and it may fork: a copy of the process tells nothing.
  """

  def __init__(self, path: str) -> None:
    self._path = path
    self._process = os.getpid()
    self._descriptor = self._opened()
    self._identity = os.fstat(self._descriptor)

  def tell(self, event: str, **fields: Any) -> None:
    """Writes an event.

    Raises:
      OSError: it cannot be written; mostly since the disk is full.
    """
    if os.getpid() != self._process:
      return
    if not self._is_open():
      self._descriptor = self._opened()
    left = json.dumps({'event': event, **fields}).encode() + b'\n'
    while left:
      left = left[os.write(self._descriptor, left) :]

  def _opened(self) -> int:
    return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

  def _is_open(self) -> bool:
    try:
      return os.path.samestat(os.fstat(self._descriptor), self._identity)
    except OSError:
      return False


# What an event has to hold: the case may write to the file as well.
_FIELDS: Mapping[str, Mapping[str, type]] = {
  STARTED: {'case': str, 'stages': list, 'files': dict},
  DOING: {'step': str},
  STAGE: {'verdict': dict},
  FOUND: {'cases': dict, 'files': dict},
  DONE: {'verdict': dict, 'files': dict},
  REFUSED: {'error': str, 'traceback': str, 'usage': bool},
}


def _is_whole(event: Any) -> bool:
  kind = event.get('event') if isinstance(event, dict) else None
  fields = _FIELDS.get(kind) if isinstance(kind, str) else None
  return fields is not None and all(
    isinstance(event.get(name), expected) for name, expected in fields.items()
  )


def read_events(path: str) -> Iterator[dict[str, Any]]:
  """Yields the events of a file; a process that was killed may have left half of a line."""
  try:
    with open(path, encoding='utf-8', errors='replace') as file:
      for line in file:
        try:
          event = json.loads(line)
        except (ValueError, RecursionError):
          continue
        if _is_whole(event):
          yield event
  except FileNotFoundError:
    return
