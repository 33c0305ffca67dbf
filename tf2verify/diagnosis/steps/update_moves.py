"""Other orders in which a port could compute the updates that it writes itself.

What an optimizer computes of a gradient is a short chain of operations, element by element: it is
clipped, decayed, scaled, divided. That one of them, or a few of one line, stand elsewhere in the
chain, or nowhere, is another wiring of the same operations.
"""

import dataclasses
import itertools
import re
from collections.abc import Collection, Iterator, Sequence

from tf2verify.diagnosis.patterns.operations.op_text import op_text
from tf2verify.diagnosis.proposals.code_lines import gathers
from tf2verify.diagnosis.steps.update_part import Rewired, UpdatePart, Wiring
from tf2verify.records.op_graph import CONSTANT, VARIABLE, OpGraph, TensorKey

_PRODUCTS = ('Mul', 'RealDiv', 'DivNoNan')
_SUMS = ('AddV2', 'Add', 'Sub')
_OF_ONE = ('Neg', 'Sqrt', 'Rsqrt', 'Square', 'Abs', 'Sign', 'Exp', 'Log', 'Reciprocal', 'Identity')
_OTHERS = ('Maximum', 'Minimum', 'Pow', 'ClipByValue')
_ELEMENTWISE = frozenset((*_PRODUCTS, *_SUMS, *_OF_ONE, *_OTHERS))
_JOINS = ('Pack', 'ConcatV2', 'AddN', 'AddV2')
_BEHIND_JOINS = ('Mean', 'Sum', 'Mul', 'RealDiv', 'AddV2', 'Sub', 'Squeeze', 'Identity')
_IDENTITY = 'Identity'
# Makes a gradient dense that is rows.
_DENSE = 'UnsortedSegmentSum'
# So many operations of one line are moved together, past at most so many others.
_LONGEST_BLOCK, _LONGEST = 3, 5
_MOST_EDITS, _MOST_CHAINS = 400, 2000
_COUNTER = re.compile(r'_\d+$')
# Operations of a chain, each with the number of the input by which it goes on, the first one first.
_Chain = tuple[tuple[int, int], ...]


def other_orders(part: UpdatePart) -> list[Rewired]:
  """Returns edits, each at all places that look alike: a loop over variables runs a line for each.

  Args:
    part: of the port.
  """
  walk, found = _Walk(part), dict[object, Rewired]()
  ends = part.from_the_end(part.positions)
  for key, edit in itertools.chain.from_iterable(map(walk.joined, ends)):
    found[key] = found[key].joined(edit) if key in found else edit
  chains: list[_Chain] = [((n, slot),) for n in ends for slot in walk.slots(n)]
  for _ in range(_LONGEST):
    for key, edit in itertools.chain.from_iterable(map(walk.edits, chains)):
      if key in found:
        found[key] = found[key].joined(edit)
      elif len(found) < _MOST_EDITS:
        found[key] = edit
    chains = [longer for chain in chains[:_MOST_CHAINS] for longer in walk.longer(chain)]
  return [*found.values()]


