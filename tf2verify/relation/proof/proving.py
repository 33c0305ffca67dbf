"""Which operations of two graphs are proven to compute the same, whatever they are given."""

import dataclasses
from collections.abc import Collection, Mapping

from tf2verify.records.op_graph import TARGET, OpGraph, TensorKey
from tf2verify.relation.proof.numbering import Numbering, Variables
from tf2verify.relation.proof.polynomials import total
from tf2verify.relation.proof.terms import Terms

_LOSS = 'regularization loss'


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
  """What is proven of one graph.

  Attributes:
    graph: the graph.
    values: terms of its tensors.
    behind: positions of the operations behind the targets that both sides have.
    tested: those of them that are not proven: what they yield is no value of the other
      side, and reaches a target that is not proven either.
  """

  graph: OpGraph
  values: Mapping[TensorKey, int]
  behind: frozenset[int]
  tested: frozenset[int]


@dataclasses.dataclass(frozen=True, eq=False)
class Proof:
  """What is proven of two graphs.

  Attributes:
    tf1: of the reference.
    tf2: of the port.
    targets: names of the targets that were related.
    tested: those of them that are not proven.
    terms: the terms of both.
  """

  tf1: Side
  tf2: Side
  targets: tuple[str, ...]
  tested: tuple[str, ...]
  terms: Terms


def prove(
  tf1: OpGraph,
  tf2: OpGraph,
  variables: Variables,
  targets: Collection[str] | None = None,
  granted: Mapping[TensorKey, TensorKey] | None = None,
  passed: tuple[Collection[int], Collection[int]] = ((), ()),
) -> Proof:
  """Relates two graphs.

  Args:
    tf1: the reference's.
    tf2: the port's, whose variables have their tf1 names.
    variables: those that are pairs.
    targets: names of those to relate; None for all that a side has.
    granted: tensors of the port that are taken for tensors of the reference, to see what follows.
    passed: operations of both sides that are taken to yield what they read, likewise.
  """
  terms = Terms()
  one = Numbering(terms, tf1, variables, 'tf1', passed=passed[0])
  known = {key: one.values[other] for key, other in (granted or {}).items()}
  two = Numbering(terms, tf2, variables, 'tf2', known=known, passed=passed[1])
  ends, others = tf1.targets(), tf2.targets()
  wanted = [name for name in dict.fromkeys((*ends, *others)) if targets is None or name in targets]
  tested = [
    name
    for name in wanted
    if name not in ends or name not in others or one.target(ends[name]) != two.target(others[name])
  ]
  losses = [name for name in tested if name.startswith(_LOSS)]
  if losses and _in_total(terms, one) == _in_total(terms, two) is not None:
    tested = [name for name in tested if name not in losses]
  return Proof(
    _side(terms, one, two, wanted, tested),
    _side(terms, two, one, wanted, tested),
    tuple(wanted),
    tuple(tested),
    terms,
  )


def _in_total(terms: Terms, numbering: Numbering) -> int | None:
  """Returns the sum of a side's regularization losses, however they are grouped."""
  ends = [n for name, n in numbering.graph.targets().items() if name.startswith(_LOSS)]
  found = [number for end in ends for number in numbering.target(end)]
  if not found or any(terms.shape(n) != () or terms.dtype(n) != 'float32' for n in found):
    return None
  return total(terms, [(number, 1) for number in found], 'float32', ())


def _side(
  terms: Terms,
  numbering: Numbering,
  other: Numbering,
  wanted: Collection[str],
  tested: Collection[str],
) -> Side:
  graph, values = numbering.graph, numbering.values
  found = set(other.values.values())
  ends = graph.targets()
  behind = graph.ancestors([ends[name] for name in wanted if name in ends])
  pending = [key for name in tested if name in ends for key in graph.ops[ends[name]].inputs]
  apart: set[int] = set()
  while pending:
    key = pending.pop()
    if values[key] in found or key[0] in apart or terms.value(values[key]) is not None:
      continue  # a constant is no computation: what reads another one is not proven itself
    apart.add(key[0])
    pending += graph.ops[key[0]].inputs
  computed = {n for n in behind if not _is_given(graph, n)}
  left = {n for n in apart if not _is_given(graph, n)}
  return Side(graph, values, frozenset(computed), frozenset(left))


def _is_given(graph: OpGraph, position: int) -> bool:
  return graph.ops[position].is_leaf or graph.ops[position].op_type == TARGET
