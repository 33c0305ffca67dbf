"""Which variables a train op trains: those that it moves by their gradients."""

from typing import Any, Dict, List, Set

import tensorflow as tf

from .graph_ops import VARIABLE_OPS, inputs_of, ops_behind, ops_run_by, reached
from .updates import Updates, differentiated_variable
from .variables import writes

_INPUTS = ('Placeholder', 'PlaceholderV2', 'PlaceholderWithDefault')
# What they pass on is their first input.
_SWITCHES = ('Switch', 'RefSwitch')


def trained_variables(
  train_op: Any, handles: Dict[str, Any], gate: Any, updates: Updates
) -> List[str]:
  """Returns the variables that a train op moves by their gradients, in the order given.

  It may write others, too: a target network is a copy of another one. What the model has made
  before the train op counts as a gradient if it depends on the inputs: nobody saw what it is.

  Args:
    train_op: the op.
    handles: the reference or handle of each trainable variable of the model, by its name.
    gate: an op that was made before all that the train op has added.
    updates: what was recorded when the train op was made.
  """
  found = _Writes(train_op, handles, gate)
  gradients = _gradients(handles, updates)
  applied = {name for name, gradient in updates.applied.items() if gradient is not None}
  return [name for name in handles if found.are_by(name, gradients[name], name in applied)]


class _Writes:
  """What a train op writes to variables, and what that is computed from."""

  def __init__(self, train_op: Any, handles: Dict[str, Any], gate: Any) -> None:
    self._run = ops_run_by([train_op])
    self._writes = {name: self._writing(handle) for name, handle in handles.items()}
    # A value that is read from a variable is no gradient, whatever has moved that variable.
    self._ends = {handle.op.name for handle in handles.values()}
    for written in self._writes.values():
      self._ends.update(op.name for op in written if any(map(_stands_for_variable, op.outputs)))
    names = [op.name for op in gate.graph.get_operations()]
    self._early = set(names[: names.index(gate.name)])

  def are_by(self, name: str, gradients: Set[str], is_applied: bool) -> bool:
    """Returns whether a write of a variable is by a gradient.

    Args:
      name: of the variable.
      gradients: the ops that yield its gradients, by name.
      is_applied: whether an optimizer was given a gradient for it.
    """
    written = self._writes[name]
    return bool(written) and (is_applied or any(self._is_by(op, gradients) for op in written))

  def _is_by(self, write: Any, gradients: Set[str]) -> bool:
    if 'Apply' in write.type:  # the kernel of an optimizer
      return True
    behind = reached(_values_of(write), self._before)
    if write.name in self._early and any(op.type in _INPUTS for op in behind):
      return True
    return any(op.name in gradients for op in behind)

  def _before(self, op: Any) -> List[Any]:
    if op.name in self._ends:
      return []
    # What else is kept, as an accumulator of gradients, passes on what is written to it.
    return self._writing(op.outputs[0]) if op.type in VARIABLE_OPS else _values_of(op)

  def _writing(self, handle: Any) -> List[Any]:
    """Returns the ops that are run and write a variable, also by what passes its handle on."""
    found: Dict[str, Any] = {}
    pending, known = [handle], {handle.name}
    while pending:
      tensor = pending.pop()
      for op in tensor.consumers():
        if op.name in self._run and writes(op, tensor):
          found[op.name] = op
        passed = [one for one in op.outputs if _stands_for_variable(one)]
        pending += [one for one in passed if one.name not in known]
        known.update(one.name for one in passed)
    return list(found.values())


def _values_of(op: Any) -> List[Any]:
  return inputs_of(op)[:1] if op.type in _SWITCHES else inputs_of(op)


def _stands_for_variable(tensor: Any) -> bool:
  return bool(tensor.dtype == tf.resource or tensor.dtype._is_ref_dtype)


def _gradients(handles: Dict[str, Any], updates: Updates) -> Dict[str, Set[str]]:
  """Returns by variable the ops of its gradients, and of those by what is computed from it."""
  names = {handle.op.name: name for name, handle in handles.items()}
  found: Dict[str, Set[str]] = {name: set() for name in handles}
  for source, gradient in updates.formed:
    own = differentiated_variable(source)
    behind = [own] if own is not None else [names.get(op, '') for op in ops_behind([source])]
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    for name in behind:
      if name in found:
        found[name].add(values.op.name)
  return found
