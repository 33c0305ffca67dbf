"""Why an operation gives other bits from the same bits, by what it is."""

import dataclasses

from tf2verify.numerics.gpu_kernels import GPU_KERNELS
from tf2verify.records.repetition import FirstVariation
from tf2verify.sides.graphs.op_recorder import is_random_op

_PYTHON = ('PyFunc', 'PyFuncStateless', 'EagerPyFunc', 'NumpyFunction')
_READERS = ('IteratorGetNext', 'ReduceDataset', 'MakeIterator', 'QueueDequeue', 'ReaderRead')
_SWITCH = 'tf.config.experimental.enable_op_determinism()'


def explained(first: FirstVariation | None) -> FirstVariation | None:
  """Returns the finding with its known cause; as it was where none is known."""
  if first is None or first.why:
    return first
  return dataclasses.replace(first, why=_cause(first.op_type))


def _cause(op_type: str) -> str:
  if op_type in _PYTHON:
    return (
      'it runs Python: a generator without a seed (np.random.default_rng takes none from '
      'np.random.seed), the time, or the order of a set'
    )
  if op_type == 'Timestamp':
    return 'it reads the clock'
  if is_random_op(op_type):
    return 'it draws without a seed: give the operation, or the generator, a seed'
  if op_type.startswith(_READERS):
    return (
      'it reads a pipeline whose order varies: set deterministic=True on map and interleave, seed '
      f'shuffle, or call {_SWITCH}'
    )
  if op_type == 'variable' or 'Assign' in op_type or op_type.startswith('Scatter'):
    return (
      'what it reads is written by operations in no fixed order: order them with '
      'tf.control_dependencies, use resource variables, or use_locking=True'
    )
  kernel = GPU_KERNELS.get(op_type)
  if kernel is not None and kernel.remedy:
    return f'it has no deterministic kernel on a GPU: {kernel.remedy}'
  if kernel is not None:
    return f'its kernel on a GPU adds up in no fixed order: call {_SWITCH}'
  return ''
