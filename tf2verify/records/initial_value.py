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
  """The initial values of a variable on both sides."""

  start: Start  # what is known of them
  tf1: str = ''  # how tf1 draws its value, as text; '' where nothing is drawn
  tf2: str = ''  # how the port does
  # How many elements were drawn of each side, where the operations do not tell the distributions; 0
  # where they do.
  tested: int = 0
  # How far off, relatively, the port's scale may be without being seen in a test of values;
  # infinite where that is not known, 0 where no test was needed.
  resolution: float = 0.0
  is_related: bool = False  # whether the port's values are those of tf1, scaled and shifted
