"""Each side from fresh state, again and again: a fresh session, a fresh layer."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable
from tf2verify.numerics.set_aside import set_aside
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.tensor_key import Run, TensorKey, numbered
from tf2verify.records.training import TrainingStep
from tf2verify.sides import side
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.observed_tensors import all_tensors
from tf2verify.sides.process import randomness
from tf2verify.sides.repetition.gpu_kernels import WATCHED
from tf2verify.sides.repetition.run_ops import Sources
from tf2verify.sides.tf1.reference import ReferenceGraph
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.layers.port_records import output_records
from tf2verify.tensorflow_internals import eager

# Runs a side from its start and returns all that it yields.
Repeat = Callable[[], Run]


def devices() -> tuple[str, ...]:
  """Returns the kinds of devices that TensorFlow sees: `CPU`, `GPU`."""
  return tuple(sorted({device.device_type for device in tf.config.list_physical_devices()}))


@contextlib.contextmanager
def op_determinism() -> Iterator[None]:
  """Switches `enable_op_determinism` on until exit."""
  before = eager.is_op_determinism_enabled()
  tf.config.experimental.enable_op_determinism()
  try:
    yield
  finally:
    if not before:
      eager.disable_op_determinism()


def prepare_tf1(tf1: ReferenceGraph, run: side.RunSpec) -> Repeat:
  """Builds what a repetition of the reference needs and returns it; it opens its own sessions.

  A repetition runs the graph from its seeded initial values, then from given ones with
  the gradients of the loss.
  """
  seeded = tf1.prepare_seeded(randomness.CONSTANT, run.training)
  try:
    filled = tf1.prepare_filled([run])
  except NotApplicable:  # no loss to differentiate
    filled = tf1.prepare_filled([dataclasses.replace(run, gradients=False)])

  def repeat() -> Run:
    return {**all_tensors(seeded()), **all_tensors(filled()[0])}

  return repeat


def watched_in_graph(tf1: ReferenceGraph, training: bool) -> Sources:
  """Returns the types of the operations of the reference's graph that vary on a GPU.

  With those whose gradients they are, and the user's line of the first of each.
  """
  found: Sources = {}
  for op in tf1.built(training).graph.get_operations():
    if op.type in WATCHED and found.get(op.type) is None:
      found[op.type] = user_source(op)
  return found


def observe_tf2(tf2: Tf2Layer, inputs: Any, run: side.RunSpec) -> Run:
  """Runs a fresh layer from its seeded initial values, then from given ones with gradients."""
  name = f'{side.training_name(run.training)}, {randomness.CONSTANT}'
  with randomness.seeded(randomness.CONSTANT):
    port = tf2.fresh_port()
    outputs = tf2.call(port, inputs, run.training, name)
    losses, total = tf2.regularization_losses(port)
  seeded = Observation(
    side=side.TF2,
    run=name,
    **output_records(outputs),
    regularization_losses=losses,
    regularization_total=total,
    initial_values=port.initial_values(),
    state_after=port.values(),
  )
  tf2.assign(port, run)
  gradients: tuple[TensorRecord, ...] = ()
  with randomness.seeded(randomness.CONSTANT):
    try:
      outputs, gradients = tf2.gradients(port, run)
    except NotApplicable:
      outputs = tf2.call(port, run.inputs, run.training, run.description)
  filled = Observation(
    side=side.TF2, run=run.description, **output_records(outputs), gradients=gradients
  )
  return {**all_tensors(seeded), **all_tensors(filled)}


def tensors_of_steps(take: Callable[[], TrainingStep], count: int) -> Run:
  """Takes steps; returns the loss and gradients of each, variables and slots after the last.

  Args:
    take: takes the next step.
    count: how many there are.
  """
  run = f'{count} training steps'
  found: list[tuple[TensorKey, np.ndarray | None]] = []
  for number in range(1, count + 1):
    step = take()
    found.append((TensorKey('loss', f'of step {number}', run), step.loss))
    values = set_aside([gradient.value for gradient in step.gradients])
    names = [gradient.name for gradient in step.gradients]
    keys = [TensorKey(f'gradient at step {number}', name, run) for name in names]
    found += zip(keys, values, strict=True)
    if number == count:
      found += [(TensorKey('variable', known.name, run), known.value) for known in step.variables]
      found += [(TensorKey('slot', slot.name, run), slot.value) for slot in step.slots]
    del step  # not held while the next one is taken
  return numbered(found)
