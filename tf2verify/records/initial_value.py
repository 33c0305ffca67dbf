"""How the two sides start a variable."""

import dataclasses
import enum


class Start(enum.Enum):
  """What is known of two initial values that are not the same numbers."""

  SAME = 'drawn from the same distribution'
  DIFFERENT = 'drawn from different distributions'
  UNKNOWN = 'drawn, of which too little is known'
  NOT_DRAWN = 'not drawn, or by the same random numbers'


@dataclasses.dataclass(frozen=True)
class JudgedStart:
  """The initial values of a variable on both sides.

  Attributes:
    start: what is known of them.
    tf1: how tf1 draws its value, as text; '' where nothing is drawn.
    tf2: how the port does.
    tested: how many elements were drawn of each side, where the operations do not tell the
      distributions; 0 where they do.
    resolution: how far off, relatively, the port's scale may be without being seen in a
      test of values; infinite where that is not known, 0 where no test was needed.
    is_related: whether the port's values are those of tf1, scaled and shifted.
  """

  start: Start
  tf1: str = ''
  tf2: str = ''
  tested: int = 0
  resolution: float = 0.0
  is_related: bool = False
