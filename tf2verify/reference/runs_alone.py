"""Whether a graph can be run without queues, other machines and further feeds."""

from typing import Any, Iterable

from .built_graph import BuiltGraph
from .errors import RecorderError
from .graph_ops import ops_run_by

# Ops that wait until another thread, or another machine, has put something there.
_WAITING_WORDS = (
  'QueueDequeue',
  'ReaderRead',
  'Unstage',
  'BarrierTakeMany',
  'AccumulatorTakeGradient',
)

FED_BY_BUILDER = (
  'the tensors that the builder is given as `inputs`: let session.run give you one batch of the '
  'data that it reads, numpy.savez that, and give the file with --inputs (labels with --labels)'
)

FED_BY_LOSS = (
  'the outputs and labels that the function is given: let session.run give you one batch of the '
  'labels, numpy.savez that, and give the file with --labels'
)

FED_BY_TRAIN_OP = (
  'a train op that waits for no other thread or machine (without SyncReplicasOptimizer), of the '
  'loss that the function is given'
)


def check_runs_alone(
  what: str, built: 'BuiltGraph', names: Iterable[str], instead: str, fed: Iterable[str] = ()
) -> None:
  """Raises `RecorderError` where a run would wait for a queue, or lacks the value of a placeholder.

  Args:
    what: has made the ops.
    built: the graph, with the placeholders that are fed.
    names: of the ops or tensors that are run.
    instead: what they are to be made of.
    fed: further placeholders, by the names of their tensors.
  """
  graph = built.graph
  known = {name.partition(':')[0] for name in fed}
  known.update(name.partition(':')[0] for _, name in built.placeholders)
  roots = [graph.get_operation_by_name(name.partition(':')[0]) for name in names]
  for op in ops_run_by(roots).values():
    if any(word in op.type for word in _WAITING_WORDS):
      raise RecorderError(
        '{} reads from a queue, {}; nothing fills it while the model is recorded, so the run '
        'would wait forever: use {}'.format(what, _op_text(built, op), instead)
      )
    # One inside of a branch of `tf.cond` may never be run.
    inside = op._get_control_flow_context() is not None
    if op.type == 'Placeholder' and op.name not in known and not inside:
      raise RecorderError(
        '{} uses a placeholder of its own, {}; nothing is fed to it: use {}; in place of one for a '
        'setting, as is_training or keep_prob, what the argument for training says'.format(
          what, _op_text(built, op), instead
        )
      )


def _op_text(built: 'BuiltGraph', op: Any) -> str:
  """Returns type, name, what it yields, and the user's line of an op."""
  made = '{} {!r}'.format(op.type, op.name)
  if op.type == 'Placeholder':
    made = '{!r} ({}, shape {})'.format(op.name, op.outputs[0].dtype.name, op.outputs[0].shape)
  line = built.sources.of_op(op)
  if line < 0:
    return made
  path, number, function, _ = built.sources.table[line]
  return '{} of {}:{}, in {}'.format(made, path, number, function)
