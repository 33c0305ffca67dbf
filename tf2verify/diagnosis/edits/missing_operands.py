"""A tensor of the port by which a line could multiply, or which it could add.

Where a factor is forgotten, the port often has it, for another line: `alive[s]`, say, which a loop
in Python would read beside `delta[s]`.
"""

from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.edits.other_operands import OtherOperands
from tf2verify.diagnosis.patterns.operations.reads import text_with_line
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal, each_time, runs_of_a_line
from tf2verify.records.op_graph import TARGET, Inserted, NodeChange, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import is_backward

_FLOAT = 'float32'
_SLICE = 'StridedSlice'
_KINDS = {'Mul': 'a factor', 'AddV2': 'a term'}
_MOST_OTHERS = 12
_Readers = Sequence[Sequence[tuple[int, int]]]
# What is put in: the tensor, and the name of the slice as which it is taken; '' for all of it.
_Operand = tuple[TensorKey, str]


def missing_operands(line: Line, consumers: _Readers, others: OtherOperands) -> Iterator[Proposal]:
  """Yields what a line makes, with a factor or a term that the port has at this place.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
    others: what lines could read.
  """
  graph = line.graph
  for alike in runs_of_a_line(line, consumers):
    kinds = {graph.ops[n].outputs[:1] for n in alike}
    (dtype, shape), *_ = next(iter(kinds)) or (('', None),)
    if len(kinds) > 1 or dtype != _FLOAT or not shape:
      continue
    whole = ([(key, '') for key in keys] for keys in others.like([(n, 0) for n in alike], alike))
    known = [*_sliced(graph, alike, others), *whole]
    # What the function has made itself is nearer than what another one has.
    own = _function(graph, alike[0])
    known.sort(key=lambda operands: own is None or _function(graph, operands[0][0][0]) != own)
    known = known[:_MOST_OTHERS]
    for op_type in _KINDS:
      for operands in known:
        proposal = _proposal(graph, consumers, alike, op_type, operands)
        if proposal is not None:
          yield proposal


def _sliced(
  graph: OpGraph, alike: Sequence[int], others: OtherOperands
) -> Iterator[Sequence[_Operand]]:
  """Yields slices of other tensors, as the function takes one nearby of what is like these."""
  for step in (-1, 1) if len(alike) > 1 else ():
    slices = [_nearest_slice(graph, n, step) for n in alike]
    taken = [graph.ops[n] for n in slices if n is not None]
    if len(taken) == len(alike) and len({op.inputs[0] for op in taken}) == 1:
      first = min(alike[0], *(n for n in slices if n is not None))
      for (tensor,) in others.like([taken[0].inputs[0]], [first]):
        yield [(tensor, op.name) for op in taken]


def _nearest_slice(graph: OpGraph, position: int, step: int) -> int | None:
  """Returns the next slice of a function from an operation on, if it is like what that yields.

  Args:
    graph: of the port.
    position: of the operation.
    step: 1 or -1, for what comes after or before it.
  """
  own = _function(graph, position)
  n = position + step
  while 0 <= n < len(graph.ops):
    if graph.ops[n].op_type == _SLICE and _function(graph, n) == own:
      return n if graph.ops[n].outputs == graph.ops[position].outputs else None
    n += step
  return None


def _function(graph: OpGraph, position: int) -> tuple[str, str] | None:
  source = graph.ops[position].source
  return None if source is None else (source.path, source.function)


def _proposal(
  graph: OpGraph,
  consumers: _Readers,
  alike: Sequence[int],
  op_type: str,
  operands: Sequence[_Operand],
) -> Proposal | None:
  changes: list[NodeChange] = []
  for n, (key, cut) in zip(alike, operands, strict=True):
    slots: dict[int, list[int]] = {}
    for reader, slot in consumers[n]:
      if graph.ops[reader].op_type == TARGET:
        return None
      if not is_backward(graph.ops[reader]):  # gradients are formed anew
        slots.setdefault(reader, []).append(slot)
    if not slots or key in graph.ops[n].inputs:
      return None
    name = graph.tensor(key)
    changes += [
      NodeChange(
        graph.ops[reader].name,
        inserted=tuple(Inserted(slot, op_type, tensor=name, sliced_as=cut) for slot in known),
      )
      for reader, known in slots.items()
    ]
  key, cut = operands[0]
  source = graph.ops[key[0]].source
  read = text_with_line(graph, key)
  code = f', made by `{source.code}`,' if source is not None and source.code else ''
  at = ''
  if cut:
    taken = next(n for n, known in enumerate(graph.ops) if known.name == cut)
    whole = text_with_line(graph, graph.ops[taken].inputs[0])
    at = f' (the part that {text_with_line(graph, (taken, 0))} is of {whole})'
  text = (
    f'{text_with_line(graph, (alike[0], 0))} lacks {_KINDS[op_type]} in the port: with '
    f'{read}{code}{at} it yields what tf1 does{each_time(alike)}'
  )
  return Proposal(tuple(changes), f'{op_type}({read})', '', text)
