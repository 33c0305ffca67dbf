"""The port's training step as a graph to look into."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.reference import nests
from tf2verify.reference.updates import Updates
from tf2verify.reference.variables import variable_name
from tf2verify.relation.layouts.variable_layouts import in_step
from tf2verify.relation.shadows import SHADOW
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.inlining import operation
from tf2verify.sides.graphs.numbers_read import in_order
from tf2verify.sides.graphs.step_run import (
  COUNT,
  LOSS_TARGET,
  MINIMIZED_TARGET,
  StepGraph,
  StepVariable,
  applied_target,
  gradient_target,
  values_of,
)
from tf2verify.sides.optimizers.made_lines import MadeLines
from tf2verify.sides.optimizers.parts import parts_of
from tf2verify.sides.optimizers.state import is_keras
from tf2verify.sides.tf2.graphs.port_tracing import place_of
from tf2verify.sides.tf2.layers.port import array_of
from tf2verify.sides.tf2.optimization.step import Step
from tf2verify.sides.tf2.traces import tracing, ways_to_trace
from tf2verify.tensorflow_internals import keras3

v1 = tf.compat.v1
_INPUTS, _LABELS = 'inputs', 'labels'
# Of the greatest element: values of both sides that are closer are one value, up to rounding.
_SAME = 1e-2


@dataclasses.dataclass(frozen=True)
class SharedNames:
  """What both sides call what they keep, by the port's own names.

  Attributes:
    variables: of the model: tf1 names.
    slots: of optimizers and averages, by their keys: several may have one name.
    before: the reference's values before the step, by what both sides call them.
  """

  variables: Mapping[str, str]
  slots: Mapping[str, str]
  before: Mapping[str, np.ndarray]

  def of_variable(self, own: str) -> str:
    """Returns what a variable of the port is called, which both sides call so if both have it."""
    return self.variables.get(own, in_step(own))


def _is_of_step(gradient: Any) -> bool:
  """Returns whether a gradient can be asked for: in a branch, nobody else can read it."""
  part = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
  return not hasattr(part, 'graph') or part.graph is tf.compat.v1.get_default_graph()


class StepTracing:
  """Traces a step that is next to be taken, from the values that its variables have."""

  def __init__(
    self,
    step: Step,
    optimizer: Any,
    names: SharedNames,
    made: MadeLines,
    recorder: Callable[[], Updates],
  ) -> None:
    """Takes what takes part in the step.

    Args:
      step: the step.
      optimizer: of the case; None where its own step has one.
      names: what both sides call what they keep.
      made: where optimizers were made.
      recorder: makes what records the updates of the step, and may change its gradients.
    """
    self._step = step
    self._made = made
    self._optimizer = optimizer
    self._names = names
    self._recorder = recorder
    self._updates = recorder()

  @property
  def optimizers(self) -> tuple[Any, ...]:
    """Those that update in the step, once it was traced."""
    return tuple(self._updates.optimizers)

  def trace(self) -> tracing.Traced:
    """Traces it.

    Raises:
      NotTraceable: the step does not run on symbolic tensors.
    """
    labels = self._step.labels
    fed = {_INPUTS: self._step.inputs}
    if labels is not None:
      fed[_LABELS] = nests.map_leaves(lambda _, leaf: array_of(leaf), labels)
    layers, habit = self._step.port.recorder.layers, self._step.habit
    return ways_to_trace.trace(self._compute, fed, layers, self._number, habit)

  def _number(self, tensor: tf.Tensor, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns the number that a tensor of the trace has when the step is taken now."""
    under_way = tracing.Traced(in_order(tensor.graph), feeds, {}, (), ())
    step = self.graph(under_way, (), {}, dataclasses.replace(self._names, before={}))
    return np.asarray(values_of(step, [tensor.name])[0])

  def _compute(self, fed: Mapping[str, Any]) -> dict[str, Any]:
    self._updates = self._recorder()
    with (
      self._updates.recording(),
      self._made.recording(),
      tf.variable_creator_scope(_created_eagerly),
    ):
      loss = self._step.symbolic(fed[_INPUTS], fed.get(_LABELS))
    found = {} if loss is None else {LOSS_TARGET: loss, MINIMIZED_TARGET: loss}
    for named, gradients in (
      (gradient_target, self._updates.differentiated),
      (applied_target, self._updates.applied),
    ):
      for name, gradient in gradients.items():
        # Of a group, tf1's gradients are those of several variables together.
        is_shown = name in self._names.variables or self._step.port.layouts.lie_apart(name)
        if gradient is not None and is_shown and _is_of_step(gradient):
          found[named(self._names.of_variable(name))] = gradient
    return found

  def graph(
    self,
    traced: tracing.Traced,
    kept: Sequence[Any],
    slots: Mapping[int, str],
    shared: SharedNames,
  ) -> StepGraph:
    """Returns the graph.

    Args:
      traced: the step.
      kept: variables that it may use: of optimizers, and others.
      slots: names of those that are slots, by the identity of the handle.
      shared: the names that it was traced with, and values before it.

    Raises:
      NotTraceable: it uses a resource that is no variable.
    """
    model = {id(v.handle): v for v in self._step.port.variables() if hasattr(v, 'handle')}
    known = {id(v.handle): v for v in (*traced.graph.variables, *kept) if hasattr(v, 'handle')}
    count = self._count(shared.before)
    variables: dict[str, StepVariable] = {}
    constants: dict[str, np.ndarray] = {}
    for outer, inner in traced.graph.captures:
      if outer.dtype != tf.resource:
        constants[inner.op.name] = _value_of(outer)
        continue
      variable = model.get(id(outer), known.get(id(outer)))
      own = f'variable {len(variables)}' if variable is None else variable_name(variable)
      own = slots.get(id(outer), own)
      names = shared.variables if id(outer) in model else shared.slots
      name = COUNT if variable is count is not None else names.get(own, in_step(own))
      taken = {one.name for one in variables.values()}
      name = name if name not in taken else f'{name} of tf2, number {len(taken)}'
      held = _held_by(outer, inner) if variable is None else array_of(variable)
      value = self._before(own, name, held, shared)
      variables[inner.op.name] = StepVariable(name, value, name.startswith(own), id(outer))

    def source_of(name: str) -> SourceLine | None:
      found = operation(traced.graph, name)
      return None if found is None else self._made.line_of(found)

    return StepGraph(
      side.TF2,
      traced.graph.as_graph_def(),
      variables,
      {op: place_of(path) for op, path in traced.inputs.items()},
      traced.feeds,
      constants,
      traced.targets,
      source_of,
      layouts=self._step.port.layouts.relayouts(shared.variables),
      numbers_read=traced.numbers_read,
    )

  def _before(self, own: str, name: str, value: np.ndarray, shared: SharedNames) -> np.ndarray:
    """Returns the value that the reference has, where it is the same up to rounding."""
    given = shared.before.get(name)
    if given is None or given.size != value.size or value.dtype.kind != 'f':
      return value
    role, _, of = name.rpartition(' of ')
    owner = next((its for its, tf1 in shared.variables.items() if role and tf1 == of), own)
    holds_values = role in ('', SHADOW)
    laid_out = self._step.port.layouts.to_tf2(owner, given, holds_values)
    if laid_out.shape != value.shape or laid_out.dtype != value.dtype:
      return value
    allowed = _SAME * float(np.max(np.abs(value), initial=0.0))
    return laid_out if np.allclose(laid_out, value, 0.0, allowed) else value

  def _count(self, before: Mapping[str, np.ndarray]) -> Any:
    """Returns the variable that counts the steps as the reference's does; None without one."""
    wanted = before.get(COUNT)
    if wanted is None:
      return None
    same = (one for one in self._counters() if int(one) == int(wanted))
    return next(same, None)

  def _counters(self) -> Iterator[Any]:
    for optimizer in self.optimizers:
      if is_keras(optimizer):
        yield keras3.held(optimizer.iterations)
    counter = v1.train.get_global_step()
    if counter is not None:
      yield counter
    for held in parts_of(self._optimizer).variables:
      if held.variable.dtype.is_integer and held.variable.shape.rank == 0:
        yield held.variable


