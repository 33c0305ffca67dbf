"""Elements of variables whose gradient is zero but for rounding, on both sides.

Adam, RMSProp and their like divide by the size of the gradient, so that rounding in the
place of a gradient moves a variable as far as a gradient would, in a direction of its
own: the bias in front of a batch norm, the bias of the keys of an attention.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.noise import RUNS
from tf2verify.records.sampled import SampledArray
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import TrainingRun, TrainingStep
from tf2verify.reference.perturbation import Perturber, fraction_bits
from tf2verify.stages.training.rounding.elements import RoundingElements
from tf2verify.stages.training.rounding.zero_gradients import greatest_of_kinds
from tf2verify.stages.training.steps import quantities
from tf2verify.stages.training.steps.quantities import QuantityPair

_Array = np.ndarray[Any, Any]
# Gradients of one variable: run, step.
_Runs = Sequence[Sequence[_Array]]

# A gradient up to this multiple of its own noise is one of rounding. Of nine values of
# one normal distribution, the first is as far from zero, and the others as close to it,
# less often than once in 1e5.
_FACTOR = 4.0
# A variable of more is not looked at: a dozen runs of it are kept.
_MOST_ELEMENTS = 2**19
# Of a model of no more elements in all, every variable is looked at when one is.
_FEW_ELEMENTS = 2**16
_MOVERS = tuple(map(Perturber, range(RUNS)))
_EXCUSED = (
  quantities.GRADIENT,
  quantities.APPLIED,
  quantities.SLOT,
  quantities.UPDATE,
  quantities.SHADOW,
)


class StepsAgain(Protocol):
  """Training steps of one side, repeated one by one."""

  def run(self) -> TrainingRun:
    """Returns what is known besides the steps themselves."""

  def take(self) -> TrainingStep:
    """Takes a step."""


# Begins the steps again: with values and inputs moved, or as they were for None.
Begin = Callable[[Perturber | None], contextlib.AbstractContextManager[StepsAgain]]


class RoundingWatch:
  """Finds such elements where something differs, and keeps them out of the comparison."""

  def __init__(self, tf1: Begin, tf2: Begin, names: Mapping[str, str], count: int) -> None:
    """Takes both sides; nothing is run yet.

    Args:
      tf1: begins the reference.
      tf2: begins the port.
      names: from tf1 to tf2 variable names.
      count: how many steps there are.
    """
    self._begin = tf1, tf2
    self._names = dict(names)
    self._count = count
    # By tf1 name: runs of the reference, the first one as it is, and moved ones of the port.
    self._taken: dict[str, tuple[list[_Taken], list[_Taken]]] = {}
    # The port as it is, of each variable; and of all, as long as its own steps show it.
    self._ports: dict[str, _Taken] = {}
    self._seen: _Taken | None = _Taken({port: tf1 for tf1, port in self._names.items()})
    self._moved: list[_Taken] = []
    self._looked_at: dict[str, None] = {}
    self._excused: dict[TensorKey, _Array] = {}
    self._told: dict[str, tuple[int, int, float, float]] = {}

  @property
  def notes(self) -> list[str]:
    """What a reader has to know of elements that were left out."""
    return [
      f'{count} of {size} elements of {name} were left out: their gradient is zero except for '
      f'rounding on both sides (at most {one:.2g} in tf1 and {other:.2g} in the port, within '
      f'{_FACTOR:.0f} x their noise), and an optimizer may scale that up; the next step of the '
      'port starts from the values of tf1 there'
      for name, (count, size, one, other) in self._told.items()
    ]

  def see(self, step: TrainingStep) -> None:
    """Takes the port's next step, from values that are its own."""
    if self._seen is None:
      return
    sizes = (r.value.size for r in step.gradients if isinstance(r.value, np.ndarray))
    if sum(sizes) > _FEW_ELEMENTS:
      self._seen = None
    else:
      self._seen.add(step)

  def holds(self) -> None:
    """Takes it that further steps of the port start from values that are not its own."""
    self._seen = None

  def look(
    self, differing: Iterable[QuantityPair], number: int, pairs: Iterable[QuantityPair]
  ) -> bool:
    """Looks at what differs in a step; returns whether some of it is not to be compared.

    Args:
      differing: what differs.
      number: of the step.
      pairs: all of the step.
    """
    self._excused, sizes = {}, greatest_of_kinds(pairs)
    doubtful = [pair for pair in differing if _may_be_excused(pair)]
    variables = {pair.variable for pair in doubtful}
    self._looked_at.update(dict.fromkeys(pair.variable for pair in doubtful))
    self._take_again(variables)
    self._move_the_port({v for v in variables if _is_open(v, *self._runs_of(v, number), number)})
    for pair in doubtful:
      known = _elements(pair.variable, *self._runs_of(pair.variable, number), number)
      found = None if known is None else known.excused(pair, sizes)
      if known is None or found is None:
        continue
      self._excused[pair.key] = found
      count = max(int(found.sum()), self._told.get(pair.variable, (0,))[0])
      self._told[pair.variable] = count, found.size, known.tf1, known.tf2
    return bool(self._excused)

  def left(self, pair: QuantityPair) -> QuantityPair | None:
    """Returns what is to be compared of a pair; None for nothing."""
    where = self._excused.get(pair.key)
    if where is None:
      return pair
    if where.all() or pair.tf1 is None or pair.tf2 is None:
      return None
    return dataclasses.replace(pair, tf2=np.where(where, pair.tf1, pair.tf2))

  @property
  def moved(self) -> dict[str, _Array]:
    """Where rounding alone has moved variables in the step that was looked at, by tf1 name."""
    found = self._excused.items()
    return {key.name: where for key, where in found if key.quantity == quantities.UPDATE}

  def elements(self, number: int) -> dict[str, _Array]:
    """Returns where gradients are rounding in all steps so far, of variables looked at."""
    found = {}
    for name in self._looked_at:
      tf1, tf2 = self._runs_of(name, number)
      known = _elements(name, tf1, tf2, number) if tf1 and tf2 else None
      if known is not None:
        found[name] = known.where
    return found

  def _runs_of(self, variable: str, number: int) -> tuple[list['_Taken'], list['_Taken']]:
    """Returns the runs of both sides for a variable, those as they are first; none where one fails.

    The port's own steps show as much until it is given other values. After that, they are taken
    again.
    """
    tf1, moved = self._taken.get(variable, _NONE)
    if not tf1:
      return _NONE
    seen = self._seen if self._seen is not None and self._seen.steps >= number else None
    if seen is None and variable not in self._ports:
      wanted = {self._names[v]: v for v in self._taken if v not in self._ports}
      try:
        (port,) = self._runs(1, wanted, (None,))
      except Tf2VerifyError:
        port = _Taken({})
      self._ports.update(dict.fromkeys(wanted.values(), port))
    port = seen or self._ports[variable]
    return (tf1, [port, *moved]) if variable in port.gradients else _NONE

  def _take_again(self, variables: Iterable[str]) -> None:
    """Takes the steps of the reference with values moved."""
    wanted = {v for v in variables if v in self._names and v not in self._taken}
    if not wanted:
      return
    if self._seen is not None:
      wanted |= self._names.keys() - self._taken.keys()
    try:
      tf1 = self._runs(0, {v: v for v in wanted}, (None, *_MOVERS))
    except Tf2VerifyError:
      tf1 = []
    self._taken.update({variable: (tf1, []) for variable in wanted})

  def _move_the_port(self, variables: Iterable[str]) -> None:
    """Takes the steps of the port with values moved as well.

    That takes longest, since its steps run eagerly: only where the noise of the reference
    does not decide.
    """
    wanted = {self._names[v]: v for v in variables}
    if not wanted:
      return
    try:
      moved = self._moved or self._runs(1, self._to_move(wanted), _MOVERS)
    except Tf2VerifyError:
      moved = []
    if self._seen is not None:
      self._moved = moved
    for variable in wanted.values():
      tf1, _ = self._taken[variable]
      self._taken[variable] = (tf1, list(moved)) if moved else _NONE

  def _to_move(self, wanted: Mapping[str, str]) -> Mapping[str, str]:
    return wanted if self._seen is None else {port: tf1 for tf1, port in self._names.items()}

  def _runs(
    self, side: int, names: Mapping[str, str], perturbers: Iterable[Perturber | None]
  ) -> list['_Taken']:
    return [
      _Taken.again(self._begin[side], perturber, names, self._count) for perturber in perturbers
    ]


