"""Training steps, taken."""

import math
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from .arrays import Array
from .assignment import write
from .gradients import dense_gradient
from .perturbation import Perturber, fraction_bits
from .private_tensorflow import v1
from .run import Key, total_of
from .sequences import pairs
from .sessions import fetch
from .slot_roles import SHADOW, slot_by_name
from .slots import slots_of
from .train_op import TrainOp
from .training import TrainingGraph
from .variables import GraphVariable, variable_name


def slots_of_training(
  training: TrainingGraph, train: TrainOp
) -> List[Tuple[str, str, GraphVariable]]:
  """Returns role, variable and state of what optimizers and averages keep."""
  graph = training.built.graph
  model = {variable.name for variable in training.built.variables}
  left = {v.name: v for v in training.later.variables if not v.local and not v.global_step}
  in_graph = graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
  variables = [variable for variable in in_graph if variable_name(variable) in model]
  found = []
  with graph.as_default():  # `get_slot` asks for it
    for optimizer in train.optimizers:
      for setting in getattr(optimizer, '_hyper', {}).values():
        if isinstance(setting, tf.Variable):
          left.pop(variable_name(setting), None)
      for role, variable, name in slots_of(optimizer, variables):
        if name in left:
          found.append((role, variable, left.pop(name)))
  for name, state in left.items():
    role, variable = slot_by_name(name, model)
    found.append((role, variable, state))
  return found


class _Steps:
  """Training steps in a session.

  A port draws the same numbers at every step, since its seeds start again. A session
  would go on: what it draws first is fed to every step, or, where that cannot be, each
  step has a session of its own.
  """

  def __init__(
    self, training: TrainingGraph, train: TrainOp, perturber: Optional[Perturber]
  ) -> None:
    self._training = training
    self._train = train
    self._variables = training.built.variables + training.later.variables
    self.feeds = training.feeds(perturber)
    known = all(name in training.drawn for name in train.drawn)
    self.session = training.session(fresh=train.draws_inside or not known)
    training.start(self.session, perturber)
    if not train.draws_inside:
      if not known:
        drawn = fetch(self.session, train.drawn, self.feeds)
        training.drawn.update(pairs(train.drawn, drawn))
      self.feeds.update({name: training.drawn[name] for name in train.drawn})

  def update(self) -> Dict[str, Array]:
    """Takes a step; returns what it used, by tensor name."""
    if self._train.draws_inside:
      self._carry_over()
    names = [self._training.total_loss, *self._train.entries()]
    if isinstance(self._train.rate, str):
      names.append(self._train.rate)
    names = list(dict.fromkeys(names))
    found = fetch(self.session, [*names, self._train.name], self.feeds)
    return {name: np.asarray(value) for name, value in pairs(names, found[: len(names)])}

  def read(self, variables: Sequence[GraphVariable]) -> List[Array]:
    """Returns the values that variables have now."""
    return [np.asarray(value) for value in fetch(self.session, [v.read for v in variables])]

  def _carry_over(self) -> None:
    """Goes on in a fresh session, whose random ops start again."""
    values = self.read(self._variables)
    self.session = self._training.session(fresh=True)
    write(self.session, list(pairs(self._variables, values)))


class StepsRun:
  """Takes the training steps of a recording.

  Attributes:
    slots: role, variable and state of each.
    counter: the global step; None without one.
    rates: the learning rate of each step; None where it is not known.
    counts: the global step after each step.
  """

  def __init__(self, training: TrainingGraph, train: TrainOp, count: int) -> None:
    self._training = training
    self._train = train
    self._count = count
    self._start: Dict[str, Array] = {}
    self.slots = slots_of_training(training, train)
    every = training.built.variables + training.later.variables
    self.counter = next((variable for variable in every if variable.global_step), None)
    self.rates: List[Optional[float]] = []
    self.counts: List[Optional[int]] = []

  def evaluate(self, perturber: Optional[Perturber]) -> Iterator[Tuple[Key, Optional[Array]]]:
    """Takes all steps, and yields quantity, step and name of what they show, and the array."""
    steps = _Steps(self._training, self._train, perturber)
    moved: Dict[str, Array] = {}
    if perturber is None:
      self.rates, self.counts = [], []
    names = [name for _, name in self._training.built.regularization_losses]
    losses = [np.asarray(loss) for loss in fetch(steps.session, names, steps.feeds)]
    yield ('regularization total', ''), total_of(losses[::-1])
    for number in range(self._count + 1):
      if number:
        yield from self._used(steps.update(), number, perturber is None)
      yield from self._state(steps, number, moved if perturber is not None else None)

  def _used(
    self, used: Dict[str, Array], number: int, first: bool
  ) -> Iterator[Tuple[Key, Optional[Array]]]:
    """Yields the loss and the gradients of a step."""
    yield ('loss {}'.format(number), ''), used[self._training.total_loss]
    for kind, entries in (('gradient', self._train.gradients), ('applied', self._train.applied)):
      for entry in entries:
        gradient = None
        if entry['values'] is not None:
          rows = None if entry['indices'] is None else used[entry['indices']]
          gradient = dense_gradient(entry, used[entry['values']], rows)
        yield ('{} {}'.format(kind, number), entry['variable']), gradient
    if first:
      rate = self._train.rate
      value = float(used[rate]) if isinstance(rate, str) else rate
      self.rates.append(value if value is None or math.isfinite(value) else None)

  def _state(
    self, steps: _Steps, number: int, moved: Optional[Dict[str, Array]]
  ) -> Iterator[Tuple[Key, Array]]:
    """Yields the variables and slots after a step; before the first one for 0.

    Of a moved run a variable is yielded as if it had started where the first run did: a
    step is judged by what it adds, not by where that was moved to.
    """
    model = self._training.built.owned()
    states = model + [state for _, _, state in self.slots]
    values = steps.read(states if self.counter is None else [*states, self.counter])
    owners = [variable.name for variable in model]
    owners += [name if role == SHADOW else '' for role, name, _ in self.slots]
    starts = self._start if moved is None else moved
    for position, (owner, value) in enumerate(pairs(owners, values[: len(states)])):
      if not number and position < len(model):
        starts[owner] = np.array(value)
      if moved is not None and owner in moved:
        value = _restarted(value, moved[owner], self._start[owner])
      if position < len(model):
        yield ('variable {}'.format(number), owner), value
      else:
        yield ('slot {}'.format(number), str(position - len(model))), value
    if moved is None and number:
      self.counts.append(None if self.counter is None else int(values[-1]))


def _restarted(value: Array, moved: Array, start: Array) -> Array:
  """Returns what a value would be, had it started elsewhere and changed as it has."""
  if not fraction_bits(value.dtype) or value.shape != start.shape:
    return value
  wide = value.dtype if value.dtype.itemsize >= 4 else np.float32
  with np.errstate(all='ignore'):
    change = value.astype(wide) - moved.astype(wide)
    change += start.astype(wide)
  return np.asarray(change.astype(value.dtype))
