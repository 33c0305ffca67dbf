"""Edits at one place: the value of tf1, and settings without what else differs there."""

from tf2verify.diagnosis.divergence.effects.all_rounds import AllRounds
from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.records.experiment import Edit
from tf2verify.records.op_graph import TARGET, OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.sides.graphs.edits.repairs import GivenValue, Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair

# What targets that are gradients are called.
_GRADIENTS = ('gradient ', 'loss gradient ')


def settings_alone(looking: Looking, mistake: Mistake) -> Mistake | None:
  """Returns a mistake with what its settings mend alone; None where it has none.

  Another order of computing, or operands that are read in another order, may be at further places.
  """
  places = tuple(place for place in mistake.places if place.settings)
  if not places:
    return None
  changes = [change for place in places for change in place.settings]
  return Mistake(places, Edit.SETTING, Repair(changes=looking.all_rounds.changes(changes)))


def value_edit(
  tf1: InspectableRun, tf2: InspectableRun, place: Place, everywhere: AllRounds
) -> Repair:
  """Returns what gives the port the value that tf1 has at a source.

  Raises:
    CannotRepair: it has no value that can be given.
  """
  pair, source = place.source.regions, place.source
  op, other = tf1.op_graph.ops[pair.tf1.end], tf2.op_graph.ops[pair.tf2.end]
  if source.output is None or is_opaque(op.outputs[source.output][0]):
    raise CannotRepair('it has no value that can be given')
  tensors = op.tensors[source.output], other.tensors[source.output]
  layout = source.layout
  given = GivenValue(*tensors) if layout is None else GivenValue(*tensors, layout.to_tf2)
  return Repair(values=everywhere.values(given, op.name, other.name))


def is_of_gradients(looking: Looking, source: FoundSource) -> bool:
  """Returns whether a source is one of the backward pass, which an edit forms anew."""
  op = looking.tf1.op_graph.ops[source.regions.tf1.end]
  return is_backward(op) or (op.op_type == TARGET and op.name.startswith(_GRADIENTS))


def exits_of(pair: RegionPair, op: OpRecord, other: OpRecord) -> set[tuple[TensorKey, TensorKey]]:
  """Returns what the ends of two regions read that either side computes in its region.

  Args:
    pair: the regions.
    op: the end of tf1's.
    other: the end of the port's, with as many inputs.
  """
  return {
    (one, two)
    for one, two in zip(op.inputs, other.inputs, strict=True)
    if two[0] in pair.tf2.inner or one[0] in pair.tf1.inner
  }
