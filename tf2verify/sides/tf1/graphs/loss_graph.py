"""The TF1 graph of a model with its losses."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tensorflow as tf

from tf2verify.errors import CaseDefinitionError, NotApplicable, UserCodeError
from tf2verify.reference import nests
from tf2verify.reference.tf1_semantics import with_either_shape
from tf2verify.sides import side
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_parts
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.process.fence import fenced
from tf2verify.sides.tf1.graphs.build import (
  BuiltGraph,
  GraphVariable,
  graph_variables,
  placeholders_for,
)

_Made = TypeVar('_Made')


@dataclasses.dataclass(frozen=True, eq=False)
class LossGraph:
  """A model's graph with the losses.

  Attributes:
    built: the model.
    label_placeholders: path and name.
    loss: name of the tensor.
    total_loss: what is minimized, likewise.
    total_nest: the same as the case's hook returned it: a tensor, or a nest of parts;
      None where only the name is known.
    parts: place in the nest of `tf1_loss` and name of the tensor; None where not known.
    labels: the nest of placeholders; None without labels, and where not known.
    added: variables that the losses have made (a global step, the centres of a centre loss).
  """

  built: BuiltGraph
  label_placeholders: tuple[tuple[str, str], ...]
  loss: str
  total_loss: str
  total_nest: Any = None
  parts: tuple[tuple[str, str], ...] | None = None
  labels: Any = None
  added: tuple[GraphVariable, ...] = ()


@contextlib.contextmanager
def in_graph(built: BuiltGraph, recorder: OpRecorder, hook: str) -> Iterator[None]:
  """Continues the graph under the conditions under which it was built."""
  with (
    built.graph.as_default(),
    randomness.seeded(randomness.CONSTANT),
    recorder.recording(hook),
    fenced(hook),
  ):
    yield


def made_in(graph: tf.Graph, make: Callable[[], _Made]) -> _Made:
  """Calls user code that adds to a graph, under TF1's semantics."""

  def attempt(_: tf.Graph, v2_tensorshape: bool) -> _Made:
    with process_state.tf1_semantics(v2_tensorshape):
      return make()

  return with_either_shape(attempt, UserCodeError, graph)


def add_losses(
  built: BuiltGraph, declaration: side.Declaration, labels: Any, recorder: OpRecorder
) -> LossGraph:
  """Adds the case's losses to the graph of its model.

  Args:
    built: the graph, built in constant mode.
    declaration: the case.
    labels: the checked nest of arrays; None without.
    recorder: sees what is created.

  Raises:
    NotApplicable: there is no loss.
    CaseDefinitionError: a hook returned no tensor.
    UserCodeError: a hook raised.
  """
  with built.graph.as_default():
    fed, placeholders = (
      (None, []) if labels is None else placeholders_for(labels, 'tf2verify_label')
    )
  hook = 'tf1_loss' if declaration.declares('tf1_loss') else 'loss'

  slip = side.without_labels(declaration, labels)

  def model_loss() -> Any:
    with user_code(side.TF1, hook, slip if hook == 'tf1_loss' else ''):
      if hook == 'tf1_loss':
        return declaration.tf1_loss(built.output_nest, fed)
      return declaration.loss(built.output_nest)

  def total() -> tuple[Any, Any]:
    """Returns the nest, and the tensor that stands for it."""
    if not declaration.declares('tf1_total_loss'):
      terms = loss_parts.regularization_of(built.graph, made)
      if not loss_parts.is_nest(made):
        return (summed := loss_parts.plus(loss, terms)), summed
      return loss_parts.plus(made, terms), loss_parts.plus(loss, terms)
    with user_code(side.TF1, 'tf1_total_loss', slip):
      own = declaration.tf1_total_loss(built.output_nest, fed)
    return own, loss_parts.main_of(own, 'tf1_total_loss')

  with in_graph(built, recorder, hook):
    made = made_in(built.graph, model_loss)
    if made is None and hook == 'loss':
      raise NotApplicable('no output is floating, so the default loss has nothing to sum')
    loss = _checked_loss(loss_parts.main_of(made, hook), hook, built.graph)
  with in_graph(built, recorder, 'tf1_total_loss'):
    nest, tensor = made_in(built.graph, total)
  total_loss = _checked_loss(tensor, 'tf1_total_loss', built.graph)
  parts = tuple(
    (place, _checked_loss(part, hook, built.graph).name)
    for place, part in loss_parts.parts_of(made).items()
  )
  nest = nest if loss_parts.is_nest(nest) else total_loss
  model = {variable.record.name for variable in built.variables}
  added = tuple(v for v in graph_variables(built.graph, recorder) if v.record.name not in model)
  return LossGraph(built, tuple(placeholders), loss.name, total_loss.name, nest, parts, fed, added)


def _checked_loss(loss: Any, hook: str, graph: tf.Graph) -> tf.Tensor:
  if isinstance(loss, (tf.Variable, int, float)):
    with graph.as_default():
      loss = tf.convert_to_tensor(loss)
  if not isinstance(loss, tf.Tensor) or getattr(loss, 'graph', None) is not graph:
    slip = 'usually a missing `return`' if loss is None else 'return the tensor to minimize'
    raise CaseDefinitionError(
      f'{hook} returned {loss!r:.80} on the tf1 side, which is not a tensor of the graph: {slip}'
    )
  return loss


def fetched_outputs(built: BuiltGraph) -> dict[str, Any]:
  """Returns what to fetch for the outputs of a model, by their paths; tensors by name."""
  fetched: dict[str, Any] = {}
  for path, leaf in nests.leaves_by_path(built.output_nest).items():
    if isinstance(leaf, tf.Variable):
      fetched[path] = leaf._as_graph_element().name
    elif isinstance(leaf, tf.Tensor):
      fetched[path] = leaf.name
    elif isinstance(leaf, (tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices)):
      fetched[path] = leaf
  return fetched
