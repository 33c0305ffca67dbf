"""A table of findings."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Table:
  """Findings that read best as a table."""

  title: str  # what it shows
  columns: tuple[str, ...]  # the head of each column
  rows: tuple[tuple[str, ...], ...]  # one text per column each
