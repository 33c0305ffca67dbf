"""The TF1 graph of a model with its losses."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tensorflow as tf

from tf2verify.errors import CaseDefinitionError, NotApplicable, UserCodeError
from tf2verify.sides import nests, side
from tf2verify.sides.graphs import dataflow
from tf2verify.sides.graphs.op_recorder import OpRecorder
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.process.fence import fenced
from tf2verify.sides.tf1.build import BuiltGraph
from tf2verify.sides.user_code import user_code

v1 = tf.compat.v1
_KEYS = v1.GraphKeys
_Made = TypeVar('_Made')


@dataclasses.dataclass(frozen=True, eq=False)
class LossGraph:
  """A model's graph with the losses.

  Attributes:
    built: the model.
    label_placeholders: path and name.
    loss: name of the tensor.
    total_loss: what is minimized, likewise.
  """

  built: BuiltGraph
  label_placeholders: tuple[tuple[str, str], ...]
  loss: str
  total_loss: str


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


def with_either_shape(graph: tf.Graph, make: Callable[[], _Made]) -> _Made:
  """Calls user code under TF1's tensor shapes; where it counts on TF2's, with those."""
  collections = {key: list(graph.get_collection(key)) for key in graph.get_all_collection_keys()}
  try:
    with process_state.tf1_semantics(v2_tensorshape=False):
      return make()
  except UserCodeError as error:
    if not isinstance(error.__cause__, (TypeError, AttributeError, ValueError)):
      raise
    first = error
  for key in graph.get_all_collection_keys():
    graph.get_collection_ref(key)[:] = collections.get(key, [])
  try:
    with process_state.tf1_semantics(v2_tensorshape=True):
      return make()
  except UserCodeError:
    raise first from first.__cause__


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
  placeholders: list[tuple[str, str]] = []

  def placeholder(path: str, leaf: Any) -> tf.Tensor:
    dtype = tf.string if leaf.dtype.kind in 'SU' else tf.as_dtype(leaf.dtype)
    tensor = v1.placeholder(dtype, leaf.shape, name=f'tf2verify_label/{len(placeholders)}')
    placeholders.append((path, tensor.name))
    return tensor

  with built.graph.as_default():
    fed = None if labels is None else nests.map_leaves(placeholder, labels)
  hook = 'tf1_loss' if declaration.declares('tf1_loss') else 'loss'

  def model_loss() -> Any:
    with user_code(side.TF1, hook):
      if hook == 'tf1_loss':
        return declaration.tf1_loss(built.output_nest, fed)
      return declaration.loss(built.output_nest)

  def total() -> Any:
    if not declaration.declares('tf1_total_loss'):
      return _with_regularization(built.graph, loss)
    with user_code(side.TF1, 'tf1_total_loss'):
      return declaration.tf1_total_loss(built.output_nest, fed)

  with in_graph(built, recorder, hook):
    loss = with_either_shape(built.graph, model_loss)
  if loss is None and hook == 'loss':
    raise NotApplicable('no output is floating, so the default loss has nothing to sum')
  loss = _checked_loss(loss, hook, built.graph)
  with in_graph(built, recorder, 'tf1_total_loss'):
    total_loss = with_either_shape(built.graph, total)
  total_loss = _checked_loss(total_loss, 'tf1_total_loss', built.graph)
  return LossGraph(built, tuple(placeholders), loss.name, total_loss.name)


def _checked_loss(loss: Any, hook: str, graph: tf.Graph) -> tf.Tensor:
  if isinstance(loss, (tf.Variable, int, float)):
    with graph.as_default():
      loss = tf.convert_to_tensor(loss)
  if not isinstance(loss, tf.Tensor) or getattr(loss, 'graph', None) is not graph:
    slip = 'usually a missing `return`' if loss is None else 'return the tensor to minimize'
    raise CaseDefinitionError(
      f'{hook} returned {loss!r:.80} on the tf1 side, which is no tensor of the graph: {slip}'
    )
  return loss


def _with_regularization(graph: tf.Graph, loss: tf.Tensor) -> tf.Tensor:
  losses = graph.get_collection(_KEYS.REGULARIZATION_LOSSES)
  behind = dataflow.op_names_behind([loss])
  if not losses or any(regularization.op.name in behind for regularization in losses):
    return loss
  return loss + tf.cast(tf.add_n(losses), loss.dtype)
