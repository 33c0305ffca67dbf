"""What lines of the port could compute instead, in the order in which it is tried."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from tf2verify.diagnosis.edits.corrections import lines_at
from tf2verify.diagnosis.edits.missing_operands import missing_operands
from tf2verify.diagnosis.edits.other_operands import OtherOperands
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.diagnosis.proposals.arrays import ArrayProposals
from tf2verify.diagnosis.proposals.axis_orders import joined_orders, transposed_reads
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal, lines_of_code
from tf2verify.diagnosis.proposals.elementwise_moves import elementwise_moves
from tf2verify.diagnosis.proposals.kinds import divisions, near_kinds, other_means, slopes
from tf2verify.diagnosis.proposals.operand_moves import operand_moves, without_operands
from tf2verify.diagnosis.proposals.settings import OF_SETTINGS, Proposals
from tf2verify.records.op_graph import OpGraph

_MOST_BESIDE = 12
# Other operands are many, and what comes after them is tried as well.
_MOST_OPERANDS = 160
# Of one group of proposals.
_MOST_OF_A_LINE = 24


class ProposedEdits:
  """Edits of single lines of the port, by what it and tf1 have somewhere."""

  def __init__(self, looking: Looking, behind: Collection[int], places: Sequence[Place]) -> None:
    """Prepares.

    Args:
      looking: the search in the port as it is.
      behind: positions of the port's operations behind what fails.
      places: where the search has found a difference.
    """
    self._tf1, self._graph = looking.tf1.op_graph, looking.tf2.op_graph
    at = [one for place in places for one in _all_lines_at(self._graph, place)]
    beside = [one for place in places for one in _lines_beside(looking, place)]
    shown = [*dict.fromkeys((*at, *beside))]
    self._at_places, self._others = list[Line](), list[Line]()
    for line in lines_of_code(self._graph, behind):
      (self._at_places if line.place in shown else self._others).append(line)
    self._at_places.sort(key=lambda line: shown.index(line.place))
    self._proposals = Proposals(self._tf1, self._graph)
    self._arrays = ArrayProposals(looking.tf1, looking.tf2)
    self._operands = OtherOperands(self._graph, [*self._at_places, *self._others], behind)
    self._consumers = self._graph.consumers()
    self._kinds = {op.op_type for op in self._tf1.ops}

  def all(self) -> Iterator[tuple[Line, Proposal]]:
    """Yields proposals: those of settings, then the others, both for the lines at places first."""
    both = [
      (lines, [self._proposals.of(line) for line in lines])
      for lines in (self._at_places, self._others)
    ]
    for lines, _ in both:
      yield from self._other_arrays(lines, computed=False)
    # Numbers and attributes are few, and may be anywhere before a long part without partners.
    for lines, by_line in both:
      yield from _in_turn(lines, [itertools.islice(groups, OF_SETTINGS) for groups in by_line])
    at_places, others = self._at_places, self._others
    operands = _in_turn(at_places, [*map(self._operand_edits, at_places)])
    yield from itertools.islice(operands, _MOST_OPERANDS)
    rest = itertools.chain(*(_in_turn(lines, by_line) for lines, by_line in both))
    around = (_in_turn(lines, [*map(self._around, lines)]) for lines in (at_places, others))
    pairs = itertools.zip_longest(rest, itertools.chain(*around))
    yield from (one for pair in pairs for one in pair if one is not None)
    for lines in (at_places, others):
      yield from _in_turn(lines, [*map(self._turned, lines)])
    for lines in (at_places, others):
      yield from self._other_arrays(lines, computed=True)

  def _other_arrays(self, lines: Sequence[Line], computed: bool) -> Iterator[tuple[Line, Proposal]]:
    return _in_turn(lines, [iter([list(self._arrays.of(line, computed))]) for line in lines])

  def at(self, place: Place) -> Iterator[tuple[Line, Proposal]]:
    """Yields all proposals for the lines of one place."""
    own = set(_all_lines_at(self._graph, place))
    lines = [line for line in self._at_places if line.place in own]
    by_line = [self._proposals.of(line) for line in lines]
    yield from _in_turn(lines, [itertools.islice(groups, OF_SETTINGS) for groups in by_line])
    further = (
      _alternately(groups, self._operand_edits(line), self._around(line))
      for line, groups in zip(lines, by_line, strict=True)
    )
    yield from _in_turn(lines, list(further))

  def _operand_edits(self, line: Line) -> Iterator[Sequence[Proposal]]:
    """Yields groups of proposals that tf1 need not have: of what operations are, and read."""
    yield [*self._operands.exchanged(line), *without_operands(line, self._consumers)]
    yield [*near_kinds(line, self._proposals), *other_means(line), *slopes(self._tf1, line)]
    yield list(self._operands.of(line))

  def _around(self, line: Line) -> Iterator[Sequence[Proposal]]:
    """Yields others: of the order in which axes and operations are, and of what is forgotten."""
    yield [*joined_orders(line, self._consumers), *operand_moves(line, self._consumers)]
    yield list(elementwise_moves(line, self._consumers, self._kinds))
    yield list(transposed_reads(line, self._consumers, of_variables=True))
    yield list(missing_operands(line, self._consumers, self._operands))

  def _turned(self, line: Line) -> Iterator[Sequence[Proposal]]:
    yield list(divisions(line, self._proposals))
    yield list(transposed_reads(line, self._consumers, of_variables=False))


def _alternately(*groups: Iterator[Sequence[Proposal]]) -> Iterator[Sequence[Proposal]]:
  for row in itertools.zip_longest(*groups):
    yield from (group for group in row if group is not None)


def _all_lines_at(graph: OpGraph, place: Place) -> list[tuple[str, int]]:
  """Returns the lines at a place: those that are shown, then all others."""
  region = place.source.regions.tf2
  sources = (graph.ops[n].source for n in (*region.inner[::-1], region.end))
  return [*lines_at(place), *(one.at for one in sources if one is not None)]


def _lines_beside(looking: Looking, place: Place) -> Iterator[tuple[str, int]]:
  """Yields the lines of what the port puts together with what a place yields, up to a partner.

  Of a mask, say, that it multiplies by where tf1 has masked before.
  """
  graph, partners = looking.tf2.op_graph, looking.divergence.pairing.tf1_of
  consumers = graph.consumers()
  seen, pending = set[int](), [place.source.regions.tf2.end]
  while pending and len(seen) < _MOST_BESIDE:
    n = pending.pop(0)
    # What follows a place, and what else that reads.
    behind = {one for one in graph.ancestors([n]) if partners[one] is None} if n in seen else set()
    for one in sorted(behind, reverse=True)[:_MOST_BESIDE]:
      line = graph.ops[one].source
      if line is not None and not graph.ops[one].is_leaf:
        yield line.at
    further = [one for one, _ in consumers[n] if partners[one] is None and one not in seen]
    seen.update(further)
    pending += further


def _in_turn(
  lines: Sequence[Line], by_line: Iterable[Iterator[Sequence[Proposal]]]
) -> Iterator[tuple[Line, Proposal]]:
  """Yields the first group of proposals of all lines, then the second one of all, and so on."""
  for group in itertools.zip_longest(*by_line, fillvalue=()):
    for row in itertools.zip_longest(*(known[:_MOST_OF_A_LINE] for known in group)):
      found = zip(lines, row, strict=True)
      yield from ((line, proposal) for line, proposal in found if proposal is not None)