def _may_be_excused(pair: QuantityPair) -> bool:
  """Returns whether a quantity follows from the gradient of a variable of moderate size."""
  value = pair.tf1
  return (
    bool(pair.variable)
    and pair.quantity in _EXCUSED
    and value is not None
    and not isinstance(value, SampledArray)
    and fraction_bits(value.dtype) is not None
    and value.dtype.kind != 'c'
    and value.size <= _MOST_ELEMENTS
  )


class _Taken:
  """The steps of one run, of some variables.

  Attributes:
    steps: how many.
    gradients: those that were applied, step by step, by tf1 name.
    quantities: what they led to, see `of_reference`; step by step.
  """

  def __init__(self, names: Mapping[str, str]) -> None:
    """Takes which variables: their tf1 names by their own."""
    self._names = names
    self.steps = 0
    self.gradients: dict[str, list[_Array]] = {name: [] for name in names.values()}
    self.quantities: list[dict[TensorKey, _Array]] = []

  @classmethod
  def again(
    cls, begin: Begin, perturber: Perturber | None, names: Mapping[str, str], count: int
  ) -> '_Taken':
    """Takes the steps."""
    taken = cls(names)
    with begin(perturber) as steps:
      run = steps.run()
      for _ in range(count):
        step = steps.take()
        taken.add(step)
        known = quantities.of_reference(dataclasses.replace(run, steps=(step,)), 1)
        taken.quantities.append({k: v for k, v in known.items() if _owner(k.name) in names})
    return taken

  def add(self, step: TrainingStep) -> None:
    """Adds the gradients of the next step."""
    self.steps += 1
    for record in step.applied_gradients or step.gradients:
      if record.name in self._names and record.value is not None:
        self.gradients[self._names[record.name]].append(record.value)


