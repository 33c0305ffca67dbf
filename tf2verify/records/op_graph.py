"""A side's computation as a graph of operations, without TensorFlow."""

import dataclasses
import functools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tf2verify.records.observation import SourceLine
from tf2verify.reference.graph_ops import reached

INPUT = 'input'
VARIABLE = 'variable'
CONSTANT = 'Const'
TARGET = 'target'
# What a condition has chosen, of a graph in which the branch that was taken stands in its place.
CHOICE = 'Cond'
# What passes a tensor on, and stops its gradient.
STOPS = frozenset({'StopGradient', 'PreventGradient'})

_OF_VARIABLES = ('gradient ', 'applied gradient ', 'update of ')
# An output of an operation: the operation's position in its graph, the output's number.
TensorKey = tuple[int, int]


@dataclasses.dataclass(frozen=True, eq=False)
class OpRecord:
  """One operation."""

  # As in the graph; of a variable its tf1 name, of an input its path in the nest, of a target what
  # it is.
  name: str
  # TensorFlow's op type; `INPUT`, `VARIABLE` and `TARGET` stand for what the graph reads and
  # yields.
  op_type: str
  inputs: tuple[TensorKey, ...]  # where its data comes from, before operations that only pass it on
  input_names: tuple[str, ...] = ()  # of the inputs, as TensorFlow documents the op type: `axis`
  # For every input, the types of the operations that pass it on, from the producer to this one:
  # `StopGradient`, `Identity`.
  through: tuple[tuple[str, ...], ...] = ()
  attributes: tuple[tuple[str, Any], ...] = ()  # name and plain value, sorted
  # Numpy's dtype name and the static shape, as far as they are known.
  outputs: tuple[tuple[str, tuple[int | None, ...] | None], ...] = ()
  tensors: tuple[str, ...] = ()  # TensorFlow's name of every output, by which it can be fetched
  source: SourceLine | None = None  # the user's line that made it
  constant: np.ndarray | None = None  # the value of a constant, where it is small
  digest: str = ''  # of the value of a constant that is not small
  # Of a loop or a condition, its functions by attribute; they read inputs called `argument 0`, and
  # yield targets called `result 0`.
  functions: tuple[tuple[str, 'OpGraph'], ...] = ()
  # Whether it is known that equal inputs, attributes and functions make equal outputs, and nothing
  # else happens.
  pure: bool = False

  @property
  def shown_name(self) -> str:
    """How a reader is told of it; a target is no operation."""
    return self.name if self.op_type != TARGET else f'the {self.name}'

  @property
  def is_of_variable(self) -> bool:
    """Whether it is a target that a port has in the shape of its variable, which may be another."""
    return self.op_type == TARGET and self.name.startswith(_OF_VARIABLES)

  def attribute(self, name: str) -> Any:
    """Returns the value of an attribute; None where it has none of that name."""
    return dict(self.attributes).get(name)

  def input_name(self, slot: int) -> str:
    """Returns how a reader is told of an input."""
    return self.input_names[slot] if slot < len(self.input_names) else f'input {slot}'

  def is_stopped(self, slot: int) -> bool:
    """Returns whether no gradient passes through an input."""
    return slot < len(self.through) and not STOPS.isdisjoint(self.through[slot])

  @property
  def is_leaf(self) -> bool:
    """Whether it stands for a value that comes from outside of the computation."""
    return self.op_type in (INPUT, VARIABLE, CONSTANT)


@dataclasses.dataclass(frozen=True)
class Inserted:
  """An operation that an input is to pass through before it is read."""

  slot: int  # number of the input
  op_type: str
  # The second operand: a number, a tensor of the graph by name, the order of axes, or none.
  number: float | None = None
  tensor: str = ''
  order: tuple[int, ...] = ()
  # The shapes that the input has before and after that, -1 for one size; () for those of the graph.
  apart: tuple[int, ...] = ()
  joined: tuple[int, ...] = ()
  # The operand is a slice of the tensor, as this operation takes one.
  sliced_as: str = ''


@dataclasses.dataclass(frozen=True, eq=False)
class NodeChange:
  """What to change of an operation before a part of its graph is run alone."""

  op: str  # its name
  attributes: tuple[tuple[str, Any], ...] = ()  # plain values by name
  # Values by the number of the input that they are given in place of.
  inputs: tuple[tuple[int, np.ndarray], ...] = ()
  op_type: str = ''  # the type that it is to have; '' for its own
  reads: tuple[int, ...] = ()  # numbers of the inputs that it is to read, in order; () for its own
  inserted: tuple[Inserted, ...] = ()  # of one input in the order in which it passes them
  # Tensors of the graph by the number of the input that is to read them.
  other: tuple[tuple[int, str], ...] = ()

  @property
  def what(self) -> tuple[object, ...]:
    """Which attributes and inputs of which operation it changes."""
    given = self.attributes, (*self.inputs, *self.other)
    attributes, inputs = ((key for key, _ in known) for known in given)
    kinds = [key for key, known in (('op', self.op_type), ('reads', self.reads)) if known]
    return self.op, *attributes, *inputs, *kinds, *self.inserted


@dataclasses.dataclass(frozen=True, eq=False)
class OpGraph:
  """The operations that the results of a run depend on.

  Invariants: an operation comes after all that it reads; targets come last.
  """

  side: str  # 'tf1' or 'tf2'
  ops: tuple[OpRecord, ...]  # in the order in which the side made them
  unread: tuple[OpRecord, ...] = ()  # inputs that nothing of it is computed from
  # Whether Python has read numbers of a step while it was traced: other steps have other graphs.
  is_of_one_step: bool = False

  def targets(self) -> dict[str, int]:
    """Returns the positions of the targets by name."""
    return {op.name: n for n, op in enumerate(self.ops) if op.op_type == TARGET}

  def tensor(self, key: TensorKey) -> str:
    """Returns TensorFlow's name of an output."""
    return self.ops[key[0]].tensors[key[1]]

  def ancestors(self, ends: Iterable[int], stops: Collection[str] = ()) -> set[int]:
    """Returns the positions of operations from which the given ones are computed, with those.

    Args:
      ends: positions of the given ones.
      stops: types of operations, of which what they read does not count.
    """

    def before(position: int) -> list[int]:
      op = self.ops[position]
      return [] if op.op_type in stops else [n for n, _ in op.inputs]

    return set(reached(ends, before))

  def consumers(self) -> Sequence[Sequence[tuple[int, int]]]:
    """Returns, for every operation, who reads it: position and number of the input."""
    return self._consumers

  @functools.cached_property
  def _consumers(self) -> Sequence[Sequence[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[] for _ in self.ops]
    for position, op in enumerate(self.ops):
      for slot, (producer, _) in enumerate(op.inputs):
        found[producer].append((position, slot))
    return found
