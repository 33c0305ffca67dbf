"""Graphs made by hand and run by numpy, in the place of TensorFlow's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import (
  CONSTANT,
  INPUT,
  TARGET,
  VARIABLE,
  NodeChange,
  OpGraph,
  OpRecord,
  TensorKey,
)

_COMPUTE: dict[str, Callable[..., Any]] = {
  'AddV2': np.add,
  'Add': np.add,
  'BiasAdd': np.add,
  'Sub': np.subtract,
  'Mul': np.multiply,
  'RealDiv': np.divide,
  'MatMul': np.matmul,
  'Neg': np.negative,
  'Square': np.square,
  'Sqrt': np.sqrt,
  'Rsqrt': lambda x: (1 / np.sqrt(x)).astype(x.dtype),
  'Exp': np.exp,
  'Relu': lambda x: np.maximum(x, x.dtype.type(0)),
  'LeakyRelu': lambda x: np.where(x > 0, x, x * x.dtype.type(0.2)),
  'Sum': np.sum,
  'Mean': np.mean,
  'Shape': lambda x: np.array(x.shape, np.int32),
  'ConcatV2': lambda *parts: np.concatenate(parts, -1),
  'ReluGrad': lambda up, x: up * (x > 0),
}


class HandMade:
  """A graph under construction; every method that adds an operation returns its output."""

  def __init__(self, side: str) -> None:
    self.side = side
    self.ops: list[OpRecord] = []
    self._values: list[np.ndarray | None] = []
    self._computes: list[Callable[..., Any] | None] = []

  def _add(self, op: OpRecord, value: Any = None, compute: Any = None) -> TensorKey:
    self.ops.append(op)
    self._values.append(None if value is None else np.asarray(value))
    self._computes.append(compute)
    return len(self.ops) - 1, 0

  def _leaf(self, op_type: str, name: str, value: Any, constant: Any = None) -> TensorKey:
    array = np.asarray(value)
    output = (array.dtype.name, array.shape)
    tensor = f'{self.side}/{op_type}/{name}:0'
    return self._add(
      OpRecord(name, op_type, (), outputs=(output,), tensors=(tensor,), constant=constant), array
    )

  def input(self, value: Any, name: str = '(the input)') -> TensorKey:
    return self._leaf(INPUT, name, value)

  def variable(self, name: str, value: Any) -> TensorKey:
    return self._leaf(VARIABLE, name, value)

  def constant(self, value: Any, name: str = '') -> TensorKey:
    array = np.asarray(value)
    return self._leaf(CONSTANT, name or f'Const_{len(self.ops)}', array, array)

  def op(
    self,
    op_type: str,
    name: str,
    *inputs: TensorKey,
    compute: Callable[..., Any] | None = None,
    outputs: int = 1,
    dtype: str = 'float32',
    shape: tuple[int, ...] | None = None,
    through: Mapping[int, tuple[str, ...]] | None = None,
    input_names: tuple[str, ...] = (),
    functions: tuple[tuple[str, OpGraph], ...] = (),
    **attributes: Any,
  ) -> TensorKey:
    record = OpRecord(
      name,
      op_type,
      inputs,
      input_names or tuple('xyzuvw'[: len(inputs)]),
      tuple((through or {}).get(slot, ()) for slot in range(len(inputs))),
      tuple(sorted(attributes.items())),
      tuple((dtype, shape) for _ in range(outputs)),
      tuple(f'{self.side}/{name}:{number}' for number in range(outputs)),
      functions=functions,
    )
    return self._add(record, compute=compute or _COMPUTE.get(op_type))

  def chain(self, start: TensorKey, *ops: str) -> TensorKey:
    """Adds operations of one input, `Relu` or `Relu net/Relu_1`."""
    for op in ops:
      op_type, _, name = op.partition(' ')
      start = self.op(op_type, name or op_type, start)
    return start

  def target(
    self, name: str, *sources: TensorKey, through: tuple[str, ...] = (), **attributes: Any
  ) -> None:
    outputs = tuple(self.ops[n].outputs[k] for n, k in sources)
    tensors = tuple(self._tensor(source) for source in sources)
    record = OpRecord(
      name,
      TARGET,
      sources,
      (),
      (through,) * len(sources),
      tuple(sorted(attributes.items())),
      outputs,
      tensors,
    )
    self._add(record)

  def _tensor(self, key: TensorKey) -> str:
    return self.ops[key[0]].tensors[key[1]]

  def graph(self) -> OpGraph:
    return OpGraph(self.side, tuple(self.ops))

  def run(self) -> 'NumpyRun':
    return NumpyRun(self.graph(), self._values, self._computes)


class NumpyRun:
  """An `InspectableRun` over a graph made by hand.

  Attributes:
    op_graph: the graph.
    fetched: the names of each fetch so far.
    recomputed: the names of each part run alone so far.
  """

  def __init__(
    self,
    op_graph: OpGraph,
    values: Sequence[np.ndarray | None],
    computes: Sequence[Callable[..., Any] | None],
  ) -> None:
    self.op_graph = op_graph
    self.layouts: Mapping[str, Relayout] = {}
    self.fetched: list[list[str]] = []
    self.recomputed: list[list[str]] = []
    self._values = values
    self._computes = computes
    self._given: dict[str, np.ndarray] = {}

  def fetch(self, tensors: Sequence[str]) -> list[np.ndarray]:
    self.fetched.append(list(tensors))
    return self._evaluate(tensors, self._given)

  def give(self, values: Mapping[str, np.ndarray]) -> None:
    self._given.update(values)

  def refetched(
    self, tensors: Sequence[str], given: Mapping[str, np.ndarray]
  ) -> list[np.ndarray] | None:
    return self._evaluate(tensors, {**self._given, **given})

  def recompute(
    self, requests: Sequence[tuple[Sequence[str], Mapping[str, np.ndarray]]]
  ) -> list[list[np.ndarray] | None]:
    found: list[list[np.ndarray] | None] = []
    for tensors, given in requests:
      self.recomputed.append(list(tensors))
      try:
        found.append(self._evaluate(tensors, given))
      except ValueError:
        found.append(None)
    return found

  def recompute_changed(
    self,
    wanted: Sequence[str],
    given: Mapping[str, np.ndarray],
    trials: Sequence[Sequence[NodeChange]],
  ) -> list[list[np.ndarray] | None]:
    found: list[list[np.ndarray] | None] = []
    for changes in trials:
      if any(change.attributes for change in changes):
        found.append(None)  # numpy's functions here have none
        continue
      inputs = {(c.op, slot): value for c in changes for slot, value in c.inputs}
      try:
        found.append(self._evaluate(wanted, given, inputs))
      except ValueError:
        found.append(None)
    return found

  def _evaluate(
    self,
    tensors: Sequence[str],
    given: Mapping[str, np.ndarray],
    changed: Mapping[tuple[str, int], np.ndarray] | None = None,
  ) -> list[np.ndarray]:
    known = dict(given)
    for op, value, compute in zip(self.op_graph.ops, self._values, self._computes, strict=True):
      if op.op_type == TARGET or all(tensor in known for tensor in op.tensors):
        continue
      if value is not None:
        known.setdefault(op.tensors[0], value)
        continue
      assert compute is not None, f'no numpy function for {op.op_type}'
      read = [known[self.op_graph.ops[n].tensors[k]] for n, k in op.inputs]
      made = compute(*((changed or {}).get((op.name, n), value) for n, value in enumerate(read)))
      results = made if isinstance(made, tuple) else (made,)
      for tensor, result in zip(op.tensors, results, strict=True):
        known.setdefault(tensor, np.asarray(result))
    return [known[tensor] for tensor in tensors]


def both(build: Callable[[HandMade], None], other: Callable[[HandMade], None]) -> tuple[Any, Any]:
  """Returns the two sides' graphs under construction, built."""
  sides = HandMade('tf1'), HandMade('tf2')
  build(sides[0])
  other(sides[1])
  return sides
