"""What two graphs tell of which variables are which."""

import dataclasses

from tf2verify.relation.layouts.map_entry import MapEntry


@dataclasses.dataclass(frozen=True)
class Choice:
  """Entries for some variables, of which one alternative holds; the likely one is the first.

  Attributes:
    alternatives: the entries of each.
    is_split: whether they differ in the order of the parts of one variable.
    turned: so many alternatives, the first ones, have rows in the order in which the port flattens
      what meets them, which is another one than that of tf1.
    likely: the alternative in which parts meet the same activations; None where that is not told.
  """

  alternatives: tuple[tuple[MapEntry, ...], ...]
  is_split: bool = False
  turned: int = 0
  likely: int | None = None


@dataclasses.dataclass(frozen=True)
class Place:
  """A unit of both sides, as the positions of its last operation in the graphs."""

  tf1: int
  tf2: int
  variables: tuple[str, ...]  # tf1 names


@dataclasses.dataclass(frozen=True)
class Derivation:
  """What the graphs tell.

  Attributes:
    choices: in the order of the reference; most have one alternative.
    places: the units that are pairs, in the order of the reference.
    tf1_left: variables of tf1 without a partner, and why.
    tf2_left: likewise, of the port.
    crossed: pairs by names that have a clear partner each, which the graphs pair differently.
    exchangeable: tf1 names of variables that are paired by order alone.
    alike: tf1 names of variables whose places are of one kind, some of which are.
  """

  choices: tuple[Choice, ...]
  places: tuple[Place, ...]
  tf1_left: tuple[tuple[str, str], ...]
  tf2_left: tuple[tuple[str, str], ...]
  crossed: tuple[tuple[str, str], ...]
  exchangeable: tuple[str, ...]
  alike: tuple[tuple[str, ...], ...] = ()
