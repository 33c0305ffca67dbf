"""Dropout of another rate, or on one side only."""

import math
from collections.abc import Iterator

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, SourceEvidence
from tf2verify.records.diagnosis import Cause, GraphAspect, GraphDifference
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.reference.random_ops import is_random_op

# How TensorFlow 1.x brings uniform numbers into a range, also into that from 0 to 1.
_SCALING = ('Mul', 'Add', 'AddV2')
# What applies a mask, what makes one of a comparison, and how many operations that takes.
_APPLIES = ('Mul', 'RealDiv', 'Select', 'SelectV2')
_OF_MASK = ('Cast', 'GreaterEqual')
_STEPS_TO_MASK = 2
# Operations to look at before one that masks; behind them is another layer.
_NEAR = 12
# Of layers with weights. Noise may be an outer product, by one of them.
_LAYERS = frozenset(
  ('MatMul', 'BatchMatMul', 'BatchMatMulV2', 'Einsum', 'Conv2D', 'DepthwiseConv2dNative', 'Conv3D')
)
_SEVERAL = 2
_PASS_TRAINING = 'pass training=training to the layer (the argument of call), not training=True'


def dropout_rate(evidence: FailedStage) -> Cause | None:
  """The share that is kept passed as the share that is dropped, or another number.

  Looks for uniform random numbers that are compared with another constant.
  """
  for op, tf1, tf2 in (*_of_differences(evidence), *_of_sources(evidence)):
    seen = f'{op}: uniform numbers >= {tf1:.4g} are kept in tf1, >= {tf2:.4g} in tf2'
    if abs(tf1 + tf2 - 1) < 1e-5:
      return Cause(
        f'the dropout drops {tf1:.4g} of the elements in tf1 and {tf2:.4g} in the port: pass '
        f'rate={tf1:.4g}; the two add up to 1, so if tf1 has keep_prob={tf2:.4g}, that was '
        'passed as the rate, which is 1 - keep_prob',
        seen,
      )
    return Cause(
      f'the dropout drops {tf1:.4g} of the elements in tf1 and {tf2:.4g} in the port: pass '
      f'rate={tf1:.4g}',
      seen,
    )
  return None


def _of_differences(evidence: FailedStage) -> Iterator[tuple[str, float, float]]:
  """Yields thresholds that differ where the operations are the same."""
  for _, difference in evidence.graph_differences():
    if _is_threshold(evidence.tf1_graph, difference):
      yield difference.op, float(difference.tf1_value), float(difference.tf2_value)


def _of_sources(evidence: FailedStage) -> Iterator[tuple[str, float, float]]:
  """Yields thresholds that differ where the operations do: a mask that TF1 multiplies by."""
  for found in evidence.sources:
    tf1 = _threshold_before(evidence.tf1_graph, found.source.tf1_op)
    tf2 = _threshold_before(evidence.tf2_graph, found.source.tf2_op)
    if tf1 is not None and tf2 is not None and abs(tf1 - tf2) > 1e-6:
      yield found.source.tf1_op, tf1, tf2


def _threshold_before(graph: OpGraph | None, name: str) -> float | None:
  """Returns what the nearest comparison of uniform numbers before an operation compares with."""
  pending = [] if graph is None else [op for op in graph.ops if op.name == name]
  for _ in range(_NEAR):
    if graph is None or not pending:
      return None
    op = pending.pop(0)
    producers = [graph.ops[producer] for producer, _ in op.inputs]
    constants = [one.constant for one in producers if one.constant is not None]
    if op.op_type == 'GreaterEqual' and reads_uniform(graph, op):
      return float(constants[0]) if constants and constants[0].size == 1 else None
    pending += producers
  return None


def _is_threshold(graph: OpGraph | None, difference: GraphDifference) -> bool:
  """Returns whether a constant differs that uniform random numbers are compared with."""
  if graph is None or difference.aspect is not GraphAspect.CONSTANT:
    return False
  values = difference.tf1_value, difference.tf2_value
  if difference.op_type != 'GreaterEqual' or not all(isinstance(v, float) for v in values):
    return False
  op = next((op for op in graph.ops if op.name == difference.op), None)
  return op is not None and reads_uniform(graph, op)


