"""The train op."""

from typing import Any, Dict, List

import tensorflow as tf

from .built_graph import BuiltGraph
from .errors import RecorderError
from .gradients import gradient_entry
from .graph_ops import initialize_without, is_in_loop, ops_run_by
from .optimizers import can_be_fetched, learning_rate_of
from .options import Options
from .private_tensorflow import client_session, v1
from .random_draws import draws_in_functions
from .random_ops import is_random_op
from .runs_alone import FED_BY_TRAIN_OP, check_runs_alone
from .trained import trained_variables
from .training import TrainingGraph
from .updates import Updates

# Name of the op that lets everything of the train op wait for the losses.
GATE = 'tf2verify_losses'


class TrainOp:
  """The train op, and what it has added, see `_steps_entry`.

  Everything that it adds runs after the losses, so that what is fetched along with it are
  the values before the update.
  """

  def __init__(self, training: TrainingGraph) -> None:
    built, options = training.built, training.recorder.options
    graph = built.graph
    names = [training.loss, training.total_loss]
    names += [name for _, name in built.regularization_losses]
    first = [graph.get_tensor_by_name(name) for name in names]
    updates = Updates()

    def make() -> Any:
      # One op in between: of hundreds of losses each op that follows would hold the names.
      gate = tf.group(*first, name=GATE)
      with graph.control_dependencies([gate]):
        if options.train_op is not None:
          made = _checked_train_op(options.train_op(first[1]), graph)
        else:
          made = _minimize(options, first[1])
      variables = v1.global_variables() + v1.local_variables()
      initialize_without(gate, [variable.initializer for variable in variables])
      return made

    what = 'the train op' if options.train_op is not None else 'the optimizer'
    with updates.recording():
      train_op = training.in_graph(what, make)
    if not any(variable.global_step for variable in built.variables + training.later.variables):
      for variable in training.later.variables:  # any variable may be given as global_step
        variable.global_step = variable.name == updates.counter
    self.name = train_op.name
    self.optimizers = updates.optimizers
    self.rate = learning_rate_of(self.optimizers[0], graph) if self.optimizers else None
    self.gradients = _gradient_entries(updates.differentiated, built)
    self.applied = _gradient_entries(updates.applied, built)
    placeholders = [name for _, name in training.label_placeholders]
    check_runs_alone(what, built, [train_op.name], FED_BY_TRAIN_OP, placeholders)
    handles = {v.name: v.handle for v in built.variables if v.trainable}
    gate = graph.get_operation_by_name(GATE)
    self.trained = trained_variables(train_op, handles, gate, updates)
    run = ops_run_by([train_op])
    self.left_out = [name for name in built.update_ops if name not in run]
    draws = [op for op in run.values() if is_random_op(op.type)]
    self.drawn = [tensor.name for op in draws for tensor in op.outputs]
    self.draws_inside = any(map(is_in_loop, draws)) or draws_in_functions(graph, run.values())

  def entries(self) -> List[str]:
    """Returns the names of the gradients' tensors."""
    tensors = self.gradients + self.applied
    names = [name for entry in tensors for name in (entry['values'], entry['indices'])]
    return [name for name in names if name is not None]


def _minimize(options: Options, total_loss: Any) -> Any:
  step = v1.train.get_or_create_global_step()
  optimizer = options.optimizer()
  if not isinstance(optimizer, v1.train.Optimizer):
    slip = (
      'usually a missing `return`' if optimizer is None else 'for anything else, give a train op'
    )
    if isinstance(optimizer, type):
      slip = 'it is the class: return an instance'
    if isinstance(optimizer, (tf.Operation, tf.Tensor)):
      slip = 'a train op is made by a function of the loss: --train_op'
    raise RecorderError(
      'the optimizer function returned {:.80}, which is not a tf.train.Optimizer: {}'.format(
        repr(optimizer), slip
      )
    )
  updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS) if options.run_update_ops else []
  with tf.control_dependencies([tf.group(*updates)] if updates else []):
    return optimizer.minimize(total_loss, global_step=step)


def _checked_train_op(made: Any, graph: Any) -> Any:
  """Returns the op that is to be run, given whatever `session.run` takes; several are grouped."""
  try:
    # What a session itself makes of it: nests, names, and variables that an update returns.
    taken = client_session._FetchHandler(graph, made, {})
    parts = list(taken.fetches()) + list(taken.targets())
  except (TypeError, ValueError, KeyError):
    parts = []
  if len(parts) == 1:
    return parts[0].op if isinstance(parts[0], tf.Tensor) else parts[0]
  if parts:
    return tf.group(*parts)
  slip = 'usually a missing `return`' if made is None else 'return what session.run is given'
  if isinstance(made, v1.train.Optimizer):
    slip = 'a function that returns an optimizer takes nothing: --optimizer'
  raise RecorderError(
    'the train op function returned {:.80}, which is not an op of the graph: {}'.format(
      repr(made), slip
    )
  )


def _gradient_entries(found: Dict[str, Any], built: BuiltGraph) -> List[Dict[str, Any]]:
  """Returns the gradients for the model's variables that a session can be asked for."""
  entries = []
  for variable in built.variables:
    gradient: Any = found.get(variable.name)
    sparse = isinstance(gradient, tf.IndexedSlices)
    parts = [gradient.values, gradient.indices] if sparse else [gradient]
    fetchable = all(part is None or can_be_fetched(part, built.graph) for part in parts)
    if variable.name in found and fetchable:
      entries.append(gradient_entry(variable, gradient))
  return entries
