"""How the cell of a recurrent network of one side holds the variables of the other side's cell."""

from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.layouts.stored_cells import (
  BIAS,
  BOTH,
  RECURRENT,
  Stored,
  StoredCell,
  permutations,
)

# The order of the gates in kernels that have all of them, by the end of their names, of both sides.
USUAL_ORDERS = (
  {'lstm_cell/kernel': 'icfo', 'gates/kernel': 'rz', 'candidate/kernel': 'c'},
  {
    'lstm_cell/kernel': 'ifco',
    'gru_cell/kernel': 'zrc',
    'lstm/kernel': 'ifco',
    'gru/kernel': 'zrc',
  },
)
# The axes of the window of a convolution.
_WINDOW = 'uvw'
_GATES_OF_LSTM = 4


def held_entries(one: StoredCell, other: StoredCell) -> list[tuple[MapEntry, ...]]:
  """Returns the ways in which one side's cell may hold another's; likely ones first.

  Args:
    one: the cell of tf1.
    other: that of the port, of the same kind.
  """
  letters = one.order or ''.join('abcd'[: one.gates])
  found = []
  for order in permutations(one, other):
    gates = letters, ''.join(letters[gate] for gate in order)
    for turned in _turns(one, other):
      for added in _constants(one, other, gates):
        found.append(_entries((one, other), gates, turned, added))
  return list(dict.fromkeys(found))


def _turns(one: StoredCell, other: StoredCell) -> list[tuple[str, str]]:
  """Returns what lies above what in kernels of both sides: inputs above the state, or below."""
  usual, turned = '(x+h)', '(h+x)'
  both = [any(stored.rows == BOTH for stored in cell.variables) for cell in (one, other)]
  if not any(both):
    return [(usual, usual)]
  others = [(usual, turned)] if both[1] else []
  return [(usual, usual), *others, *([(turned, usual)] if both[0] else [])]


def _constants(
  one: StoredCell, other: StoredCell, gates: tuple[str, str]
) -> list[tuple[tuple[str, float], ...]]:
  """Returns what may be added to a bias: TF1's cells add 1 to that of the gate that forgets.

  Those of Keras, which TF1 may run too, start there instead.
  """
  is_lstm = one.gates == _GATES_OF_LSTM and any(stored.rows == BIAS for stored in one.variables)
  if not is_lstm or any(name.endswith(RECURRENT) for name in one.names):
    return [()]
  known = [
    letters[cell.order.index('f')]
    for letters, cell in zip(gates, (one, other), strict=True)
    if 'f' in cell.order
  ]
  constants: list[tuple[tuple[str, float], ...]] = [
    ((gate, 1.0),) for gate in known[:1] or gates[0]
  ]
  is_usual = any(stored.name.endswith('lstm_cell/kernel') for stored in one.variables)
  return [*constants, ()] if is_usual else [(), *constants]


def _entries(
  cells: tuple[StoredCell, StoredCell],
  letters: tuple[str, str],
  turned: tuple[str, str],
  added: tuple[tuple[str, float], ...],
) -> tuple[MapEntry, ...]:
  """Returns entries of as few variables as possible: those that have elements in common."""
  groups: list[tuple[set[tuple[str, str]], list[tuple[int, Stored]]]] = []
  for side, cell in enumerate(cells):
    for stored in cell.variables:
      blocks = {(row, letters[side][g]) for row in stored.rows.split('+') for g in stored.gates}
      members = [(side, stored)]
      for known in [group for group in groups if group[0] & blocks]:
        groups.remove(known)
        blocks |= known[0]
        members += known[1]
      groups.append((blocks, members))
  return tuple(_entry(cells, letters, turned, added, blocks, members) for blocks, members in groups)


def _entry(
  cells: tuple[StoredCell, StoredCell],
  letters: tuple[str, str],
  turned: tuple[str, str],
  added: tuple[tuple[str, float], ...],
  blocks: set[tuple[str, str]],
  members: list[tuple[int, Stored]],
) -> MapEntry:
  """Returns the entry of some variables, which have these rows and gates in common."""
  window = ''.join(f'{axis} ' for axis in _WINDOW[: len(cells[0].window)])
  names: tuple[list[str], list[str]] = [], []
  patterns: tuple[list[str], list[str]] = [], []
  for side, stored in sorted(members, key=lambda one: cells[one[0]].variables.index(one[1])):
    own = [letters[side][gate] for gate in stored.gates]
    columns = own[0] if len(own) == 1 else f'({"+".join(own)})'
    rows = turned[side] if stored.rows == BOTH else stored.rows
    names[side].append(stored.name)
    patterns[side].append(f'{window}{rows} {columns}' if rows else columns)
  shift = tuple((gate, amount) for gate, amount in added if ('', gate) in blocks)
  if patterns[0] == patterns[1] and not shift and len(names[0]) == 1:
    return MapEntry((names[0][0],), (names[1][0],))
  rows_of = {row for row, _ in blocks}
  sizes = {
    row: size for row, size in (('x', cells[0].inputs), ('h', cells[0].state)) if row in rows_of
  }
  sizes |= {gate: cells[0].units for _, gate in sorted(blocks)}
  layout = ' -> '.join(', '.join(texts) for texts in patterns)
  return MapEntry(tuple(names[0]), tuple(names[1]), layout, tuple(sizes.items()), shift)
