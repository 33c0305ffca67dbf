"""Both graphs of a run related: what is proven, and where they differ without an effect."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from tf2verify.diagnosis.patterns.operations.gradient_paths import own_gradients
from tf2verify.errors import CaseDefinitionError, NotApplicable
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import OpGraph
from tf2verify.records.proven import GraphDifference, Proven
from tf2verify.relation.layouts.variable_layouts import in_own_layout, in_step
from tf2verify.relation.proof.differences.graph_differences import unlike
from tf2verify.relation.proof.differences.pairs import Unlike
from tf2verify.relation.proof.differences.sizes import unlike_sizes
from tf2verify.relation.proof.held_variables import Held, PairedVariables
from tf2verify.relation.proof.numbering import Variables
from tf2verify.relation.proof.proving import NO_STATES, Proof, StepStates, prove
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.losses.loss_function import is_in_model, is_label
from tf2verify.sides.side import Inventory, RunSpec, training_name
from tf2verify.sides.tf1.graphs.effects import operations_run
from tf2verify.sides.tf1.reference import ReferenceGraph
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.made_up_for import is_made_up_for
from tf2verify.stages.comparison.proof.one_sided import one_sided
from tf2verify.stages.comparison.proof.records import (
  difference_records,
  gradient_stops,
  proven_record,
)
from tf2verify.stages.comparison.proof.uniform_decisions import uniform_decisions
from tf2verify.stages.stage import CaseUnderTest, by_name
from tf2verify.stages.variables.pairing import Pairing

Runs = contextlib.AbstractContextManager[tuple[GraphRun, GraphRun]]
# The forward pass of larger graphs, in operations, is related once, in training, where there is a
# layer that nothing else uses (`large_graphs`); losses and steps of them if the case asks for it:
# a fresh port of Inception-ResNet-v2, traced in both modes, takes a fifth of the six stages' time.
LARGEST = 1000
# What `CaseUnderTest.remembered` calls it that graphs were too large to be related.
TOO_LARGE = 'graphs too large to be related'
_LOSSES_TESTED = 'losses that are not proven whole'
# Of so many operations, in tf1, a step is related only where its losses are proven: it takes time,
# and gradients of what is not proven are not proven either.
_SMALL = 150
# What it calls the lines at which gradients are stopped or written by hand in training.
OWN_GRADIENTS = 'gradients of their own'
_MOST_LINES = 4
_LONG = 3000  # terms: what differs is sought by many proofs
LOSSES = 'losses'


@dataclasses.dataclass(frozen=True)
class Related:
  """What was found of one run.

  Attributes:
    proven: how much is proven.
    differences: where the graphs differ, although the numbers agree or were not looked at.
    stopped: where one side alone stops a gradient of the losses, a sentence each.
    idle: bounds that one side alone has, and that the run does not reach, likewise.
  """

  proven: Proven
  differences: tuple[GraphDifference, ...] = ()
  stopped: tuple[str, ...] = ()
  idle: tuple[str, ...] = ()

  def record(self) -> Proven:
    """Returns what is proven, with the differences."""
    return dataclasses.replace(self.proven, differences=self.differences)

  def blind_spots(self) -> tuple[str, ...]:
    """Returns a sentence for each difference."""
    # The same in every stage that relates it, so that a report says it once.
    differences = (
      f'the graphs differ in a way that the compared numbers do not show: {found.to_text()}; make '
      'the port the same as tf1, or give inputs for which it matters'
      for found in self.differences
    )
    return (*self.stopped, *self.idle, *differences)


def related(case: CaseUnderTest, run: RunSpec) -> Related:
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
      f'relate_graphs is {wanted!r}; it must be True, False, or None for graphs that are not large'
    )

  def without(reason: str) -> Related:
    return not_related(name, reason, start)

  if wanted is False:
    return without('relate_graphs is False')
  pairs = case.alignment().pairs
  names = {tf2: tf1 for tf1, tf2 in pairs}
  called = [names.get(v.name, v.name) for v in case.tf2.inventory().variables]
  if len(set(called)) < len(called):
    return without('two variables of the port have one name')
  variables = paired_variables(case)

  def found() -> Related:
    if wanted is None and (count := operations_run(case.tf1.built(run.training))) > LARGEST:
      case.remembered[TOO_LARGE] = too_many(count)
      return without(case.remembered[TOO_LARGE])
    graph = reference_graph(case.tf1, run, pairs)
    tf2 = case.tf2.traced(dataclasses.replace(run, tf1_names=names), afresh=True)

    @contextlib.contextmanager
    def runs() -> Iterator[tuple[GraphRun, GraphRun]]:
      own = dataclasses.replace(run, tf1_names={one: one for one, _ in pairs})
      with (
        contextlib.closing(case.tf1.inspectable(own)) as one,
        contextlib.closing(tf2.run()) as other,
      ):
        yield one, other

    is_telling = not isinstance(run.fill, ConstantFill)
    other = tf2.op_graph()
    if run.training:
      case.remembered[OWN_GRADIENTS] = _lines_of_gradients(graph, other)
    return compared(graph, other, variables, name, start, runs=runs, is_telling=is_telling)

  return attempted(name, start, found)


def _lines_of_gradients(tf1: OpGraph, tf2: OpGraph) -> str:
  lines = list(dict.fromkeys((*own_gradients(tf2), *own_gradients(tf1))))
  return ' and '.join((*lines[:_MOST_LINES], *(('more',) if lines[_MOST_LINES:] else ())))


def attempted(name: str, start: float, found: Callable[[], Related]) -> Related:
  """Returns what was found of two graphs, or why nothing was.

  Args:
    name: what is related: `inference`.
    start: when that was begun, by `time.perf_counter`.
    found: relates them.
  """
  try:
    return found()
  except (NotTraceable, NotApplicable) as error:
    return not_related(name, str(error), start)
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the stage
    reason = f'the graphs were not related: {type(error).__name__}: {error}'
    known = not_related(name, reason, start)
    # Nobody expects it: what the relation tells of other inputs is missing.
    return dataclasses.replace(known, idle=(f'{name}: {reason} (please report it)',))


def paired_variables(case: CaseUnderTest) -> PairedVariables:
  """Returns dtype and shape of the variables of tf1 that have a partner, by name."""
  return variables_of(case.tf1.inventory(), case.pairing)


def variables_of(inventory: Inventory, pairing: Pairing) -> PairedVariables:
  """Returns the same.

  Args:
    inventory: of tf1.
    pairing: of the variables of both sides.
  """
  records = by_name(inventory)
  names = [one for one, _ in pairing.alignment.pairs if one in records]
  held: dict[str, Held] = {}
  for layout in pairing.layouts:
    known = Held((layout.tf1,), layout.tf2_shape, entry=layout.entry)
    # Graphs of training steps call it as tf1 does, whatever its layout is.
    held |= dict.fromkeys((layout.tf1, in_own_layout(layout.tf2)), known)
  for group in () if pairing.mapped is None else pairing.mapped.groups:
    for place, (name, shape) in enumerate(zip(group.entry.tf2, group.tf2_shapes, strict=True)):
      known = Held(group.entry.tf1, shape, place, group.entry)
      held |= dict.fromkeys((in_own_layout(name), in_step(name)), known)
  return PairedVariables({n: (records[n].dtype, records[n].shape) for n in names}, held)


def not_related(name: str, reason: str, start: float) -> Related:
  """Returns that nothing was related, and why.

  Args:
    name: what was to be related: `inference`.
    reason: why it was not.
    start: when that was begun, by `time.perf_counter`.
  """
  return Related(Proven(name, reason=reason, seconds=time.perf_counter() - start))


def too_many(count: int) -> str:
  """Returns why a stage does not relate graphs of so many operations unless a case asks for it."""
  return (
    f'{count:,} operations, more than {LARGEST:,}: the forward pass is related once, in '
    'seeded_num_random_ops; relate_graphs = True relates them in every stage'
  )


def reference_graph(tf1: ReferenceGraph, run: RunSpec, pairs: Sequence[tuple[str, str]]) -> OpGraph:
  """Returns the operations of a reference.

  Args:
    tf1: the reference.
    run: inputs and training mode; its variable names are not used.
    pairs: of variables, tf1's name first.
  """
  found = tf1.inspectable(dataclasses.replace(run, tf1_names={one: one for one, _ in pairs}))
  with contextlib.closing(found):
    return found.op_graph


def compared(
  tf1: OpGraph,
  tf2: OpGraph,
  variables: Variables,
  name: str,
  start: float,
  targets: Collection[str] | None = None,
  states: StepStates = NO_STATES,
  runs: Callable[[], Runs] | None = None,
  is_telling: bool = True,
) -> Related:
  """Returns what is proven of two graphs, and where they differ.

  Args:
    tf1: the reference's.
    tf2: the port's, whose variables have their tf1 names.
    variables: those that are pairs.
    name: what is related: `inference`.
    start: when that was begun, by `time.perf_counter`.
    targets: names of those to relate; None for all that a side has.
    states: of a training step, what its variables are known to be.
    runs: opens runs of both, in the order of the sides, for what only values tell.
    is_telling: whether a bound that changes nothing in them is worth a note.
  """
  proof = searched = prove(tf1, tf2, variables, targets, states=states)
  if proof.tested and any(op.functions for graph in (tf1, tf2) for op in graph.ops):
    # Not at once: what is proven of loops as they are holds for other lengths, too.
    apart = prove(tf1, tf2, variables, targets, states=states, in_rounds=True)
    proof = apart if _open(apart) < _open(proof) else proof
    searched = searched if proof.tested and len(proof.terms) > _LONG else proof
  found, explained = unlike(searched, variables, targets)
  # In a step all sizes are those of the forward pass, which was related before.
  sizes = [] if states is not NO_STATES else list(unlike_sizes(proof))
  stopped = tuple(gradient_stops(proof)) if name == LOSSES else ()
  idle: tuple[str, ...] = ()
  looks_for_idle = is_telling and not sizes
  if runs is not None and proof.tested and (found or looks_for_idle):
    try:
      with runs() as both:
        found = [pair for pair in found if not is_made_up_for(searched, pair, both)]
        if looks_for_idle:
          # What follows from differences that are known is not told again.
          left, lines = (explained, _lines(searched, found)) if found else (proof, [])
          idle = tuple(one_sided(left, both, states, lines))
          # Inputs were tried with the forward pass.
          looked_at = is_label if name == LOSSES else lambda place: not is_label(place)
          idle += tuple(uniform_decisions(proof, both, looked_at, conditions=not found))
    except NotApplicable as error:  # a recorded graph may not run here
      idle = (_not_looked_for(error),) if looks_for_idle else ()
  differences = difference_records(proof, [*found, *sizes])
  return Related(
    proven_record(proof, name, time.perf_counter() - start), differences, stopped, idle
  )


def _lines(proof: Proof, found: Sequence[Unlike]) -> list[SourceLine | None]:
  """Returns the lines of operations that differ."""
  sides = (proof.tf1.graph, [pair.tf1 for pair in found]), (proof.tf2.graph, [p.tf2 for p in found])
  return [graph.ops[n].source for graph, positions in sides for n in positions]


def _not_looked_for(error: NotApplicable) -> str:
  said = ' '.join(str(error).split())
  return (
    'bounds and choices that change nothing at these inputs, and that one side alone has, were not '
    f'looked for in the operations that are not proven: {said}'
  )


def _open(proof: Proof) -> tuple[int, int]:
  """Returns how much is not proven."""
  return len(proof.tested), len(proof.tf2.tested) + len(proof.tf1.tested)


def relate(case: CaseUnderTest, comparison: Comparison, run: RunSpec) -> Proven:
  """Relates the graphs of a run that agrees; differences without effect become blind spots."""
  found = related(case, run)
  add_blind_spots(comparison, found)
  return found.record()


def add_blind_spots(comparison: Comparison, found: Related) -> None:
  """Adds a sentence for each difference to the blind spots of a stage."""
  notes = found.blind_spots()
  comparison.blind_spots += [n for n in notes if n not in comparison.blind_spots]


def why_not_related(case: CaseUnderTest) -> str:
  """Returns why losses and steps of a case are not related; '' where they are."""
  if case.declaration.relate_graphs is False:
    return 'relate_graphs is False'
  return case.remembered.get(TOO_LARGE) or case.remembered.get(_LOSSES_TESTED, '')


def relate_losses(
  case: CaseUnderTest, comparison: Comparison, graphs: Callable[[], tuple[GraphRun, GraphRun]]
) -> Proven:
  """Relates both models with their losses, which agree.

  Args:
    case: the case.
    comparison: of the stage; differences without effect become blind spots of it.
    graphs: returns both sides.
  """
  start = time.perf_counter()
  found = _related_losses(case, graphs, start)
  add_blind_spots(comparison, found)
  if not found.proven.is_whole and found.proven.tf1_operations > _SMALL:
    case.remembered[_LOSSES_TESTED] = 'the losses are not proven, and their gradients could not be'
  return found.record()


def _related_losses(
  case: CaseUnderTest, graphs: Callable[[], tuple[GraphRun, GraphRun]], start: float
) -> Related:
  reason = why_not_related(case)
  if reason:
    return not_related(LOSSES, reason, start)
  variables = paired_variables(case)

  def found() -> Related:
    tf1, tf2 = graphs()
    with contextlib.closing(tf1), contextlib.closing(tf2):
      ones, others = tf1.op_graph.targets(), tf2.op_graph.targets()
      # The model's own results were related by the stages of the forward pass.
      targets = [name for name in ones if name in others and is_in_model(name)]
      both, one, other = contextlib.nullcontext((tf1, tf2)), tf1.op_graph, tf2.op_graph
      return compared(one, other, variables, LOSSES, start, targets, runs=lambda: both)

  return attempted(LOSSES, start, found)


def relate_training(case: CaseUnderTest, comparison: Comparison) -> Proven | None:
  """Does the same in training; None where the case has no inference, which was related before."""
  if False not in case.declaration.training_modes:
    return None
  pairs = case.alignment().pairs
  return relate(
    case,
    comparison,
    RunSpec(case.inputs, True, ConstantFill(), {two: one for one, two in pairs}),
  )
