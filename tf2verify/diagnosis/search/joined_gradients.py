"""Mistakes of a model that differentiates itself: a function, and its gradient."""

from tf2verify.diagnosis.edits.mistakes import Found, Mistake

# How the type of the gradient of an operation ends.
_GRADIENT = 'Grad'


def joined_gradients(found: Found) -> Found:
  """Returns what differs in a gradient as a part of what differs in the function it belongs to.

  A model that differentiates itself has its gradients in its graph: no edit forms them anew.
  """
  for mistake in found.mistakes:
    own = {step.removesuffix(_GRADIENT) for step in _steps(mistake) if step.endswith(_GRADIENT)}
    others = (one for one in found.mistakes if one is not mistake and one.edit is mistake.edit)
    first = next((one for one in others if own & _steps(one)), None)
    if first is not None:
      return found.joined([first, mistake])
  return found


def _steps(mistake: Mistake) -> set[str]:
  """Returns the types of the operations that one side alone has at the places of a mistake."""
  known = (d for source in mistake.sources for d in source.differences)
  values = (value for d in known for value in (d.tf1_value, d.tf2_value))
  return {str(step) for value in values if isinstance(value, tuple) for step in value}
