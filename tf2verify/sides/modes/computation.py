"""What is computed of a port in every execution mode."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records import execution_mode as words
from tf2verify.records.observation import TensorRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.reference import nests
from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_parts
from tf2verify.sides.losses.loss_function import checked_loss
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.outermost import scope_around
from tf2verify.sides.tf2.layers.port import Port, array_of, flat_outputs, readable_outputs
from tf2verify.tensorflow_internals import autograph

Call = Callable[[Any], Any]


class Computation:
  """Outputs, losses and gradients of one call, for tensors eager or symbolic.

  Attributes:
    names: (quantity, name, whether there is a tensor) of what the last call computed.
  """

  def __init__(
    self,
    declaration: side.Declaration,
    port: Port,
    run: side.RunSpec,
    labels: Any,
    autograph: bool = False,
    has_losses: bool = False,
  ) -> None:
    """Takes what every call has in common.

    Args:
      declaration: the case.
      port: the layer, whose variables are there.
      run: training mode, structure of the inputs, and whether gradients are wanted.
      labels: the nest of arrays; None without labels.
      autograph: whether Python's `if` and `for` over tensors are rewritten.
      has_losses: whether the case's losses are computed of the outputs.
    """
    self._declaration = declaration
    self._port = port
    self._run = run
    self._labels = labels
    self.names: tuple[tuple[str, str, bool], ...] = ()
    self._autograph = autograph
    self._has_losses = has_losses

  def leaves(self, inputs: Any) -> list[tf.Tensor]:
    """Returns what a call is fed with: the arrays of inputs and labels as tensors."""
    found: list[Any] = []
    nests.map_leaves(lambda _, leaf: found.append(tf.constant(leaf)), inputs)
    if self._labels is not None:
      nests.map_leaves(lambda _, leaf: found.append(tf.constant(leaf)), self._labels)
    return found

  def call_port(self, inputs: Any) -> Any:
    """Calls the port through the case's hook."""
    layer = self._port.layer
    # Without AutoGraph it is the hook as it is.
    with autograph.switched(self._autograph):
      hook = layer_parts.call_of(self._declaration, layer)
    with scope_around(layer):
      return readable_outputs(hook(layer, inputs, self._run.training))

  def outputs_and_labels(self, leaves: Sequence[Any]) -> tuple[Any, Any]:
    """Returns the outputs of a call alone, and the labels of what it is fed with."""
    inputs, labels = self._nests(leaves)
    return self.call_port(inputs), labels

  def __call__(self, leaves: Sequence[Any], call: Call | None = None) -> list[Any]:
    """Computes everything there is.

    Args:
      leaves: as `leaves` gives them.
      call: stands in for the port.

    Returns:
      The tensors that `names` has one for, in that order.
    """
    inputs, labels = self._nests(leaves)
    with autograph.switched() if self._autograph else contextlib.nullcontext():
      found = self._compute(inputs, labels, call or self.call_port)
    self.names = tuple((quantity, name, value is not None) for quantity, name, value in found)
    return [tf.convert_to_tensor(value) for _, _, value in found if value is not None]

  def _compute(self, inputs: Any, labels: Any, call: Call) -> list[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = []
    trained = self._has_losses
    tape = tf.GradientTape(persistent=trained)
    with tape if self._run.gradients else contextlib.nullcontext():
      outputs = call(inputs)
      found += [(words.OUTPUT, path, leaf) for path, leaf in flat_outputs(outputs).leaves]
      regularization = self._regularization()
      if regularization is not None:
        found.append((words.REGULARIZATION, '(total)', regularization))
      loss = self._hook(self._declaration.loss)(outputs) if self._run.gradients else None
      total = None
      if trained:
        own, total = self._training_losses(outputs, labels, regularization)
        found += [(words.LOSS, '(tf2_loss)', own), (words.TOTAL_LOSS, '(total)', total)]
    if self._run.gradients:
      found += self._gradients(tape, words.GRADIENT, loss)
      found += self._gradients(tape, words.TOTAL_GRADIENT, total)
    return found

  def _regularization(self) -> Any:
    losses = list(self._declaration.tf2_regularization_losses(self._port.layer))
    if not losses:
      return None
    return tf.add_n([tf.cast(tf.reduce_sum(loss), losses[0].dtype) for loss in losses])

  def _training_losses(self, outputs: Any, labels: Any, regularization: Any) -> tuple[Any, Any]:
    slip = side.without_labels(self._declaration, labels)
    with user_code(side.TF2, 'tf2_loss', slip):
      made = self._hook(self._declaration.tf2_loss)(outputs, labels)
      loss = checked_loss(made, 'tf2_loss')
    if self._declaration.declares('tf2_total_loss'):
      with user_code(side.TF2, 'tf2_total_loss', slip):
        made = self._hook(self._declaration.tf2_total_loss)(self._port.layer, outputs, labels)
        total = loss_parts.main_of(made, 'tf2_total_loss')
    elif regularization is None:
      total = loss
    else:
      total = loss + tf.cast(regularization, loss.dtype)
    return loss, total

  def _gradients(self, tape: Any, quantity: str, loss: Any) -> list[tuple[str, str, Any]]:
    if loss is None:
      return []
    trainable = [
      variable
      for variable in self._port.trainable_variables()
      if self._port.wants_gradient_of(self._run, variable)
    ]
    gradients = tape.gradient(loss, trainable)
    return [
      (quantity, variable_name(variable), gradient)
      for variable, gradient in zip(trainable, gradients, strict=True)
    ]

  def presented(
    self, found: Sequence[tuple[str, str, np.ndarray | None]]
  ) -> list[tuple[str, str, np.ndarray | None]]:
    """Returns what was computed as tf1 would: gradients for the variables of tf1."""
    shown: list[tuple[str, str, np.ndarray | None]] = []
    for quantity, several in itertools.groupby(found, lambda one: one[0]):
      if quantity not in (words.GRADIENT, words.TOTAL_GRADIENT):
        shown += several
        continue
      layouts = self._port.layouts
      records = (
        TensorRecord(name, None if v is None else layouts.to_tf1(name, v, constants=False))
        for _, name, v in several
      )
      shown += [(quantity, one.name, one.value) for one in self._port.gradients(records)]
    return shown

  def _nests(self, leaves: Sequence[Any]) -> tuple[Any, Any]:
    """Returns inputs and labels in their nests, with other leaves."""
    left = iter(leaves)
    inputs = nests.map_leaves(lambda *_: next(left), self._run.inputs)
    labels = None
    if self._labels is not None:
      labels = nests.map_leaves(lambda *_: next(left), self._labels)
    return inputs, labels

  def _hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
    return autograph.converted(hook) if self._autograph else hook


def mode_tensors(
  computation: Computation,
  values: Sequence[Any],
  replica: int = 0,
  wanted: words.Wanted | None = None,
) -> list[words.ModeTensor]:
  """Returns what a call computed, as arrays; of it only what is wanted."""
  left = iter(values)
  found = [
    (quantity, name, array_of(next(left)) if there else None)
    for quantity, name, there in computation.names
  ]
  return [
    words.ModeTensor(quantity, name, value, replica)
    for quantity, name, value in computation.presented(found)
    if wanted is None or TensorKey(quantity, name) in wanted
  ]


def for_wanted(run: side.RunSpec, wanted: words.Wanted) -> side.RunSpec:
  """Returns the run without the gradients that are not wanted."""
  quantities = (words.GRADIENT, words.TOTAL_GRADIENT)
  names = frozenset(key.name for key in wanted if key.quantity in quantities)
  return dataclasses.replace(run, gradients=run.gradients and bool(names), gradients_of=names)
