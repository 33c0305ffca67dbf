"""A finding on one line, and the line of code that it is about: for lists of failures."""

import dataclasses
import os
import re
import textwrap

from tf2verify.records.diagnosis import Cause, Source
from tf2verify.records.diagnosis_text import alike_sources, source_text
from tf2verify.records.verdict import StageVerdict
from tf2verify.records.verdict_text import outcome_text
from tf2verify.reference.user_files import is_file_of_user
from tf2verify.safe_text import safe_line

# Causes say what to write in the place of what is there: most of them fit.
_LONGEST = 300
# Causes, and lines of the port, of one failure.
_SHOWN = 3
# As Python's own traceback has it.
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Place:
  """A line of the user's code."""

  path: str  # the file, as Python names it
  line: int  # from 1


@dataclasses.dataclass(frozen=True)
class Finding:
  """What a failure says about a line of the port."""

  texts: tuple[str, ...]  # causes, each on one line; how it differs, where none is known
  place: Place | None  # the line of the port; None where it is not known
  tf1: Place | None  # the line of TF1 that belongs to it


def headline(stage: StageVerdict) -> str:
  """Returns the cause of a failure, or what was found where none is known, on one line."""
  return next(iter(known_causes(stage)), safe_line(outcome_text(stage)))


def known_causes(stage: StageVerdict) -> list[str]:
  """Returns the causes of a failure, the first ones, each on one line; none where none is known."""
  return _all_causes(stage)[:_SHOWN]


def further_causes(stage: StageVerdict) -> str:
  """Returns how many causes there are besides that of `headline`; '' for none."""
  more = len(_all_causes(stage)) - 1
  return f' (and {more} more cause{"s" * (more > 1)})' if more > 0 else ''


def _all_causes(stage: StageVerdict) -> list[str]:
  causes = _causes(stage)
  hints = [difference.hint for difference in stage.differences if difference.hint]
  known = [safe_line(text.replace('\n', ' ')) for text in (*(one.text for one in causes), *hints)]
  return [*dict.fromkeys(known)]


def message(stage: StageVerdict) -> str:
  """Returns the causes, on one line of at most 300 characters, for lists of tests.

  Where no cause is known: what differs first, and the line of the port where it begins to.
  """
  line = headline(stage)
  known = known_causes(stage)
  if known:
    return textwrap.shorten('; also: '.join(known), _LONGEST, placeholder=' …')
  if stage.differences:
    line += f': {stage.differences[0].quantity} {stage.differences[0].subject}'
  found = place(stage)
  where = '' if found is None else f'; first at {os.path.basename(found.path)}:{found.line}'
  return textwrap.shorten(safe_line(line), _LONGEST - len(where), placeholder=' …') + where


def place(stage: StageVerdict) -> Place | None:
  """Returns the line of the port where both sides first differ, or the user's line that raised."""
  found = next(iter(_placed(stage)), None)
  if found is not None:
    return found[1]
  if stage.error is None:
    return None
  frames = _FRAME.findall(stage.error.traceback_text)
  own = [Place(path, int(line)) for path, line in frames if _is_own(path)]
  return own[-1] if own else None


def findings(stage: StageVerdict) -> list[Finding]:
  """Returns what a failure says at each line of the port that it is about, the first ones.

  The first one has all causes; further ones are where both sides differ independently of it.
  """
  placed = _placed(stage)
  tf1 = placed[0][0].tf1_source if placed else None
  texts = tuple(known_causes(stage)) or (headline(stage),)
  found = [Finding(texts, place(stage), None if tf1 is None else Place(tf1.path, tf1.line))]
  for source, at in placed[1:]:
    if len(found) < _SHOWN and at not in [one.place for one in found]:
      line = source.tf1_source
      tf1_place = None if line is None else Place(line.path, line.line)
      found.append(Finding(_causes_at(stage, source), at, tf1_place))
  return found


def _placed(stage: StageVerdict) -> list[tuple[Source, Place]]:
  """Returns where both sides differ with the line of the port, one place for those alike."""
  sources = stage.diagnosis.sources if stage.diagnosis is not None else ()
  # Where the edit was tried that proves the first cause, before any other place.
  tried = next((cause.experiment for cause in _causes(stage)[:1]), None)

  def is_elsewhere(source: Source) -> bool:
    return tried is not None and source.experiment != tried

  found = []
  for group in alike_sources(sources):
    source = min(group, key=is_elsewhere)
    if source.tf2_source is not None:
      # What a layer of Keras computes is settled where it is constructed.
      line = next(iter(source.tf2_source.made), source.tf2_source)
      found.append((source, Place(line.path, line.line)))
  return sorted(found, key=lambda one: is_elsewhere(one[0]))


def _causes(stage: StageVerdict) -> tuple[Cause, ...]:
  return stage.diagnosis.causes if stage.diagnosis is not None else ()


def _causes_at(stage: StageVerdict, source: Source) -> tuple[str, ...]:
  """Returns the causes that are about one place; how it differs, where there is none."""
  tried = source.experiment
  known = [
    cause.text
    for cause in _causes(stage)
    if source.tf1_op in cause.variables or (tried is not None and cause.experiment == tried)
  ]
  known += [one.hint for one in stage.differences if one.hint and one.tf1_subject == source.tf1_op]
  texts = dict.fromkeys(safe_line(text.replace('\n', ' ')) for text in known)
  return tuple(texts) or (safe_line(f'then: {source_text(source)}'),)


def _is_own(path: str) -> bool:
  return is_file_of_user(path, ()) and f'{os.sep}site-packages{os.sep}' not in path