class _Walk:
  """Goes through chains of a part."""

  def __init__(self, part: UpdatePart) -> None:
    self._part = part
    self._graph = part.graph
    self._inner = set(part.positions)
    lines: dict[str, set[object]] = {}
    for n in part.positions:
      lines.setdefault(_scope(self._graph.ops[n].name), set()).add(self._kind(n)[1])
    self._functions = {scope for scope, known in lines.items() if scope and len(known) == 1}

  def edits(self, chain: _Chain) -> Iterator[tuple[object, Rewired]]:
    """Yields edits of a chain, by what all of a line have in common."""
    at_end = self._readers(chain)
    like = tuple((*self._kind(n), slot) for n, slot in chain)
    readers = tuple((*self._kind(n), slot) for n, slot in self._inside(at_end)[:1])
    if len(chain) <= _LONGEST_BLOCK and self._is_block(chain) and not self._gathers(chain):
      yield ('without', like, readers), self._without(chain, at_end)
    for size in range(1, min(_LONGEST_BLOCK, len(chain) - 1) + 1):
      block, rest = chain[-size:], chain[:-size]
      if self._is_block(block) and not self._commute(block, rest[0]):
        edit = self._earlier(block, rest, at_end)
        yield ('earlier', size, like, readers), edit
        yield ('for all', size, like, readers), self._for_all(edit, block, rest)
      block, rest = chain[:size], chain[size:]
      if self._is_block(block) and not self._commute(block, rest[-1]):
        yield ('later', size, like, readers), self._later(block, rest, at_end)

  def longer(self, chain: _Chain) -> Iterator[_Chain]:
    """Yields a chain with one more operation before it."""
    first, slot = chain[0]
    before = self._graph.ops[first].inputs[slot][0]
    yield from (((before, one), *chain) for one in self.slots(before))

  def slots(self, position: int) -> list[int]:
    """Returns the inputs that an operation of the part changes element by element."""
    op = self._graph.ops[position]
    if position not in self._inner or op.op_type not in _ELEMENTWISE:
      return []
    made = op.outputs[0]
    keys = op.inputs[:1] if op.op_type == 'ClipByValue' else op.inputs
    return [
      slot
      for slot, (n, k) in enumerate(keys)
      if self._graph.ops[n].outputs[k] == made and self._graph.ops[n].op_type != CONSTANT
    ]

  def _readers(self, chain: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    own = {n for n, _ in chain}
    return [one for one in self._part.consumers[chain[-1][0]] if one[0] not in own]

  def _inside(self, readers: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [one for one in readers if one[0] in self._inner]

  def _kind(self, position: int) -> tuple[object, ...]:
    op = self._graph.ops[position]
    return op.op_type, None if op.source is None else op.source.at

  def _is_block(self, block: Sequence[tuple[int, int]]) -> bool:
    """Returns whether operations are of one line, change something, and are whole functions.

    A norm within `tf.clip_by_norm` is none that a line could leave out.
    """
    kinds = [self._kind(n) for n, _ in block]
    if len({line for _, line in kinds}) > 1 or all(kind == _IDENTITY for kind, _ in kinds):
      return False
    first, last = self._function(block[0][0]), self._function(block[-1][0])
    enters = not first or self._function(self._entering(block)[0]) != first
    readers = self._inside(self._readers(block))
    leaves = not last or all(self._function(n) != last for n, _ in readers)
    return enters and leaves

  def _gathers(self, chain: _Chain) -> bool:
    return any(gathers(self._graph, self._graph.ops[n]) for n, _ in chain)

  def _function(self, position: int) -> str:
    """Returns the name of the call that makes an operation, where one line has several of one."""
    name = self._graph.ops[position].name
    return name if name in self._functions else _call(name, self._functions)

  def _commute(self, block: Sequence[tuple[int, int]], other: tuple[int, int]) -> bool:
    """Returns whether a block before an operation is the same as after it."""
    known = _operator(self._graph, *other)
    return all(
      _IDENTITY in (one, known) or (one == known and bool(one))
      for one in (_operator(self._graph, *step) for step in block)
    )

  def _entering(self, chain: Sequence[tuple[int, int]]) -> TensorKey:
    first, slot = chain[0]
    return self._graph.ops[first].inputs[slot]

  def _without(self, chain: _Chain, readers: Sequence[tuple[int, int]]) -> Rewired:
    entering = self._entering(chain)
    said = _said(self._graph, chain)
    text = f'the port computes {said}, which tf1 does not have there'
    wiring = dict.fromkeys(readers, entering)
    return Rewired(wiring, chain[0][0], text, '', said)

  def _earlier(self, block: _Chain, rest: _Chain, readers: Sequence[tuple[int, int]]) -> Rewired:
    """Returns the last operations of a chain before the others."""
    wiring = {
      block[0]: self._entering(rest),
      rest[0]: (block[-1][0], 0),
      **dict.fromkeys(readers, (rest[-1][0], 0)),
    }
    said, past = _said(self._graph, block), _path(self._graph, rest)
    of = _input_text(self._graph, *rest[0])
    text = f'the port computes {said} after {past}; tf1 computes it before that, of {of}'
    return Rewired(wiring, block[0][0], text, f'before {past}', f'after {past}')

  def _for_all(self, edit: Rewired, block: _Chain, rest: _Chain) -> Rewired:
    """Returns operations moved before others, for all that reads there: also for a norm.

    A norm may read a gradient as rows, of which others are made dense.
    """
    entering, made = self._entering(rest), (block[-1][0], 0)
    known = [entering]
    producer = self._graph.ops[entering[0]]
    if producer.op_type == _DENSE:
      known.append(producer.inputs[0])
    others = {
      (n, slot): made
      for key in known
      for n, slot in self._part.consumers[key[0]]
      if self._graph.ops[n].inputs[slot] == key and n in self._inner and n != entering[0]
    }
    wiring = {**others, **edit.wiring}
    text = f'{edit.text}, for all that reads it'
    return dataclasses.replace(edit, wiring=wiring, text=text)

  def _later(self, block: _Chain, rest: _Chain, readers: Sequence[tuple[int, int]]) -> Rewired:
    """Returns the first operations of a chain after the others."""
    wiring = {
      rest[0]: self._entering(block),
      block[0]: (rest[-1][0], 0),
      **dict.fromkeys(readers, (block[-1][0], 0)),
    }
    said, past = _said(self._graph, block), _path(self._graph, rest)
    last = self._graph.ops[rest[-1][0]]
    text = (
      f'the port computes {said} before {past}; tf1 computes it after that, of what {last.name} '
      f'({last.op_type}) yields'
    )
    return Rewired(wiring, block[0][0], text, f'after {past}', f'before {past}')

  def joined(self, join: int) -> Iterator[tuple[object, Rewired]]:
    """Yields what the port computes of each of some tensors, computed once of all of them."""
    op = self._graph.ops[join]
    count = len(op.inputs) - (op.op_type == 'ConcatV2')
    if op.op_type not in _JOINS or count <= 1:
      return
    for size in range(1, _LONGEST_BLOCK + 1):
      blocks = [self._before(join, slot, size) for slot in range(count)]
      kinds = {tuple(self._kind(n) for n, _ in block) for block in blocks if block}
      if not all(blocks) or len(kinds) != 1:
        return
      if not self._is_block(blocks[0]):
        continue
      wiring = {(join, slot): self._entering(block) for slot, block in enumerate(blocks)}
      first = blocks[0]
      for behind in self._behind(join, self._graph.ops[first[-1][0]].outputs[0]):
        readers = self._part.consumers[behind]
        moved: Wiring = {
          **wiring,
          first[0]: (behind, 0),
          **dict.fromkeys(readers, (first[-1][0], 0)),
        }
        said, op_type = _said(self._graph, first), self._graph.ops[behind].op_type
        text = (
          f'the port computes {said} of each of the {count} tensors that {op.name} ({op.op_type}) '
          f'puts together, tf1 once, of what {self._graph.ops[behind].name} ({op_type}) yields'
        )
        key = 'joined', self._kind(join), *kinds, self._kind(behind)
        yield key, Rewired(moved, first[0][0], text, f'after {op_type}', f'before {op.op_type}')

  def _before(self, join: int, slot: int, size: int) -> _Chain:
    """Returns so many operations before an input of another one, each read by nothing else."""
    n = self._graph.ops[join].inputs[slot][0]
    chain: list[tuple[int, int]] = []
    while len(chain) < size:
      slots = self.slots(n)
      if not slots or len(self._part.consumers[n]) != 1:
        return ()
      chain.append((n, slots[0]))
      n = self._graph.ops[n].inputs[slots[0]][0]
    return tuple(chain[::-1])

  def _behind(self, position: int, made: object) -> Iterator[int]:
    """Yields what follows and has one shape, through what puts together and scales."""
    for _ in range(_LONGEST):
      if self._graph.ops[position].outputs[0] == made:
        yield position
      readers = self._part.consumers[position]
      if len(readers) != 1 or self._graph.ops[readers[0][0]].op_type not in _BEHIND_JOINS:
        return
      position = readers[0][0]


def _scope(name: str) -> str:
  return name.rpartition('/')[0]


def _call(name: str, functions: Collection[str]) -> str:
  return _scope(name) if _scope(name) in functions else ''


def _operator(graph: OpGraph, position: int, slot: int) -> str:
  """Returns in what operations that may change places are alike; '' for none."""
  op_type = graph.ops[position].op_type
  if op_type == 'Mul' or op_type == 'Neg' or (op_type in _PRODUCTS and slot == 0):
    return 'product'
  if op_type in _SUMS and (op_type != 'Sub' or slot == 0):
    return 'sum'
  return op_type if op_type == _IDENTITY else ''


def _said(graph: OpGraph, chain: Sequence[tuple[int, int]]) -> str:
  """Returns operations as text: `RealDiv (truediv_3)`, `Minimum → Maximum (clip_by_value)`."""
  ops = [graph.ops[n] for n, _ in chain]
  types = ' → '.join(op_text(graph, n) for n, _ in chain if graph.ops[n].op_type != _IDENTITY)
  name = ops[-1].name
  if len(ops) > 1:
    scopes = [op.name.split('/') for op in ops]
    least = min(map(len, scopes))
    same = [k for k in range(least, 0, -1) if len({tuple(s[:k]) for s in scopes}) == 1]
    name = _COUNTER.sub('', '/'.join(scopes[0][: same[0]])) if same else name
  return f'{types} ({name})'


def _path(graph: OpGraph, chain: Sequence[tuple[int, int]]) -> str:
  return ' → '.join(f'{op_text(graph, n)} ({graph.ops[n].name})' for n, _ in chain)


def _input_text(graph: OpGraph, position: int, slot: int) -> str:
  """Returns what an operation reads, as text."""
  op = graph.ops[position]
  read = graph.ops[op.inputs[slot][0]]
  known = read.name if read.op_type == VARIABLE else f'{read.name} ({read.op_type})'
  as_input = f' as {op.input_names[slot]}' if len(op.inputs) > 1 and op.input_names else ''
  return f'{known}, which {op.name} reads{as_input}'
