"""A reference with one thing changed: what TF1's own code computes with what the port has.

Everything else is TF1's, so that whatever is compared with it differs by another fault.
"""

import collections
import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

from tf2verify.errors import ChangeRefused
from tf2verify.records.accepted import WHERE_ONE_IS, Change, Changed
from tf2verify.records.wording import listed
from tf2verify.reference import nests
from tf2verify.reference.graph_ops import variables_behind
from tf2verify.reference.private_tensorflow import constant_value
from tf2verify.tensorflow_internals.graphs import set_attribute, set_input

v1 = tf.compat.v1
_SCOPE = 'tf2verify_accepted'
_ROOTS = ('Rsqrt', 'Sqrt')
_SUMS = ('Add', 'AddV2')
_NORMS = ('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3')
_WRITES = ('Assign', 'AssignAdd', 'AssignSub')
# Operations between the batch's variance and what is written to its average.
_NEAR = 12
_RATES = ('lr', 'alpha')

# What was changed: from a place to the values before and after.
Places = dict[str, tuple[float, float]]


class ChangedReference:
  """A case whose reference is built with changes; everything else is the case's own.

  Attributes:
    changes: in the order in which they are made.
    changed: what each has changed, once the graphs are built.
  """

  def __init__(self, declaration: Any, changes: Sequence[Change]) -> None:
    self._declaration = declaration
    self.changes = tuple(changes)
    self.changed: dict[Change, Places] = {change: {} for change in changes}

  def __getattr__(self, name: str) -> Any:
    return getattr(self._declaration, name)

  def build_tf1_graph(self, inputs: Any, training: bool) -> Any:
    """Builds the model, and changes it before anything else is added to its graph."""
    with contextlib.ExitStack() as stack:
      for change in self.changes:
        if change.what is Changed.FORGET_BIAS:
          stack.enter_context(_with_forget_bias(change, self.changed[change]))
      outputs = self._declaration.build_tf1_graph(inputs, training)
    graph = v1.get_default_graph()
    for change in self.changes:
      edit = _OF_MODELS.get(change.what)
      if edit is not None:
        self.changed[change].update(edit(graph, change, training))
    return outputs

  def tf1_loss(self, outputs: Any, labels: Any) -> Any:
    """Returns the case's loss, divided by what the port divides by."""
    made = self._declaration.tf1_loss(outputs, labels)
    for change in self._of_loss():
      if not isinstance(made, tf.Tensor):
        raise ChangeRefused('tf1_loss returns no single tensor')
      made = made * _ratio(change, outputs, labels, made.dtype)
      self.changed[change]['tf1_loss'] = (0.0, 0.0)
    return made

  def tf1_total_loss(self, outputs: Any, labels: Any) -> Any:
    """Returns what the case minimizes, of which its loss is a term."""
    total = self._declaration.tf1_total_loss(outputs, labels)
    for change in self._of_loss():
      loss = self._declaration.tf1_loss(outputs, labels)
      if not isinstance(loss, tf.Tensor) or not isinstance(total, tf.Tensor):
        raise ChangeRefused('tf1_total_loss returns no single tensor')
      total = total + (_ratio(change, outputs, labels, loss.dtype) - 1) * loss
    return total

  def _of_loss(self) -> list[Change]:
    return [change for change in self.changes if change.what is Changed.DENOMINATOR]


def change_train_op(declaration: Any, graph: tf.Graph, rate: str | float | None) -> Any:
  """Changes the train op of a changed reference, once it is built.

  Args:
    declaration: the case, changed or not.
    graph: holds the train op.
    rate: the learning rate: a tensor's name, or the number.

  Returns:
    The learning rate that the steps have now, in the same form.
  """
  if not isinstance(declaration, ChangedReference):
    return rate
  for change in declaration.changes:
    if change.what is Changed.OPTIMIZER_EPSILON:
      _change_inputs(graph, ('epsilon',), functools.partial(_number, change.tf2))
      declaration.changed[change]['epsilon'] = (change.tf1, change.tf2)
    elif change.what is Changed.LEARNING_RATE:
      made = _change_inputs(graph, _RATES, functools.partial(_times, change.tf2))
      rate = made.get(rate, '') if isinstance(rate, str) else rate and rate * change.tf2
      if rate == '':
        raise ChangeRefused('the learning rate of the steps is not an input of their updates')
      declaration.changed[change]['learning rate'] = (1.0, change.tf2)
  return rate


