"""Training steps of the reference taken again: as they were, and from perturbed values."""

import dataclasses
from collections.abc import Iterable

from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.records.training import TrainingRun, TrainingStep
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.tf1.reference_steps import PreparedSteps
from tf2verify.stages.comparison.noise.reruns import Rerun, RunHere
from tf2verify.stages.training.steps import quantities

# Moved runs are kept for the steps to come where one takes no more than this.
_KEPT_BYTES = 16 * 2**20
# So are all steps of the reference for experiments; slots and gradients come on top.
_TAKEN_BYTES = 256 * 2**20


class PerturbedRuns:
  """Runs of the reference with perturbed values; those of a small model are cached."""

  def __init__(self, run_tf1: PreparedSteps, count: int) -> None:
    """Takes the reference's steps, and how many there are."""
    self._run = run_tf1
    self._count = count
    self._known: dict[Perturber, TrainingRun] = {}
    self._taken_here: tuple[int, Run] | None = None
    self._as_it_is: TrainingRun | None = None

  def rerun(self, number: int) -> Rerun:
    """Returns what runs the reference again, to look at one step."""

    def again(perturber: Perturber | None, wanted: frozenset[TensorKey]) -> Run:
      return _in_step(quantities.of_reference(self._of(perturber, number), number), wanted)

    return again

  def here(self, number: int) -> RunHere | None:
    """Returns what takes recorded steps here, to look at one; None for a live reference."""
    begin = self._run.here
    if begin is None:
      return None

    def taken(wanted: frozenset[TensorKey]) -> Run:
      if self._taken_here is not None and self._taken_here[0] == number:
        return _in_step(self._taken_here[1], wanted)
      with begin() as steps:
        known = steps.run()
        run = dataclasses.replace(known, steps=tuple(steps.take() for _ in range(number)))
      values = quantities.of_reference(run, number)
      self._taken_here = number, values
      return _in_step(values, wanted)

    return taken

  def are_kept(self, known: TrainingRun) -> bool:
    """Returns whether all steps of the model fit into memory together."""
    return self._count * _size(known) <= _TAKEN_BYTES

  def taken(self) -> TrainingRun:
    """Returns all steps of the reference, as it is."""
    if self._as_it_is is None:
      with self._run.begin(None, again=True) as steps:
        known = steps.run()
        taken = tuple(steps.take() for _ in range(self._count))
      self._as_it_is = dataclasses.replace(known, steps=taken)
    return self._as_it_is

  def _of(self, perturber: Perturber | None, number: int) -> TrainingRun:
    if perturber in self._known:
      return self._known[perturber]
    with self._run.begin(perturber, again=True) as steps:
      known = steps.run()
      small = self._count * _size(known) <= _KEPT_BYTES
      taken: list[TrainingStep] = []
      for _ in range(self._count if small else number):
        if taken and not small:
          taken[-1] = taken[-1].without_arrays()
        taken.append(steps.take())
    run = dataclasses.replace(known, steps=tuple(taken))
    if small and perturber is not None:
      self._known[perturber] = run
    return run


def _size(run: TrainingRun) -> int:
  """Returns the bytes of the model's variables."""
  return sum(record.value.nbytes for record in run.values_before if record.value is not None)


def _in_step(found: Run, wanted: Iterable[TensorKey]) -> Run:
  """Returns those of the tensors of a step that are wanted, by the keys that findings have."""
  return {key: found.get(dataclasses.replace(key, run='')) for key in wanted}
