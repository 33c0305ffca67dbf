"""Both graphs of a run related: what is proven, and where they differ without an effect."""

import dataclasses
import time
from collections.abc import Sequence

from tf2verify.errors import CaseDefinitionError, NotApplicable
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import TARGET, OpGraph
from tf2verify.records.proven import GraphDifference, Proven, TestedRegion
from tf2verify.relation.proof.numbering import Variables
from tf2verify.relation.proof.proving import Proof, Side, prove
from tf2verify.relation.proof.unlike import unlike
from tf2verify.relation.proof.unlike_pairs import Unlike
from tf2verify.relation.proof.unlike_sizes import unlike_sizes
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.side import FilledRun, training_name
from tf2verify.sides.tf1.reference import ReferenceGraph
from tf2verify.sides.tf2.tracing import NotTraceable
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest, by_name

_SHOWN = 8
# Larger graphs, in operations, are related only where the case asks for it: to trace the port of
# Inception-ResNet-v2 takes a fifth of the time of the first six stages.
_LARGEST = 1000


@dataclasses.dataclass(frozen=True)
class Related:
  """What was found of one run.

  Attributes:
    proven: how much is proven.
    differences: where the graphs differ, although the numbers agree or were not looked at.
  """

  proven: Proven
  differences: tuple[GraphDifference, ...] = ()

  def blind_spots(self) -> tuple[str, ...]:
    """Returns a sentence for each difference."""
    return tuple(
      f'the graphs differ where these numbers do not show it, {self.proven.run}: '
      f'{found.to_text()}; give the port what tf1 has, or inputs on which it counts'
      for found in self.differences
    )


def related(case: CaseUnderTest, run: FilledRun) -> Related:
  """Relates the graphs of both sides, operation by operation.

  Args:
    case: whose variables are aligned, and whose port has been called.
    run: inputs and training mode; its variable names are not used.
  """
  start = time.perf_counter()
  name = training_name(run.training)
  wanted = case.declaration.relate_graphs
  if wanted not in (None, True, False):
    raise CaseDefinitionError(
      f'relate_graphs is {wanted!r}; it is True, False, or None for graphs that are not large'
    )

  def without(reason: str) -> Related:
    return Related(Proven(name, reason=reason, seconds=time.perf_counter() - start))

  if wanted is False:
    return without('relate_graphs is False')
  pairs = case.alignment().pairs
  known = by_name(case.tf1.inventory())
  names = {tf2: tf1 for tf1, tf2 in pairs}
  called = [names.get(v.name, v.name) for v in case.tf2.inventory().variables]
  if len(set(called)) < len(called):
    return without('two variables of the port have one name')
  variables = {one: (known[one].dtype, known[one].shape) for one, _ in pairs if one in known}
  try:
    graph = reference_graph(case.tf1, run, pairs)
    if wanted is None and len(graph.ops) > _LARGEST:
      return without(
        f'{len(graph.ops):,} operations, more than {_LARGEST:,}: relate_graphs = True relates them'
      )
    tf2 = case.tf2.traced(dataclasses.replace(run, tf1_names=names), afresh=True).op_graph()
    return compared(graph, tf2, variables, name, start)
  except (NotTraceable, NotApplicable) as error:
    return without(str(error))
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the stage
    return without(f'the graphs were not related: {type(error).__name__}: {error}')


def reference_graph(
  tf1: ReferenceGraph, run: FilledRun, pairs: Sequence[tuple[str, str]]
) -> OpGraph:
  """Returns the operations of a reference.

  Args:
    tf1: the reference.
    run: inputs and training mode; its variable names are not used.
    pairs: of variables, tf1's name first.
  """
  found = tf1.inspectable(dataclasses.replace(run, tf1_names={one: one for one, _ in pairs}))
  try:
    return found.op_graph
  finally:
    found.close()


def compared(tf1: OpGraph, tf2: OpGraph, variables: Variables, name: str, start: float) -> Related:
  """Returns what is proven of two graphs, and where they differ.

  Args:
    tf1: the reference's.
    tf2: the port's, whose variables have their tf1 names.
    variables: those that are pairs.
    name: what is related: `inference`.
    start: when that was begun, by `time.perf_counter`.
  """
  proof = prove(tf1, tf2, variables)
  found = _differences(proof, [*unlike(proof, variables), *unlike_sizes(proof)])
  return Related(_record(proof, name, time.perf_counter() - start), found)


def relate(case: CaseUnderTest, comparison: Comparison, run: FilledRun) -> Proven:
  """Relates the graphs of a run that agrees; differences without effect become blind spots."""
  found = related(case, run)
  notes = found.blind_spots()
  comparison.blind_spots += [n for n in notes if n not in comparison.blind_spots]
  return found.proven


def relate_training(case: CaseUnderTest, comparison: Comparison) -> Proven | None:
  """Does the same in training; None where the case has no inference, which was related before."""
  if False not in case.declaration.training_modes:
    return None
  pairs = case.alignment().pairs
  return relate(
    case,
    comparison,
    FilledRun(case.inputs, True, ConstantFill(), {two: one for one, two in pairs}),
  )


def _record(proof: Proof, run: str, seconds: float) -> Proven:
  regions: tuple[TestedRegion, ...] = ()
  if proof.tested:
    one, other = _shown(proof.tf1), _shown(proof.tf2)
    regions = (TestedRegion(one, other, proof.tested[:_SHOWN]),)
  return Proven(
    run,
    len(proof.tf1.behind),
    len(proof.tf1.behind) - len(proof.tf1.tested),
    len(proof.tf2.behind),
    len(proof.tf2.behind) - len(proof.tf2.tested),
    len(proof.targets),
    len(proof.targets) - len(proof.tested),
    regions,
    seconds=seconds,
  )


def _shown(side: Side) -> tuple[str, ...]:
  return tuple(_place(side.graph, position) for position in sorted(side.tested)[:_SHOWN])


def _place(graph: OpGraph, position: int) -> str:
  op = graph.ops[position]
  at = '' if op.source is None else f', {op.source}'
  return f'{op.op_type} {op.name}{at}'


def _line(graph: OpGraph, position: int) -> SourceLine | None:
  """Returns the line of an operation, or of what reads it first."""
  readers = graph.consumers()
  pending = [position]
  seen = set(pending)
  while pending:
    op = graph.ops[pending.pop(0)]
    if op.source is not None:
      return op.source
    here = graph.ops.index(op)
    for reader, _ in readers[here]:
      if reader not in seen and graph.ops[reader].op_type != TARGET:
        seen.add(reader)
        pending.append(reader)
  return None


def _differences(proof: Proof, found: Sequence[Unlike]) -> tuple[GraphDifference, ...]:
  """Returns a record for each kind of difference."""
  kinds: dict[tuple[str, str, tuple[str, str]], list[Unlike]] = {}
  for one in found:
    op = proof.tf2.graph.ops[one.tf2]
    kinds.setdefault((one.what, op.op_type, one.values), []).append(one)
  return tuple(
    GraphDifference(
      one.what,
      proof.tf2.graph.ops[one.tf2].op_type,
      *one.values,
      _line(proof.tf1.graph, one.tf1),
      _line(proof.tf2.graph, one.tf2),
      len(same),
    )
    for same in kinds.values()
    for one in same[:1]
  )
