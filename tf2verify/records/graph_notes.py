"""Differences of the graphs that the numbers of passed stages do not show."""

from collections.abc import Iterable

from tf2verify.records.proven import Proven

_SHOWN = 3


def without_effect(passed: Iterable[Proven | None]) -> list[str]:
  """Returns where the graphs differ in stages whose numbers did not show it.

  It may be the reason for what fails after them: a factor of the weight decay, say, which only
  training reads.

  Args:
    passed: what is proven in the stages that passed before; None where nothing was related.
  """
  found = dict.fromkeys(
    difference.to_text() for proven in passed if proven for difference in proven.differences
  )
  said = [f'the graphs differ, with no effect in the stages before: {text}' for text in found]
  left = len(said) - _SHOWN
  more = [f'… and {left} more, see the blind spots of the stages before'] if left > 0 else []
  return said[:_SHOWN] + more
