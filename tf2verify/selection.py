"""Which stages a case climbs."""

import dataclasses
import difflib
import re
from collections.abc import Iterable
from typing import Any

from tf2verify.errors import CaseDefinitionError
from tf2verify.stages import STAGES

# `3`, `1-6`.
_NUMBERS = re.compile(r'(\d{1,4})(?:-(\d{1,4}))?')


@dataclasses.dataclass(frozen=True)
class StageSelection:
  """The whole ladder, but for the stages left out.

  Attributes:
    left_out: stage name and the case's written reason.
  """

  left_out: tuple[tuple[str, str], ...] = ()

  def reason_without(self, stage: str) -> str:
    """Returns the reason why a stage is left out; '' if it is not."""
    return dict(self.left_out).get(stage, '')

  @classmethod
  def of(cls, declared: Any) -> 'StageSelection':
    """Returns what a case's `stages` says.

    Args:
      declared: a `StageSelection`, or the names of all stages.

    Raises:
      CaseDefinitionError: an unknown name, or a stage left out without a reason.
    """
    if isinstance(declared, StageSelection):
      return declared
    if isinstance(declared, str) or not isinstance(declared, Iterable):
      raise CaseDefinitionError(
        f'stages is {declared!r}; leave it out for the whole ladder, or leave stages out with '
        "stages = tf2verify.all_stages_except(gradients='why')"
      )
    names = tuple(declared)
    for name in names:
      check_stage_name(name)
    missing = [stage.name for stage in STAGES if stage.name not in names]
    if missing:
      raise CaseDefinitionError(
        f'stages leaves out {", ".join(missing)} without a reason, so a reader of the report '
        'cannot know whether that was meant; write stages = '
        f"tf2verify.all_stages_except({missing[0]}='why')"
      )
    return cls()


def check_stage_name(name: Any) -> None:
  """Raises `CaseDefinitionError` for a name that no stage has."""
  names = [stage.name for stage in STAGES]
  if name not in names:
    close = difflib.get_close_matches(str(name), names, 1, 0.4)
    guess = f' (did you mean {close[0]!r}?)' if close else ''
    raise CaseDefinitionError(f'{name!r} is not a stage{guess}; the stages are {", ".join(names)}')


def stage_names(words: Iterable[Any]) -> tuple[str, ...]:
  """Returns the stages that are named, or numbered as reports number them: `3`, `1-6`.

  Raises:
    CaseDefinitionError: a word names no stage.
  """
  names = [stage.name for stage in STAGES]
  found: list[str] = []
  for word in words:
    numbers = _NUMBERS.fullmatch(str(word))
    if numbers is None:
      check_stage_name(word)
      found.append(word)
      continue
    first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    if not 1 <= first <= last <= len(names):
      raise CaseDefinitionError(
        f'{word!r} is not the number of a stage; the stages are '
        + ', '.join(f'{number} {name}' for number, name in enumerate(names, 1))
      )
    found += names[first - 1 : last]
  return tuple(dict.fromkeys(found))


def check_training_modes(modes: Any) -> None:
  """Raises `CaseDefinitionError` for what is not a tuple of training modes."""
  valid = isinstance(modes, (tuple, list)) and modes and all(type(mode) is bool for mode in modes)
  if not valid or len(set(modes)) != len(modes):
    raise CaseDefinitionError(
      f'training_modes is {modes!r}; it must be a tuple of False (inference) and True (training), '
      'each at most once: (False, True), (False,) or (True,)'
    )


def all_stages_except(*names: str, **reasons: str) -> StageSelection:
  """Returns the ladder without some stages.

  Args:
    *names: none: a stage is left out for a reason.
    **reasons: stage name = why the case leaves it out; the report shows it.

  Raises:
    CaseDefinitionError: an unknown stage, or an empty reason.
  """
  if names:
    given = f'{names[0]!r:.80}'
    named = names[0] if isinstance(names[0], str) and names[0].isidentifier() else 'determinism'
    raise CaseDefinitionError(
      f'all_stages_except({given}) gives no reason; the report has to say why a stage is left out: '
      f"all_stages_except({named}='why')"
    )
  for name, reason in reasons.items():
    check_stage_name(name)
    if not isinstance(reason, str) or not reason.strip():
      raise CaseDefinitionError(
        f'all_stages_except({name}={reason!r}) gives no reason; the report has to say why {name} '
        'is left out'
      )
  return StageSelection(tuple(reasons.items()))
