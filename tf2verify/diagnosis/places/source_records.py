"""The places where the sides part, as reports show them."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import size_arithmetic
from tf2verify.diagnosis.divergence.tensors.regions import Region, RegionPair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.divergence.tensors.variable_views import variable_views
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.numbers.value_texts import value_text
from tf2verify.diagnosis.places.update_lines import line_of, line_of_others
from tf2verify.diagnosis.rules.gradients.stopped import is_stopped_on_one_side
from tf2verify.numerics.agreement import agreement
from tf2verify.numerics.relayout import Relayout
from tf2verify.numerics.same_numbers import holds_one_number
from tf2verify.records.diagnosis import GraphDifference, Source, Statistics
from tf2verify.records.difference import Aspect
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import CONSTANT, VARIABLE, OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import Pairing
from tf2verify.relation.shadows import SHADOW

MOST_SOURCES = 12
# Of more unpaired operations the last one is shown.
_LONG_REGION = 16
# Of more lines of one place the first and the last are shown.
_LINES = 6
# The dtype of a list of tensors.
_LIST = 'variant'
# Where tf1 and the port make a variable.
VariableLines = tuple[SourceLine | None, SourceLine | None]


def source_record(
  found: FoundSource,
  tf1: OpGraph,
  tf2: OpGraph,
  differences: tuple[GraphDifference, ...],
) -> Source:
  """Returns a source for reports, with the lines of both sides."""
  pair = found.regions
  op, other = tf1.ops[pair.tf1.end], tf2.ops[pair.tf2.end]
  shown = _shown(tf1, pair.tf1, pair.tf2, tf2)
  other_shown = _shown(tf2, pair.tf2, pair.tf1, tf1)
  other_line = other_shown.source if other_shown else line_of(tf2, other)
  of_others = line_of_others(tf1, op, tf2, other)
  if of_others is not None:
    (other_line,) = of_others
  return Source(
    op.name,
    other.name,
    op.op_type,
    other.op_type,
    _with_gradient(shown.source if shown else line_of(tf1, op), tf1, pair.tf1),
    _with_gradient(other_line, tf2, pair.tf2),
    tuple(tf1.ops[n].op_type for n in (*pair.tf1.inner, pair.tf1.end)),
    tuple(tf2.ops[n].op_type for n in (*pair.tf2.inner, pair.tf2.end)),
    found.agreement.absolute,
    found.agreement.relative,
    found.alone,
    statistics(found.tf1),
    statistics(found.tf2),
    differences,
    shown.name if shown else '',
    other_shown.name if other_shown else '',
    pair.is_rewired,
    _more_lines(tf2, pair, other_shown or other),
    values=value_text(found.tf1, found.tf2_as_tf1),
    tf1_start=_start(tf1, pair.tf1),
    tf2_start=_start(tf2, pair.tf2),
    reads_lists=any(tf1.ops[n].outputs[k][0] == _LIST for n, k in pair.tf1.frontier),
  )


def _start(graph: OpGraph, region: Region) -> SourceLine | None:
  """Returns the line of the first operation of a long region that computes no size."""
  if len(region.inner) <= _LONG_REGION:
    return None
  sizes = size_arithmetic(graph)
  lines = (line_of(graph, graph.ops[n]) for n in region.inner if n not in sizes)
  return next((line for line in lines if line is not None), None)


def _shown(graph: OpGraph, region: Region, other: Region, others: OpGraph) -> OpRecord | None:
  """Returns the unpaired operation of a region to show the line of; None without any.

  It is the first, or the random one that the other side has not; in a long region, such
  as a loop that is written out, the first is far from what differs, so it is the last.
  """
  if not region.inner:
    return None
  drawn = [n for n in region.inner if 'Random' in graph.ops[n].op_type]
  if drawn and not any('Random' in others.ops[n].op_type for n in other.inner):
    return graph.ops[drawn[0]]
  if len(region.inner) <= _LONG_REGION:
    return graph.ops[_first_of(graph, region)]
  last = [n for n, _ in graph.ops[region.end].inputs if n in region.inner]
  return graph.ops[last[0] if last else region.inner[-1]]


def _first_of(graph: OpGraph, region: Region) -> int:
  """Returns the first operation of a region that computes no size, and nothing of sizes alone."""
  idle = set(size_arithmetic(graph))
  for position in region.inner:
    read = {n for n, _ in graph.ops[position].inputs if graph.ops[n].op_type != CONSTANT}
    if position not in idle and not read <= idle:
      return position
    idle.add(position)
  return region.inner[0]


def _more_lines(tf2: OpGraph, pair: RegionPair, shown: OpRecord) -> tuple[SourceLine, ...]:
  """Returns further lines of the port at a place, in order; the first and last of many.

  An operation that the port lacks has no line: it belongs between those that make what
  is read there and the one that reads it. Where another tensor is read than in tf1, the
  mistake may be in the line that makes it.
  """
  positions = [*pair.tf2.inner, pair.tf2.end]
  if pair.is_rewired or len(pair.tf1.inner) > len(pair.tf2.inner):
    positions = [n for n, _ in pair.tf2.frontier if not tf2.ops[n].is_leaf] + positions
  found = {line: None for n in positions if (line := line_of(tf2, tf2.ops[n])) is not None}
  first = line_of(tf2, shown)
  places = {line.at: line for line in found}
  if first is not None:
    places.pop(first.at, None)
  lines = [places[place] for place in sorted(places)]
  return tuple(lines if len(lines) <= _LINES else [*lines[: _LINES // 2], *lines[-_LINES // 2 :]])


def statistics(array: np.ndarray) -> Statistics | None:
  """Returns an array in a few numbers; None where it holds no numbers."""
  if array.dtype.kind not in 'fiubV':
    return None
  wide = array.astype(np.float64)
  finite = wide[np.isfinite(wide)]
  empty = not finite.size
  return Statistics(
    array.shape,
    array.dtype.name,
    float('nan') if empty else float(finite.min()),
    float('nan') if empty else float(finite.max()),
    float('nan') if empty else float(finite.mean()),
    float((wide == 0).mean()) if wide.size else 0.0,
    int(wide.size - finite.size),
  )


def initial_value_sources(
  evidence: FailedStage, run: str, lines: Mapping[str, VariableLines]
) -> tuple[Source, ...]:
  """Returns the variables that start differently: there the sides part before they compute.

  Args:
    evidence: what is known of the stage.
    run: the run looked into, as differences name it.
    lines: by tf1 name.
  """
  tf2_names = {d.tf1_subject: d.tf2_subject for d in evidence.differences}
  # Of the variables with one difference in their distributions it names the first.
  named = {d.subject for d in evidence.differences if d.aspect is Aspect.DISTRIBUTION}
  found: list[Source] = []
  for failed in evidence.of_quantity('initial value'):
    if failed.run != run or len(found) == MOST_SOURCES:
      continue
    if named and failed.name not in named and not _starts_constant(failed):
      continue
    apart = agreement(failed.tf1, failed.tf2)
    tf1_line, tf2_line = lines.get(failed.name, (None, None))
    tf2_name = tf2_names.get(failed.name) or failed.name
    sizes = apart.absolute, apart.relative
    given = statistics(failed.tf1), statistics(failed.tf2)
    found.append(_kept(failed.name, tf2_name, (tf1_line, tf2_line), sizes, given))
  return tuple(found)


_ROLE = ' of '
# What rounding leaves of a gradient that is zero, 2^-20 of others, squared.
_ROUNDING_SQUARED = 2.0**-40
_CHOICES = ('Select', 'SelectV2')
_PASSING = ('Identity', 'Cast')
_PRODUCTS = ('Mul', 'MulNoNan')


def kept_otherwise(
  pairing: Pairing,
  tf1: InspectableRun,
  tf2: InspectableRun,
  share: float,
  differs: Collection[str],
) -> tuple[Source, ...]:
  """Returns what both sides keep, and hold differently before a step: a slot, an average.

  What the stage has paired and compared is none where the step does not leave it different:
  before the step it was found equal, up to rounding.

  Args:
    pairing: of the steps' operations.
    tf1: the tf1 side's step.
    tf2: the port's.
    share: of a tensor's size; a smaller difference is none.
    differs: names of the targets that the stage found to differ.
  """
  pairs = [
    (op, pairing.tf2.ops[other])
    for position, other in pairing.pairs()
    if other is not None and (op := pairing.tf1.ops[position]).op_type == VARIABLE
  ]
  # They have one name where the stage has paired them.
  pairs = [p for p in pairs if p[0].name != p[1].name or f'update of {p[0].name}' in differs]
  pairs = [pair for pair in pairs if all(one.outputs[0][0].startswith('float') for one in pair)]
  ones = tf1.fetch([op.tensors[0] for op, _ in pairs])
  others = tf2.fetch([other.tensors[0] for _, other in pairs])
  known = variable_views(tf1.op_graph, tf2.layouts)
  views = {tf1.op_graph.ops[n].name: view for (n, _), view in known.items()}
  least = _least_kept(tf1) if pairs else {}
  found = []
  for (op, other), one, its in zip(pairs, ones, others, strict=True):
    if op.name in tf2.layouts:
      continue  # what the port was given through the map of the variables, constants and all
    one = views[op.name].to_tf2(one) if op.name in views else one
    apart = agreement(one, its)
    is_apart = one.shape == its.shape and not apart.is_rounding and apart.relative > share
    is_apart = is_apart and not _is_added(op.name, tf2.layouts, one, its)
    is_apart = is_apart and apart.absolute > least.get(op.name.rpartition(_ROLE)[0], 0.0)
    if is_apart and not (is_passed_over(tf1, op.name) or is_passed_over(tf2, other.name)):
      lines, sizes = (op.source, other.source), (apart.absolute, apart.relative)
      given = statistics(one), statistics(its)
      found.append(_kept(op.name, other.name, lines, sizes, given))
  return tuple(found[:MOST_SOURCES])


def _least_kept(run: InspectableRun) -> dict[str, float]:
  """Returns by role, as `second moment`, how far what is kept may be apart by rounding.

  That of a gradient which is zero in exact arithmetic is rounding, and its square much less.
  """
  leaves = [op for op in run.op_graph.ops if op.op_type == VARIABLE and _ROLE in op.name]
  leaves = [op for op in leaves if op.outputs[0][0].startswith('float')]
  greatest: dict[str, float] = {}
  for op, value in zip(leaves, run.fetch([op.tensors[0] for op in leaves]), strict=True):
    role = op.name.rpartition(_ROLE)[0]
    greatest[role] = max(greatest.get(role, 0.0), float(np.abs(value).max(initial=0.0)))
  return {role: _ROUNDING_SQUARED * size for role, size in greatest.items()}


def _is_added(name: str, layouts: Mapping[str, Relayout], one: np.ndarray, its: np.ndarray) -> bool:
  """Returns whether an average is another one by what the map of the variables adds, a number.

  A forget bias, say, that tf1 adds in its cell and the port holds in the variable, and its average.
  """
  role, _, owner = name.rpartition(_ROLE)
  if role != SHADOW or owner not in layouts:
    return False
  apart = its - one
  added = apart.flat[int(np.argmax(np.abs(apart)))]
  where = np.abs(apart) > abs(added) / 2
  return agreement(one + np.where(where, added, 0).astype(one.dtype), its).is_rounding


def is_passed_over(run: InspectableRun, variable: str) -> bool:
  """Returns whether a step chooses something else wherever it reads a variable, or 0 times it.

  An average that is made in the first step starts from the variable, whatever it holds before.
  """
  graph, consumers = run.op_graph, run.op_graph.consumers()
  pending = [n for n, op in enumerate(graph.ops) if (op.op_type, op.name) == (VARIABLE, variable)]
  readers: list[tuple[int, int]] = []
  while pending:
    found = consumers[pending.pop()]
    readers += [(n, slot) for n, slot in found if graph.ops[n].op_type not in _PASSING]
    pending += [n for n, _ in found if graph.ops[n].op_type in _PASSING]
  if not readers or not all(_may_pass_over(graph.ops[n], slot) for n, slot in readers):
    return False
  deciding = run.fetch([_deciding(graph, n, slot) for n, slot in readers])
  return all(
    bool(np.all(value)) if graph.ops[n].op_type in _CHOICES and slot != 1 else not np.any(value)
    for (n, slot), value in zip(readers, deciding, strict=True)
  )


def _may_pass_over(op: OpRecord, slot: int) -> bool:
  """Returns whether another input of an operation may make it ignore one: a choice, a factor 0."""
  return bool(slot) if op.op_type in _CHOICES else op.op_type in _PRODUCTS and len(op.inputs) == 2


def _deciding(graph: OpGraph, reader: int, slot: int) -> str:
  """Returns the tensor that decides: the condition, or the other factor."""
  op = graph.ops[reader]
  position, number = op.inputs[0 if op.op_type in _CHOICES else 1 - slot]
  return graph.ops[position].tensors[number]


def _kept(
  tf1: str,
  tf2: str,
  lines: VariableLines,
  sizes: tuple[float, float],
  given: tuple[Statistics | None, Statistics | None],
) -> Source:
  """Returns the record of a variable that both sides start with other values of."""
  kind = (VARIABLE,)
  return Source(tf1, tf2, VARIABLE, VARIABLE, *lines, kind, kind, *sizes, False, *given, ())


def _starts_constant(failed: FailedTensor) -> bool:
  return holds_one_number(failed.tf1) or holds_one_number(failed.tf2)


def stopped_sources(differences: Sequence[GraphDifference], pairing: Pairing) -> tuple[Source, ...]:
  """Returns where a gradient is stopped on one side, with the lines of the operations there."""
  positions = {op.shown_name: n for n, op in enumerate(pairing.tf1.ops)}
  found = []
  for difference in differences:
    position = positions.get(difference.op)
    partner = None if position is None else pairing.tf2_of[position]
    if position is None or partner is None or not is_stopped_on_one_side(difference):
      continue
    source = bare_source((pairing.tf1, position), (pairing.tf2, partner))
    paths = (
      (*difference.tf1_value, source.tf1_type),
      (*difference.tf2_value, source.tf2_type),
    )
    found.append(dataclasses.replace(source, tf1_path=paths[0], tf2_path=paths[1]))
  return tuple(found[:MOST_SOURCES])


def bare_source(tf1: tuple[OpGraph, int], tf2: tuple[OpGraph, int]) -> Source:
  """Returns a source of which no values are shown, from each side's graph and position in it."""
  (graph, position), (other_graph, partner) = tf1, tf2
  op, other = graph.ops[position], other_graph.ops[partner]
  lines = line_of(graph, op), line_of(other_graph, other)
  types = op.op_type, other.op_type
  return Source(
    op.name, other.name, *types, *lines, types[:1], types[1:], 0.0, 0.0, False, None, None, ()
  )


def _with_gradient(line: SourceLine | None, graph: OpGraph, region: Region) -> SourceLine | None:
  """Returns a line that asks for gradients with the line of which a part of a region is one."""
  if line is None or line.gradient_of is not None:
    return line
  sources = (graph.ops[n].source for n in (region.end, *region.inner[::-1]))
  told = (known for known in sources if known == line and known.gradient_of is not None)
  return next(told, line)