def reads_uniform(graph: OpGraph, op: OpRecord) -> bool:
  """Returns whether an operation reads uniform numbers, scaled and shifted or not."""
  producers = [graph.ops[producer] for producer, _ in op.inputs]
  return any(
    'RandomUniform' in one.op_type or (one.op_type in _SCALING and reads_uniform(graph, one))
    for one in producers
  )


def noise_shape(evidence: FailedStage) -> Cause | None:
  """Whole rows, or channels, dropped on one side, single elements on the other.

  Looks for as many masks on both sides, of which one is broadcast along other axes.
  """
  if evidence.tf1_graph is None or evidence.tf2_graph is None or not evidence.sources:
    return None
  ones, others = _mask_shapes(evidence.tf1_graph), _mask_shapes(evidence.tf2_graph)
  if len(ones) != len(others):
    return None
  for (name, tf1), (_, tf2) in zip(ones, others, strict=True):
    if len(tf1) != len(tf2) or tf1 == tf2 or None in (*tf1, *tf2):
      continue
    if all(one == other or 1 in (one, other) for one, other in zip(tf1, tf2, strict=True)):
      return Cause(
        f'the mask of a dropout has the shape {tf1} in tf1 and {tf2} in the port: along an axis of '
        'length 1 all elements are dropped together; pass noise_shape to the dropout of the port, '
        'with 1 for these axes (keras.layers.SpatialDropout2D drops whole channels)',
        f'{name}: random numbers of the shape {tf1} (tf1), {tf2} (tf2)',
      )
  return None


def dropout_position(evidence: FailedStage) -> Cause | None:
  """A dropout of another tensor than in tf1.

  Looks for as many masks on both sides, of which one has another number of elements.
  """
  if evidence.tf1_graph is None or evidence.tf2_graph is None or not evidence.sources:
    return None
  if noise_shape(evidence) is not None:
    return None
  ones, others = _known_shapes(evidence.tf1_graph), _known_shapes(evidence.tf2_graph)
  if len(ones) != len(others):
    return None
  left = [math.prod(shape) for _, shape in others]
  for name, tf1 in ones:
    if math.prod(tf1) in left:
      left.remove(math.prod(tf1))
      continue
    known = {math.prod(shape) for _, shape in ones}
    own = [shape for _, shape in others if math.prod(shape) not in known]
    if len(set(own)) != 1:
      return None
    return Cause(
      f'a dropout of the port is at a different position: it drops elements of a tensor of shape '
      f'{own[0]}, that of tf1 elements of one of shape {tf1}; both sides have the same number of '
      'dropouts: apply that of the port to what tf1 drops',
      f'{name}: {len(ones)} such masks on each side',
    )
  return None


def _known_shapes(graph: OpGraph) -> list[tuple[str, tuple[int, ...]]]:
  """Returns name and shape of all masks of a known shape."""
  known = []
  for name, shape in _mask_shapes(graph):
    sizes = tuple(size for size in shape if size is not None)
    known += [(name, sizes)] if len(sizes) == len(shape) else []
  return known


def _mask_shapes(graph: OpGraph) -> list[tuple[str, tuple[int | None, ...]]]:
  """Returns name and shape of all masks of uniform random numbers, in the order of the graph."""
  return [
    (op.name, tuple(op.outputs[0][1]))
    for op in graph.ops
    if op.op_type == 'GreaterEqual' and reads_uniform(graph, op) and op.outputs[0][1] is not None
  ]