def _created_eagerly(create: Any, **keywords: Any) -> Any:
  """Makes a variable that the step makes with the value that it starts with, not a symbol of it."""
  start = keywords.get('initial_value')
  if tf.is_symbolic_tensor(start):
    known = _known_value(start)
    if known is not None:
      keywords['initial_value'] = known
  return create(**keywords)


def _known_value(tensor: tf.Tensor) -> np.ndarray | None:
  """Returns the value of a constant, or of a variable before the step; None of anything else."""
  op = tensor.op
  while op.type == 'Identity':
    op = op.inputs[0].op
  if op.type == 'ReadVariableOp':
    outer = {id(inner): outer for outer, inner in op.graph.captures}.get(id(op.inputs[0]))
    if outer is None:
      return None
    dtype = op.get_attr('dtype')
    with tf.init_scope():
      return np.asarray(tf.raw_ops.ReadVariableOp(resource=outer, dtype=dtype))
  found = tf.get_static_value(tensor)
  return None if found is None else np.asarray(found)


def _held_by(handle: Any, inner: tf.Tensor) -> np.ndarray:
  """Returns the value of a variable of which the handle alone is known, and who uses it."""
  dtypes = [op.get_attr('dtype') for op in inner.consumers() if 'dtype' in op.node_def.attr]
  try:
    if dtypes:
      return np.asarray(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtypes[0]))
  except tf.errors.OpError:
    pass
  raise tracing.NotTraceable('the step uses a lookup table or an iterator')


def _value_of(tensor: Any) -> np.ndarray:
  if not hasattr(tensor, 'numpy'):
    raise tracing.NotTraceable(f'the step reads a tensor of a different graph: {tensor.name}')
  return np.asarray(tensor)
