"""What a user may declare beyond the forward pass."""

from collections.abc import Iterable, Mapping
from typing import Any, final

from tf2verify.compare.tolerance import Tolerance, ToleranceTable
from tf2verify.errors import CaseDefinitionError
from tf2verify.records.execution_mode import MODES

DEFAULT_MODES = MODES


class OptionalHooks:
  """Hooks of a case for losses, training, checkpoints, execution modes and determinism.

  All are optional: a stage whose hooks are not there is NOT_APPLICABLE, and says which.

  Attributes:
    training_steps_to_take: how many steps the stage `training_steps` takes; give more
      where a learning-rate schedule has a boundary to cross. With `tf1_recording` the
      default is as many as were recorded.
    run_update_ops: whether the reference runs its UPDATE_OPS with each training step, as
      a `tf.control_dependencies` on them does; only used with `make_tf1_optimizer`.
    training_tolerance: of what training computes: a `Tolerance` for all floating dtypes,
      or a mapping from dtype. Its atol is a share of the tensor's greatest element, since
      updates are as small as the learning rate. None for the default by dtype.
    modes_to_run: the execution modes to compare with eager execution, of
      `tf2verify.optional_hooks.DEFAULT_MODES`.
    evaluates_shadows: whether TF1 evaluates with the moving averages of its weights
      (`tf.train.ExponentialMovingAverage`): a checkpoint's `w/ExponentialMovingAverage`
      is then the value of `w`.
    fresh_processes: how many processes of their own repeat the case for the stage
      `determinism`, beside the repetition in this one.
  """

  training_steps_to_take: int = 3
  run_update_ops: bool = True
  training_tolerance: Tolerance | Mapping[Any, Tolerance] | ToleranceTable | None = None
  modes_to_run: tuple[str, ...] = DEFAULT_MODES
  evaluates_shadows: bool = False
  fresh_processes: int = 0

  def make_labels(self) -> Any:
    """Returns what the losses take beside outputs: a nest of numpy arrays; called once."""
    return None

  def tf1_loss(self, outputs: Any, labels: Any) -> Any:
    """Returns the reference's loss, without regularization; runs in the graph.

    Args:
      outputs: of `build_tf1_graph`.
      labels: placeholders in the structure of `make_labels`; None without labels.

    Returns:
      A scalar tensor, or a loss per example, as the model's code gives it to its optimizer.
    """
    raise NotImplementedError

  def tf2_loss(self, outputs: Any, labels: Any) -> Any:
    """Returns the port's loss, without regularization; runs eagerly and in a `tf.function`.

    Args:
      outputs: of `call_tf2_layer`.
      labels: tensors in the structure of `make_labels`; None without labels.

    Returns:
      A tensor, of the shape of `tf1_loss`'s.
    """
    raise NotImplementedError

  def tf1_total_loss(self, outputs: Any, labels: Any) -> Any:
    """Returns what the reference minimizes.

    By default `tf1_loss` plus the graph's REGULARIZATION_LOSSES, unless `tf1_loss` is
    computed from them already (`tf.compat.v1.losses.get_total_loss()`). Override it where
    the reference leaves them out, or weights its losses.
    """
    raise NotImplementedError

  def tf2_total_loss(self, layer: Any, outputs: Any, labels: Any) -> Any:
    """Returns what the port minimizes: by default `tf2_loss` plus `tf2_regularization_losses`."""
    raise NotImplementedError

  def tf1_metrics(self, outputs: Any, labels: Any) -> Mapping[str, Any]:
    """Returns metrics of the reference: name to tensor, or to (value, update op)."""
    raise NotImplementedError

  def tf2_metrics(self, outputs: Any, labels: Any) -> Mapping[str, Any]:
    """Returns metrics of the port: name to tensor, or to a Keras metric already updated."""
    raise NotImplementedError

  def loss_examples(self) -> Iterable[tuple[str, Any, Any]]:
    """Returns further outputs and labels to give to both losses: name, outputs, labels.

    Beside those that the stage `loss` makes itself of the model's outputs and the labels.
    """
    return ()

  def make_tf1_optimizer(self) -> Any:
    """Returns a fresh `tf.compat.v1.train` optimizer; called in the graph."""
    raise NotImplementedError

  def make_tf1_train_op(self, loss: Any) -> Any:
    """Returns the reference's own train op, in place of `make_tf1_optimizer`; in the graph.

    Args:
      loss: `tf1_total_loss`.
    """
    raise NotImplementedError

  def make_tf2_optimizer(self) -> Any:
    """Returns a fresh optimizer of the port at every call.

    A `tf.keras.optimizers` or `tf.keras.optimizers.legacy` one, or one of
    `tf.compat.v1.train` in eager mode.
    """
    raise NotImplementedError

  def tf2_train_step(self, layer: Any, inputs: Any, labels: Any, optimizer: Any) -> Any:
    """Takes one step of the port's own training loop, in place of the framework's.

    The parameters `labels` and `optimizer` can be left out of the definition.

    Args:
      layer: from `make_tf2_layer`, the same one for all steps of a run.
      inputs: tensors in the structure of `make_inputs`.
      labels: tensors in the structure of `make_labels`; None without labels.
      optimizer: from `make_tf2_optimizer`, the same one for all steps of a run; None
        without that hook.

    Returns:
      The loss that the step has minimized: a scalar, a dictionary with `loss` (as Keras'
      `train_step`), or None.
    """
    raise NotImplementedError

  def tf1_checkpoint(self) -> str:
    """Returns the path of a name-based TF1 checkpoint: a prefix, as given to `Saver.restore`."""
    raise NotImplementedError

  def load_tf1_checkpoint(self, layer: Any, path: str) -> None:
    """Loads a name-based TF1 checkpoint into the port, by the port's own code.

    In place of the framework's, which goes by `variable_names`. A port that continues
    TF1's training adds a third parameter, `optimizer`: from `make_tf2_optimizer`, to be
    given the slots and the step count of the checkpoint.

    Args:
      layer: from `make_tf2_layer`, called once, so that its variables are there.
      path: the prefix of the checkpoint.
    """
    raise NotImplementedError

  def save_tf2_checkpoint(self, layer: Any, path: str) -> str:
    """Saves the port's own checkpoint; by default `tf.train.Checkpoint(model=layer)`.

    Args:
      layer: a layer with its variables.
      path: a prefix to write to.

    Returns:
      The prefix that was written.
    """
    raise NotImplementedError

  def load_tf2_checkpoint(self, layer: Any, path: str) -> None:
    """Loads the port's own checkpoint into a fresh layer, which has been called once."""
    raise NotImplementedError

  @final
  def declares(self, hook: str) -> bool:
    """Tells whether a case overrides an optional hook."""
    return getattr(type(self), hook) is not getattr(OptionalHooks, hook)


def check_train_op(cls: type[OptionalHooks]) -> None:
  """Raises `CaseDefinitionError` for two train ops; a subclass may put its own in place of one."""
  optimizer, train_op = hooks = 'make_tf1_optimizer', 'make_tf1_train_op'
  if any(getattr(cls, hook) is getattr(OptionalHooks, hook) for hook in hooks):
    return
  homes = [
    next(number for number, base in enumerate(cls.__mro__) if hook in vars(base)) for hook in hooks
  ]
  if homes[0] <= homes[1]:
    raise CaseDefinitionError(
      f'{cls.__name__} declares {optimizer} and {train_op}: which trains the reference? The '
      f'optimizer would not be used. Leave out {optimizer}, or {train_op} where the model trains '
      f'with a plain optimizer.minimize ({train_op} = tf2verify.EquivalenceCase.{train_op} in a '
      'subclass)'
    )
