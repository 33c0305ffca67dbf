"""Tables as a terminal shows them."""

from tf2verify.records.table import Table

_SHOWN_ROWS = 12


def table_lines(table: Table) -> list[str]:
  """Returns title, head and the first rows of a table, columns aligned, and what was cut."""
  cells = [table.columns, *table.rows[:_SHOWN_ROWS]]
  widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
  lines = [f'{table.title}:']
  for row in cells:
    padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    lines.append(f'  {"  ".join(padded)}'.rstrip())
  left = len(table.rows) - _SHOWN_ROWS
  if left > 0:
    lines.append(f'  … and {left:,} more rows, see the JSON report (--report_dir)')
  return lines
