"""The tf2 side in training: a fresh layer and a fresh optimizer for every run."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import (
  LossObservation,
  TrainingRun,
)
from tf2verify.reference import nests
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides import side
from tf2verify.sides.fill import PerturbedFill
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.optimizers.parts import OptimizerParts
from tf2verify.sides.optimizers.state import (
  is_keras,
)
from tf2verify.sides.process import randomness
from tf2verify.sides.seen import Seen
from tf2verify.sides.set_aside_steps import start_set_aside
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.layers.port import Port, array_of
from tf2verify.sides.tf2.optimization.step import (
  Step,
  checked_optimizer,
  framework_step,
  losses_of,
  own_step,
)
from tf2verify.sides.tf2.steps import Tf2Steps
from tf2verify.sides.tf2.steps_again import Tf2StepsAgain
from tf2verify.sides.tf2.traces.ways_to_trace import Habit

v1 = tf.compat.v1


class Tf2Training:
  """Takes the port's training steps."""

  def __init__(
    self, declaration: side.Declaration, layer: Tf2Layer, labels: Any, progress: side.Progress
  ) -> None:
    self._declaration = declaration
    self._layer = layer
    self._labels = labels
    self._progress = progress
    # To see that each optimizer is another one.
    self._optimizers = Seen()
    self._has_made = False
    self._updating = Seen()
    self._habit = Habit()  # the steps of all runs are one code
    self._loss_parts: frozenset[str] | None = None

  def observe_losses(self, run: side.RunSpec) -> LossObservation:
    """Runs a fresh layer and the losses from given values, eagerly."""
    self._progress(f'running the TF2 losses, {run.description}')
    port = self._layer.filled_port(run)
    with randomness.seeded(randomness.CONSTANT):
      outputs = self._layer.call(port, run.inputs, run.training, run.description)
      losses = losses_of(self._declaration, port, outputs, self._label_tensors())
      _, regularization = self._layer.regularization_losses(port)
    self._loss_parts = frozenset(losses.parts)
    return LossObservation(
      side.TF2,
      run.description,
      nests.map_leaves(lambda _, leaf: _array_leaf(leaf), outputs),
      array_of(losses.loss),
      array_of(losses.total),
      regularization,
      tuple(TensorRecord(place, array_of(part)) for place, part in losses.parts.items()),
    )

  def begin_steps(self, run: side.RunSpec, count: int) -> 'Tf2Steps':
    """Returns a fresh layer before its first step, to be taken one by one.

    Args:
      run: inputs and values.
      count: how many there will be, for progress.
    """
    declares = self._declaration.declares
    if not declares('make_tf2_optimizer') and not declares('tf2_train_step'):
      raise NotApplicable('the case declares neither make_tf2_optimizer nor tf2_train_step')
    if self._loss_parts is None and declares('tf2_train_step') and declares('tf2_loss'):
      self.observe_losses(run)  # which parts it has is asked of what the step returns
    self._progress(f'taking {count} TF2 training steps, {run.description}')
    port = self._layer.filled_port(run)
    # An optimizer's schedule may count on the global step, which is a graph's.
    v1.get_default_graph().clear_collection(v1.GraphKeys.GLOBAL_STEP)
    optimizer = self._optimizer()
    step = self._step(port, run, optimizer)
    before = port.values()
    with randomness.seeded(randomness.CONSTANT):
      _, regularization = self._layer.regularization_losses(port)
    known = TrainingRun(
      side.TF2, run.description, (), before, (), (), regularization_total=regularization
    )
    return Tf2Steps(port, optimizer, step, start_set_aside(known), self._updating)

  def begin_restored(self, run: side.RunSpec, port: Port, optimizer: Any) -> 'Tf2Steps':
    """Returns a layer and an optimizer, with the values that they have, before their next step.

    Args:
      run: inputs.
      port: the layer.
      optimizer: the optimizer.
    """
    step = self._step(port, run, optimizer)
    known = TrainingRun(side.TF2, run.description, (), (), (), ())
    return Tf2Steps(port, optimizer, step, known, self._updating)

  def begin_steps_again(
    self, run: side.RunSpec, count: int, perturber: Perturber | None
  ) -> 'Tf2StepsAgain':
    """Returns such a layer, from values and inputs perturbed by rounding, beside one under way."""
    fill = run.fill if perturber is None else PerturbedFill(run.fill, perturber)
    inputs = side.moved_inputs(run.inputs, perturber)
    again = dataclasses.replace(run, fill=fill, inputs=inputs)
    return Tf2StepsAgain(lambda: self.begin_steps(again, count))

  def _optimizer(self) -> Any:
    if not self._declaration.declares('make_tf2_optimizer'):
      return None
    with user_code(side.TF2, 'make_tf2_optimizer'), randomness.seeded(randomness.CONSTANT):
      # At first twice: what is the same each time would be found out in the midst of a stage.
      made = [self._declaration.make_tf2_optimizer() for _ in range(1 if self._has_made else 2)]
    self._has_made = True
    own_step = self._declaration.declares('tf2_train_step')
    every = [self._checked(one, own_step) for one in made]
    optimizer, parts = made[0], every[0]
    if not parts.optimizers or not all(map(is_keras, parts.optimizers)):
      v1.train.get_or_create_global_step()
    return optimizer

  def _checked(self, optimizer: Any, own_step: bool) -> OptimizerParts:
    parts = checked_optimizer(optimizer, self._optimizers, own_step)
    for part in parts.state:
      self._optimizers.add(part)
    return parts

  def _step(self, port: Port, run: side.RunSpec, optimizer: Any) -> Step:
    labels = self._label_tensors()
    if self._declaration.declares('tf2_train_step'):
      parts = self._loss_parts or frozenset()
      step = own_step(self._declaration, port, run.inputs, labels, optimizer, parts)
    else:
      step = framework_step(self._declaration, port, run, labels, optimizer)
    return dataclasses.replace(step, habit=self._habit)

  def _label_tensors(self) -> Any:
    if self._labels is None:
      return None
    return nests.map_leaves(lambda _, leaf: tf.constant(leaf), self._labels)


def _array_leaf(leaf: Any) -> Any:
  if isinstance(leaf, tf.SparseTensor):
    parts = (leaf.indices, leaf.values, leaf.dense_shape)
    return v1.SparseTensorValue(*(np.asarray(part) for part in parts))
  if isinstance(leaf, tf.RaggedTensor):
    value = _array_leaf(leaf.values)
    return v1.ragged.RaggedTensorValue(value, np.asarray(leaf.row_splits))
  if isinstance(leaf, (tf.Tensor, tf.Variable)):
    return array_of(leaf)
  return leaf
