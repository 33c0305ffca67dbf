"""Inputs that the port never reads although the reference does."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.errors import BuilderError, LayerError, NotApplicable, UserCodeError
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import Observation
from tf2verify.reference import nests
from tf2verify.reference.nests import leaves_by_path
from tf2verify.sides.fill import Fill
from tf2verify.sides.hooks.other_values import other_values
from tf2verify.sides.side import RunSpec, training_name
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.passes.further_runs.longer_inputs import outputs_differ
from tf2verify.stages.stage import CaseUnderTest

# What a value outside of an input's domain may lead to, on either side.
_ILLEGAL = (UserCodeError, BuilderError, LayerError, NotApplicable)
_MOST_VALUES = 3
_UNREAD = 'never read'
_IDLE = 'without effect'
_HINT = (
  'the port has to take {} as TF1 does; if it is left out on purpose (is_training, '
  'which is the argument `training` now), leave it out of make_inputs and give build_tf1_graph a '
  'constant instead'
)


def add_unread_inputs(case: CaseUnderTest, inputs: Any, fill: Fill, comparison: Comparison) -> None:
  """Adds a finding for every input that tf1's outputs change with, and the port's do not.

  Costs a run only for an input that no output of the port was seen to be computed from, and for
  one of integers or flags that are all the same, whose one value says nothing of what the port does
  to others (segments of zeros, a mask of ones). That is tried: other values of this input alone.
  Of the former, one that cannot be tried is a blind spot.

  Args:
    case: the case.
    inputs: the nest to start from.
    fill: of the variables.
    comparison: gets the findings.
  """
  undecided = []
  suspects = dict(_suspects(case))
  for path, modes in {**_alike(case), **suspects}.items():
    text = _UNREAD if path in suspects else _IDLE
    outcomes = [_outcome(case, inputs, path, fill, training, text) for training in modes]
    found = next((one for one in outcomes if isinstance(one, Difference)), None)
    if found is not None:
      comparison.add(found)
    elif None in outcomes and path in suspects:
      undecided.append(path or 'the input')
  if undecided:
    comparison.blind_spots.append(
      f'whether the port reads {", ".join(undecided)} as tf1 does could not be determined: no '
      'output of '
      'the port is computed from it by operations, and no other value was found that tf1 takes '
      'and that changes its outputs'
    )


def _suspects(case: CaseUnderTest) -> Iterator[tuple[str, list[bool]]]:
  """Yields inputs that tf1 reads and the port maybe not, with the training modes to look at."""
  modes = sorted(case.declaration.training_modes)
  read = {training: set(case.tf1.inputs_read(training)) for training in modes}
  for path, leaf in leaves_by_path(case.inputs).items():
    found = [
      training
      for training in modes
      if path in read[training] and path not in case.tf2.inputs_behind_outputs(training)
    ]
    if found and leaf.size:
      yield path, found


def _alike(case: CaseUnderTest) -> dict[str, list[bool]]:
  """Returns inputs that tf1 reads, of integers or flags that are all the same, with one mode."""
  training = min(case.declaration.training_modes)
  read = set(case.tf1.inputs_read(training))
  return {
    path: [training]
    for path, leaf in leaves_by_path(case.inputs).items()
    if path in read and leaf.size and leaf.dtype.kind in 'iub' and np.all(leaf == leaf.flat[0])
  }


def _outcome(
  case: CaseUnderTest, inputs: Any, path: str, fill: Fill, training: bool, text: str
) -> Difference | bool | None:
  """Returns the finding; True where the port reads the input, None where it cannot be told."""
  pairs = case.alignment().pairs
  tf1 = RunSpec(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs})
  tf2 = dataclasses.replace(tf1, tf1_names={tf2: tf1 for tf1, tf2 in pairs})
  for number, value in enumerate(other_values(leaves_by_path(inputs)[path])):
    if number == _MOST_VALUES:
      break
    changed = _with(inputs, path, value)
    try:
      port = case.tf2.observe_filled([tf2, dataclasses.replace(tf2, inputs=changed)])
    except _ILLEGAL:
      case.tf2.release()
      return True  # at a value that tf1 would have to judge; the port did not ignore it
    if not _same_bits(*port):
      return True
    runs = [tf1, dataclasses.replace(tf1, inputs=changed), tf1]
    try:
      before, after, again = case.tf1.prepare_filled(runs)()
    except _ILLEGAL:
      continue
    if outputs_differ(case, before, after) and not outputs_differ(case, before, again):
      return Difference(
        'input',
        path or '(the input)',
        Aspect.UNREAD,
        'the outputs change with it',
        f'{text}: the outputs are the same, bit for bit, for other values of it',
        training_name(training),
        hint=_HINT.format(f'the input {path}' if path else 'the input'),
      )
  return None


def _with(inputs: Any, path: str, value: np.ndarray) -> Any:
  return nests.map_leaves(lambda here, leaf: value if here == path else leaf, inputs)


def _same_bits(one: Observation, other: Observation) -> bool:
  if one.structure != other.structure:
    return False
  return all(
    (x.value is None and y.value is None)
    or (
      x.value is not None
      and y.value is not None
      and x.value.shape == y.value.shape
      and x.value.tobytes() == y.value.tobytes()
    )
    for x, y in zip(one.outputs, other.outputs, strict=True)
  )
