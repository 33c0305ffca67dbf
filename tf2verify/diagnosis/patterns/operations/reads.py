"""What two regions are computed from, where their operations differ as well."""

import dataclasses
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.patterns.numbers.known_values import known_value
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import (
  CONSTANT,
  INPUT,
  TARGET,
  VARIABLE,
  OpGraph,
  OpRecord,
  TensorKey,
)

# Operations that leave the elements in their order, and all but always their values.
_ONLY_SHAPE = frozenset({'Reshape', 'Squeeze', 'ExpandDims', 'Identity', 'Cast'})

# Of more operations than these it is said first what they lead to.
_MANY = 6
_UPDATE = 'update of '
_ADDING, _BOTH = {'AddV2': '+', 'Add': '+', 'Sub': '-'}, 2
_CHOICES = frozenset({'Select', 'SelectV2'})
_VERBS = {
  'Add': 'adds',
  'AddV2': 'adds',
  'BiasAdd': 'adds',
  'ConcatV2': 'concatenates',
  'Mul': 'multiplies by',
}


def read_from_elsewhere(tf1: OpGraph, tf2: OpGraph, pair: RegionPair) -> list[GraphDifference]:
  """Returns the tensor that each side reads, and the other does not, as a difference."""
  read = read_alone(pair)
  if read is None:
    return []
  reader, slot = next(
    (n, slot)
    for n in (*pair.tf1.inner, pair.tf1.end)
    for slot, key in enumerate(tf1.ops[n].inputs)
    if key == read[0]
  )
  return [reads_another(tf1, tf2, tf1.ops[reader], slot, read)]


def read_alone(pair: RegionPair) -> tuple[TensorKey, TensorKey] | None:
  """Returns the only tensor that each side reads, and the other one does not.

  There is none where a side reads several, since it is not known which go together.
  """
  entering = dict(pair.entering)
  back = {other: one for one, other in pair.entering}
  ones = [key for key in pair.tf1.frontier if entering.get(key) not in pair.tf2.frontier]
  others = [key for key in pair.tf2.frontier if back.get(key) not in pair.tf1.frontier]
  return (ones[0], others[0]) if len(ones) == len(others) == 1 else None


def reads_another(
  tf1: OpGraph, tf2: OpGraph, op: OpRecord, slot: int, read: tuple[TensorKey, TensorKey]
) -> GraphDifference:
  """Returns that an input of an operation is another tensor in the port than in tf1."""
  one, other = read
  return GraphDifference(
    GraphAspect.WIRING,
    op.name,
    op.op_type,
    op.input_name(slot),
    tensor_text(tf1, one),
    tensor_text(tf2, other),
    tf1.ops[one[0]].op_type,
    tf2.ops[other[0]].op_type,
  )


def with_reads(
  tf1: OpGraph,
  tf2: OpGraph,
  pair: RegionPair,
  matched: Sequence[tuple[int, int]],
  unmatched: list[GraphDifference],
  of_update: bool = False,
) -> list[GraphDifference]:
  """Returns what to say of operations without a partner: that the end reads another tensor.

  In their place where they leave all values as they are, or choose between others; before them
  where there are many on one side and none on the other, and in what is made of gradients.
  """
  if not unmatched:
    return []
  found = _with_read(tf1, tf2, pair, matched, unmatched, of_update)
  return [*_never_read(tf1, tf2, pair), *found]


def _never_read(tf1: OpGraph, tf2: OpGraph, pair: RegionPair) -> list[GraphDifference]:
  """Returns the inputs that tf1 reads there, and the port nowhere."""
  unread = {op.name for op in tf2.unread}
  names = [tf1.ops[n].name for n, _ in pair.tf1.frontier if tf1.ops[n].op_type == INPUT]
  return [
    GraphDifference(GraphAspect.MISSING, name, INPUT, '', f'the input {name}', '')
    for name in dict.fromkeys(names)
    if name in unread
  ]


