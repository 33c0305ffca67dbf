"""Values before a step with which no two quantities of the step are equal by chance.

At the first step slots are zeros or ones, and averages are the variables themselves: a momentum is
the gradient then, and its partner cannot be told from it by values. A search for the first
divergence starts from other values, the same on both sides; what a stage compares does not.
"""

import contextlib
import dataclasses
import hashlib
from collections.abc import Collection, Mapping

import numpy as np

from tf2verify.sides.graphs.step_run import StepGraph, StepRun, update_target
from tf2verify.sides.tf2.graphs.edited_step import EditableStep

# Of what a step makes of a slot: the signs stay, and the sizes are those of training.
_FACTORS = (0.5, 1.5)
# Of what is an average of something else.
_NEAR_FACTORS = (0.95, 1.05)
_SAME = 1e-6


def distinct_values(
  tf1: StepGraph, tf2: EditableStep, guessed: Collection[str] = ()
) -> dict[str, np.ndarray]:
  """Returns other values of slots and averages that are not told apart before a step.

  Args:
    tf1: the step of the reference.
    tf2: that of the port, from the values of the reference.
    guessed: what is kept of slots that are pairs for a search only: a mistake in earlier steps may
      have made them differ, and the port is given those of tf1.

  Returns:
    By what both sides call them, as tf1 holds them. Only what both sides have, and start from with
    the same value or are given, is among them.

  Raises:
    WrittenOtherwise: a variable is written in a way that cannot be taken apart.
  """
  known = {one.name: one.value for one in tf1.variables.values() if one.value.dtype.kind == 'f'}
  alike = {*_started_alike(known, tf2), *guessed}
  given = {name: known[name] for name in guessed if name in known}
  vague = [name for name in _vague(known) if name in alike]
  if not vague:
    return given
  with contextlib.closing(StepRun(tf1, None, targets_only=True).run) as run:
    ends = run.op_graph.targets()
    tensors = {
      name: run.op_graph.ops[ends[target]].tensors[0]
      for name in vague
      if (target := update_target(name)) in ends
    }
    after = dict(zip(tensors, run.fetch(list(tensors.values())), strict=True))
  found = {name: _between(name, known[name], value) for name, value in after.items()}
  return given | {name: value for name, value in found.items() if np.any(value != known[name])}


def from_values(step: StepGraph, values: Mapping[str, np.ndarray]) -> StepGraph:
  """Returns a step of the reference that starts from other values of some variables."""
  variables = {
    op: dataclasses.replace(known, value=values.get(known.name, known.value))
    for op, known in step.variables.items()
  }
  return dataclasses.replace(step, variables=variables)


def _vague(known: Mapping[str, np.ndarray]) -> list[str]:
  """Returns what belongs to a variable, and is one number or the value of that variable."""
  found = []
  for name, value in known.items():
    owner = known.get(name.rpartition(' of ')[2])
    if ' of ' not in name or owner is None or owner.shape != value.shape or not value.size:
      continue
    if bool(np.all(value == value.flat[0])) or np.array_equal(value, owner):
      found.append(name)
  return found


def _started_alike(known: Mapping[str, np.ndarray], tf2: EditableStep) -> set[str]:
  """Returns what the port starts from with the values of the reference."""
  own = {one.name: one.value for one in tf2.step.variables.values()}
  given = tf2.starting_from_tf1(known).step.variables.values()
  return {
    one.name
    for one in given
    if one.name in known and np.allclose(one.value, own[one.name], _SAME, _SAME)
  }


def _between(name: str, before: np.ndarray, after: np.ndarray) -> np.ndarray:
  """Returns a value of the size that a step makes, and of its sign; the same in every process."""
  if after.shape != before.shape or not np.all(np.isfinite(after)):
    return before
  seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], 'big')
  least, most = _NEAR_FACTORS if np.any(before) else _FACTORS
  factors = np.random.default_rng(seed).uniform(least, most, before.shape)
  return np.asarray(after * factors, before.dtype)
