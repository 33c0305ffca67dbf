"""Training steps, as one side has taken them."""

import dataclasses

import numpy as np

from tf2verify.records.observation import RandomDraw, SourceLine, TensorRecord


@dataclasses.dataclass(frozen=True, eq=False)
class Slot:
  """State that an optimizer, or a moving average of weights, keeps."""

  # Its meaning, the same word on both sides: `momentum`, `first moment`, `second moment`, `greatest
  # second moment`, `mean gradient`, `squared gradient`, `squared update`, `linear`, `shadow` (an
  # exponential moving average of the variable), `step count`; the side's own word where none of
  # these fits.
  role: str
  # The variable that it belongs to, by the side's own name; '' for state of the optimizer as a
  # whole.
  variable: str
  name: str  # what the side calls it: `w/Adam`, `Adam/m/w`
  value: np.ndarray  # read-only
  word: str = ''  # what the optimizer itself calls it: `m`; '' where that is not known
  # What tells it from others of its name, among all that a port keeps; '' where nothing has to.
  key: str = ''
  of_group: bool = False  # whether it is shown for several variables of the port, each with its own
  of_place: bool = False  # whether its place in a list is all that tells its variable

  @property
  def holds_something(self) -> bool:
    """Whether an element of it is not zero."""
    return not isinstance(self.value, np.ndarray) or bool(np.any(self.value))

  def is_called(self, name: str) -> bool:
    """Returns whether a name means this slot: its own, its role, or a word of either."""
    own = self.name.removesuffix(':0')
    wanted = name.removesuffix(':0')
    return bool(wanted) and wanted in (own, self.role, self.word, *own.split('/'))


@dataclasses.dataclass(frozen=True)
class OptimizerRecord:
  """An optimizer and its settings."""

  # Its class, with the package that tells two of one name apart:
  # `tf.compat.v1.train.RMSPropOptimizer`, `tf.keras.optimizers.legacy.RMSprop`.
  name: str
  # Name and value of each numeric setting, by the side's own names.
  settings: tuple[tuple[str, float], ...]
  # The update rule that both sides' classes share: `adam`, `rmsprop`, `momentum`, `sgd`, `adagrad`,
  # `adadelta`, `adamax`, `ftrl`, `nadam`; '' for one that is not known.
  rule: str = ''
  # Of the port: whether a class of the user's own computes updates, which may read no setting.
  own_update: bool = False

  def setting(self, name: str) -> float | None:
    """Returns a setting; None where the optimizer has none of this name."""
    return dict(self.settings).get(name)


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingStep:
  """One step.

  Variables and gradients bear the side's own variable names.
  """

  number: int  # from 1
  # The total loss that the step minimizes, before the update; None where the case's own step does
  # not tell it.
  loss: np.ndarray | None
  # In effect at this step, of the first optimizer; None where it cannot be told.
  learning_rate: float | None
  global_step: int | None  # count of steps after this one; None without a counter
  # As differentiated, one per trainable variable; empty where the case's own train op keeps them to
  # itself.
  gradients: tuple[TensorRecord, ...]
  # As given to the update, after clipping; empty likewise.
  applied_gradients: tuple[TensorRecord, ...]
  variables: tuple[TensorRecord, ...]  # every variable of the model, after the step
  slots: tuple[Slot, ...]  # after the step
  # tf2 only: what else may count the steps, after this one, by name.
  further_counts: tuple[tuple[str, int], ...] = ()
  # tf2 only: the learning rates of its further updates, where they are told.
  further_rates: tuple[float, ...] = ()
  # tf1 only: the scalar that the train op differentiates, where that is another one than `loss`.
  minimized: np.ndarray | None = None

  def as_start_of_next(self) -> 'TrainingStep':
    """Returns the step without its gradients, which nothing after it is explained with."""
    return dataclasses.replace(self, gradients=(), applied_gradients=())

  def without_arrays(self) -> 'TrainingStep':
    """Returns the step without gradients, variables and slots, which take the memory."""
    return dataclasses.replace(self, gradients=(), applied_gradients=(), variables=(), slots=())


@dataclasses.dataclass(frozen=True, eq=False)
class ClippingTrial:
  """Gradients of a step, and the same far larger, on their way to the update."""

  gradients: tuple[TensorRecord, ...]  # as differentiated, one per trainable variable
  applied: tuple[TensorRecord, ...]  # what the update is given for them
  large: tuple[TensorRecord, ...]  # those that were put in the place of the gradients
  large_applied: tuple[TensorRecord, ...]  # what the update is given for these


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingRun:
  """Training steps from given values, on fixed data."""

  side: str  # 'tf1' or 'tf2'
  run: str  # for reports: `training, distinct values`
  # In the order of their first step; one but for a case whose step uses several.
  optimizers: tuple[OptimizerRecord, ...]
  values_before: tuple[TensorRecord, ...]  # of every variable of the model
  slots_before: tuple[Slot, ...]  # of the optimizer, before the first step
  steps: tuple[TrainingStep, ...]  # in order, those taken so far
  # tf1 only: names of the UPDATE_OPS that the train op does not run.
  updates_left_out: tuple[str, ...] = ()
  # The sum of the regularization losses before the first step; None without any.
  regularization_total: np.ndarray | None = None
  random_draws: tuple[RandomDraw, ...] = ()  # as in `Observation`
  narrow_bits: int = 0  # likewise
  # tf1 only: the line of the train op that adds the regularization losses to a loss that contains
  # them; None without one, or where it is not known.
  regularized_again: SourceLine | None = None
  # tf2 only: state that is a variable of the model itself and not a copy of it, by what the port
  # calls it, and the variable's name.
  not_copied: tuple[tuple[str, str], ...] = ()

  def without_arrays(self) -> 'TrainingRun':
    """Returns the run with steps that have none; with the values before the first one."""
    return dataclasses.replace(self, steps=tuple(step.without_arrays() for step in self.steps))


@dataclasses.dataclass(frozen=True, eq=False)
class LossObservation:
  """The losses of a model in training mode, at given values."""

  side: str  # 'tf1' or 'tf2'
  run: str  # for reports
  outputs: object  # of the model, as arrays in the side's own nest, to be given to a loss again
  loss: np.ndarray  # the case's loss of them, as the side returned it: a scalar, or one per example
  total_loss: np.ndarray  # what training minimizes
  # The sum of the regularization losses; None without any.
  regularization_total: np.ndarray | None = None
  # Of a loss that is a nest, by their place in it; empty for another loss, None where they are not
  # known.
  parts: tuple[TensorRecord, ...] | None = None
