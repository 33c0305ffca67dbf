"""Resizing that samples at other places."""

from collections.abc import Mapping

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause, GraphDifference

_FUNCTIONS = {
  'ResizeBilinear': 'resize_bilinear',
  'ResizeNearestNeighbor': 'resize_nearest_neighbor',
  'ResizeBicubic': 'resize_bicubic',
  'ResizeArea': 'resize_area',
}


_SAMPLING = ('half_pixel_centers', 'align_corners')


def resize_sampling(evidence: FailedStage) -> Cause | None:
  """`tf.compat.v1` samples at i * scale, `tf.image.resize` at (i + 0.5) * scale - 0.5.

  Looks for a resize whose sampling attributes differ.
  """
  for found, difference in evidence.graph_differences():
    function = _FUNCTIONS.get(difference.op_type)
    if not function or difference.what not in _SAMPLING:
      continue
    apart = {d.what: d for d in found.source.differences if d.op == difference.op}
    names = [name for name in _SAMPLING if name in apart]
    tf1, tf2 = (
      ', '.join(f'{n}={getattr(apart[n], side)}' for n in names) for side in ('tf1', 'tf2')
    )
    return Cause(
      f'the two sides resize from different sampling points: {tf1} in tf1, {tf2} in the port: '
      f'{_remedy(function, apart)}',
      f'{difference.op}: {tf1} (tf1), {tf2} (tf2)',
    )
  return None


def _remedy(function: str, apart: Mapping[str, GraphDifference]) -> str:
  """Returns how the port samples as tf1 does."""
  half, corners = (apart.get(name) for name in _SAMPLING)
  if corners is not None and corners.tf1_value:
    return f'call tf.compat.v1.image.{function} with align_corners=True'
  if half is not None and half.tf1_value:
    return 'call tf.image.resize, which samples at (i + 0.5) * scale - 0.5, as tf1 does here'
  if half is not None:
    return (
      f'call tf.compat.v1.image.{function}, which samples at i * scale; tf.image.resize and '
      'UpSampling2D sample at (i + 0.5) * scale - 0.5'
    )
  return 'leave align_corners out of the port'