def _with_read(
  tf1: OpGraph,
  tf2: OpGraph,
  pair: RegionPair,
  matched: Sequence[tuple[int, int]],
  unmatched: list[GraphDifference],
  of_update: bool,
) -> list[GraphDifference]:
  if _goes_on_from_tf1(tf1, pair) and unmatched[0].aspect is GraphAspect.EXTRA:
    return [dataclasses.replace(unmatched[0], tf2=f'a second {tf1.ops[pair.tf1.end].name}')]
  read = read_from_elsewhere(tf1, tf2, pair)
  if read and only_shapes_differ(tf1, tf2, pair, matched):
    return read
  alone = read_alone(pair) if of_update else None
  if alone is not None and _is_one_size(tf1, tf2, *alone):
    # One slot in place of another, in a formula that is spelled differently.
    return [*read, *unmatched]
  slot = _slot_read_otherwise(tf1, tf2, pair)
  if slot is None:
    return unmatched
  one, two = tf1.ops[pair.tf1.end].inputs[slot], tf2.ops[pair.tf2.end].inputs[slot]
  read_there = _without_shapes(tf1, one), _without_shapes(tf2, two)
  said = reads_another(tf1, tf2, tf1.ops[pair.tf1.end], slot, read_there)
  entering = dict(pair.entering)
  back = {other: known for known, other in pair.entering}
  if two[0] in pair.tf2.inner:
    chooses = _chooses_from_elsewhere(tf2, two, entering.get(one))
  else:
    chooses = _chooses_from_elsewhere(tf1, one, back.get(two))
  if chooses:
    return [said]
  return [said, *unmatched] if len(pair.tf1.inner) + len(pair.tf2.inner) > _MANY else unmatched


def _goes_on_from_tf1(tf1: OpGraph, pair: RegionPair) -> bool:
  """Returns whether the port computes what a variable becomes from what tf1 leaves it at."""
  op = tf1.ops[pair.tf1.end]
  if op.op_type != TARGET or not op.name.startswith(_UPDATE) or pair.tf1.inner:
    return False
  left = [known for one, known in pair.entering if one in op.inputs]
  return len(left) == 1 and left[0] is not None and left[0] in pair.tf2.frontier


def _slot_read_otherwise(tf1: OpGraph, tf2: OpGraph, pair: RegionPair) -> int | None:
  """Returns the only input of the ends that is not a counterpart, of a side without a partner."""
  op, other = tf1.ops[pair.tf1.end], tf2.ops[pair.tf2.end]
  if op.op_type != other.op_type or len(op.inputs) != len(other.inputs):
    return None
  entering = dict(pair.entering)
  both = list(zip(op.inputs, other.inputs, strict=True))
  slots = [
    slot
    for slot, (one, two) in enumerate(both)
    if not (one in entering and entering[one] == two)
    and not tf1.ops[one[0]].op_type == tf2.ops[two[0]].op_type == CONSTANT
  ]
  if len(slots) != 1:
    return None
  one, two = both[slots[0]]
  is_one_sided = (one[0] in pair.tf1.inner) != (two[0] in pair.tf2.inner)
  return slots[0] if is_one_sided else None


def _chooses_from_elsewhere(graph: OpGraph, key: TensorKey, expected: TensorKey | None) -> bool:
  """Returns whether a tensor is what a mask chooses, and from others than the one expected.

  Of the states of a loop, say, the port hands on another one than tf1. Where it chooses from the
  one that the other side reads, the mask is what that side lacks.
  """
  op = graph.ops[_without_shapes(graph, key)[0]]
  if op.op_type not in _CHOICES:
    return False
  return expected not in [_without_shapes(graph, value) for value in op.inputs[1:]]


def _without_shapes(graph: OpGraph, key: TensorKey) -> TensorKey:
  while graph.ops[key[0]].op_type in _ONLY_SHAPE and graph.ops[key[0]].inputs:
    key = graph.ops[key[0]].inputs[0]
  return key


