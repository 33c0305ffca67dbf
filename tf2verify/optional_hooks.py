"""What a user may declare beyond the forward pass."""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast, final

from tf2verify.errors import CaseDefinitionError
from tf2verify.numerics.tolerance import Tolerance, ToleranceTable
from tf2verify.records.execution_mode import MODES
from tf2verify.relation.variable_map import VariableMap
from tf2verify.sides.losses import loss_parts
from tf2verify.sides.side import Declaration

DEFAULT_MODES = MODES
# The name of `evaluate_with_ema` until 0.2.
_FORMER_NAME = 'evaluates_shadows'


class OptionalHooks:
  """Hooks of a case for losses, training, checkpoints, execution modes and determinism.

  All are optional: a stage whose hooks are missing is NOT_APPLICABLE, and names them.

  Attributes:
    other_sizes: sizes of the inputs, in addition to those of `make_inputs`, at which both sides
      are compared in inference. None tries one more example, and every other dimension
      larger, each by a different amount, where the reference accepts it; () tries nothing,
      for a model of one size. Otherwise a shape, a mapping from the path of an input to its
      shape, a list of these, or a method that returns different inputs, or yields several;
      the reference has to accept all of them.
    relate_graphs: whether the graphs of both sides are related, operation by operation, so that
      the report says how much is proven for all inputs. None does it for up to 1,000
      operations; True for any number, which takes some seconds more; False never.
    training_steps_to_take: how many steps the stage `training_steps` takes; set more
      if a learning-rate schedule has a boundary to cross. With `tf1_recording` the
      default is as many as were recorded.
    run_update_ops: whether the reference runs its UPDATE_OPS with each training step, as
      a `tf.control_dependencies` on them does; only used with `make_tf1_optimizer`.
    training_tolerance: of what training computes: a `Tolerance` for all floating-point dtypes,
      or a mapping from dtype. Its atol is relative to the tensor's greatest element, since
      updates are as small as the learning rate. None for the default by dtype.
    slot_names: from a slot of the reference's optimizer to that of the port's, if roles
      and words do not show it: a mapping (`{'adam_m': 'momentums'}`) from name, role or word
      to name, role or word, '' or None for a slot without counterpart; or a method that
      takes the name of the slot's variable and returns None for the default.
    modes_to_run: the execution modes to compare with eager execution, out of
      `tf2verify.optional_hooks.DEFAULT_MODES`.
    evaluate_with_ema: whether TF1 evaluates with the moving averages of its weights
      (`tf.train.ExponentialMovingAverage`): a checkpoint's `w/ExponentialMovingAverage`
      is then the value of `w`.
    fresh_processes: how many separate processes repeat the case for the stage
      `determinism`, in addition to the repetition in this one.
    variable_map: which elements of TF1's variables are which of the port's, where more than
      names differ: a `tf2verify.VariableMap`, or the path of a map file, relative to the file of
      the case or to the working folder; or 'derive', to pair them by what they do. None:
      variables are paired by name.
    accepted_causes: known differences that are wanted: a mapping from the name of a cause to the
      reason why it is accepted. It has to explain a difference whole: the port then is
      compared with TF1, run with that one thing changed; see docs/accepted_causes.md.
    tf1_only_variables: variables of TF1 that the port leaves out on purpose: a mapping from
      name, or glob pattern, to the reason. No number may depend on them.
    tf2_only_variables: likewise, variables that the port has in addition to TF1's.
  """

  other_sizes: Any = None
  relate_graphs: bool | None = None
  training_steps_to_take: int = 3
  run_update_ops: bool = True
  training_tolerance: Tolerance | Mapping[Any, Tolerance] | ToleranceTable | None = None
  slot_names: Mapping[str, str | None] | Callable[[str], str | None] | None = None
  modes_to_run: tuple[str, ...] = DEFAULT_MODES
  evaluate_with_ema: bool = False
  fresh_processes: int = 0
  variable_map: VariableMap | str | os.PathLike[str] | None = None
  accepted_causes: Mapping[str, str] = MappingProxyType({})
  tf1_only_variables: Mapping[str, str] = MappingProxyType({})
  tf2_only_variables: Mapping[str, str] = MappingProxyType({})

  def __init_subclass__(cls, **keywords: Any) -> None:
    """Also accepts `evaluates_shadows`, the former name of `evaluate_with_ema`."""
    super().__init_subclass__(**keywords)
    if _FORMER_NAME in vars(cls):
      warnings.warn(
        f'{cls.__name__}.{_FORMER_NAME} is now called evaluate_with_ema; rename it',
        DeprecationWarning,
        stacklevel=2,
      )
      cls.evaluate_with_ema = bool(vars(cls)[_FORMER_NAME])

  def make_labels(self) -> Any:
    """Returns what the losses take besides the outputs: a nest of numpy arrays; called once."""
    return None

  def tf1_loss(self, outputs: Any, labels: Any) -> Any:
    """Returns the reference's loss, without regularization; runs in the graph.

    Args:
      outputs: of `build_tf1_graph`.
      labels: placeholders in the structure of `make_labels`; None without labels.

    Returns:
      A scalar tensor, or a loss per example, as the model's code passes it to its optimizer; or
      a nest of the parts of a loss, which is passed to `make_tf1_train_op` unchanged. What
      is minimized is its entry `loss`, the first item of a tuple, or the sum of a dictionary
      without that entry.
    """
    raise NotImplementedError

  def tf2_loss(self, outputs: Any, labels: Any) -> Any:
    """Returns the port's loss, without regularization; runs eagerly and in a `tf.function`.

    Args:
      outputs: of `call_tf2_layer`.
      labels: tensors in the structure of `make_labels`; None without labels.

    Returns:
      A tensor with the shape of `tf1_loss`'s; or a nest of parts with the same names.
    """
    raise NotImplementedError

  def tf1_total_loss(self, outputs: Any, labels: Any) -> Any:
    """Returns what the reference minimizes.

    By default `tf1_loss` plus the graph's REGULARIZATION_LOSSES, unless `tf1_loss` is
    already computed from them (`tf.compat.v1.losses.get_total_loss()`). Override it if
    the reference leaves them out, or weights its losses. Other hooks may call it, also
    through `super()`.
    """
    return loss_parts.tf1_total(self._hooks(), outputs, labels)

  def tf2_total_loss(self, layer: Any, outputs: Any, labels: Any) -> Any:
    """Returns what the port minimizes: by default `tf2_loss` plus `tf2_regularization_losses`.

    Other hooks, such as `tf2_train_step`, may call it, also through `super()`.
    """
    return loss_parts.tf2_total(self._hooks(), layer, outputs, labels)

  def tf1_metrics(self, outputs: Any, labels: Any) -> Mapping[str, Any]:
    """Returns metrics of the reference: name to tensor, or to (value, update op)."""
    raise NotImplementedError

  def tf2_metrics(self, outputs: Any, labels: Any) -> Mapping[str, Any]:
    """Returns metrics of the port: name to tensor, or to a Keras metric already updated."""
    raise NotImplementedError

  def loss_examples(self) -> Iterable[tuple[str, Any, Any]]:
    """Returns additional outputs and labels for both losses: name, outputs, labels.

    The stage `loss` itself makes others from the model's outputs and the labels.
    """
    return ()

  def make_tf1_optimizer(self) -> Any:
    """Returns a fresh `tf.compat.v1.train` optimizer; called in the graph."""
    raise NotImplementedError

  def make_tf1_train_op(self, loss: Any) -> Any:
    """Returns the reference's own train op, in place of `make_tf1_optimizer`; in the graph.

    To build further losses in it, add the parameters `outputs`, of `build_tf1_graph`,
    and `labels`, the placeholders that `tf1_loss` got.

    Args:
      loss: `tf1_total_loss`; all its parts, if it is a nest.

    Returns:
      Whatever `session.run` takes: an operation, a tensor, the variable that
      `assign_add` returns, a name, or a nest of these.
    """
    raise NotImplementedError

  def make_tf2_optimizer(self) -> Any:
    """Returns the port's optimizer, a fresh one at every call.

    One of `tf.keras.optimizers`, `tf.keras.optimizers.legacy` or `tf.compat.v1.train` (in
    eager mode). With `tf2_train_step` any object, or several in a tuple, list or
    dictionary: its variables are compared as slots.
    """
    raise NotImplementedError

  def tf2_train_step(self, layer: Any, inputs: Any, labels: Any, optimizer: Any) -> Any:
    """Takes one step of the port's own training loop, in place of the framework's.

    An override may leave out the parameters `labels` and `optimizer`.

    Args:
      layer: from `make_tf2_layer`, the same one for all steps of a run.
      inputs: tensors in the structure of `make_inputs`.
      labels: tensors in the structure of `make_labels`; None without labels.
      optimizer: from `make_tf2_optimizer`, the same one for all steps of a run; None
        without that hook.

    Returns:
      The total loss that the step has differentiated, with penalties: a scalar, a dictionary
      with `loss` (as Keras' `train_step`), or None.
    """
    raise NotImplementedError

  def tf1_checkpoint(self) -> str:
    """Returns the prefix of a name-based TF1 checkpoint, as passed to `Saver.restore`."""
    raise NotImplementedError

  def load_tf1_checkpoint(self, layer: Any, path: str) -> None:
    """Loads a name-based TF1 checkpoint into the port, with the port's own code.

    It replaces the default loader, which uses `variable_names`. A port that continues
    TF1's training adds a third parameter, `optimizer`: from `make_tf2_optimizer`, into
    which it loads the slots and the step count of the checkpoint.

    Args:
      layer: from `make_tf2_layer`, called once, so that its variables exist.
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

  def _hooks(self) -> Declaration:
    """Returns the case as the sides see it."""
    return cast(Declaration, self)

  @final
  def declares(self, hook: str) -> bool:
    """Returns whether a case overrides an optional hook."""
    return getattr(type(self), hook) is not getattr(OptionalHooks, hook)


def check_train_op(cls: type[OptionalHooks]) -> None:
  """Raises `CaseDefinitionError` for two train ops, unless a subclass's own replaces one."""
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
