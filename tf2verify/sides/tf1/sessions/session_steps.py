"""Training steps of the reference in a session, one by one."""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import ClippingTrial, Slot, TrainingRun, TrainingStep
from tf2verify.reference.graph_ops import variables_behind
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.losses import functional
from tf2verify.sides.set_aside_steps import start_set_aside
from tf2verify.sides.side import Change, Factor
from tf2verify.sides.tf1.graphs.loss_graph import LossGraph
from tf2verify.sides.tf1.graphs.train_graph import TrainGraph
from tf2verify.sides.tf1.sessions import gradient_trials, session_values


@final
class SessionSteps:
  """Training steps in a session, one by one.

  The port draws the same numbers at every step, since its seeds start again. A session
  would go on: what it draws first is fed to every step, or, where that cannot be, each
  step has a session of its own.
  """

  def __init__(
    self, losses: LossGraph, train: TrainGraph | None, feeds: dict[str, np.ndarray], run: str
  ) -> None:
    self._run = run
    self._number = 0
    self._before: TrainingRun | None = None
    self._losses = losses
    self._built = losses.built
    self._train = train
    self._feeds = dict(feeds)
    self._added = train.added if train is not None else losses.added
    self.session: Any = None
    self._open()

  def __enter__(self) -> 'SessionSteps':
    return self

  def __exit__(self, *_: object) -> None:
    self.close()

  def close(self) -> None:
    """Lets go of the session, and with the object of the values of its variables."""
    if self.session is not None:
      self.session.close()
      self.session = None

  def fed(self) -> dict[str, np.ndarray]:
    """Returns what every step is fed, by tensor name."""
    return dict(self._feeds)

  def _open(self) -> None:
    self.session = open_session(self._built.graph)
    session_values.fetch(self.session, self._built.table_initializers)

  def start(self, run: side.RunSpec, perturber: Perturber | None) -> None:
    """Gives every variable its value before the first step."""
    session_values.assign(self.session, self._built.variables, run)
    if perturber is not None:
      session_values.move(self.session, self._built.variables, perturber)
    # A shadow starts as its variable's value, so they come second.
    session_values.initialize_after(self.session, self._added, self._built.variables)
    if self._train is not None and self._train.drawn and not self._train.draws_inside:
      drawn = session_values.fetch(self.session, self._train.drawn, self._feeds)
      self._feeds.update(zip(self._train.drawn, drawn, strict=True))

  def update(self) -> dict[str, Any]:
    """Takes a step; returns what it used, by tensor name."""
    assert self._train is not None
    train = self._train
    names = sorted(train.fetches(self._losses.total_loss).looked_at)
    if train.draws_inside:
      self._carry_over()
    fetched = session_values.fetch(self.session, [*names, train.train_op], self._feeds)
    return dict(zip(names, fetched, strict=False))

  def _carry_over(self) -> None:
    """Goes on in a fresh session, whose random ops start again."""
    variables = (*self._built.variables, *self._added)
    values = session_values.read_all(self.session, variables)
    self.close()
    self._open()
    session_values.write(self.session, list(zip(variables, values, strict=True)))

  def run(self) -> TrainingRun:
    """Returns what is known before the first step; first asked for before it is taken."""
    assert self._train is not None
    if self._before is None:
      train, built = self._train, self._built
      regularization = session_values.fetch(
        self.session, [name for _, name in built.regularization_losses], self._feeds
      )
      before, slots_before, _ = self._state()
      self._before = start_set_aside(
        TrainingRun(
          side.TF1,
          self._run,
          train.optimizers,
          before,
          slots_before,
          (),
          train.updates_left_out,
          functional.total(regularization[::-1]),
          train.random_draws,
          built.narrow_bits,
          train.regularized_again,
        )
      )
    return self._before

  def take(self) -> TrainingStep:
    """Takes a step and reads everything after it."""
    assert self._train is not None
    self.run()
    self._number += 1
    train = self._train
    used = self.update()
    rate = train.learning_rate
    variables, slots, counter = self._state()
    wanted = {*train.gradients, *train.applied_gradients}
    gradients = {known: session_values.gradient_record(known, used) for known in wanted}
    return TrainingStep(
      number=self._number,
      loss=np.asarray(used[self._losses.total_loss]),
      learning_rate=float(used[rate]) if isinstance(rate, str) else rate,
      global_step=counter,
      gradients=tuple(gradients[gradient] for gradient in train.gradients),
      applied_gradients=tuple(gradients[gradient] for gradient in train.applied_gradients),
      variables=variables,
      slots=slots,
      minimized=None if train.minimized is None else np.asarray(used[train.minimized]),
    )

  def rates(self, counts: Sequence[int]) -> list[float]:
    """Returns the learning rates at counts of steps, see `ReferenceSteps.rates`."""
    assert self._train is not None
    rate = self._train.learning_rate
    if rate is None:
      raise NotApplicable('the train op of TF1 tells no learning rate')
    if not isinstance(rate, str):
      raise NotApplicable('the learning rate of TF1 is a number')
    if self._train.global_step is None:
      behind = variables_behind(self._built.graph.get_tensor_by_name(rate))
      raise NotApplicable(
        f'the learning rate of TF1 follows from {", ".join(behind[:3])}, and none of them is known '
        'as the count of steps: use v1.train.get_or_create_global_step()'
        if behind
        else 'the learning rate of TF1 follows from no variable, or from what is fed'
      )
    return self._rates(rate, counts)

  def further_rates(self, counts: Sequence[int]) -> list[list[float] | None]:
    """Returns those of the other optimizers, see `ReferenceSteps.further_rates`."""
    assert self._train is not None
    found: list[list[float] | None] = []
    for rate in self._train.further_rates:
      is_known = isinstance(rate, str) and self._train.global_step is not None
      known = self._rates(rate, counts) if isinstance(rate, str) and is_known else None
      found.append([rate] * len(counts) if isinstance(rate, float) else known)
    return found

  def _rates(self, rate: str, counts: Sequence[int]) -> list[float]:
    assert self._train is not None and self._train.global_step is not None
    counter = self._train.global_step
    (before,) = session_values.read_all(self.session, [counter])
    found = []
    with session_values.values_kept(self.session, self._built.variables, [rate]):
      try:
        for count in counts:
          session_values.write(self.session, [(counter, np.asarray(count, before.dtype))])
          (value,) = session_values.fetch(self.session, [rate], self._feeds)
          found.append(float(value))
      finally:
        session_values.write(self.session, [(counter, before)])
    return found

  def take_at_rate(self, factor: float) -> TrainingStep:
    """Takes a step at another learning rate, see `ReferenceSteps.take_at_rate`."""
    assert self._train is not None
    rate = self._train.learning_rate
    if not isinstance(rate, str) or len(self._train.optimizers) != 1:
      raise NotApplicable('the step of TF1 does not have one optimizer, with a rate as a tensor')
    known = self._feeds
    (value,) = session_values.fetch_alone(self.session, self._built.variables, [rate], known)
    return self._take_fed({**known, rate: np.asarray(value * factor, value.dtype)})

  def take_with(self, change: Change) -> TrainingStep:
    """Takes a step on another batch, see `ReferenceSteps.take_with`."""
    return self._take_fed(self._fed_with(change))

  def _take_fed(self, feeds: dict[str, np.ndarray]) -> TrainingStep:
    """Takes a step with other feeds than all others."""
    known, self._feeds = self._feeds, feeds
    try:
      return self.take()
    finally:
      self._feeds = known

  def _fed_with(self, change: Change | None) -> dict[str, np.ndarray]:
    names = [*self._built.placeholders, *self._losses.label_placeholders]
    known = {name: self._feeds[name] for _, name in names if name in self._feeds}
    changed = {} if change is None else {name: change(value) for name, value in known.items()}
    return {**self._feeds, **changed}

  def take_scaled(self, factor: Factor, change: Change | None = None) -> TrainingStep:
    """Takes a step at gradients times a factor, see `ReferenceSteps.take_scaled`."""
    assert self._train is not None
    feeds = self._fed_with(change)
    raws = {one.values: one.variable for one in self._train.gradients if one.values is not None}
    names, graph = list(raws), self._built.graph
    if not all(graph.is_feedable(graph.get_tensor_by_name(name)) for name in names):
      raise NotApplicable('the gradients of the TF1 graph cannot be replaced')
    values = session_values.fetch_alone(self.session, self._built.variables, names, feeds)
    factors = [factor if isinstance(factor, float) else factor[raws[name]] for name in names]
    scaled = (
      np.asarray(value * np.asarray(times, value.dtype))
      for value, times in zip(values, factors, strict=True)
    )
    return self._take_fed({**feeds, **dict(zip(names, scaled, strict=True))})

  def try_clipping(
    self, factors: Mapping[str, float] | None = None, change: Change | None = None
  ) -> ClippingTrial | None:
    """Feeds far larger gradients in the place of those of a step, which it does not take."""
    assert self._train is not None
    feeds = self._fed_with(change)
    return gradient_trials.in_graph(self.session, self._built, self._train, feeds, factors)

  def _state(self) -> tuple[tuple[TensorRecord, ...], tuple[Slot, ...], int | None]:
    """Reads the model's variables, the slots and the global step, all in one run."""
    assert self._train is not None
    model = [variable for variable in self._built.variables if not variable.local]
    slots, counter = self._train.slots, self._train.global_step
    wanted = [*model, *(slot.state for slot in slots), *((counter,) if counter else ())]
    values = session_values.read_all(self.session, wanted)
    records = tuple(
      TensorRecord(variable.record.name, value)
      for variable, value in zip(model, values, strict=False)
    )
    kept = tuple(
      Slot(slot.role, slot.variable, slot.state.record.name, value, slot.word)
      for slot, value in zip(slots, values[len(model) :], strict=False)
    )
    return records, kept, int(values[-1]) if counter else None
