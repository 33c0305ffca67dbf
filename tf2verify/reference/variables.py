"""Variables of a graph."""

import weakref
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from .arrays import Array
from .errors import RecorderError
from .fill_values import Fill
from .private_tensorflow import v1
from .sequences import pairs
from .user_code import user_code


class GraphVariable:
  """A variable of a graph, by the names of what reads and writes it."""

  def __init__(self, variable: Any, source: int, collections_: List[str], shared: bool) -> None:
    keys = v1.GraphKeys
    self.name = str(variable.name).rsplit(':', 1)[0]
    self.shape = static_shape(variable.shape)
    self.dtype = variable.dtype.base_dtype
    self.collections = collections_
    self.source = source
    self.trainable = keys.TRAINABLE_VARIABLES in collections_
    self.trainable_flag = bool(getattr(variable, 'trainable', self.trainable))
    self.read = variable._as_graph_element().name
    self.initializer = variable.initializer.name
    self.value = variable.initializer.inputs[1].name
    self.shares_value = shared
    self.local = keys.LOCAL_VARIABLES in collections_ and keys.GLOBAL_VARIABLES not in collections_
    self.global_step = keys.GLOBAL_STEP in collections_
    self.handle = variable.initializer.inputs[0]

  def may_change(self) -> bool:
    """Returns whether any op of the graph but the initializer could write the variable."""
    return any(
      writes(op, self.handle) for op in self.handle.consumers() if op.name != self.initializer
    )

  def value_by(self, fill: Fill) -> Optional[Array]:
    """Returns the value that a fill gives; None to keep the initial one."""
    if None in self.shape:
      return None
    shape = tuple(size or 0 for size in self.shape)
    dtype = np.dtype(self.dtype.as_numpy_dtype)
    with user_code('the fill'):
      value = fill(self.name, shape, dtype)
    if value is None:
      return None
    value = np.asarray(value)
    if value.shape != shape:
      raise RecorderError(
        'the fill gave {} an array of shape {}; the variable has shape {}'.format(
          self.name, value.shape, shape
        )
      )
    return value.astype(dtype, copy=False)

  def manifest(self) -> Dict[str, Any]:
    """Returns the entry of the manifest."""
    return {
      'name': self.name,
      'shape': list(self.shape),
      'dtype': self.dtype.name,
      'trainable': self.trainable,
      'trainable_flag': self.trainable_flag,
      'collections': self.collections,
      'source': None if self.source < 0 else self.source,
      'read': self.read,
      'initializer': self.initializer,
      'value': self.value,
      'shares_value': self.shares_value,
      'may_change': self.may_change(),
      'local': self.local,
      'global_step': self.global_step,
    }


_READS = ('ReadVariableOp', 'VarIsInitializedOp', 'VariableShape', 'ResourceGather')


def writes(op: Any, handle: Any) -> bool:
  """Returns whether an op may write the variable whose reference or handle it takes."""
  if handle.dtype == tf.resource:
    return op.type not in _READS
  arguments = op.op_def.input_arg
  if len(arguments) != len(op.inputs):  # arguments that are lists of tensors
    return any(argument.is_ref for argument in arguments)
  taken = pairs(arguments, op.inputs)
  return any(argument.is_ref for argument, tensor in taken if tensor is handle)


# By identity, what variables are called that have a name in common, as long as they live.
_TOLD_APART: Dict[int, Tuple[Any, str]] = {}


def call_variable(variable: Any, name: str) -> None:
  """Gives a variable another name than its own, by which it is told from others of its name."""
  number = id(variable)
  alive = weakref.ref(variable, lambda _: _TOLD_APART.pop(number, None))
  _TOLD_APART[number] = (alive, name)


def variable_name(variable: Any) -> str:
  """Returns the variable's full name without `:0`."""
  known = _TOLD_APART.get(id(variable))
  if known is not None and known[0]() is variable:
    return known[1]
  return str(variable.name).rsplit(':', 1)[0]


def static_shape(shape: Any) -> Tuple[Optional[int], ...]:
  """Returns a `TensorShape` as a tuple; an unknown rank as `(None,)`."""
  shape = tf.TensorShape(shape)
  return (None,) if shape.ndims is None else tuple(shape.as_list())