def _change_inputs(
  graph: tf.Graph, names: Sequence[str], make: Callable[[tf.Tensor], tf.Tensor]
) -> dict[str, str]:
  """Gives the updates of all variables another input, and all that reads the same tensor.

  Returns:
    Names of the tensors before and after.
  """
  found: dict[str, tf.Tensor] = {}
  for op in graph.get_operations():
    known = [argument.name for argument in op.op_def.input_arg] if 'Apply' in op.type else []
    for index, name in enumerate(known):
      if name in names:
        found[op.inputs[index].name] = op.inputs[index]
  if not found:
    raise ChangeRefused(f'no update of a variable has an input {" or ".join(names)}')
  return {name: _replaced(graph, tensor, make).name for name, tensor in found.items()}


def _number(to: float, old: tf.Tensor) -> tf.Tensor:
  return tf.constant(to, old.dtype)


def _times(by: float, old: tf.Tensor) -> tf.Tensor:
  return old * tf.constant(by, old.dtype)


def _replaced(
  graph: tf.Graph, tensor: tf.Tensor, make: Callable[[tf.Tensor], tf.Tensor]
) -> tf.Tensor:
  """Puts what is made of a tensor in its place, for all that reads it."""
  readers = list(tensor.consumers())
  with graph.as_default(), graph.control_dependencies(None), v1.name_scope(_SCOPE):
    made = make(tensor)
  for reader in readers:
    for index, read in enumerate(reader.inputs):
      if read is tensor:
        set_input(reader, index, made)
  return made


def _epsilons(graph: tf.Graph, change: Change, training: bool) -> Places:
  del training
  found: Places = {}
  for op in graph.get_operations():
    if op.type in _NORMS:
      old = float(op.get_attr('epsilon'))
      if _is_meant(change, op.name, old):
        set_attribute(op, 'epsilon', change.tf2)
        found[op.name] = old, change.tf2
    elif op.type in _ROOTS and op.inputs[0].op.type in _SUMS:
      added = op.inputs[0].op
      for index, tensor in enumerate(added.inputs):
        value = constant_value(tensor)
        if value is None or value.size != 1 or not 0 < value.item() < 0.1:
          continue
        if any(_is_meant(change, name, value.item()) for name in (op.name, added.name)):
          with graph.as_default(), graph.control_dependencies(None), v1.name_scope(_SCOPE):
            set_input(added, index, tf.constant(change.tf2, tensor.dtype, tensor.shape))
          found[added.name] = value.item(), change.tf2
  return found


def _slopes(graph: tf.Graph, change: Change, training: bool) -> Places:
  del training
  found: Places = {}
  for op in graph.get_operations():
    if op.type == 'LeakyRelu':
      old = float(op.get_attr('alpha'))
      if _is_meant(change, op.name, old):
        set_attribute(op, 'alpha', change.tf2)
        found[op.name] = old, change.tf2
  return found


def _is_meant(change: Change, name: str, value: float) -> bool:
  if change.places:
    return name in change.places
  return math.isclose(value, change.tf1, rel_tol=1e-5)


def _variances(graph: tf.Graph, change: Change, training: bool) -> Places:
  """Makes moving averages follow the biased variance, (N - 1)/N of that of the fused kernel."""
  found: Places = {}
  if not training:
    return found
  written, done = _written(graph), set[str]()
  for name in change.places:
    norms = {known for op in written.get(name, ()) if (known := _norm_behind(op)) is not None}
    if not norms and WHERE_ONE_IS in change.words:
      continue
    if not norms:
      raise ChangeRefused(
        f'{name} is not written with the variance of a fused batch norm that is in the graph '
        'itself, outside of functions and conditions'
      )
    for norm in norms:
      if norm.name not in done:
        done.add(norm.name)
        _replaced(graph, norm.outputs[2], functools.partial(_biased, norm))
    found[name] = 1.0, 1.0
  return found


