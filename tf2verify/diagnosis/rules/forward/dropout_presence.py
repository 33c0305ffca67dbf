"""Dropout on one side only."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.rules.forward.dropout_rate import reads_uniform
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import OpGraph


def dropout_presence(evidence: FailedStage) -> Cause | None:
  """One side drops elements where the other keeps all.

  Looks for a mask of uniform random numbers in one side's region only.
  """
  counts = [_mask_count(graph) for graph in (evidence.tf1_graph, evidence.tf2_graph)]
  for found in evidence.sources:
    in_tf1, in_tf2 = _masks(found.source.tf1_path), _masks(found.source.tf2_path)
    more = counts[0] - counts[1] if in_tf1 else counts[1] - counts[0]
    if in_tf1 == in_tf2 or more <= 0:  # as many: it stands elsewhere
      continue
    seen = f'RandomUniform → GreaterEqual in {"tf1" if in_tf1 else "tf2"} only, on the way to '
    seen += f'{found.source.tf1_op}; {counts[0]} such masks (tf1), {counts[1]} (tf2)'
    if in_tf2:
      return Cause(
        'dropout only in the port: either tf1 has none here, or it never switches it on '
        '(tf.layers.dropout has training=False by default): the port of what tf1 computes leaves '
        'it out, or calls it with training=False',
        seen,
      )
    return Cause(
      'dropout only in tf1: either the port has lost it, or it is called without training=True '
      '(slim.dropout has is_training=True by default, a Keras layer in a loop of your own does '
      'not)',
      seen,
    )
  return None


def _masks(path: tuple[str, ...]) -> bool:
  return 'GreaterEqual' in path and any('RandomUniform' in op for op in path)


def _mask_count(graph: OpGraph | None) -> int:
  """Returns how many masks of uniform random numbers a graph has, loops included."""
  if graph is None:
    return 0
  own = sum(op.op_type == 'GreaterEqual' and reads_uniform(graph, op) for op in graph.ops)
  return own + sum(_mask_count(function) for op in graph.ops for _, function in op.functions)
