"""How a side keeps the variables of the cell of a recurrent network: which gates in which one."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from tf2verify.relation.layouts.derived_layouts import Shape
from tf2verify.relation.names.roles import WORD, owner, role
from tf2verify.relation.names.words import beginning

# How Keras calls the kernel of the state.
RECURRENT = 'recurrent_kernel'
# More variables of one scope are not looked at: they are those of a whole model.
_MOST_VARIABLES = 40
# A variable's rows: those of the inputs, of the state, of both above each other; of a bias none.
INPUTS, STATE, BOTH, BIAS = 'x', 'h', 'x+h', ''
_MOST_GATES = 4
_MATRIX = 2
# What the gates of an LSTM and of a GRU are called; the first that is found in a label counts.
_LSTM = {
  'f': r'forget|^f',
  'o': r'out|^o',
  'i': r'^in|^i|input',
  'c': r'cand|cell|new|^[cgjnu]|mod',
}
_GRU = {'r': r'reset|^r', 'c': r'cand|new|^[chn]|state|memory', 'z': r'update|^[zu]'}
_GATES = {4: _LSTM, 3: _GRU}
_OF_STATE = re.compile(r'recurrent|hidden|state|(^|[^a-z])u|(^|[^a-z])w?_?h|hh')
_PEEPHOLE = re.compile('diag|peep')
# What a norm of each gate has, and no cell.
_OF_NORMS = ('gamma', 'beta')


@dataclasses.dataclass(frozen=True)
class Stored:
  """A variable of a cell.

  Attributes:
    name: of the variable.
    rows: `INPUTS`, `STATE`, `BOTH` or `BIAS`.
    gates: positions of the gates in it, in the order of the side.
  """

  name: str
  rows: str
  gates: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class StoredCell:
  """The variables of a cell.

  Attributes:
    variables: kernels first, then biases.
    window: of the convolution, for a cell that convolves; () for one that multiplies.
    inputs: how many numbers each step has.
    state: how many the state has.
    units: how many each gate has.
    order: the gates in the order of the side, as letters: `icfo`, `rzc`; '' where no name tells.
    is_told: whether each gate has a variable whose name tells it.
    is_recurrent: whether a loop reads its variables.
  """

  variables: tuple[Stored, ...]
  window: Shape
  inputs: int
  state: int
  units: int
  order: str = ''
  is_told: bool = False
  is_recurrent: bool = False

  @property
  def gates(self) -> int:
    """How many gates it has; the candidate counts as one."""
    return 1 + max(gate for stored in self.variables for gate in stored.gates)

  @property
  def names(self) -> set[str]:
    """Its variables."""
    return {stored.name for stored in self.variables}

  @property
  def kind(self) -> tuple[object, ...]:
    """What two sides must have in common to be one cell."""
    biases = any(stored.rows == BIAS for stored in self.variables)
    return self.gates, self.window, self.inputs, self.state, self.units, biases

  @property
  def usual_order(self) -> str:
    """The order of the gates; where nothing tells it, that of TF1's LSTM, or of Keras', by form."""
    kernels = [stored for stored in self.variables if stored.rows != BIAS]
    is_whole = self.gates == len(_LSTM) and all(len(k.gates) == len(_LSTM) for k in kernels)
    if self.order or not is_whole:
      return self.order
    return 'icfo' if len(kernels) == 1 else 'ifco'

  @property
  def form(self) -> frozenset[tuple[str, tuple[int, ...]]]:
    """How it is kept."""
    return frozenset((stored.rows, stored.gates) for stored in self.variables)


def stored_cells(
  shapes: Mapping[str, Shape],
  repeated: Collection[str],
  usual: Mapping[str, str],
  recurrent: Collection[str] | None = None,
  whole: Collection[str] = (),
  single: Collection[str] = (),
) -> list[StoredCell]:
  """Returns what the variables of each scope may be as one cell; those of most gates first.

  Args:
    shapes: of the variables of a side, in the order in which it makes them.
    repeated: those that are read in every round of a loop.
    usual: the order of the gates in a variable that has all, by the end of its name.
    recurrent: those that meet what was computed with them before; None for all that are repeated.
    whole: those whose product nothing divides into gates.
    single: those whose product does not take inputs and state.
  """
  recurrent = repeated if recurrent is None else recurrent
  scopes = {
    '/'.join(name.split('/')[:depth]) for name in shapes for depth in range(name.count('/') + 1)
  }
  found: dict[StoredCell, int] = {}
  listed = list(shapes)
  for scope in scopes:
    inside = [name for name in shapes if not scope or name.startswith(scope + '/')]
    for cell in _cells_within({name: shapes[name] for name in inside}, repeated, usual):
      if _is_of_several(cell) or any(
        (s.name in whole and s.rows != BIAS and len(s.gates) > 1)
        or (s.name in single and s.rows == BOTH)
        for s in cell.variables
      ):
        continue
      known = any(RECURRENT in name or name in recurrent for name in cell.names)
      cell = dataclasses.replace(cell, is_recurrent=known)
      found.setdefault(cell, min(listed.index(stored.name) for stored in cell.variables))
  return sorted(found, key=lambda cell: (-cell.gates, found[cell], len(cell.variables)))


def _cells_within(
  shapes: Mapping[str, Shape], repeated: Collection[str], usual: Mapping[str, str]
) -> Iterator[StoredCell]:
  """Yields the cells that variables of a scope can be: those of its loop, of one width, or all.

  A decoder keeps the kernels of its attention beside those of its cell, which have all gates and
  so another width.
  """
  rounds = {name: shape for name, shape in shapes.items() if name in repeated}
  kernels = {name for name, shape in rounds.items() if len(shape) >= _MATRIX}
  leaves_none = False
  for cell in _cells(rounds, usual):
    leaves_none |= kernels <= cell.names
    yield cell
  for width in dict.fromkeys(shape[-1:] for shape in rounds.values() if not leaves_none):
    alone = {name: shape for name, shape in rounds.items() if shape[-1:] == width}
    yield from (cell for cell in _cells(alone, usual) if cell.gates in _GATES)
  yield from _cells(shapes, usual)


def cell_pairs(
  ones: Sequence[StoredCell],
  others: Sequence[StoredCell],
  scopes: Mapping[tuple[str, str], int],
) -> Iterator[tuple[StoredCell, StoredCell]]:
  """Yields cells of both sides that may be the same, none with a variable of another.

  Of several, those whose scopes have most words in common, then those with most variables in pairs
  of one scope each, and otherwise in order.

  Args:
    ones: the cells of tf1.
    others: those of the port.
    scopes: how many variables are in pairs, by their scopes on both sides.
  """
  taken: set[str] = set()
  used: set[str] = set()
  for one in ones:
    if not taken.isdisjoint(one.names):
      continue
    fitting = [two for two in others if _may_be_pair(one, two) and used.isdisjoint(two.names)]
    if fitting:
      other = max(fitting, key=functools.partial(_closeness, one, scopes=scopes))
      taken.update(one.names)
      used.update(other.names)
      yield one, other


def _is_of_several(cell: StoredCell) -> bool:
  """Returns whether there are two variables with several gates each: those of two cells."""
  rows = [stored.rows for stored in cell.variables if len(stored.gates) > 1]
  return len(set(rows)) < len(rows)


def _closeness(
  one: StoredCell, other: StoredCell, scopes: Mapping[tuple[str, str], int]
) -> tuple[int, int]:
  """Returns how many words the scopes of two cells share, and how many pairs of variables."""
  ones, others = ({owner(name) for name in cell.names} for cell in (one, other))
  shared = sum(scopes.get((a, b), 0) for a in ones for b in others)
  return len(_words(one) & _words(other)), shared


def _words(cell: StoredCell) -> set[str]:
  """Returns the words of the scope that the variables of a cell are in."""
  shared = beginning([name.lower().split('/')[:-1] for name in cell.names])
  return {word for part in shared for word in WORD.findall(part)}


def _may_be_pair(one: StoredCell, other: StoredCell) -> bool:
  """Returns whether two cells may be the same.

  The layers of an attention, which a decoder reads in each step, have such shapes too: if both
  sides have one form, only the gates of an LSTM or a GRU are in several orders.
  """
  is_cell = (one.is_recurrent or other.is_recurrent) and one.kind == other.kind
  has_biases = any(stored.rows == BIAS for stored in one.variables)
  return is_cell and (one.form != other.form or (one.gates in _GATES and has_biases))


def _cells(shapes: Mapping[str, Shape], usual: Mapping[str, str]) -> Iterator[StoredCell]:
  """Yields the cells that some variables can be."""
  if len(shapes) > _MOST_VARIABLES:
    return
  kernels = {name: shape for name, shape in shapes.items() if len(shape) >= _MATRIX}
  vectors = {
    name: shape[0]
    for name, shape in shapes.items()
    if len(shape) == 1 and not _PEEPHOLE.search(name.lower()) and role(name) not in _OF_NORMS
  }
  for window in {shape[:-2] for shape in kernels.values()}:
    own = {name: shape[-2:] for name, shape in kernels.items() if shape[:-2] == window}
    wide = {columns for _, columns in own.values()}
    units = {one // k for one in wide for k in range(1, _MOST_GATES + 1) if one % k == 0}
    for unit in sorted(units):
      states = {unit} | {columns for rows, columns in own.values() if rows == unit > columns}
      for state in sorted(states, reverse=True):
        rows = {one for one, _ in own.values()}
        for inputs in sorted({*rows, *(one - state for one in rows if one > state)}):
          cell = _cell(own, vectors, (window, inputs, state, unit), usual)
          if cell is not None:
            yield cell


def _cell(
  kernels: Mapping[str, tuple[int, ...]],
  vectors: Mapping[str, int],
  sizes: tuple[Shape, int, int, int],
  usual: Mapping[str, str],
) -> StoredCell | None:
  """Returns the cell of these sizes; None if the variables are none."""
  window, inputs, state, units = sizes
  of_rows: dict[str, list[str]] = {INPUTS: [], STATE: [], BOTH: []}
  count: dict[str, int] = {}
  start = len(beginning(kernels))
  for name, (rows, columns) in kernels.items():
    if columns % units or (rows, columns) == (units, state) != (state, units):
      continue
    count[name] = columns // units
    if rows == inputs + state:
      of_rows[BOTH].append(name)
    elif rows == inputs == state:
      of_rows[STATE if _OF_STATE.search(name[start:].lower()) else INPUTS].append(name)
    elif rows in (inputs, state):
      of_rows[INPUTS if rows == inputs else STATE].append(name)
    else:
      return None
  biases = [name for name, size in vectors.items() if size % units == 0]
  count |= {name: vectors[name] // units for name in biases}
  totals = [sum(count[name] for name in of_rows[rows] + of_rows[BOTH]) for rows in (INPUTS, STATE)]
  gates = totals[0]
  if gates != totals[1] or not 1 <= gates <= _MOST_GATES:
    return None
  if sum(count[name] for name in biases) not in (0, gates):
    return None
  if of_rows[BOTH] and (of_rows[INPUTS] or of_rows[STATE]):
    return None
  groups = [(rows, names) for rows, names in (*of_rows.items(), (BIAS, biases)) if names]
  ordered = _in_one_order([names for _, names in groups])
  stored = []
  for (kind, _), names in zip(groups, ordered, strict=True):
    at = 0
    for name in names:
      stored.append(Stored(name, kind, tuple(range(at, at + count[name]))))
      at += count[name]
  order = _order(ordered[0], count, gates, usual)
  is_told = bool(order) and len(ordered[0]) == gates
  return StoredCell(tuple(stored), window, inputs, state, units, order, is_told)


def _in_one_order(groups: Sequence[list[str]]) -> list[list[str]]:
  """Returns kernels and biases in one order of gates: by what tells them, or as they are made."""
  labels = [dict(zip(names, _labels(names), strict=True)) for names in groups]
  first = list(labels[0].values())
  found = []
  for names, own in zip(groups, labels, strict=True):
    is_told = sorted(own.values()) == sorted(first) and len(set(first)) == len(first) > 1
    found.append(sorted(names, key=lambda n: first.index(own[n])) if is_told else list(names))
  return found


def _labels(names: Sequence[str]) -> list[str]:
  """Returns what names do not have in common at their starts and ends."""
  start = len(beginning(names))
  end = len(beginning(name[start:][::-1] for name in names))
  return [name[start : len(name) - end].lower() for name in names]


def _order(
  names: Sequence[str], count: Mapping[str, int], gates: int, usual: Mapping[str, str]
) -> str:
  """Returns the letters of the gates, as far as names tell them all; else ''."""
  told = ''
  start = len(beginning(names)) if len(names) > 1 else 0
  for name in names:
    label = name[start:].lower()
    whole = next((own for end, own in usual.items() if name.endswith(end)), '')
    if len(whole) == count[name]:
      told += whole
    elif count[name] == 1 and gates in _GATES:
      told += next((gate for gate, text in _GATES[gates].items() if re.search(text, label)), '')
  return told if len(set(told)) == len(told) == gates else ''


def permutations(one: StoredCell, other: StoredCell) -> Iterator[tuple[int, ...]]:
  """Yields which gate of tf1 each gate of the port may be, the likely ones first.

  Where names tell, the others are left out: a map must not hide an exchange.

  Args:
    one: the cell of tf1.
    other: that of the port.
  """
  known = one.order, other.order
  if not all(known):
    known = one.usual_order, other.usual_order
  first: tuple[int, ...] | None = None
  if known[0] and sorted(known[0]) == sorted(known[1]):
    first = tuple(known[0].index(letter) for letter in known[1])
    yield first
    if one.order and other.is_told:
      return
  yield from (order for order in itertools.permutations(range(one.gates)) if order != first)
