"""Tables as a terminal shows them."""

from collections.abc import Sequence

from tf2verify.records.table import Table

_SHOWN_ROWS = 12


def table_lines(table: Table) -> list[str]:
  """Returns title, head and the first rows of a table, columns aligned, and what was cut."""
  lines = [f'{table.title}:', *row_lines([table.columns, *table.rows[:_SHOWN_ROWS]])]
  left = len(table.rows) - _SHOWN_ROWS
  if left > 0:
    lines.append(f'  … and {left:,} more rows, see the JSON report (--report_dir)')
  return lines


def row_lines(rows: Sequence[Sequence[str]]) -> list[str]:
  """Returns a line for each of some rows, columns aligned."""
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return [
    f'  {"  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))}'.rstrip()
    for row in rows
  ]