def brought_in(tf1: OpGraph, tf2: OpGraph, pair: RegionPair, op: OpRecord) -> str:
  """Returns what an operation of tf1 brings in that the port does not read: `adds net/block/add`.

  '' where that is not one tensor, or one of the parameters, or another operation than a sum, a
  product or a concatenation.
  """
  verb = _VERBS.get(op.op_type)
  entering = dict(pair.entering)
  ends = tf2.ops[pair.tf2.end].inputs
  # One operation before as well: a factor of a term that the end adds is read there.
  read = {_without_shapes(tf2, key) for key in (*ends, *_read_by(tf2, ends))}
  alone = [
    key
    for key in dict.fromkeys(op.inputs)
    if tf1.ops[key[0]].op_type != CONSTANT
    and (known := entering.get(key)) is not None
    and _without_shapes(tf2, known) not in read
  ]
  if verb is None or len(alone) != 1 or tf1.ops[alone[0][0]].op_type == VARIABLE:
    return ''
  source = tf1.ops[alone[0][0]].source
  return f'{verb} {tensor_text(tf1, alone[0])}' + (f' ({source.short})' if source else '')


def _is_one_size(tf1: OpGraph, tf2: OpGraph, one: TensorKey, other: TensorKey) -> bool:
  """Returns whether tensors of both sides have one shape, and are more than a number."""
  shapes = tf1.ops[one[0]].outputs[one[1]][1], tf2.ops[other[0]].outputs[other[1]][1]
  return shapes[0] == shapes[1] and bool(shapes[0])


def _read_by(graph: OpGraph, keys: Sequence[TensorKey]) -> Iterator[TensorKey]:
  for position, _ in keys:
    yield from graph.ops[position].inputs


def only_shapes_differ(
  tf1: OpGraph, tf2: OpGraph, pair: RegionPair, matched: Sequence[tuple[int, int]]
) -> bool:
  """Returns whether the operations without a partner leave all elements in their order."""
  ones, others = ({both[side] for both in matched} for side in (0, 1))
  types = {
    *(tf1.ops[n].op_type for n in pair.tf1.inner if n not in ones),
    *(tf2.ops[n].op_type for n in pair.tf2.inner if n not in others),
  }
  return types <= _ONLY_SHAPE


def tensor_text(graph: OpGraph, key: TensorKey) -> str:
  """Returns what a tensor is called in reports."""
  op = graph.ops[key[0]]
  if op.op_type == 'input':
    return f'the input {op.name}'.rstrip()
  if op.op_type == 'variable':
    return f'variable {op.name}'
  number = f', output {key[1]}' if len(op.tensors) > 1 else ''
  of = _of_variable(graph, key)
  return f'{op.name} ({of})' if of else f'{op.name}{number}'


def _of_variable(graph: OpGraph, key: TensorKey) -> str:
  """Returns what a cast of a variable, or a count before or after a step, is of; '' for others.

  Its own name says nothing.
  """
  op = graph.ops[key[0]]
  if op.op_type in (INPUT, VARIABLE):
    return tensor_text(graph, key)
  if op.op_type == 'Cast':
    of = _of_variable(graph, op.inputs[0])
    return f'Cast of {of}' if of and not of.startswith('Cast') else ''
  if op.op_type not in _ADDING or len(op.inputs) != _BOTH:
    return ''
  reads, other = (graph.ops[producer] for producer, _ in op.inputs)
  added = known_value(graph, op.inputs[1][0])
  if reads.op_type != VARIABLE or other.op_type == VARIABLE or added is None or added.size != 1:
    return ''
  return f'{tensor_text(graph, op.inputs[0])} {_ADDING[op.op_type]} {added.reshape(())}'


def text_with_line(graph: OpGraph, key: TensorKey) -> str:
  """Returns the same with the line that makes the tensor."""
  op = graph.ops[key[0]]
  name = tensor_text(graph, key)
  return (
    name if op.op_type in (INPUT, VARIABLE) or op.source is None else f'{name} ({op.source.short})'
  )
