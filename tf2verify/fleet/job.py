"""What a process of the fleet is asked for, and what it tells on the way."""

import dataclasses
import json
import os
from collections.abc import Iterator
from typing import Any

DISCOVER, VERIFY = 'discover', 'verify'

# What a process tells, line by line.
STARTED, DOING, STAGE, FOUND, DONE, REFUSED = (
  'started',
  'doing',
  'stage',
  'found',
  'done',
  'refused',
)


@dataclasses.dataclass(frozen=True)
class Job:
  """Something to be done in a process of its own.

  Attributes:
    number: tells it from others of this run of the fleet.
    kind: `DISCOVER`: name the cases of a target. `VERIFY`: climb the ladder with one.
    target: a file, a folder or a module as `run` takes it; to verify, with `::Case`.
    stages: names of the stages to run; None for all.
    events: path of the file that the process tells its events to.
    log: path of the file that gets what the process prints.
  """

  number: int
  kind: str
  target: str
  stages: tuple[str, ...] | None
  events: str
  log: str

  def to_json(self) -> str:
    """Returns the job as one line."""
    return json.dumps(dataclasses.asdict(self))

  @classmethod
  def from_json(cls, line: str) -> 'Job':
    """Returns the job that `to_json` has written."""
    fields = json.loads(line)
    stages = fields['stages']
    return cls(**{**fields, 'stages': None if stages is None else tuple(stages)})


class EventWriter:
  """Tells events to a file: whole lines, there for good once written."""

  def __init__(self, path: str) -> None:
    self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

  def tell(self, event: str, **fields: Any) -> None:
    """Writes an event."""
    left = json.dumps({'event': event, **fields}).encode() + b'\n'
    while left:
      left = left[os.write(self._descriptor, left) :]


def read_events(path: str) -> Iterator[dict[str, Any]]:
  """Yields the events of a file; a process that was killed may have left half of a line."""
  if not os.path.exists(path):
    return
  with open(path, encoding='utf-8', errors='replace') as file:
    for line in file:
      if line.endswith('\n'):
        yield json.loads(line)