def _biased(norm: tf.Operation, variance: tf.Tensor) -> tf.Tensor:
  values = tf.cast(tf.size(norm.inputs[0]) // tf.size(variance), variance.dtype)
  return variance * ((values - 1) / values)


def _written(graph: tf.Graph) -> dict[str, list[tf.Operation]]:
  """Returns what writes to each variable, by the variable's name."""
  found: dict[str, list[tf.Operation]] = {}
  for op in graph.get_operations():
    if op.type in _WRITES or (op.type.startswith('Assign') and op.type.endswith('VariableOp')):
      found.setdefault(op.inputs[0].op.name, []).append(op)
  return found


def _norm_behind(write: tf.Operation) -> tf.Operation | None:
  """Returns the fused batch norm whose variance is written."""
  pending = [(tensor, 0) for tensor in write.inputs[1:]]
  while pending:
    tensor, depth = pending.pop(0)
    if tensor.op.type in _NORMS:
      if tensor.value_index == 2:
        return tensor.op
      continue
    if depth < _NEAR:
      pending += [(known, depth + 1) for known in tensor.op.inputs]
  return None


def _weight_decays(graph: tf.Graph, change: Change, training: bool) -> Places:
  del training
  losses = graph.get_collection_ref(v1.GraphKeys.REGULARIZATION_LOSSES)
  meant = [frozenset(place.split(', ')) for place in change.places]
  found: Places = {}
  for number, loss in enumerate(losses):
    names = frozenset(variables_behind(loss))
    if names and any(names <= place for place in meant):
      losses[number] = _replaced(graph, loss, functools.partial(_times, change.tf2))
      found[', '.join(sorted(names))] = 1.0, change.tf2
  return found


_OF_MODELS: Mapping[Changed, Callable[[tf.Graph, Change, bool], Places]] = {
  Changed.EPSILON: _epsilons,
  Changed.SLOPE: _slopes,
  Changed.VARIANCE: _variances,
  Changed.WEIGHT_DECAY: _weight_decays,
}


@contextlib.contextmanager
def _with_forget_bias(change: Change, changed: Places) -> Iterator[None]:
  """Runs the cells of TF1 with another forget bias."""
  cells = v1.nn.rnn_cell
  with contextlib.ExitStack() as stack:
    for cls in (cells.BasicLSTMCell, cells.LSTMCell):
      known = cls.call

      def call(cell: Any, *arguments: Any, known: Any = known, **keywords: Any) -> Any:
        before = cell._forget_bias
        if not _is_meant(change, cell.name, before):
          return known(cell, *arguments, **keywords)
        changed[cell.name] = float(before), change.tf2
        with mock.patch.object(cell, '_forget_bias', change.tf2):
          return known(cell, *arguments, **keywords)

      stack.enter_context(mock.patch.object(cls, 'call', call))
    yield


def _ratio(change: Change, outputs: Any, labels: Any, dtype: Any) -> tf.Tensor:
  """Returns what TF1 divides its loss by, over what the port divides by."""
  mine, its, terms, path, weights = change.words
  shape = nests.leaves_by_path(outputs)[path].shape.as_list()
  shape = shape[:-1] if terms == 'rows' else shape
  weight = nests.leaves_by_path(labels)[weights] if weights else None
  one, other = (_count(name, shape, weight) for name in (mine, its))
  return tf.cast(one / other, dtype)


def _count(name: str, shape: Sequence[int], weights: Any) -> tf.Tensor:
  number = float(np.prod(shape)) if shape else 1.0
  plain = {'one': 1.0, 'batch': float(shape[0]) if shape else 1.0, 'terms': number}
  if name in plain or weights is None:
    return tf.constant(plain.get(name, number), tf.float64)
  wide = tf.cast(weights, tf.float64)
  if name == 'nonzero':
    wide = tf.cast(tf.not_equal(wide, 0), tf.float64)
  # Weights of examples weigh each of their terms.
  size = float(np.prod(weights.shape.as_list() or [1]))
  return tf.reduce_sum(wide) * (number / size)


def described(change: Change, places: Places) -> str:
  """Returns what was changed of TF1, and at how many places."""
  many = len({place for place, (old, new) in places.items() if old != new}) or len(places)
  where = f' ({many} place{"" if many == 1 else "s"})'
  if change.what is Changed.VARIANCE:
    named = sorted(places)
    return f'the biased variance in {listed(named, most=1)}' if named else 'the biased variance'
  if change.what is Changed.DENOMINATOR:
    return f'the loss divided by {change.words[1]} in place of {change.words[0]}'
  if change.what in (Changed.WEIGHT_DECAY, Changed.LEARNING_RATE):
    return f'{change.tf2:.6g} times its {change.what.value}{where}'
  # A change of all places is followed by one of some of them, where the port has another number.
  kinds = collections.Counter(pair for pair in places.values() if pair[0] != pair[1])
  if len(kinds) > 1:
    each = (
      f'{new:.6g} in place of {old:.6g} ({many} place{"" if many == 1 else "s"})'
      for (old, new), many in kinds.items()
    )
    return f'{change.what.value} {", ".join(each)}'
  old, new = next(iter(kinds), (change.tf1, change.tf2))
  return f'{change.what.value} {new:.6g} in place of {old:.6g}{where}'
