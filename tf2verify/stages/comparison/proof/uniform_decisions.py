"""Comparisons of an input that have one result for all its elements, tried with other elements.

A mask of lengths that are all full, a label that nobody ignores, an identifier that is never the
padding: both sides agree whether or not the port has the comparison. It is known what would make a
difference, since the comparison says so: elements on its other side are given to both. So is an
input that one side alone reads. A comparison that both sides have counts too where it decides which
branch of a condition is taken: what the other branch computes is seen by no run.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import is_of_constants
from tf2verify.numerics.same_numbers import holds_one_number
from tf2verify.records.op_graph import INPUT, VARIABLE, OpGraph, OpRecord, TensorKey
from tf2verify.records.wording import number_text
from tf2verify.relation.proof.proving import Proof
from tf2verify.sides.graphs.graph_defs.inlining import decides_branch
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.proof.made_up_for import result_tensors
from tf2verify.stages.comparison.proof.quantities import OF_COUNTS, roots

_EQUALITIES = frozenset(('Equal', 'NotEqual'))
_COMPARISONS = _EQUALITIES | {'Less', 'LessEqual', 'Greater', 'GreaterEqual'}
# What they yield depends on shapes alone.
_OF_SHAPES = frozenset(('Shape', 'ShapeN', 'Size', 'Rank', 'ZerosLike', 'OnesLike'))
_MOST_COMPARISONS, _MOST = 12, 3
# Of the greatest element: what is less may be rounding.
_CLEAR = 1e-3
# Libraries compare as well, to check what they are given.
_WRITTEN = re.compile('[<>]|==|!=|mask|equal|less|greater|length|pad|ignore|where')
_SIDES = ('tf1', 'the port')
_TEXT = (
  '{side} compares {place} ({op}), with one result for all elements; with {value} in some of them '
  'the sides differ{numbers}: one side may leave out what the other one does not; make the port '
  'the same as tf1, or give such elements if they can occur'
)
_OF_CONDITION = (
  'the condition at {line} takes one branch; with {value} in some elements of {place} it takes the '
  'other one, and the sides differ{numbers}: make that branch the same as in tf1, or give such '
  'elements if they can occur'
)
_UNTAKEN = (
  'tf1 takes one branch of the condition at {line}, and what the other one computes is not '
  'compared: give inputs for which it is taken'
)
_CONDITIONS = ('If', 'StatelessIf')

_UNREAD = (
  'tf1 reads {place}, and no operation of the port reads its elements; with {value} in some of '
  'them the sides differ{numbers}: read it as tf1 does'
)


@dataclasses.dataclass(frozen=True)
class _Comparison:
  """A comparison of one input with something else."""

  side: int
  position: int
  place: str  # the input

  def text(self, graph: OpGraph) -> str:
    """Returns the operation and its line."""
    op = graph.ops[self.position]
    return op.op_type if op.source is None else f'{op.op_type} at {op.source.short}'


def uniform_decisions(
  proof: Proof,
  runs: tuple[GraphRun, GraphRun],
  is_of: Callable[[str], bool] = bool,
  conditions: bool = True,
) -> list[str]:
  """Returns a sentence for each input for which other elements tell the sides apart.

  Args:
    proof: of the graphs of the run, which agree.
    runs: of both sides, at the case's own inputs.
    is_of: tells by the name of an input whether it is looked at.
    conditions: whether conditions that both sides have are looked at.
  """
  sides = proof.tf1, proof.tf2
  said = dict(_unread(proof, runs, is_of))
  for number, side in enumerate(sides):
    for one in _comparisons(number, side.graph, sorted(side.tested)):
      if is_of(one.place) and one.place not in said and len(said) < _MOST:
        found = _tried(one, proof, runs)
        if found:
          said[one.place] = found
  untaken = _of_conditions(proof, runs, is_of) if conditions and not said else []
  return [*said.values(), *untaken][:_MOST]


def _of_conditions(
  proof: Proof, runs: tuple[GraphRun, GraphRun], is_of: Callable[[str], bool]
) -> list[str]:
  """Returns a sentence for each condition of tf1 that is not proven, and has a branch of its own.

  None for those whose other branch yields the same on both sides, if it is taken.
  """
  graph, found = proof.tf1.graph, list[str]()
  for position in sorted(proof.tf1.tested):
    op = graph.ops[position]
    if op.op_type not in _CONDITIONS:
      continue
    producer, number = op.inputs[0]
    condition = graph.ops[producer].tensors[number]
    decided = runs[0].refetched([condition], {})
    if decided is None or decided[0].size != 1:
      continue
    if roots(graph, [producer]) == OF_COUNTS or is_of_constants(graph, producer):
      continue  # compared at other counts of steps; or in the other mode, which is another graph
    behind = sorted(graph.ancestors([producer], _OF_SHAPES))
    line = op.source.short if op.source is not None else op.name
    text = _OF_CONDITION.replace('{line}', line.replace('{', '{{').replace('}', '}}'))
    deciding = [one for one in _comparisons(0, graph, behind) if is_of(one.place)]
    tried = [_tried(one, proof, runs, text, condition) for one in deciding]
    told = [text for text in tried if text is not None] or [_UNTAKEN.format(line=line)]
    found += [text for text in told if text and text not in found]
  return found


def _comparisons(side: int, graph: OpGraph, tested: Sequence[int]) -> Iterator[_Comparison]:
  found = 0
  for position in tested:
    op = graph.ops[position]
    is_written = op.source is not None and _WRITTEN.search(op.source.code)
    if op.op_type not in _COMPARISONS or not is_written or found == _MOST_COMPARISONS:
      continue
    if op.op_type not in _EQUALITIES and any(_is_size(graph, key) for key in op.inputs):
      continue  # whether an identifier is one of so many
    places = _read_by(graph, [position])
    if len(places) == 1:
      found += 1
      yield _Comparison(side, position, next(iter(places)))


def _is_size(graph: OpGraph, key: TensorKey) -> bool:
  """Returns whether a tensor is one number that follows from a shape."""
  shape = graph.ops[key[0]].outputs[key[1]][1]
  size = shape is not None and math.prod(n or 0 for n in shape) == 1
  behind = graph.ancestors([key[0]], _OF_SHAPES)
  return (
    size
    and any(graph.ops[n].op_type in _OF_SHAPES for n in behind)
    and not any(graph.ops[n].op_type in (INPUT, VARIABLE) for n in behind)
  )


def _read_by(graph: OpGraph, positions: Sequence[int]) -> set[str]:
  """Returns the inputs whose elements operations read; none where they read a variable."""
  ops = [graph.ops[n] for n in graph.ancestors(positions, _OF_SHAPES)]
  if any(op.op_type == VARIABLE or not (op.is_leaf or op.pure) for op in ops):
    return set()
  return {op.name for op in ops if op.op_type == INPUT}


def _unread(
  proof: Proof, runs: tuple[GraphRun, GraphRun], is_of: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
  """Yields inputs whose elements tf1 alone reads, and what to say where they change its results."""
  graphs = proof.tf1.graph, proof.tf2.graph
  read = []
  for graph in graphs:
    ends = [position for name, position in graph.targets().items() if name in proof.targets]
    behind = [graph.ops[n] for n in graph.ancestors(ends, _OF_SHAPES)]
    read.append({op.name for op in behind if op.op_type == INPUT})
  for place in sorted(read[0] - read[1]):
    leaf = _input(graphs[0], place)
    known = runs[0].refetched([leaf], {})
    if not is_of(place) or known is None:
      continue
    for value, changed in _changed(known[0], known):
      results = _results(place, changed, proof.targets, graphs, runs)
      if results is not None and any(_differ(*pair) for pair in results):
        yield (
          place,
          _UNREAD.format(place=place, value=number_text(value), numbers=_numbers(results)),
        )
        break


def _tried(
  one: _Comparison,
  proof: Proof,
  runs: tuple[GraphRun, GraphRun],
  text: str = _TEXT,
  decided: str = '',
) -> str | None:
  """Returns what to say of a comparison; '' where the sides agree on both of its results.

  None where no other result was seen: of `decided`, a tensor that the comparison leads to, or of
  the comparison itself.
  """
  graphs = proof.tf1.graph, proof.tf2.graph
  graph, run = graphs[one.side], runs[one.side]
  op = graph.ops[one.position]
  decided = decided or op.tensors[0]
  read = [graph.ops[producer].tensors[number] for producer, number in op.inputs]
  leaf = _input(graph, one.place)
  known = run.refetched([decided, leaf, *read], {})
  if known is None or not holds_one_number(known[0]) or _is_of_classes(graph, op, known[1]):
    return None
  before = known[0]
  for value, changed in _changed(known[1], known[2:]):
    flipped = run.refetched([decided], {leaf: changed})
    if flipped is None or flipped[0].shape != before.shape or np.array_equal(flipped[0], before):
      continue
    results = _results(one.place, changed, proof.targets, graphs, runs)
    if results is None:
      continue
    if not any(_differ(*pair) for pair in results):
      return ''
    return text.format(
      side=_SIDES[one.side],
      place=one.place or 'the input',
      op=one.text(graph),
      value=number_text(value),
      numbers=_numbers(results),
    )
  return None


def _numbers(results: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
  """Returns the first results that differ, as an addition to a text, if they are numbers."""
  apart = next(pair for pair in results if _differ(*pair))
  if any(value.size != 1 for value in apart):
    return ''
  return ' (tf1 {:.6g}, tf2 {:.6g})'.format(*(float(value.reshape(())) for value in apart))


def _is_of_classes(graph: OpGraph, op: OpRecord, leaf: np.ndarray) -> bool:
  """Returns whether identifiers are compared with a number of classes, which all are below."""
  if op.op_type in _EQUALITIES or leaf.dtype.kind not in 'iu' or not leaf.size:
    return False
  sizes = {shape[-1] for known in graph.ops for _, shape in known.outputs if shape}
  constants = [graph.ops[producer].constant for producer, _ in op.inputs]
  numbers = [int(one.reshape(())) for one in constants if one is not None and one.size == 1]
  return any(number in sizes and int(np.max(leaf)) < number for number in numbers)


def _input(graph: OpGraph, place: str) -> str:
  found = next(op for op in graph.ops if op.op_type == INPUT and op.name == place)
  return found.tensors[0]


def _changed(leaf: np.ndarray, read: Sequence[np.ndarray]) -> Iterator[tuple[float, np.ndarray]]:
  """Yields a number, and an input of which some elements are that number.

  Args:
    leaf: the input.
    read: what the comparison reads: a constant, the places within a row.
  """
  if leaf.dtype.kind not in 'iuf' or not leaf.size:
    return
  numbers = [one for one in read if one.size and one.dtype.kind in 'iuf']
  bounds = [float(f(one)) for one in numbers for f in (np.min, np.max)]
  halves = [float(np.min(leaf)) // 2, float(np.max(leaf)) // 2]
  near = [bound + by for by in (0.0, -1.0, 1.0) for bound in bounds]
  kind = np.iinfo(leaf.dtype) if leaf.dtype.kind in 'iu' else np.finfo(leaf.dtype)
  for value in dict.fromkeys((*halves, *near)):
    if not kind.min <= value <= kind.max or np.all(leaf == value):
      continue
    changed = np.array(leaf)
    if changed.ndim > 1:  # the end of each row, where padding is
      changed[..., max(changed.shape[-1] // 2, 1) :] = value
    else:
      changed.reshape(-1)[min(1, changed.size - 1) :: 2] = value
    if not np.array_equal(changed, leaf):
      yield value, changed


def _results(
  place: str,
  changed: np.ndarray,
  targets: Sequence[str],
  graphs: tuple[OpGraph, OpGraph],
  runs: tuple[GraphRun, GraphRun],
) -> list[tuple[np.ndarray, np.ndarray]] | None:
  """Returns the results of both sides in pairs; None where tf1 has none for such an input.

  Only those that agree at the case's own inputs: the loss that a step tells may be another one.
  """
  found, own = [], []
  for graph, run in zip(graphs, runs, strict=True):
    given = {op.tensors[0]: changed for op in graph.ops if op.op_type == INPUT and op.name == place}
    values = run.refetched(result_tensors(graph, targets), given)
    if values is None or not _takes_same_branches(run, given):
      return None
    found.append(values)
    own.append(run.refetched(result_tensors(graph, targets), {}))
  if not all(bool(np.isfinite(value).all()) for value in found[0] if value.dtype.kind in 'fc'):
    return None
  if own[0] is None or own[1] is None or len(found[0]) != len(found[1]):
    return None
  agree = [not _differ(*pair) for pair in zip(own[0], own[1], strict=True)]
  return list(itertools.compress(zip(*found, strict=True), agree)) or None  # none tells anything


def _takes_same_branches(run: GraphRun, given: Mapping[str, np.ndarray]) -> bool:
  """Returns whether the branches that stand in place of conditions are those of other inputs."""
  decided = [f'{name}:0' for name in run.nodes() if decides_branch(name)]
  if not decided:
    return True
  own, others = run.refetched(decided, {}), run.refetched(decided, given)
  if own is None or others is None:
    return own is others
  pairs = zip(own, others, strict=True)
  return all(bool(np.any(one)) == bool(np.any(other)) for one, other in pairs)


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
  if one.shape != other.shape or one.dtype.kind not in 'fiub' or not one.size:
    return False
  first, second = (np.asarray(value, np.float64) for value in (one, other))
  return not float(np.max(np.abs(first - second))) <= _CLEAR * float(np.max(np.abs(first)))
