"""Activations lost, added, or in another place."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause, GraphAspect, GraphDifference
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import is_backward

_LEAKY = 'LeakyRelu'
ACTIVATIONS = (
  'Relu',
  'Relu6',
  'Elu',
  'Selu',
  'LeakyRelu',
  'Sigmoid',
  'Tanh',
  'Softplus',
  'Softmax',
)


def activation(evidence: FailedStage) -> Cause | None:
  """One side applies an activation that the other does not.

  Looks for an activation that is all that one side has more, and nowhere else.
  """
  moved = [known for pair in moved_activations(evidence) for known in pair]
  for found, difference in evidence.graph_differences():
    kind = _activation(difference)
    if not kind or difference in moved:
      continue
    sides = ('tf1', 'the port')
    missing = difference.aspect is GraphAspect.MISSING
    tf1, tf2 = evidence.count(kind)
    if (tf1 <= tf2) if missing else (tf2 <= tf1):
      continue  # it is elsewhere on the other side, so not lost
    instead = _instead(evidence, kind, missing)
    if instead:
      ours, theirs = (kind, instead) if missing else (instead, kind)
      return Cause(
        f'tf1 applies {ours.lower()} where the port applies {theirs.lower()}: pass '
        f'activation={ours.lower()!r}',
        f'{ours} in tf1 only, {theirs} in the port only, on the way to {found.source.tf1_op}',
      )
    written = _written_leaky(evidence.tf1_graph) if kind == _LEAKY and not missing else None
    if written is not None:
      where = '' if written.source is None else f' ({written.source.short})'
      return Cause(
        f'the port applies leakyrelu before {found.source.tf1_op} and tf1 does not; tf1 applies it '
        f'elsewhere, as the maximum {written.name}{where}: apply it where tf1 does',
        f'LeakyRelu in the port only, on the way to {found.source.tf1_op}',
      )
    side, other = sides if missing else sides[::-1]
    slim = (
      'slim.conv2d and slim.fully_connected apply relu unless they get activation_fn=None, '
      if kind == 'Relu'
      else ''
    )
    return Cause(
      f'{side} applies {kind.lower()} and {other} does not: {slim}Keras and tf.layers apply none '
      f'unless they get activation={kind.lower()!r}',
      f'{kind} in {side} only, on the way to {found.source.tf1_op}',
    )
  return None


def _written_leaky(graph: OpGraph | None) -> OpRecord | None:
  """Returns a maximum of a tensor and a multiple of it; None for none."""
  if graph is None:
    return None
  for op in graph.ops:
    for slot in range(2) if op.op_type == 'Maximum' and not is_backward(op) else ():
      producer, read = graph.ops[op.inputs[slot][0]], op.inputs[1 - slot]
      if producer.op_type == 'Mul' and read in producer.inputs:
        return op
  return None


def _instead(evidence: FailedStage, kind: str, missing: bool) -> str:
  """Returns the one activation that the other side has as often more; '' without any.

  `relu(elu(x))` is `relu(x)`: behind another one, an activation alone seems to be missing.
  """
  sign = 1 if missing else -1
  surplus = {one: sign * (a - b) for one in ACTIVATIONS for a, b in [evidence.count(one)]}
  found = [one for one, more in surplus.items() if more == -surplus[kind]]
  return found[0] if len(found) == 1 else ''


def moved_activations(evidence: FailedStage) -> list[tuple[GraphDifference, GraphDifference]]:
  """Returns the activations that stand before a batch norm on one side, after it on the other.

  Returns:
    Pairs: the difference of the side that applies it before the batch norm, then that of
    the side that applies it behind.
  """
  sources = list(evidence.graph_differences())
  found = []
  for source, before in sources:
    norm = source.source
    if not (_activation(before) and norm.tf1_type.startswith('FusedBatchNorm')):
      continue
    extra = before.aspect is GraphAspect.EXTRA
    graph, name = (evidence.tf1_graph, norm.tf1_op) if extra else (evidence.tf2_graph, norm.tf2_op)
    found += [
      (before, behind)
      for _, behind in sources
      if behind.aspect is not before.aspect
      and _activation(behind) == _activation(before)
      and _reads(graph, behind.op, name)
    ]
  return found


def _activation(difference: GraphDifference) -> str:
  """Returns the op type of an activation that one side has more; '' for another difference."""
  ops = {
    GraphAspect.MISSING: difference.tf1_value,
    GraphAspect.EXTRA: difference.tf2_value,
  }.get(difference.aspect)
  return ops[0] if ops and len(ops) == 1 and ops[0] in ACTIVATIONS else ''


def _reads(graph: OpGraph | None, reader: str, producer: str) -> bool:
  """Returns whether an operation reads what another one yields."""
  ops = () if graph is None else graph.ops
  return any(
    op.name == reader and any(ops[number].name == producer for number, _ in op.inputs) for op in ops
  )


def activation_order(evidence: FailedStage) -> Cause | None:
  """The activation stands before the batch norm on one side, after it on the other.

  Looks for a batch norm that reads an activation on one side only.
  """
  for before, behind in moved_activations(evidence):
    of_port = before.aspect is GraphAspect.EXTRA
    sides = ('the port', 'tf1') if of_port else ('tf1', 'the port')
    return _cause_of(
      before.op_type,
      of_port,
      f'{before.op} before the batch norm ({sides[0]}), {behind.op} after it ({sides[1]})',
    )
  for _, difference in evidence.graph_differences():
    wiring = difference.aspect is GraphAspect.WIRING
    if not (wiring and difference.op_type.startswith('FusedBatchNorm')):
      continue
    before_it = [value in ACTIVATIONS for value in (difference.tf1_value, difference.tf2_value)]
    seen = f'{difference.op} reads {difference.tf1} (tf1), {difference.tf2} (tf2)'
    if before_it == [False, True]:
      return _cause_of(str(difference.tf2_value), True, seen)
    if before_it == [True, False]:
      return _cause_of(str(difference.tf1_value), False, seen)
  return None


def _cause_of(op_type: str, before_in_port: bool, seen: str) -> Cause:
  kind = op_type.lower()
  if before_in_port:
    return Cause(
      f'the port applies {kind} before the batch norm, tf1 after it (slim: convolution, '
      'normalizer, activation): take the activation out of the convolution and apply it after '
      'the batch norm',
      seen,
    )
  return Cause(
    f'tf1 applies {kind} before the batch norm, the port after it: give the activation to the '
    'convolution',
    seen,
  )
