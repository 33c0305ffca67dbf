"""A side's computation as a graph of operations, without TensorFlow."""

import dataclasses
from typing import Any

import numpy as np

from tf2verify.records.observation import SourceLine

INPUT = 'input'
VARIABLE = 'variable'
CONSTANT = 'Const'
TARGET = 'target'

# An output of an operation: the operation's position in its graph, the output's number.
TensorKey = tuple[int, int]


@dataclasses.dataclass(frozen=True, eq=False)
class OpRecord:
  """One operation.

  Attributes:
    name: as in the graph; of a variable its tf1 name, of an input its path in the
      nest, of a target what it is.
    op_type: TensorFlow's op type; `INPUT`, `VARIABLE` and `TARGET` stand for what the
      graph reads and yields.
    inputs: where its data comes from, behind operations that only pass it on.
    input_names: of the inputs, as TensorFlow documents the op type: `axis`.
    through: for every input, the types of the operations that pass it on, from
      the producer to this one: `StopGradient`, `Identity`.
    attributes: name and plain value, sorted.
    outputs: numpy's dtype name and the static shape, as far as they are known.
    tensors: TensorFlow's name of every output, by which it can be fetched.
    source: the user's line that made it.
    constant: the value of a constant, where it is small.
    functions: of a loop or a condition, its functions by attribute; they read inputs
      called `argument 0`, and yield targets called `result 0`.
  """

  name: str
  op_type: str
  inputs: tuple[TensorKey, ...]
  input_names: tuple[str, ...] = ()
  through: tuple[tuple[str, ...], ...] = ()
  attributes: tuple[tuple[str, Any], ...] = ()
  outputs: tuple[tuple[str, tuple[int | None, ...] | None], ...] = ()
  tensors: tuple[str, ...] = ()
  source: SourceLine | None = None
  constant: np.ndarray | None = None
  functions: tuple[tuple[str, 'OpGraph'], ...] = ()

  def attribute(self, name: str) -> Any:
    """Returns the value of an attribute; None where it has none of that name."""
    return dict(self.attributes).get(name)

  @property
  def is_leaf(self) -> bool:
    """Whether it stands for a value that comes from outside of the computation."""
    return self.op_type in (INPUT, VARIABLE, CONSTANT)


@dataclasses.dataclass(frozen=True, eq=False)
class NodeChange:
  """What to change of an operation before a part of its graph is run alone.

  Attributes:
    op: its name.
    attributes: plain values by name.
    inputs: values by the number of the input that they are given in place of.
  """

  op: str
  attributes: tuple[tuple[str, Any], ...] = ()
  inputs: tuple[tuple[int, np.ndarray], ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class OpGraph:
  """The operations behind what a run yields.

  Invariants: an operation stands behind all that it reads; targets come last.

  Attributes:
    side: 'tf1' or 'tf2'.
    ops: in the order in which the side made them.
  """

  side: str
  ops: tuple[OpRecord, ...]

  def targets(self) -> dict[str, int]:
    """Returns the positions of the targets by name."""
    return {op.name: n for n, op in enumerate(self.ops) if op.op_type == TARGET}

  def consumers(self) -> list[list[tuple[int, int]]]:
    """Returns, for every operation, who reads it: position and number of the input."""
    found: list[list[tuple[int, int]]] = [[] for _ in self.ops]
    for position, op in enumerate(self.ops):
      for slot, (producer, _) in enumerate(op.inputs):
        found[producer].append((position, slot))
    return found
