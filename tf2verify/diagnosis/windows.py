"""Operations that move a window over an image."""

from tf2verify.records.diagnosis import GraphAspect, Source

_WINDOWED = ('Conv', 'DepthwiseConv', 'MaxPool', 'AvgPool', 'Dilation2D')


def window_attribute(source: Source, what: str) -> tuple[str, str] | None:
  """Returns an attribute of a windowed operation on both sides, where it differs.

  Args:
    source: where the sides part.
    what: `padding`, `strides`, ...
  """
  for difference in source.differences:
    windowed = difference.op_type.startswith(_WINDOWED)
    if windowed and difference.aspect is GraphAspect.ATTRIBUTE and difference.what == what:
      return difference.tf1, difference.tf2
  return None
