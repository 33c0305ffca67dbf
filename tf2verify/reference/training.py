"""A model in training: losses and a train op added to its graph."""

import contextlib
from typing import Any, Callable, Dict, List, Optional, Tuple

import tensorflow as tf

from .arrays import Array, is_string
from .assignment import assign
from .building import describe_collections
from .built_graph import BuiltGraph, draws_behind
from .creations import Creations
from .errors import RecorderError
from .fill_values import DISTINCT_VALUES
from .graph_ops import ops_behind
from .nests import leaves_by_path, map_leaves
from .options import Options
from .perturbation import Perturber
from .private_tensorflow import v1
from .random_draws import describe_draws
from .randomness import CONSTANT, Seeding, seeded
from .recorder import Recorder
from .run import feeds_of, moved_inputs
from .runs_alone import FED_BY_LOSS, check_runs_alone
from .sessions import fetch
from .tf1_semantics import tf1_semantics, with_either_shape
from .user_code import Hint, no_hint, user_code
from .weighted_sum import weighted_sum


class TrainingGraph:
  """The graph of a model in constant mode, to which losses and a train op are added.

  Attributes:
    built: the model's.
    later: a description of the same graph: what came with losses and train op.
    values: of the model's variables before the first step.
    label_placeholders: path and name.
    drawn: what random ops drew in a fresh session, by tensor: fed to all later runs.
    loss: name of the tensor.
    total_loss: of what is minimized, likewise.
  """

  def __init__(self, recorder: Recorder) -> None:
    options = recorder.options
    self.recorder = recorder
    self.built = recorder.built(True in options.training_modes, CONSTANT)
    self.later = BuiltGraph(self.built.graph, self.built.training, recorder.sources)
    self.values = recorder.fill_values(self.built, DISTINCT_VALUES)
    self.label_placeholders: List[Tuple[str, str]] = []
    self.drawn: Dict[str, Array] = {}
    self._creations = Creations(self.built.graph, recorder.sources)
    self.loss, self.total_loss = self._add_losses(options)

  def in_graph(self, what: str, make: Callable[[], Any], hint: Hint = no_hint) -> Any:
    """Calls what goes on with the graph; under TensorFlow 2 also with the shapes of that."""

    def attempt(graph: Any, v2_tensorshape: bool) -> Any:
      with contextlib.ExitStack() as stack:
        stack.enter_context(tf1_semantics(v2_tensorshape))
        stack.enter_context(graph.as_default())
        stack.enter_context(seeded(Seeding(CONSTANT)))
        stack.enter_context(v1.variable_creator_scope(self._creations))
        stack.enter_context(user_code(what, hint))
        return make()

    return with_either_shape(attempt, RecorderError, self.built.graph)

  def describe(self) -> None:
    """Fills in what was added: variables and random ops."""
    describe_collections(self.later, self._creations)
    describe_draws(self.later, self._creations)
    known = {draw['op_name'] for draw in self.built.random_draws}
    self.later.random_draws = [d for d in self.later.random_draws if d['op_name'] not in known]

  def feeds(self, perturber: Optional[Perturber]) -> Dict[str, Array]:
    """Returns inputs, moved or not, and labels, by the names of their placeholders."""
    recorder = self.recorder
    feeds = feeds_of(self.built, moved_inputs(recorder.varied, perturber))
    leaves = leaves_by_path(recorder.options.labels)
    feeds.update({name: leaves[path] for path, name in self.label_placeholders})
    return feeds

  def draws(self) -> Optional[List[str]]:
    """Returns the random tensors behind the losses; None where they cannot be fed."""
    drawn = self.built.random_draws + self.later.random_draws
    names = [self.loss, self.total_loss, *(name for _, name in self.built.regularization_losses)]
    return draws_behind(self.built.graph, drawn, names)

  def session(self, fresh: bool) -> Any:
    """Returns a session of the graph."""
    built = self.built
    return self.recorder.sessions.open(built.graph, built.table_initializers, fresh)

  def start(self, session: Any, perturber: Optional[Perturber]) -> None:
    """Gives every variable its value, moved or not; what was added starts after the model."""
    assign(session, self.built.variables, self.values, perturber)
    fetch(session, [variable.initializer for variable in self.later.variables])

  def _add_losses(self, options: Options) -> Tuple[str, str]:
    graph, outputs = self.built.graph, self.built.output_nest
    labels = self._labels(options.labels)

    def hint(_: BaseException) -> str:
      given = options.labels is not None
      return '' if given else '; it was called with None for labels, since --labels is not given'

    if options.loss is None:
      made = self.in_graph('the default loss', lambda: weighted_sum(outputs))
      if made is None:
        raise RecorderError('no output is floating, so there is nothing to train; give --loss')
    else:
      made = self.in_graph('the loss', lambda: options.loss(outputs, labels), hint)
    loss = self._checked(made, 'the loss')

    def total() -> Any:
      if options.total_loss is not None:
        return options.total_loss(outputs, labels)
      losses = graph.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)
      behind = ops_behind([loss])
      if not losses or any(regularization.op.name in behind for regularization in losses):
        return loss
      return loss + tf.cast(tf.add_n(losses), loss.dtype)

    total_loss = self._checked(self.in_graph('the total loss', total, hint), 'the total loss')
    names = [loss.name, total_loss.name]
    placeholders = [name for _, name in self.label_placeholders]
    check_runs_alone('the loss', self.built, names, FED_BY_LOSS, placeholders)
    return loss.name, total_loss.name

  def _labels(self, labels: Any) -> Any:
    def placeholder(path: str, leaf: Array) -> Any:
      dtype = tf.string if is_string(leaf) else tf.as_dtype(leaf.dtype)
      name = 'tf2verify_label/{}'.format(len(self.label_placeholders))
      tensor = v1.placeholder(dtype, leaf.shape, name=name)
      self.label_placeholders.append((path, tensor.name))
      return tensor

    with self.built.graph.as_default():
      return None if labels is None else map_leaves(placeholder, labels)

  def _checked(self, loss: Any, what: str) -> Any:
    if isinstance(loss, (tf.Variable, int, float)):
      with self.built.graph.as_default():
        loss = tf.convert_to_tensor(loss)
    if not isinstance(loss, tf.Tensor) or getattr(loss, 'graph', None) is not self.built.graph:
      slip = 'usually a missing `return`' if loss is None else 'return the tensor to minimize'
      raise RecorderError(
        '{} is {:.80}, which is not a tensor of the graph: {}'.format(what, repr(loss), slip)
      )
    return loss