_NONE: tuple[list[_Taken], list[_Taken]] = ([], [])


def _owner(subject: str) -> str:
  """Returns the variable of a subject: of a slot, `m of dense/kernel`."""
  return subject.rpartition(' of ')[2]


def _elements(
  name: str, tf1: Sequence[_Taken], tf2: Sequence[_Taken], number: int
) -> RoundingElements | None:
  sides = _gradients(name, tf1, tf2, number)
  if sides is None:
    return None
  # What is zero in all runs of both, such as a row that was not looked up, is none of rounding.
  values = [value for side in sides for run in side for value in run]
  where = np.logical_and(*_are_rounding(sides)) & np.any(np.stack(values) != 0, axis=0)
  if not where.any():
    return None
  one, other = (
    max(float(np.abs(value[where]).max()) for run in side for value in run) for side in sides
  )
  reach: dict[TensorKey, float] = {}
  for taken in tf1:
    for key, value in taken.quantities[number - 1].items():
      if value.shape == where.shape and _owner(key.name) == name:
        reach[key] = max(reach.get(key, 0.0), float(np.abs(value[where]).max()))
  return RoundingElements(where, one, other, reach)


def _gradients(
  name: str, tf1: Sequence[_Taken], tf2: Sequence[_Taken], number: int
) -> tuple[_Runs, _Runs] | None:
  """Returns the gradients of a variable: side, run, step; None where some are not known."""
  sides = [[taken.gradients[name][:number] for taken in side] for side in (tf1, tf2)]
  values = [value for side in sides for run in side for value in run]
  if not values or len({value.shape for value in values}) != 1:
    return None
  complete = len(values) == (len(tf1) + len(tf2)) * number
  if not complete or any(isinstance(value, SampledArray) for value in values):
    return None
  return sides[0], sides[1]


def _is_open(name: str, tf1: Sequence[_Taken], tf2: Sequence[_Taken], number: int) -> bool:
  """Returns whether the noise of the reference leaves elements open for the port's own."""
  sides = _gradients(name, tf1, tf2, number)
  if sides is None or len(tf2) > 1:
    return False
  one, other = _are_rounding(sides)
  return bool((one & ~other).any())


def _are_rounding(sides: tuple[_Runs, _Runs]) -> tuple[_Array, _Array]:
  """Returns where each side's gradients are rounding in all steps.

  Until the port has been moved itself, it is judged by the noise of the reference.
  """
  tf1, tf2 = sides
  noise = _noise(tf1)
  return _within(tf1[0], noise), _within(tf2[0], _noise(tf2) if len(tf2) > 1 else noise)


def _noise(runs: _Runs) -> list[_Array]:
  """Returns how far the gradients of the first run are moved, step by step."""
  found = []
  for step, value in enumerate(runs[0]):
    noise = np.zeros(value.shape)
    for moved in runs[1:]:
      np.fmax(noise, np.abs(moved[step].astype(np.float64) - value.astype(np.float64)), out=noise)
    found.append(noise)
  return found


def _within(run: Sequence[_Array], noise: Sequence[_Array]) -> _Array:
  """Returns where no gradient of a run is more than noise."""
  found: _Array = np.ones(run[0].shape, bool)
  for value, moved in zip(run, noise, strict=True):
    found &= np.abs(value.astype(np.float64)) <= _FACTOR * moved
  return found
