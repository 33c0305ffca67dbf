"""Training steps, as one side has taken them."""

import dataclasses

import numpy as np

from tf2verify.records.observation import RandomDraw, TensorRecord


@dataclasses.dataclass(frozen=True, eq=False)
class Slot:
  """State that an optimizer, or a moving average of weights, keeps.

  Attributes:
    role: its meaning, the same word on both sides: `momentum`, `first moment`,
      `second moment`, `greatest second moment`, `mean gradient`, `squared gradient`,
      `squared update`, `linear`, `shadow` (an exponential moving average of the
      variable), `step count`; the side's own word where none of these fits.
    variable: the variable that it belongs to, by the side's own name; '' for state of
      the optimizer as a whole.
    name: what the side calls it: `w/Adam`, `Adam/m/w`.
    value: read-only.
    word: what the optimizer itself calls it: `m`; '' where that is not known.
  """

  role: str
  variable: str
  name: str
  value: np.ndarray
  word: str = ''

  def is_called(self, name: str) -> bool:
    """Returns whether a name means this slot: its own, its role, or a word of either."""
    own = self.name.removesuffix(':0')
    wanted = name.removesuffix(':0')
    return bool(wanted) and wanted in (own, self.role, self.word, *own.split('/'))


@dataclasses.dataclass(frozen=True)
class OptimizerRecord:
  """An optimizer and its settings.

  Attributes:
    name: its class, with the package that tells two of one name apart:
      `tf.compat.v1.train.RMSPropOptimizer`, `tf.keras.optimizers.legacy.RMSprop`.
    settings: name and value of each numeric setting, by the side's own names.
    rule: the update rule that both sides' classes share: `adam`, `rmsprop`,
      `momentum`, `sgd`, `adagrad`, `adadelta`, `adamax`, `ftrl`, `nadam`; '' for one
      that is not known.
  """

  name: str
  settings: tuple[tuple[str, float], ...]
  rule: str = ''

  def setting(self, name: str) -> float | None:
    """Returns a setting; None where the optimizer has none of this name."""
    return dict(self.settings).get(name)


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingStep:
  """One step.

  Variables and gradients bear the side's own variable names.

  Attributes:
    number: from 1.
    loss: the total loss that the step minimizes, before the update; None where the
      case's own step does not tell it.
    learning_rate: in effect at this step; None where it cannot be told.
    global_step: count of steps after this one; None without a counter.
    gradients: as differentiated, one per trainable variable; empty where the case's own
      train op keeps them to itself.
    applied_gradients: as given to the update, after clipping; empty likewise.
    variables: every variable of the model, after the step.
    slots: after the step.
    further_counts: tf2 only: what else may count the steps, after this one, by name.
  """

  number: int
  loss: np.ndarray | None
  learning_rate: float | None
  global_step: int | None
  gradients: tuple[TensorRecord, ...]
  applied_gradients: tuple[TensorRecord, ...]
  variables: tuple[TensorRecord, ...]
  slots: tuple[Slot, ...]
  further_counts: tuple[tuple[str, int], ...] = ()

  def as_start_of_next(self) -> 'TrainingStep':
    """Returns the step without its gradients, which nothing after it is explained with."""
    return dataclasses.replace(self, gradients=(), applied_gradients=())

  def without_arrays(self) -> 'TrainingStep':
    """Returns the step without gradients, variables and slots, which take the memory."""
    return dataclasses.replace(self, gradients=(), applied_gradients=(), variables=(), slots=())


@dataclasses.dataclass(frozen=True, eq=False)
class ClippingTrial:
  """Gradients of a step, and the same far larger, on their way to the update.

  Attributes:
    gradients: as differentiated, one per trainable variable.
    applied: what the update is given for them.
    large: those that were put in the place of the gradients.
    large_applied: what the update is given for these.
  """

  gradients: tuple[TensorRecord, ...]
  applied: tuple[TensorRecord, ...]
  large: tuple[TensorRecord, ...]
  large_applied: tuple[TensorRecord, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingRun:
  """Training steps from given values, on fixed data.

  Attributes:
    side: 'tf1' or 'tf2'.
    run: for reports: `training, distinct values`.
    optimizers: in the order of their first step; one but for a case whose step uses
      several.
    values_before: of every variable of the model.
    slots_before: of the optimizer, before the first step.
    steps: in order, those taken so far.
    updates_left_out: tf1 only: names of the UPDATE_OPS that the train op does not run.
    regularization_total: the sum of the regularization losses before the first step;
      None without any.
    random_draws: as in `Observation`.
    narrow_bits: likewise.
  """

  side: str
  run: str
  optimizers: tuple[OptimizerRecord, ...]
  values_before: tuple[TensorRecord, ...]
  slots_before: tuple[Slot, ...]
  steps: tuple[TrainingStep, ...]
  updates_left_out: tuple[str, ...] = ()
  regularization_total: np.ndarray | None = None
  random_draws: tuple[RandomDraw, ...] = ()
  narrow_bits: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class LossObservation:
  """The losses of a model in training mode, at given values.

  Attributes:
    side: 'tf1' or 'tf2'.
    run: for reports.
    outputs: of the model, as arrays in the side's own nest, to be given to a loss again.
    loss: the case's loss of them, as the side returned it: a scalar, or one per example.
    total_loss: what training minimizes.
    regularization_total: the sum of the regularization losses; None without any.
    parts: of a loss that is a nest, by their place in it; empty for another loss, None
      where they are not known.
  """

  side: str
  run: str
  outputs: object
  loss: np.ndarray
  total_loss: np.ndarray
  regularization_total: np.ndarray | None = None
  parts: tuple[TensorRecord, ...] | None = None
