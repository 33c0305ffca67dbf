"""What stands between an operation and the nearest operations that have a partner."""

import dataclasses
from collections.abc import Collection, Mapping

from tf2verify.records.op_graph import CONSTANT, OpGraph, OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import Pairing


@dataclasses.dataclass(frozen=True)
class Region:
  """An operation of one side with the unpaired ones that lead to it."""

  end: int  # the operation's position
  # Positions of the unpaired operations before it, in order; also of paired ones that are read by
  # an output which means something else on the other side.
  inner: tuple[int, ...]
  # The tensors that enter: outputs of paired operations, and leaves other than constants.
  frontier: tuple[TensorKey, ...]


def means_otherwise(op: OpRecord, other: OpRecord, number: int) -> bool:
  """Returns whether an output of two partners is not the same quantity.

  Batch norm that keeps the moving averages itself yields those, not the batch's. A fused
  loss yields its gradient as well, and what is a pair by its value the loss alone.
  """
  if number and number >= len(other.outputs):
    return True
  factors = [one.attribute('exponential_avg_factor') for one in (op, other)]
  return number in (1, 2) and factors[0] != factors[1]


def region(
  graph: OpGraph,
  partners: list[int | None],
  end: int,
  others: OpGraph | None = None,
  agreeing: Collection[TensorKey] = (),
) -> Region:
  """Returns the region that ends at an operation.

  Args:
    graph: the side's graph.
    partners: for every operation its partner on the other side, None without one.
    end: the operation's position.
    others: the other side's graph.
    agreeing: tensors that enter whoever yields them, since their values agree.
  """
  inner: set[int] = set()
  frontier: dict[TensorKey, None] = {}
  pending = list(graph.ops[end].inputs)
  while pending:
    key = pending.pop(0)
    op = graph.ops[key[0]]
    if op.op_type == CONSTANT:
      continue
    partner = partners[key[0]]
    compared = partner is not None and not (
      others is not None and means_otherwise(op, others.ops[partner], key[1])
    )
    if compared or op.is_leaf or key in agreeing:
      frontier[key] = None
    elif key[0] not in inner:
      inner.add(key[0])
      pending += op.inputs
  return Region(end, tuple(sorted(inner)), tuple(frontier))


@dataclasses.dataclass(frozen=True)
class RegionPair:
  """The regions of two partners."""

  tf1: Region  # that of the tf1 side
  tf2: Region  # that of the tf2 side
  # Pairs of tensors that enter on either side; None where a tensor has no counterpart on the other.
  entering: tuple[tuple[TensorKey | None, TensorKey | None], ...]

  @property
  def is_rewired(self) -> bool:
    """Whether a tensor enters on one side only, or its counterpart does not on the other."""
    ones, others = set(self.tf1.frontier), set(self.tf2.frontier)
    return any(one not in ones or other not in others for one, other in self.entering)


def region_pair(pairing: Pairing, tf1: int, tf2: int) -> RegionPair:
  """Returns the regions of two partners."""
  return without_inputs(pairing, tf1, tf2, {})


def without_inputs(
  pairing: Pairing, tf1: int, tf2: int, agreeing: Mapping[TensorKey, TensorKey]
) -> RegionPair:
  """Returns the regions of two partners up to tensors whose values agree, tf1 to tf2."""
  agreeing = {**pairing.tensors, **agreeing}
  ends = agreeing.keys() | pairing.settled[0], set(agreeing.values()) | pairing.settled[1]
  one = region(pairing.tf1, pairing.tf2_of, tf1, pairing.tf2, ends[0])
  two = region(pairing.tf2, pairing.tf1_of, tf2, pairing.tf1, ends[1])
  back = {other: key for key, other in agreeing.items()}
  entering: dict[tuple[TensorKey | None, TensorKey | None], None] = {}
  for position, number in one.frontier:
    if (position, number) in agreeing:
      entering[(position, number), agreeing[position, number]] = None
      continue
    partner = pairing.tf2_of[position]
    entering[(position, number), None if partner is None else (partner, number)] = None
  for position, number in two.frontier:
    if (position, number) in back:
      continue
    partner = pairing.tf1_of[position]
    entering[None if partner is None else (partner, number), (position, number)] = None
  return RegionPair(one, two, tuple(entering))
