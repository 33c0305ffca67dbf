"""Rows of an embedding dealt out to shards in another way."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause


def embedding_partition(evidence: FailedStage) -> Cause | None:
  """TF1 deals ids out in turn (mod), TF2 in blocks (div).

  Looks for a lookup in several shards whose ids tf1 divides with remainder.
  """
  for found in evidence.sources:
    tf1, tf2 = found.source.tf1_path, found.source.tf2_path
    if not _is_by_turn(tf1) or _is_by_turn(tf2) or not _looks_up(tf2):
      continue
    blocks = "in blocks, 'div'" if 'DynamicPartition' in tf2 else 'in one table, in order'
    return Cause(
      "tf1 distributes the ids over its shards in turn (partition_strategy='mod', the default of "
      f'tf.compat.v1.nn.embedding_lookup) and the port looks them up {blocks} '
      "(tf.nn.embedding_lookup is always 'div'): interleave the rows of the shards into one "
      'table, tf.reshape(tf.stack(shards, axis=1), [-1, size])',
      f'at {found.source.tf1_op} only the remainder of the id chooses the shard in tf1 '
      '(FloorMod, DynamicPartition), but not in tf2',
    )
  return None


def _is_by_turn(path: tuple[str, ...]) -> bool:
  # Blocks of unequal size take a maximum or a selection as well.
  by_turn = {'FloorMod', 'DynamicPartition'} <= set(path)
  return by_turn and not {'Maximum', 'Select', 'SelectV2'} & set(path)


def _looks_up(path: tuple[str, ...]) -> bool:
  return any('Gather' in op or op == 'DynamicPartition' for op in path)
