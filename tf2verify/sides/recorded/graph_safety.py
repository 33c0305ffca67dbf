"""Which graphs that somebody handed over, and which of their operations, may run here.

A recorded graph is data, and running it would be running somebody's program. Only
operations that compute, draw numbers, and read or write variables, tables, stacks and
tensor arrays of the session itself are run. What touches files, Python, the network,
queues, data sets, devices or checkpoints is not; nor is it imported, since TensorFlow
evaluates constant parts of a graph while it imports it.
"""

import dataclasses
import math
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tf2verify.errors import RecordingError
from tf2verify.reference.random_ops import is_random_op
from tf2verify.tensorflow_internals import graphs

# Words in the names of operations that leave the session, whether or not TensorFlow
# calls them stateful (it does not call ReadFile so).
_REFUSED_WORDS = (
  'File',
  'Dataset',
  'Iterator',
  'PyFunc',
  'Queue',
  'Reader',
  'Barrier',
  'Debug',
  'DecodeProto',
  'EncodeProto',
  'Vocab',
  'Load',
  'Save',
  'Restore',
  'Checkpoint',
  'TPU',
  'Tpu',
  'Xla',
  'Host',
  'Infeed',
  'Outfeed',
  'Send',
  'Recv',
  'Remote',
  'Rpc',
  'Collective',
  'Nccl',
  'SummaryWriter',
  'BatchFunction',
  'DTensor',
  'Mlir',
)
_REFUSED_TYPES = frozenset(('Abort', 'ImmutableConst'))  # ends the process; maps a file
# Of the operations with state, those whose state is the session's own.
_STATE_PREFIXES = (
  'AnonymousHashTable',
  'AnonymousMutable',
  'AssignAddVariable',
  'AssignSubVariable',
  'AssignVariable',
  'CheckNumerics',
  'CudnnRNN',
  'HashTable',
  'LookupTable',
  'MutableDenseHashTable',
  'MutableHashTable',
  'ResourceApply',
  'ResourceGather',
  'ResourceScatter',
  'ResourceSparseApply',
  'Rng',
  'Stack',
  'TensorArray',
  'VarIsInitialized',
  'Variable',
)
_STATE_TYPES = frozenset(
  (
    'Assert',
    'Case',
    'DestroyResourceOp',
    'DestroyTemporaryVariable',
    'Empty',
    'GuaranteeConst',
    'If',
    'InitializeTable',
    'InitializeTableV2',
    'NonDeterministicInts',
    'Print',
    'PrintV2',
    'ReadVariableOp',
    'ResourceCountUpTo',
    'ResourceStridedSliceAssign',
    'StatefulPartitionedCall',
    'StatelessRandomGetAlg',
    'TemporaryVariable',
    'VarHandleOp',
    'While',
  )
)
# Attributes that name a file, where they are given.
_FILE_ATTRIBUTES = {'FixedUnigramCandidateSampler': 'vocab_file', 'PrintV2': 'output_stream'}
# What a recorded graph may have, and the variables of the environment that say otherwise.
MOST_NODES, NODES = 100_000, 'TF2VERIFY_MAX_GRAPH_NODES'
MOST_MEBIBYTES, MEBIBYTES = 512, 'TF2VERIFY_MAX_GRAPH_MIB'
_STREAMS = ('', 'stderr', 'stdout', 'log(info)', 'log(warning)', 'log(error)')


@dataclasses.dataclass(frozen=True)
class RefusedOp:
  """An operation that is not run."""

  name: str  # its name; within a function, the function's name before it
  op_type: str  # its type
  known: bool  # whether this TensorFlow has the type
  in_function: bool  # whether it stands in a function of the graph


def check_bytes(data: bytes, path: str) -> None:
  """Checks the size of a serialized graph, before it is parsed.

  Raises:
    RecordingError: it is larger than is allowed.
  """
  most = _limit(MEBIBYTES, MOST_MEBIBYTES)
  if len(data) > most * 2**20:
    raise RecordingError(
      f'a graph of {path} has {len(data) / 2**20:,.0f} MiB, and {most:,} are read: large constants '
      f'belong in variables; or set {MEBIBYTES}={math.ceil(len(data) / 2**20)} where the memory '
      'is there'
    )


