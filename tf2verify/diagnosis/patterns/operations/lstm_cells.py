"""LSTM cells, read from a graph: in which order their gates stand, and what is added to them."""

import dataclasses
from collections.abc import Iterator

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.op_graph import VARIABLE, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import family

# Between the block of a gate and its activation.
_LINEAR = ('AddV2', 'MatMul', 'Mul', 'Minimum', 'Maximum', 'ClipByValue', 'Reshape')
_DEEPEST = 8


@dataclasses.dataclass(frozen=True)
class LstmCell:
  """One LSTM cell."""

  order: str  # of its blocks: `i` input gate, `f` forget gate, `c` candidate, `o` output gate
  forget_bias: float  # the constant that is added to the forget gate; 0 where none is


@dataclasses.dataclass(frozen=True)
class _Gate:
  """A block on its way to an activation."""

  split: int
  block: int
  added: float


def lstm_cells(graph: OpGraph) -> set[LstmCell]:
  """Returns the cells of a graph, loops included: what is alike is there once.

  A cell is told by its arithmetic: memory = f * memory + i * tanh(c), and output =
  o * tanh(memory), with four blocks of one product or of one kernel.
  """
  found = set(_cells(graph))
  for op in graph.ops:
    for _, function in op.functions:
      found |= lstm_cells(function)
  return found


def _cells(graph: OpGraph) -> Iterator[LstmCell]:
  for position, op in enumerate(graph.ops):
    if family(op.op_type) == 'AddV2' and len(op.inputs) == 2:
      cell = _cell(graph, position)
      if cell is not None:
        yield cell


def _cell(graph: OpGraph, memory: int) -> LstmCell | None:
  """Returns the cell whose memory an addition computes."""
  factors = [_factors(graph, key) for key in graph.ops[memory].inputs]
  if None in factors:
    return None
  gates: dict[str, _Gate] = {}
  for pair in factors:
    assert pair is not None
    tanh = [key for key in pair if graph.ops[key[0]].op_type == 'Tanh']
    named: dict[str, TensorKey | None]
    if tanh and 'c' not in gates:
      others = [key for key in pair if key not in tanh]
      named = {'c': graph.ops[tanh[0][0]].inputs[0], 'i': others[0] if others else None}
    else:
      known = [key for key in pair if _gate(graph, key) is not None]
      named = {'f': known[0] if len(known) == 1 else None}
    for name, key in named.items():
      gate = None if key is None else _gate(graph, key)
      if gate is None:
        return None
      gates[name] = gate
  output = _output_gate(graph, memory)
  if output is None or set(gates) != {'c', 'i', 'f'}:
    return None
  gates['o'] = output
  blocks = {gate.block: name for name, gate in gates.items()}
  if sorted(blocks) != [0, 1, 2, 3] or len({gate.split for gate in gates.values()}) != 1:
    return None
  return LstmCell(''.join(blocks[n] for n in range(4)), gates['f'].added)


def _factors(graph: OpGraph, key: TensorKey) -> tuple[TensorKey, ...] | None:
  op = graph.ops[key[0]]
  return op.inputs if op.op_type == 'Mul' and len(op.inputs) == 2 else None


def _output_gate(graph: OpGraph, memory: int) -> _Gate | None:
  """Returns the gate that the tanh of the memory is multiplied by."""
  consumers = graph.consumers()
  tanhs = [n for n, _ in consumers[memory] if graph.ops[n].op_type == 'Tanh']
  for tanh in tanhs:
    for reader, slot in consumers[tanh]:
      op = graph.ops[reader]
      if op.op_type == 'Mul' and len(op.inputs) == 2:
        gate = _gate(graph, op.inputs[1 - slot])
        if gate is not None:
          return gate
  return None


def _gate(graph: OpGraph, key: TensorKey, depth: int = 0, added: float = 0.0) -> _Gate | None:
  """Follows a gate back to its block, over activation, bias and product."""
  op = graph.ops[key[0]]
  if op.op_type in ('Split', 'SplitV') and len(op.tensors) == 4:
    return _Gate(key[0], key[1], added)
  through = op.op_type == 'Sigmoid' if depth == 0 else False
  if depth > _DEEPEST or not (through or family(op.op_type) in _LINEAR):
    return None
  constants = [graph.ops[n].constant for n, _ in op.inputs]
  if op.op_type == 'Mul':
    added = 0.0  # it was the offset of a hard sigmoid
  elif family(op.op_type) == 'AddV2':
    added += sum(float(c) for c in constants if c is not None and c.size == 1)
  for producer in op.inputs:
    gate = _gate(graph, producer, depth + 1, added)
    if gate is not None:
      return gate
  return None


def single_cells(evidence: FailedStage) -> tuple[LstmCell, LstmCell] | None:
  """Returns the kind of cell of each side; None where one has none, or several kinds.

  None, too, where variables of the port are parts of tf1's, or tf1's in another layout: then its
  blocks have an order of their own, which the variable map accounts for, the forget bias as well.
  """
  if evidence.tf1_graph is None or evidence.tf2_graph is None or not evidence.sources:
    return None
  if not _variables(evidence.tf2_graph) <= _variables(evidence.tf1_graph):
    return None
  tf1, tf2 = lstm_cells(evidence.tf1_graph), lstm_cells(evidence.tf2_graph)
  if len(tf1) != 1 or len(tf2) != 1:
    return None
  return tf1.pop(), tf2.pop()


def _variables(graph: OpGraph) -> set[str]:
  return {op.name for op in graph.ops if op.op_type == VARIABLE}
