"""Causes of mistakes that the gradient alone shows, after experiments."""

import dataclasses
from collections.abc import Iterable, Sequence

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.edits.edit_texts import edit_text
from tf2verify.diagnosis.edits.mistakes import Found, Mistake
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.tested_causes import with_headline
from tf2verify.records.diagnosis import BY_EXPERIMENT, Cause, GraphAspect, GraphDifference

_CUSTOM = 'custom gradient'


def gradient_causes(evidence: FailedStage, found: Found) -> list[Cause]:
  """Returns the causes of mistakes, all of them proven.

  A rule that goes by where gradients pass differently is shown with the mistake at which it sees
  this; it is wrong where it goes by another place.

  Args:
    evidence: what the rules have seen.
    found: the mistakes.
  """
  bare = dataclasses.replace(evidence, gradient_differences=(), stops=(), sources=())
  elsewhere = list(causes_of(bare))
  others = {cause.rule for cause in elsewhere}
  tested = []
  for mistake in found.mistakes:
    experiment, differences = mistake.experiment, _differences(mistake)
    assert experiment is not None
    known: Iterable[Cause] = ()
    if len(differences) == 1 and differences[0].aspect is GraphAspect.GRADIENT:
      known = causes_of(dataclasses.replace(bare, gradient_differences=differences))
    cause = next((one for one in known if one.rule not in others), None)
    if cause is not None:
      tested.append(dataclasses.replace(cause, experiment=experiment, predicts=True))
    elif experiment.text:
      seen = _seen(evidence, differences) if len(found.mistakes) == 1 else ''
      tested.append(
        Cause(experiment.text, seen, BY_EXPERIMENT, experiment=experiment, predicts=True)
      )
  return with_headline(tested, elsewhere)


def _differences(mistake: Mistake) -> tuple[GraphDifference, ...]:
  found: list[GraphDifference] = []
  for source in mistake.sources:
    found += [known for known in source.differences if known not in found]
  return tuple(found)


def _seen(evidence: FailedStage, differences: Sequence[GraphDifference]) -> str:
  """Returns how the backward passes differ first, where one gradient is written by hand."""
  if len(differences) != 1 or differences[0].aspect is not GraphAspect.GRADIENT:
    return ''
  path = differences[0]
  is_by_hand = [_CUSTOM in (value or ()) for value in (path.tf1_value, path.tf2_value)]
  source = next((one.source for one in evidence.sources), None)
  if not any(is_by_hand) or source is None or len(source.differences) != 1:
    return ''
  aspect = source.differences[0].aspect
  is_other = (aspect is GraphAspect.MISSING, aspect is GraphAspect.EXTRA)
  if not all(is_by_hand) and tuple(is_by_hand) != is_other:
    return ''
  text = edit_text([source])
  return f'in the backward pass {text}' if text else ''