def dropout_presence(evidence: FailedStage) -> Cause | None:
  """One side drops elements where the other keeps all.

  Looks for a mask of uniform random numbers in one side's region only.
  """
  passed_by = _passed_by(evidence)
  if passed_by is not None:
    return passed_by
  counts = [_mask_count(graph) for graph in (evidence.tf1_graph, evidence.tf2_graph)]
  for found in evidence.sources:
    in_tf1, in_tf2 = _masks(found.source.tf1_path), _masks(found.source.tf2_path)
    more = counts[0] - counts[1] if in_tf1 else counts[1] - counts[0]
    if in_tf1 == in_tf2 or more <= 0:  # as many: it stands elsewhere
      continue
    if _lacks_layers(found, 0 if in_tf1 else 1):
      continue
    other = found.source.tf2_path if in_tf1 else found.source.tf1_path
    if any('RandomUniform' in op for op in other):
      continue  # it drops as well, in another way: `floor(uniform + keep)`
    seen = f'RandomUniform → GreaterEqual in {"tf1" if in_tf1 else "tf2"} only, on the way to '
    seen += f'{found.source.tf1_op}; {counts[0]} such masks (tf1), {counts[1]} (tf2)'
    if in_tf2 and _mask_count(evidence.tf1_in_training) > counts[0]:
      return Cause(
        f'a dropout of the port is also active in inference: {_PASS_TRAINING}; in tf1 it is active '
        'in training mode only',
        f'{seen}; in training mode tf1 has {_mask_count(evidence.tf1_in_training)}',
      )
    if in_tf2:
      return Cause(
        'dropout only in the port: either tf1 has none here, or it never activates it '
        '(tf.layers.dropout has training=False by default): to compute what tf1 computes, leave '
        'it out, or call it with training=False',
        seen,
      )
    return Cause(
      'dropout only in tf1: either the port has lost it, or it is called without training=True '
      '(slim.dropout has is_training=True by default, a Keras layer in a loop of your own does '
      'not)',
      seen,
    )
  return _moved(evidence) or _noise_presence(evidence)


def _passed_by(evidence: FailedStage) -> Cause | None:
  """Names what reads the output of a dropout on one side, and its input on the other.

  The other one has the dropout, for another reader.
  """
  tf1, tf2 = evidence.tf1_graph, evidence.tf2_graph
  if tf1 is None or tf2 is None:
    return None
  for _, known in evidence.graph_differences():
    if known.aspect is not GraphAspect.WIRING:
      continue
    one, other = _is_dropped(tf1, known.tf1), _is_dropped(tf2, known.tf2)
    graph, name = (tf2, known.tf2) if one else (tf1, known.tf1)
    if one == other or not _is_given_to_dropout(graph, name):
      continue
    said = [f'{known.tf1} in tf1', f'{known.tf2} in the port']
    dropped, given = said if one else said[::-1]
    fix = 'the output of the dropout' if one else 'what the dropout of the port is given'
    return Cause(
      f'{known.op} reads the output of a dropout, {dropped}, but the input of one, {given}, where '
      f'that dropout feeds other operations: let it read {fix}',
      f'{known.op} ({known.op_type}): {known.what} {known.tf1} (tf1), {known.tf2} (tf2)',
    )
  return None


def _is_given_to_dropout(graph: OpGraph, name: str) -> bool:
  """Returns whether a dropout reads what an operation yields, scaled before its mask or not."""
  readers = graph.consumers()
  pending = [n for n, op in enumerate(graph.ops) if op.name == name]
  for _ in range(_STEPS_TO_MASK):
    pending = [
      n for position in pending for n, _ in readers[position] if graph.ops[n].op_type in _APPLIES
    ]
    if any(_is_dropped(graph, graph.ops[n].name) for n in pending):
      return True
  return False


def _moved(evidence: FailedStage) -> Cause | None:
  """Names an operation that reads what a dropout yields on one side alone, of as many dropouts."""
  tf1, tf2 = evidence.tf1_graph, evidence.tf2_graph
  if tf1 is None or tf2 is None or _mask_count(tf1) != _mask_count(tf2):
    return None
  for _, known in evidence.graph_differences():
    if known.aspect is not GraphAspect.WIRING:
      continue
    one, other = _is_dropped(tf1, known.tf1), _is_dropped(tf2, known.tf2)
    if one == other:
      continue
    sides = ('tf1', 'the port') if one else ('the port', 'tf1')
    read = (known.tf1, known.tf2) if one else (known.tf2, known.tf1)
    return Cause(
      f'the dropout is at a different position in the port: {known.op} reads {read[0]} in '
      f'{sides[0]}, which is the output of a dropout, and {read[1]} in {sides[1]}, which is not; '
      'both sides have the same number of dropouts: apply that of the port '
      f'{"to what" if one else "after what"} {known.op} reads',
      f'{known.op} ({known.op_type}): {known.what} {known.tf1} (tf1), {known.tf2} (tf2)',
    )
  return None


