"""Runs of the reference made again, of which the tensors that are doubted are asked for."""

import dataclasses
from collections.abc import Callable, Iterable

from tf2verify.records.observation import Observation
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.observed_tensors import tensors_of
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import GraphHere, PreparedRuns

# Runs the reference again, in a fresh session: moved, or as it was for None; returns those of the
# tensors that it has.
Rerun = Callable[[Perturber | None, frozenset[TensorKey]], Run]
# Runs a recorded graph here.
RunHere = Callable[[frozenset[TensorKey]], Run]
# As `Rerun`, with the gradients for these variables, and all else that a run yields.
Again = Callable[[Perturber | None, frozenset[str]], Observation]

_GRADIENT = 'gradient'


def repeated(run_tf1: PreparedRuns, run: RunSpec) -> Again:
  """Returns what repeats one of the filled runs that were prepared."""

  def again(perturber: Perturber | None, gradients_of: frozenset[str]) -> Observation:
    moved = dataclasses.replace(run, perturber=perturber, gradients_of=gradients_of)
    return run_tf1([moved])[0]

  return again


def rerun_of(again: Again) -> Rerun:
  """Returns what takes the tensors that are asked for out of an observation."""
  return lambda perturber, wanted: tensors_of(again(perturber, _gradients_in(wanted)), wanted)


def here_of(here: GraphHere | None) -> RunHere | None:
  """Returns the same for a recorded graph that is run here; None for a reference that is not."""
  if here is None:
    return None
  run_here = here
  return lambda wanted: tensors_of(run_here(_gradients_in(wanted)), wanted)


def _gradients_in(wanted: Iterable[TensorKey]) -> frozenset[str]:
  return frozenset(key.name for key in wanted if key.quantity == _GRADIENT)
