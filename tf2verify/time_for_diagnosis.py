"""How long experiments on failed stages may take: as long as the stages themselves did so far."""

import contextlib
import time
from collections.abc import Iterator

_LEAST_SECONDS = 10.0


class TimeForDiagnosis:
  """Keeps the time of one case; what diagnoses take is no time of the stages."""

  def __init__(self) -> None:
    """Begins now."""
    self._started = time.perf_counter()
    self._diagnosing = 0.0
    # Until when stages that are blocked are run for what they show by themselves.
    self._beyond_until: float | None = None

  def is_left_beyond(self) -> bool:
    """Returns whether a stage that is blocked may be run; the time for these begins here."""
    now = time.perf_counter()
    if self._beyond_until is None:
      self._beyond_until = now + self._as_long_as_stages(now)
    return now <= self._beyond_until

  def seconds(self, is_beyond: bool, stands_alone: bool) -> float:
    """Returns how long experiments that begin now may take.

    Args:
      is_beyond: whether the stage is blocked.
      stands_alone: whether what it compares does not depend on those before it.
    """
    now = time.perf_counter()
    if not is_beyond or self._beyond_until is None:
      return self._as_long_as_stages(now)
    return max(self._beyond_until - now, _LEAST_SECONDS if stands_alone else 0.0)

  @contextlib.contextmanager
  def diagnosing(self) -> Iterator[None]:
    """Holds while a failed stage is looked into."""
    start = time.perf_counter()
    try:
      yield
    finally:
      self._diagnosing += time.perf_counter() - start

  def _as_long_as_stages(self, now: float) -> float:
    return max(now - self._started - self._diagnosing, _LEAST_SECONDS)
