"""What Python asks a tensor of a graph for: `int(x)`, `float(x)`, `bool(x)`, `x.numpy()`.

TensorFlow refuses all of them outside of eager mode, and has no hook for an answer. Run with
TensorFlow 2.16 to 2.21.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from tensorflow.python.framework import ops
from tensorflow.python.ops import resource_variable_ops

_SYMBOLIC: Any = ops.SymbolicTensor
_VARIABLE: Any = resource_variable_ops.BaseResourceVariable

# The value of a symbolic tensor; raises whatever it wants where it has none.
ValueOf = Callable[[Any], Any]


@contextlib.contextmanager
def answered(value_of: ValueOf) -> Iterator[None]:
  """Lets Python read values of symbolic tensors, and of variables in graphs, until exit.

  Args:
    value_of: returns the value of a symbolic tensor as an array.
  """

  def array(tensor: Any, dtype: Any = None, copy: Any = None) -> Any:
    del copy  # what is returned is nobody else's
    return np.asarray(value_of(tensor), dtype)

  eagerly = _VARIABLE.numpy

  def numpy_of_variable(variable: Any) -> Any:
    read = variable.read_value()
    return value_of(read) if isinstance(read, _SYMBOLIC) else eagerly(variable)

  answers: dict[str, Callable[..., Any]] = {
    'numpy': lambda tensor: value_of(tensor),  # a method that is bound would not be bound anew
    '__array__': array,
    '__bool__': lambda tensor: bool(value_of(tensor)),
    '__int__': lambda tensor: int(value_of(tensor)),
    '__float__': lambda tensor: float(value_of(tensor)),
    '__index__': lambda tensor: int(value_of(tensor)),
  }
  with contextlib.ExitStack() as stack:
    for name, answer in answers.items():
      stack.enter_context(mock.patch.object(_SYMBOLIC, name, answer, create=True))
    stack.enter_context(mock.patch.object(_VARIABLE, 'numpy', numpy_of_variable))
    yield