def check_nodes(graph_def: Any, path: str) -> None:
  """Checks the number of operations of a graph, its functions' too, before it is imported.

  Raises:
    RecordingError: there are more than are allowed.
  """
  count = len(graph_def.node) + sum(len(one.node_def) for one in graph_def.library.function)
  most = _limit(NODES, MOST_NODES)
  if count > most:
    raise RecordingError(
      f'a graph of {path} has {count:,} operations, and {most:,} are imported: 100,000 take about '
      f'0.8 GB of memory; set {NODES}={count} where that is there'
    )


def _limit(variable: str, default: int) -> int:
  given = os.environ.get(variable, '')
  if given and not (given.isdecimal() and int(given)):
    raise RecordingError(f'{variable} is {given!r:.40}; it must be a whole number of at least 1')
  return int(given or default)


def refused_ops(graph_def: Any) -> tuple[RefusedOp, ...]:
  """Returns the operations of a GraphDef, its functions' too, that are not to be run."""
  functions = {function.signature.name for function in graph_def.library.function}
  judged: dict[str, bool | None] = {}
  return tuple(
    RefusedOp(f'{function}/{node.name}' if function else node.name, node.op, known, bool(function))
    for function, node in _nodes(graph_def)
    if (known := _refusal(node, functions, judged)) is not None
  )


def refusal_text(refused: Collection[RefusedOp]) -> str:
  """Returns why operations are not run."""
  harmful = [op for op in refused if op.known]
  unknown = [op for op in refused if not op.known]
  texts = []
  if unknown:
    texts.append(f'this TensorFlow has no {types_text(unknown)}')
  if harmful:
    texts.append(f'a recording is not run with {types_text(harmful)}')
  return ', and '.join(texts)


def types_text(refused: Collection[RefusedOp]) -> str:
  """Returns the op types with a name each, for a report: `ReadFile (load/ReadFile)`."""
  first: dict[str, str] = {}
  for op in refused:
    first.setdefault(op.op_type, op.name)
  shown = [f'{op_type} ({name})' for op_type, name in list(first.items())[:4]]
  return ', '.join(shown) + (f' and {len(first) - 4} more types' if len(first) > 4 else '')


def _nodes(graph_def: Any) -> Iterator[tuple[str, Any]]:
  for node in graph_def.node:
    yield '', node
  for function in graph_def.library.function:
    for node in function.node_def:
      yield function.signature.name, node


def _refusal(node: Any, functions: Collection[str], judged: dict[str, bool | None]) -> bool | None:
  """Returns None for an operation that may run, else whether its type is known."""
  op_type = node.op
  if op_type in _FILE_ATTRIBUTES and not _names_no_file(node):
    return True
  if op_type not in judged:
    judged[op_type] = None if op_type in functions else _refusal_of_type(op_type)
  return judged[op_type]


def _refusal_of_type(op_type: str) -> bool | None:
  definition = graphs.op_definition(op_type)
  if definition is None:
    return False
  return None if _is_harmless(op_type, definition.is_stateful) else True


def _is_harmless(op_type: str, is_stateful: bool) -> bool:
  internal = op_type.startswith('_')  # what graph rewriting makes, no builder
  if internal or op_type in _REFUSED_TYPES or any(word in op_type for word in _REFUSED_WORDS):
    return False
  if not is_stateful:
    return True
  return op_type in _STATE_TYPES or op_type.startswith(_STATE_PREFIXES) or is_random_op(op_type)


def _names_no_file(node: Any) -> bool:
  attributes: Mapping[str, Any] = node.attr
  name = _FILE_ATTRIBUTES[node.op]
  given = attributes[name].s.decode('utf-8', 'replace') if name in attributes else ''
  return given in _STREAMS if node.op == 'PrintV2' else not given
