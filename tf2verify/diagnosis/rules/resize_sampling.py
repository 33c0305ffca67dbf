"""Resizing that samples at other places."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause

_FUNCTIONS = {
  'ResizeBilinear': 'resize_bilinear',
  'ResizeNearestNeighbor': 'resize_nearest_neighbor',
  'ResizeBicubic': 'resize_bicubic',
  'ResizeArea': 'resize_area',
}


class ResizeSampling(Rule):
  """TF1 samples at i * scale, TF2 at (i + 0.5) * scale - 0.5."""

  name = 'resize_sampling'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a resize whose sampling attributes differ."""
    for _, difference in evidence.graph_differences():
      function = _FUNCTIONS.get(difference.op_type)
      if function and difference.what in ('half_pixel_centers', 'align_corners'):
        return self.cause(
          f'the two sides resize from other sampling points: tf1 takes i * scale '
          f'({difference.what}={difference.tf1}), the port {difference.what}={difference.tf2}; '
          f'call tf.compat.v1.image.{function}, which tf.image.resize and UpSampling2D are not',
          f'{difference.op}: {difference.what} {difference.tf1} (tf1), {difference.tf2} (tf2)',
        )
    return None
