"""What both sides have of variables, where one has some that the other lacks."""

import collections
import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Sequence

from tf2verify.numerics.relayout import without_ones
from tf2verify.records.observation import VariableCreation, VariableRecord
from tf2verify.relation.derivation.leftover_pairs import scopes_around
from tf2verify.relation.names.roles import owner, role


@dataclasses.dataclass(frozen=True)
class Leftovers:
  """Variables that only one side has, and what stands next to them."""

  pairs: tuple[tuple[VariableRecord, VariableRecord], ...]  # (of this side, of the other side)
  variables: tuple[VariableRecord, ...]  # of this side, without a counterpart
  here: tuple[VariableRecord, ...]  # all variables of this side
  there: tuple[VariableRecord, ...]  # all variables of the other side
  left_there: tuple[VariableRecord, ...]  # those of them without a counterpart

  def beside(self, roles: Iterable[str]) -> dict[str, VariableRecord]:
    """Returns, by scope of this side, the counterpart of a variable in one of these roles."""
    found: dict[str, VariableRecord] = {}
    for one, other in self.pairs:
      if role(one.name) in roles:
        found.setdefault(owner(one.name), other)
    return found

  def roles_there(self) -> frozenset[tuple[str, str]]:
    """Returns (scope, role) of the other side's variables."""
    return frozenset((owner(variable.name), role(variable.name)) for variable in self.there)

  def may_be_renamed(self, variable: VariableRecord) -> bool:
    """Returns whether the other side has one without a counterpart that could be this one.

    Or hold it: of layers that are one on the other side, the biases are one vector.
    """
    wanted, size = role(variable.name), without_ones(variable.shape)
    return any(
      _may_hold(without_ones(other.shape), size)
      and (not wanted or role(other.name) in ('', wanted))
      for other in self.left_there
    )


def _may_hold(shape: tuple[int | None, ...], part: tuple[int | None, ...]) -> bool:
  if len(shape) == len(part) == 1 and shape[0] and part[0]:
    return shape[0] % part[0] == 0
  return shape == part


@dataclasses.dataclass(frozen=True)
class MissingVariables:
  """Variables that only tf1 has."""

  of_tf1: Leftovers


@dataclasses.dataclass(frozen=True)
class ExtraVariables:
  """Variables that only the port has."""

  of_port: Leftovers


@dataclasses.dataclass(frozen=True)
class CopiedScope:
  """A scope of leftovers only, with the variables of a scope of pairs."""

  in_port: bool  # whether the port has it, and tf1 not
  scope: str  # its name
  names: tuple[str, ...]  # of its variables
  twin: str  # the scope that both sides have


@dataclasses.dataclass(frozen=True)
class CreatedVariable:
  """A variable that is made after the first call."""

  creation: VariableCreation  # the record
  first_call: frozenset[str]  # names of the variables that the first call made
  of_keras3: bool = False  # whether the port is a layer of Keras 3


def missing_variables(
  pairs: Sequence[tuple[VariableRecord, VariableRecord]],
  only_tf1: Sequence[VariableRecord],
  only_tf2: Sequence[VariableRecord],
) -> Iterator[MissingVariables | CopiedScope]:
  """Yields what may show why the port lacks variables.

  Args:
    pairs: (tf1, tf2).
    only_tf1: what tf1 has besides the pairs, without those that are renamed.
    only_tf2: likewise of tf2.
  """
  if only_tf1:
    found = _leftovers(pairs, only_tf1, only_tf2)
    yield MissingVariables(found)
    yield from _copies(found, in_port=False)


def extra_variables(
  pairs: Sequence[tuple[VariableRecord, VariableRecord]],
  only_tf1: Sequence[VariableRecord],
  only_tf2: Sequence[VariableRecord],
) -> Iterator[ExtraVariables | CopiedScope]:
  """Yields what may show why the port has more variables; see `missing_variables`."""
  if only_tf2:
    found = _leftovers([(other, one) for one, other in pairs], only_tf2, only_tf1)
    yield ExtraVariables(found)
    yield from _copies(found, in_port=True)


def _leftovers(
  pairs: Sequence[tuple[VariableRecord, VariableRecord]],
  here: Sequence[VariableRecord],
  there: Sequence[VariableRecord],
) -> Leftovers:
  ones, others = [one for one, _ in pairs], [other for _, other in pairs]
  return Leftovers(tuple(pairs), tuple(here), (*ones, *here), (*others, *there), tuple(there))


_Signature = frozenset[tuple[str, tuple[int | None, ...], str]]


def _copies(leftovers: Leftovers, in_port: bool) -> Iterator[CopiedScope]:
  """Yields the scopes of leftovers only that are like a scope of pairs."""
  left = {variable.name for variable in leftovers.variables}
  members: dict[str, list[VariableRecord]] = collections.defaultdict(list)
  for variable in leftovers.here:
    for scope in scopes_around(variable.name):
      members[scope].append(variable)
  paired: dict[_Signature, list[str]] = collections.defaultdict(list)
  for scope, variables in members.items():
    if not any(variable.name in left for variable in variables):
      paired[_signature(scope, variables)].append(scope)
  explained: set[str] = set()
  for variable in leftovers.variables:
    for scope in scopes_around(variable.name):
      names = [member.name for member in members[scope]]
      if not left.issuperset(names) or not explained.isdisjoint(names):
        continue
      # What is left over there as well has another name, rather than no counterpart.
      if any(leftovers.may_be_renamed(member) for member in members[scope]):
        continue
      twins = paired.get(_signature(scope, members[scope]))
      if twins:
        explained.update(names)
        yield CopiedScope(in_port, scope, tuple(names), _most_similar(scope, twins))
        break


def _signature(scope: str, variables: Iterable[VariableRecord]) -> _Signature:
  start = len(scope) + 1
  return frozenset((v.name[start:], v.shape, v.dtype) for v in variables)


def _most_similar(name: str, candidates: Sequence[str]) -> str:
  return max(candidates, key=lambda other: difflib.SequenceMatcher(None, name, other).ratio())
