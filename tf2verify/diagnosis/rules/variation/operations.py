"""Operations that give other bits from the same bits, by what they are: a row each."""

import dataclasses
import fnmatch

from tf2verify.diagnosis.evidence.variation import VaryingOperation
from tf2verify.records.diagnosis import Cause
from tf2verify.sides.graphs.op_recorder import is_random_op
from tf2verify.sides.repetition.gpu_kernels import GPU_KERNELS

_SWITCH = 'tf.config.experimental.enable_op_determinism()'


@dataclasses.dataclass(frozen=True)
class OperationRule:
  """What is said of operations of some types."""

  types: tuple[str, ...]  # of the operations, or glob patterns of them
  text: str  # the sentence

  def __call__(self, evidence: VaryingOperation) -> Cause | None:
    """Looks at the type alone."""
    is_meant = any(fnmatch.fnmatchcase(evidence.op_type, known) for known in self.types)
    return Cause(self.text) if is_meant else None


PYTHON = OperationRule(
  ('PyFunc', 'PyFuncStateless', 'EagerPyFunc', 'NumpyFunction'),
  'it runs Python: a generator without a seed (np.random.default_rng takes none from '
  'np.random.seed), the time, or the order of a set',
)
CLOCK = OperationRule(('Timestamp',), 'it reads the clock')
PIPELINE = OperationRule(
  ('IteratorGetNext*', 'ReduceDataset*', 'MakeIterator*', 'QueueDequeue*', 'ReaderRead*'),
  'it reads a pipeline whose order varies: set deterministic=True on map and interleave, seed '
  f'shuffle, or call {_SWITCH}',
)
UNORDERED_WRITES = OperationRule(
  ('variable', '*Assign*', 'Scatter*'),
  'what it reads is written by operations in no fixed order: order them with '
  'tf.control_dependencies, use resource variables, or use_locking=True',
)


def unseeded_draw(evidence: VaryingOperation) -> Cause | None:
  """Random numbers without a seed."""
  if not is_random_op(evidence.op_type):
    return None
  return Cause('it draws without a seed: give the operation, or the generator, a seed')


def gpu_kernel(evidence: VaryingOperation) -> Cause | None:
  """A kernel on a GPU that adds up in no fixed order."""
  kernel = GPU_KERNELS.get(evidence.op_type)
  if kernel is None:
    return None
  if kernel.remedy:
    return Cause(f'it has no deterministic kernel on a GPU: {kernel.remedy}')
  return Cause(f'its kernel on a GPU adds up in no fixed order: call {_SWITCH}')
