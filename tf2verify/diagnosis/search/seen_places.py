"""Places that a search has looked at, some of them again after an edit."""

from tf2verify.diagnosis.places.looking import Place


class SeenPlaces:
  """Remembers places as they were seen first.

  After an edit the port computes other values at a place than it does by itself.
  """

  def __init__(self) -> None:
    # By the port's operation there.
    self._first: dict[str, Place] = {}
    # By its identity, a place and how it was seen first.
    self._known: dict[int, tuple[Place, Place]] = {}

  def see(self, place: Place) -> None:
    """Notes a place that a search has looked at."""
    first = self._first.setdefault(place.evidence.source.tf2_op, place)
    self._known[id(place)] = place, first

  def first(self, place: Place) -> Place:
    """Returns a place as it was seen first; one that was never noted, as it is."""
    _, first = self._known.get(id(place), (place, place))
    return first
