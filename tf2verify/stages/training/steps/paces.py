"""By how much the counts of both sides advance in a step: TF1 may count examples or frames."""


class Paces:
  """Sees both counts after each step, and tells one from the other.

  As long as the counts advance alike, or not evenly, one is the other.
  """

  def __init__(self) -> None:
    self._seen: list[tuple[int | None, int | None]] = []

  def see(self, tf1: int | None, port: int | None) -> None:
    """Takes the counts after the next step; None where one is not told."""
    self._seen.append((tf1, port))

  @property
  def both(self) -> tuple[int, int] | None:
    """How much TF1 and the port count a step; None where that is the same, or not known."""
    known = [(one, other) for one, other in self._seen if one is not None and other is not None]
    if not known or len(known) < len(self._seen):
      return None
    # The first step counts from zero, unless the second one shows otherwise.
    starts = [(0, 0), *known[:-1]] if len(known) == 1 else known[:-1]
    ends = known if len(known) == 1 else known[1:]
    paces = {(b[0] - a[0], b[1] - a[1]) for a, b in zip(starts, ends, strict=True)}
    if len(paces) != 1:
      return None
    (pace,) = paces
    return pace if min(pace) > 0 and pace[0] != pace[1] else None

  @property
  def resting(self) -> int | None:
    """TF1's count where its steps leave it as it is, and the port counts its own; else None."""
    tf1, port = {one for one, _ in self._seen}, {other for _, other in self._seen}
    return tf1.pop() if len(tf1) == 1 < len(port) else None

  def of_tf1(self, count: int) -> int:
    """Returns the last count of TF1 up to one that steps come to."""
    paces, resting = self.both, self.resting
    if resting is not None:
      return resting
    return count if paces is None else count // paces[0] * paces[0]

  def of_port(self, count: int) -> int:
    """Returns the port's count after as many steps as a count of TF1 means."""
    paces = self.both
    return count if paces is None else count // paces[0] * paces[1]
