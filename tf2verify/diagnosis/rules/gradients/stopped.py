"""Gradients that are stopped on one side only."""

from collections.abc import Mapping, Sequence

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause, GraphDifference
from tf2verify.records.difference import Aspect
from tf2verify.records.op_graph import INPUT, STOPS, TARGET, OpGraph, OpRecord
from tf2verify.reference.graph_ops import reached
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.relation.proof.differences.stopped_gradients import FLAT

_GRADIENT, _LOSS_GRADIENT = 'gradient', 'loss gradient'
_SIDES = ('tf1', 'the port')
_LABELS = 1  # input number of the cross entropy


def stop_gradient(evidence: FailedStage) -> Cause | None:
  """A `stop_gradient` lost or added.

  Looks for an input whose gradient is stopped on one side only.
  """
  graph = evidence.tf1_graph
  if stopped_output(evidence) is not None:
    return None  # one of its places
  for difference in evidence.gradient_differences:
    if graph is not None and leads_to_labels(graph, difference.op):
      continue  # a rule of its own
    if graph is not None and not _is_behind(graph, evidence, difference.op):
      continue
    place = f'{difference.what} of {difference.op}'
    if is_stopped_in_tf1_only(difference):
      return Cause(
        f'tf1 stops the gradient at {place} and the port does not: put tf.stop_gradient there',
        f'{place}: {difference.tf1} (tf1), {difference.tf2} (tf2)',
      )
    if _stops(difference.tf2_value) and not _stops(difference.tf1_value):
      return Cause(
        f'the port stops the gradient at {place} and tf1 does not: remove tf.stop_gradient',
        f'{place}: {difference.tf1} (tf1), {difference.tf2} (tf2)',
      )
  return None


def _is_behind(graph: OpGraph, evidence: FailedStage, name: str) -> bool:
  """Returns whether a gradient that differs passes an operation, or may do so."""
  subjects = {d.tf1_subject for d in evidence.differences if d.quantity.endswith(_GRADIENT)}
  starts = [n for n, op in enumerate(graph.ops) if op.name in subjects and not op.inputs]
  behind = {*reached(starts, lambda n: [reader for reader, _ in graph.consumers()[n]])}
  others = (op.shown_name for n, op in enumerate(graph.ops) if n not in behind)
  return not starts or name not in others


def stopped_output(evidence: FailedStage) -> Cause | None:
  """The loss of one side stops the gradient of an output wherever it reads it.

  Looks for outputs with a gradient on one side alone, which the loss of the other one reads
  through stops only, or through what has no gradient.
  """
  graphs = evidence.tf1_graph, evidence.tf2_graph
  found: list[dict[str, list[OpRecord]]] = [{}, {}]
  names = dict.fromkeys(d.tf1_subject for d in evidence.differences)
  for name in names:
    has = [graph is not None and f'{_LOSS_GRADIENT} {name}' in graph.targets() for graph in graphs]
    side = 1 if has[0] else 0
    graph = graphs[side]
    readers = [] if graph is None or has[0] == has[1] else _stopped_readers(graph, name)
    if graph is not None and readers:
      found[side][name] = [graph.ops[n] for n in readers]
  if not any(found):
    return None
  tf1, port = (_stopped_text(one) for one in found)
  if tf1 and port:
    text = f'the loss of tf1 {tf1}, that of the port {port}: stop it where tf1 does'
  elif tf1:
    text = (
      f'the loss of tf1 {tf1}, that of the port lets it pass: put tf.stop_gradient into the port'
    )
  else:
    text = f'the loss of the port {port}, that of tf1 lets it pass: remove tf.stop_gradient there'
  ops = [
    (op.name, side) for side, by in zip(_SIDES, found, strict=True) for o in by.values() for op in o
  ]
  seen = '; '.join(f'{name} in {side}' for name, side in dict.fromkeys(ops))
  is_all = all(d.aspect is Aspect.PRESENCE for d in evidence.differences)
  is_all = is_all and names.keys() == {*found[0], *found[1]}
  return Cause(
    text,
    f'{seen}: StopGradient before what it reads',
    numbers='nothing else of the losses and their gradients differs' if is_all else '',
  )


def _stopped_text(found: Mapping[str, Sequence[OpRecord]]) -> str:
  """Returns of which outputs a loss stops the gradient, with the lines; '' for none."""
  said = []
  for name, ops in found.items():
    lines = dict.fromkeys(op.source.short for op in ops if op.source is not None)
    said.append(f'{name} (read at {", ".join(lines)})' if lines else name)
  return f'stops the gradient of {" and ".join(said)}' if said else ''


def _stopped_readers(graph: OpGraph, name: str) -> list[int]:
  """Returns what reads an input, or what follows from it, through a stop.

  Nothing where another way than through a stop leads on to the loss.
  """
  ways = {n for n, op in enumerate(graph.ops) if (op.op_type, op.name) == (INPUT, name)}
  found = []
  for n, op in enumerate(graph.ops):
    slots = [slot for slot, (producer, _) in enumerate(op.inputs) if producer in ways]
    if not slots or is_backward(op):
      continue
    is_flat = op.op_type in FLAT
    stopped = [is_flat or op.is_stopped(slot) for slot in slots]
    if any(stopped):
      found.append(n)
    if not all(stopped):
      ways.add(n)
  is_whole = all(graph.ops[n].op_type != TARGET for n in ways)
  return found if is_whole else []


def is_stopped_on_one_side(difference: GraphDifference) -> bool:
  """Returns whether a gradient difference is a stop that one side lacks."""
  return _stops(difference.tf1_value) != _stops(difference.tf2_value)


def is_stopped_in_tf1_only(difference: GraphDifference) -> bool:
  """Returns whether a gradient difference is a stop that the port lacks."""
  return _stops(difference.tf1_value) and not _stops(difference.tf2_value)


def _stops(marks: tuple[str, ...]) -> bool:
  return any(mark in STOPS for mark in marks)


def leads_to_labels(graph: OpGraph, name: str) -> bool:
  """Returns whether an operation is a cross entropy, or shapes what it reads as labels."""
  consumers = graph.consumers()
  pending = [(n, _LABELS) for n, op in enumerate(graph.ops) if op.name == name]
  while pending:
    position, slot = pending.pop()
    op = graph.ops[position]
    if op.op_type == 'SoftmaxCrossEntropyWithLogits':
      return slot == _LABELS
    if op.op_type in ('Reshape', 'Transpose', 'Cast', 'Squeeze', 'ExpandDims'):
      pending += consumers[position]
  return False


def label_gradient(evidence: FailedStage) -> Cause | None:
  """The cross entropy of TF1 stops the gradient at its labels, that of TF2 does not.

  Looks for a `StopGradient` of tf1 only on the way to the labels of a cross entropy.
  """
  graph = evidence.tf1_graph
  if graph is None:
    return None
  for difference in evidence.gradient_differences:
    if is_stopped_in_tf1_only(difference) and leads_to_labels(graph, difference.op):
      return Cause(
        'the gradient passes through the labels in the port: '
        'tf.compat.v1.nn.softmax_cross_entropy_with_logits stops it there, '
        'tf.nn.softmax_cross_entropy_with_logits does not: pass tf.stop_gradient(labels)',
        f'{difference.op}, which yields the labels: StopGradient (tf1), none (tf2)',
      )
  return None
