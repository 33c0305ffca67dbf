"""What is different at places where the values agree, and the gradients do not."""

import dataclasses
from collections.abc import Sequence

from tf2verify.diagnosis.edits.edit_texts import MOST_SAID, difference_text
from tf2verify.records.diagnosis import GraphAspect, GraphDifference, Source
from tf2verify.records.op_graph import STOPS


def gradient_text(sources: Sequence[Source]) -> str:
  """Returns what is different at places where the values agree, each difference once.

  Where one side stops the gradient, other operations of the same values are a spelling.
  """
  groups: dict[object, set[str]] = {}
  said: dict[object, str] = {}
  for known in (known for source in sources for known in _of_gradients(source)):
    alike = known.aspect, known.op_type, known.what, known.tf1, known.tf2
    groups.setdefault(alike, set()).add(known.op)
    said.setdefault(alike, difference_text(known))
  texts = [
    text + (f'; the same at {len(groups[alike]) - 1} more' if len(groups[alike]) > 1 else '')
    for alike, text in said.items()
  ]
  return '; '.join(texts[:MOST_SAID]) + ('; …' if len(texts) > MOST_SAID else '')


def _of_gradients(source: Source) -> Sequence[GraphDifference]:
  stops = any(
    one.aspect is GraphAspect.GRADIENT
    and STOPS.intersection((*(one.tf1_value or ()), *(one.tf2_value or ())))
    for one in source.differences
  )
  # What one side lacks may be what scales the gradient, around the stop.
  kept = [one for one in source.differences if one.aspect is not GraphAspect.REPLACED]
  return kept if stops else source.differences


def stops_text(sources: Sequence[Source]) -> str:
  """Returns that one side alone stops the gradient at places of many operations; '' elsewhere."""
  found = [
    dataclasses.replace(
      source,
      differences=tuple(d for d in source.differences if d.aspect is GraphAspect.GRADIENT),
    )
    for source in sources
  ]
  known = [one for source in found for one in source.differences]
  both = [(set(one.tf1_value or ()), set(one.tf2_value or ())) for one in known]
  in_tf1 = all(one & STOPS and not other for one, other in both)
  in_port = all(other & STOPS and not one for one, other in both)
  return gradient_text(found) if known and (in_tf1 or in_port) else ''