def _is_dropped(graph: OpGraph, name: str) -> bool:
  """Returns whether an operation multiplies by, or chooses by, a mask of random numbers."""
  op = next((op for op in graph.ops if op.name == name), None)
  if op is None or op.op_type not in _APPLIES:
    return False
  pending = [(op, 0)]
  while pending:
    op, depth = pending.pop(0)
    if op.op_type == 'GreaterEqual' and reads_uniform(graph, op):
      return True
    if depth < _STEPS_TO_MASK:
      producers = [graph.ops[producer] for producer, _ in op.inputs]
      pending += [(one, depth + 1) for one in producers if one.op_type in (*_APPLIES, *_OF_MASK)]
  return False


def _noise_presence(evidence: FailedStage) -> Cause | None:
  """Names random numbers, of whatever use, that one side alone draws at a place."""
  counts = [_draw_count(graph) for graph in (evidence.tf1_graph, evidence.tf2_graph)]
  for found in evidence.sources:
    drawn = [
      next((op for op in path if is_random_op(op)), '')
      for path in (found.source.tf1_path, found.source.tf2_path)
    ]
    if bool(drawn[0]) == bool(drawn[1]) or any(map(_masks, _paths(found))):
      continue
    one, other, more = ('tf1', 'the port', counts[0] - counts[1])
    if drawn[1]:
      one, other, more = other, one, -more
    if more <= 0 or _lacks_layers(found, 0 if drawn[0] else 1):  # as many: it stands elsewhere
      continue
    if drawn[1] and _draw_count(evidence.tf1_in_training) > counts[0]:
      return Cause(
        f'the port also draws random numbers on the way to {found.source.tf1_op} in inference: '
        f'{_PASS_TRAINING}; tf1 draws them in training mode only',
        f'{drawn[1]} in the port only; {counts[0]} such operations (tf1), {counts[1]} (tf2)',
      )
    before = _drawn_before(evidence, found, 1 if drawn[0] else 0)
    if before:
      return Cause(
        f'{one} draws random numbers of its own on the way to {found.source.tf1_op}, {other} reads '
        f'there what it has drawn already ({before}): draw once, and read the same numbers at both '
        'places',
        f'{counts[0]} such operations (tf1), {counts[1]} (tf2)',
      )
    fix = (
      'it was left out, or the layer that draws them is called without training=True'
      if drawn[0]
      else 'tf1 has none, or is not in training mode there'
    )
    return Cause(
      f'{one} draws random numbers on the way to {found.source.tf1_op} and {other} draws none: '
      f'{fix}',
      f'{drawn[0] or drawn[1]} in {one} only; {counts[0]} such operations (tf1), {counts[1]} (tf2)',
    )
  return None


def _drawn_before(evidence: FailedStage, found: SourceEvidence, side: int) -> str:
  """Returns the operation that draws what a side reads at a place; '' if it reads none."""
  graph = (evidence.tf1_graph, evidence.tf2_graph)[side]
  end = (found.source.tf1_op, found.source.tf2_op)[side]
  if graph is None:
    return ''
  ends = [n for n, op in enumerate(graph.ops) if op.name == end]
  behind = [graph.ops[n] for n in sorted(graph.ancestors(ends))]
  return next((op.name for op in reversed(behind) if is_random_op(op.op_type)), '')


def _paths(found: SourceEvidence) -> tuple[tuple[str, ...], tuple[str, ...]]:
  return found.source.tf1_path, found.source.tf2_path


def _lacks_layers(found: SourceEvidence, side: int) -> bool:
  """Returns whether one side has layers at a place, besides what it draws, that the other has not.

  The other one reads something else there, as the output of another model, which need not draw.
  """
  counts = [sum(op in _LAYERS for op in path) for path in _paths(found)]
  return counts[side] - counts[1 - side] >= _SEVERAL


def _draw_count(graph: OpGraph | None) -> int:
  """Returns how many operations of a graph draw random numbers, loops included."""
  if graph is None:
    return 0
  own = sum(is_random_op(op.op_type) for op in graph.ops)
  return own + sum(_draw_count(function) for op in graph.ops for _, function in op.functions)


def _masks(path: tuple[str, ...]) -> bool:
  return 'GreaterEqual' in path and any('RandomUniform' in op for op in path)


def _mask_count(graph: OpGraph | None) -> int:
  """Returns how many masks of uniform random numbers a graph has, loops included."""
  if graph is None:
    return 0
  own = sum(op.op_type == 'GreaterEqual' and reads_uniform(graph, op) for op in graph.ops)
  return own + sum(_mask_count(function) for op in graph.ops for _, function in op.functions)
