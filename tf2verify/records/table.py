"""A table of findings."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Table:
  """Findings that read best as a table.

  Attributes:
    title: what it shows.
    columns: the head of each column.
    rows: one text per column each.
  """

  title: str
  columns: tuple[str, ...]
  rows: tuple[tuple[str, ...], ...]
