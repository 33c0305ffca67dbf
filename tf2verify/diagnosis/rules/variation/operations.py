"""What gives other bits when it runs again, or on another version: a row each."""

import fnmatch

from tf2verify.diagnosis.evidence.variation import OtherProcesses, OtherVersion, VaryingOperation
from tf2verify.diagnosis.rules.rule import Sentence
from tf2verify.records.diagnosis import Cause
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.repetition.gpu_kernels import GPU_KERNELS

_SWITCH = 'tf.config.experimental.enable_op_determinism()'


def _of_types(types: tuple[str, ...], text: str) -> Sentence[VaryingOperation]:
  """Returns what is said of operations of some types, or glob patterns of them."""
  return Sentence(lambda seen: any(fnmatch.fnmatchcase(seen.op_type, one) for one in types), text)


PYTHON = _of_types(
  ('PyFunc', 'PyFuncStateless', 'EagerPyFunc', 'NumpyFunction'),
  'it runs Python: a generator without a seed (np.random.default_rng takes none from '
  'np.random.seed), the time, or the order of a set',
)
CLOCK = _of_types(('Timestamp',), 'it reads the clock')
UNSEEDED_DRAW = Sentence[VaryingOperation](
  lambda seen: is_random_op(seen.op_type),
  'it draws without a seed: give the operation, or the generator, a seed',
)
PIPELINE = _of_types(
  ('IteratorGetNext*', 'ReduceDataset*', 'MakeIterator*', 'QueueDequeue*', 'ReaderRead*'),
  'it reads a pipeline whose order varies: set deterministic=True on map and interleave, seed '
  f'shuffle, or call {_SWITCH}',
)
UNORDERED_WRITES = _of_types(
  ('variable', '*Assign*', 'Scatter*'),
  'what it reads is written by operations in no fixed order: order them with '
  'tf.control_dependencies, use resource variables, or use_locking=True',
)


def gpu_kernel(evidence: VaryingOperation) -> Cause | None:
  """A kernel on a GPU that adds up in no fixed order."""
  kernel = GPU_KERNELS.get(evidence.op_type)
  if kernel is None:
    return None
  if kernel.remedy:
    return Cause(f'it has no deterministic kernel on a GPU: {kernel.remedy}')
  return Cause(f'its kernel on a GPU adds up in no fixed order: call {_SWITCH}')


HASH_SEED = Sentence[OtherProcesses](
  lambda seen: bool(seen.repeats) and seen.hash_seed_counts,
  'two processes with the same PYTHONHASHSEED agree, and one with a different value does not: '
  'hash() of a '
  'string, or the order of a set of strings, decides; sort it, or set PYTHONHASHSEED before '
  'Python starts',
)
EACH_PROCESS_DIFFERS = Sentence[OtherProcesses](
  lambda seen: seen.repeats is False,
  'two processes with the same PYTHONHASHSEED also differ: it depends on time, on the process, or '
  'on numbers without a seed',
)
STATE_OF_THIS_PROCESS = Sentence[OtherProcesses](
  lambda seen: True,
  'other processes agree with each other, but not with this one: it depends on something that was '
  'set or run here before',
)


def kernel_of_another_version(evidence: OtherVersion) -> Cause | None:
  """The kernels of two versions of TensorFlow compute differently."""
  where = f', first at {evidence.first}' if evidence.first else ''
  return Cause(
    f'the recorded graph itself, run here by {evidence.run_by}, differs from what '
    f'{evidence.recorded_by} recorded as the port does{where}: kernels of the two versions compute '
    'differently, and the port is not to blame: declare a tolerance as large as the difference '
    'between the versions, or use inputs for which they agree',
    f'{evidence.tensor}: the graph run here has a relative difference of {evidence.here:.2g} from '
    f'the recording, and of {evidence.between:.2g} from the port'
    + ('' if evidence.first else '; record with --intermediates summary to see where it begins'),
  )
