"""Which operations of two graphs are proven to compute the same, whatever they are given."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from tf2verify.records.op_graph import TARGET, OpGraph, TensorKey
from tf2verify.relation.proof.held_variables import PairedVariables
from tf2verify.relation.proof.normal_forms.polynomials import total
from tf2verify.relation.proof.normal_forms.states import Multiple, States
from tf2verify.relation.proof.normal_forms.terms import Terms
from tf2verify.relation.proof.numbering import Numbering, Variables
from tf2verify.relation.proof.rules.loops import Rounds

_LOSS = 'regularization loss'
Arguments = Sequence[tuple[str, tuple[int | None, ...] | None]]


@dataclasses.dataclass(frozen=True, eq=False)
class StepStates:
  """What is known of variables of a training step, besides which of them are pairs."""

  tf1: States  # the reference's that are functions of the steps taken, by name
  tf2: States  # the port's
  multiples: Mapping[str, Multiple]  # the port's that hold a multiple of one of the reference


NO_STATES = StepStates({}, {}, {})


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
  """What is proven of one graph.

  Attributes:
    graph: the graph.
    values: terms of its tensors.
    made: of every operation, how many terms there were after it.
    behind: positions of the operations behind the targets that both sides have.
    tested: those of them that are not proven: what they yield is not a value of the other
      side, and reaches a target that is not proven either.
  """

  graph: OpGraph
  values: Mapping[TensorKey, int]
  made: Sequence[int]
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
    states: what is known of the variables of a training step.
    arguments: of functions, dtype and shape of what they are given.
    in_rounds: whether loops were taken apart into their rounds.
  """

  tf1: Side
  tf2: Side
  targets: tuple[str, ...]
  tested: tuple[str, ...]
  terms: Terms
  states: StepStates = NO_STATES
  arguments: Arguments | None = None
  in_rounds: bool = False


def prove(
  tf1: OpGraph,
  tf2: OpGraph,
  variables: Variables,
  targets: Collection[str] | None = None,
  granted: Mapping[TensorKey, TensorKey] | None = None,
  passed: tuple[Collection[int], Collection[int]] = ((), ()),
  taken_for: Mapping[int, int] | None = None,
  arguments: Arguments | None = None,
  states: StepStates = NO_STATES,
  in_rounds: bool = False,
) -> Proof:
  """Relates two graphs.

  Args:
    tf1: the reference's.
    tf2: the port's, whose variables have their tf1 names.
    variables: those that are pairs; `PairedVariables` where the port holds some otherwise.
    targets: names of those to relate; None for all that a side has.
    granted: tensors of the port that are taken for tensors of the reference, to see what follows.
    passed: operations of both sides that are taken to yield what they read, likewise.
    taken_for: terms of the port that are taken for terms of the reference, likewise.
    arguments: of functions, dtype and shape of what they are given.
    states: of a training step, what its variables are known to be.
    in_rounds: whether loops are taken apart into their rounds.
  """
  rounds = [Rounds() if in_rounds else None for _ in range(2)]
  terms = Terms(taken_for)
  given = [terms.add('argument', (), n, *one) for n, one in enumerate(arguments or ())]
  read = None if arguments is None else given
  one = Numbering(
    terms, tf1, variables, 'tf1', read, passed=passed[0], states=states.tf1, rounds=rounds[0]
  )
  known = {key: one.values[other] for key, other in (granted or {}).items()}
  two = Numbering(
    terms,
    tf2,
    variables,
    'tf2',
    read,
    known,
    passed[1],
    states=states.tf2,
    multiples=states.multiples,
    held=variables.held if isinstance(variables, PairedVariables) else None,
    rounds=rounds[1],
  )
  ends = tf1.targets()
  aliases = {f'update of {own}': f'update of {m.of}' for own, m in states.multiples.items()}
  others = _last_writes(ends, {aliases.get(n, n): end for n, end in tf2.targets().items()})
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
    _side(terms, one, two, rounds[1], ends, wanted, tested),
    _side(terms, two, one, rounds[0], others, wanted, tested),
    tuple(wanted),
    tuple(tested),
    terms,
    states,
    arguments,
    in_rounds,
  )


def _last_writes(tf1: Mapping[str, int], tf2: Mapping[str, int]) -> dict[str, int]:
  """Returns the port's targets with the last write to a variable that tf1 writes once."""
  found = dict(tf2)
  for name, end in tf2.items():
    first, _, number = name.rpartition(' (')
    is_numbered = first.startswith('update of ') and number[:-1].isdigit()
    if is_numbered and first in tf1 and f'{first} (2)' not in tf1:
      del found[name]
      found[first] = end  # in the order of the writes
  return found


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
  rounds: Rounds | None,
  ends: Mapping[str, int],
  wanted: Collection[str],
  tested: Collection[str],
) -> Side:
  graph, values = numbering.graph, numbering.values
  found = {*other.values.values(), *(rounds.inside if rounds is not None else ())}
  behind = graph.ancestors([ends[name] for name in wanted if name in ends])
  pending = [key for name in tested if name in ends for key in graph.ops[ends[name]].inputs]
  apart: set[int] = set()
  while pending:
    key = pending.pop()
    if values[key] in found or key[0] in apart or terms.value(values[key]) is not None:
      continue  # a constant is not a computation: what reads another one is not proven itself
    apart.add(key[0])
    pending += graph.ops[key[0]].inputs
  computed = {n for n in behind if not _is_given(graph, n)}
  left = {n for n in apart if not _is_given(graph, n)}
  return Side(graph, values, numbering.made, frozenset(computed), frozenset(left))


def _is_given(graph: OpGraph, position: int) -> bool:
  return graph.ops[position].is_leaf or graph.ops[position].op_type == TARGET
