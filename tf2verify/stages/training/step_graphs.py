"""Both sides' training step as graphs, to look for the first divergence in."""

from collections import Counter
from collections.abc import Iterable, Mapping

from tf2verify.errors import NotApplicable
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import step_run
from tf2verify.sides.graphs.without_state import WrittenOtherwise
from tf2verify.sides.made_lines import MadeLines
from tf2verify.sides.side import FilledRun
from tf2verify.sides.tf2.step_tracing import SharedNames
from tf2verify.sides.tf2.tracing import NotTraceable
from tf2verify.stages.stage import CaseUnderTest, Inspection
from tf2verify.stages.training.step_quantities import Steps

_SHADOW = 'shadow'


def of_step(
  case: CaseUnderTest, runs: tuple[FilledRun, FilledRun], steps: Steps, number: int, name: str
) -> Inspection:
  """Returns a step that differs, both sides from the values of the reference before it.

  Args:
    case: the case.
    runs: what both sides were given, tf1 before tf2.
    steps: taken so far, with the arrays of this one.
    number: of the step, from 1.
    name: what findings call it.
  """
  tf1_names, slots = _shared_slots(steps, number)
  variables = {tf2: tf1 for tf1, tf2 in steps.names}

  def sides() -> tuple[GraphRun, GraphRun]:
    reference = case.tf1_training.inspectable_step(runs[0], number, tf1_names)
    before = {known.name: known.value for known in reference.variables.values()}
    made = MadeLines()
    with made.recording():
      again = case.tf2_training.begin_steps_again(runs[1], number, None)
    for _ in range(number - 1):
      again.take()
    port = again.traced(SharedNames(variables, slots, before), made)
    try:
      one = step_run(reference)
    except WrittenOtherwise as error:
      raise NotApplicable(f'the train op of tf1 is not looked into: {error}') from error
    try:
      return one, step_run(port)
    except WrittenOtherwise as error:
      one.close()
      raise NotTraceable(str(error)) from error

  return Inspection(name, 'the training step of the port', sides)


def _shared_slots(steps: Steps, number: int) -> tuple[dict[str, str], dict[str, str]]:
  """Returns what both sides call what optimizers and averages keep, by each side's own names."""
  one, other = steps.tf1.steps[number - 1], steps.tf2.steps[number - 1]
  model = {tf2: tf1 for tf1, tf2 in steps.names}
  by_value = {id(slot.value): slot.name for slot in one.slots}
  values = {slot.name: slot.value for slot in other.slots}
  tf1: list[tuple[str, str]] = []
  tf2: list[tuple[str, str]] = []
  for pair in steps.slots(number).pairs:
    # What is kept in another unit, or only means the same after the step, is no pair before it.
    if pair.tf2 is values.get(pair.name) and id(pair.tf1) in by_value:
      shared = f'{pair.role} of {pair.variable}' if pair.variable else pair.role
      tf1.append((by_value[id(pair.tf1)], shared))
      tf2.append((pair.name, shared))
  for names, slots, owners in ((tf1, one.slots, {}), (tf2, other.slots, model)):
    for slot in slots:
      if slot.role == _SHADOW:
        owner = owners.get(slot.variable, slot.variable)
        names.append((slot.name, f'{_SHADOW} of {owner}'))
  return _unambiguous(tf1), _unambiguous(tf2)


def _unambiguous(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
  """Returns names by names, without those that several variables have."""
  known: Mapping[str, str] = dict(pairs)
  counts = Counter(name for name, _ in set(pairs)), Counter(known.values())
  return {
    name: shared for name, shared in known.items() if counts[0][name] == counts[1][shared] == 1
  }
