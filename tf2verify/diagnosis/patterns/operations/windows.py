"""Operations that move a window over an image."""

from tf2verify.diagnosis.evidence.failed_stage import SourceEvidence, Standing
from tf2verify.records.diagnosis import GraphAspect, GraphDifference

WINDOWED = ('Conv', 'DepthwiseConv', 'MaxPool', 'AvgPool', 'Dilation2D')
PADS = ('Pad', 'PadV2')


def window_attribute(
  source: SourceEvidence, what: str, standings: tuple[Standing, ...]
) -> GraphDifference | None:
  """Returns how an attribute of a windowed operation differs; None where it does not.

  Args:
    source: where the sides part.
    what: `padding`, `strides`, ...
    standings: what a trial of it has to have shown.
  """
  for difference in source.source.differences:
    windowed = difference.op_type.startswith(WINDOWED)
    if windowed and difference.aspect is GraphAspect.ATTRIBUTE and difference.what == what:
      return difference if source.standing(difference) in standings else None
  return None
