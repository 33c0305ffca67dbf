"""What the variables that only one side has tell about the port."""

import collections
import dataclasses
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence

from tf2verify.records.observation import VariableRecord
from tf2verify.relation.roles import owner, role

_KERNELS = ('kernel', 'depthwise_kernel', 'pointwise_kernel')
# The variable of a normalization layer, and the argument that gives or takes it.
_NORMALIZATION = {'gamma': 'scale', 'beta': 'center'}
_STATISTICS = ('beta', 'gamma', 'moving_mean', 'moving_variance')
# The projections of tf.contrib.seq2seq's attention mechanisms.
_PROJECTIONS = ('memory_layer', 'query_layer')


@dataclasses.dataclass(frozen=True)
class LeftoverCauses:
  """Why one side has a variable that the other lacks.

  Attributes:
    tf1: from the names of variables that only tf1 has to a sentence without a full
      stop; those are left out about which nothing can be said.
    tf2: likewise of variables that only tf2 has.
  """

  tf1: dict[str, str]
  tf2: dict[str, str]


def leftover_causes(
  pairs: Sequence[tuple[VariableRecord, VariableRecord]],
  only_tf1: Sequence[VariableRecord],
  only_tf2: Sequence[VariableRecord],
) -> LeftoverCauses:
  """Explains leftovers by the variables that stand beside them.

  Args:
    pairs: (tf1, tf2).
    only_tf1: what tf1 has beside the pairs, without those that are renamed.
    only_tf2: likewise of tf2.
  """
  ones, others = [one for one, _ in pairs], [other for _, other in pairs]
  tf1 = _Leftovers(
    tuple(pairs), tuple(only_tf1), (*ones, *only_tf1), (*others, *only_tf2), tuple(only_tf2)
  )
  swapped = tuple((other, one) for one, other in pairs)
  tf2 = _Leftovers(
    swapped, tuple(only_tf2), (*others, *only_tf2), (*ones, *only_tf1), tuple(only_tf1)
  )
  missing = (_missing_of_normalization, _missing_bias, _no_projections, _one_object_for_two)
  extra = (_extra_of_normalization, _extra_bias, _untied, _two_objects_for_one)
  return LeftoverCauses(_explained(tf1, missing), _explained(tf2, extra))


@dataclasses.dataclass(frozen=True)
class _Leftovers:
  """The leftovers of one side, and what stands beside them.

  Attributes:
    pairs: (of this side, of the other side).
    variables: of this side, without a counterpart.
    here: all variables of this side.
    there: all variables of the other side.
    left_there: those of them without a counterpart.
  """

  pairs: tuple[tuple[VariableRecord, VariableRecord], ...]
  variables: tuple[VariableRecord, ...]
  here: tuple[VariableRecord, ...]
  there: tuple[VariableRecord, ...]
  left_there: tuple[VariableRecord, ...]

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


# From the names of leftovers to what is to be said; the same for all that one finding explains.
_Rule = Callable[[_Leftovers], Iterator[tuple[Sequence[str], str]]]


def _explained(leftovers: _Leftovers, rules: Sequence[_Rule]) -> dict[str, str]:
  if not leftovers.variables:
    return {}
  found: dict[str, str] = {}
  for rule in rules:
    for names, text in rule(leftovers):
      for name in names:
        found.setdefault(name, text)
  return found


def _together(found: Sequence[tuple[str, str]], advice: str) -> Iterator[tuple[Sequence[str], str]]:
  """Yields one text for all of (name, evidence): that of the first, and how many there are."""
  if found:
    more = f', and {len(found) - 1} more like it' if len(found) > 1 else ''
    yield [name for name, _ in found], f'{found[0][0]}{more}: {found[0][1]}: {advice}'


def _of_normalization(leftovers: _Leftovers, wanted: str) -> list[tuple[str, VariableRecord]]:
  """Returns leftovers in a role beside another of a layer whose counterpart lacks that role."""
  beside = leftovers.beside(_STATISTICS)
  there = leftovers.roles_there()
  return [
    (variable.name, beside[scope])
    for variable in leftovers.variables
    for scope in (owner(variable.name),)
    if role(variable.name) == wanted
    and scope in beside
    and (owner(beside[scope].name), wanted) not in there
  ]


def _extra_of_normalization(leftovers: _Leftovers) -> Iterator[tuple[Sequence[str], str]]:
  for wanted, argument in _NORMALIZATION.items():
    default = ', as slim.batch_norm does by default (scale=False)' if wanted == 'gamma' else ''
    found = [
      (name, f'tf1 has {other.name} without a {wanted}{default}')
      for name, other in _of_normalization(leftovers, wanted)
    ]
    yield from _together(found, f'pass {argument}=False')


def _missing_of_normalization(leftovers: _Leftovers) -> Iterator[tuple[Sequence[str], str]]:
  for wanted, argument in _NORMALIZATION.items():
    found = [
      (name, f'the port has {other.name} without a {wanted}')
      for name, other in _of_normalization(leftovers, wanted)
    ]
    yield from _together(found, f'pass {argument}=True')


def _biases(leftovers: _Leftovers) -> list[tuple[VariableRecord, VariableRecord]]:
  """Returns (bias, kernel of the other side) where that side has a kernel without a bias."""
  kernels = leftovers.beside(_KERNELS)
  there = leftovers.roles_there()
  return [
    (variable, kernels[scope])
    for variable in leftovers.variables
    for scope in (owner(variable.name),)
    if role(variable.name) == 'bias'
    and scope in kernels
    and (owner(kernels[scope].name), 'bias') not in there
  ]


def _extra_bias(leftovers: _Leftovers) -> Iterator[tuple[Sequence[str], str]]:
  normalized: list[tuple[str, str]] = []
  plain: list[tuple[str, str]] = []
  for bias, kernel in _biases(leftovers):
    scope = owner(kernel.name) + '/'
    norm = next(
      (
        other
        for other in leftovers.there
        if other.name.startswith(scope)
        and role(other.name) in _STATISTICS
        and other.shape == bias.shape
      ),
      None,
    )
    if norm is None:
      plain.append((bias.name, f'tf1 has {kernel.name} without a bias'))
    else:
      evidence = f'tf1 has {kernel.name} without a bias, and {norm.name} of its shape instead'
      normalized.append((bias.name, f'{evidence} (slim makes no biases beside a normalizer_fn)'))
  yield from _together(normalized, 'pass use_bias=False')
  yield from _together(plain, 'pass use_bias=False')


def _missing_bias(leftovers: _Leftovers) -> Iterator[tuple[Sequence[str], str]]:
  found = [
    (bias.name, f'the port has {kernel.name} without a bias') for bias, kernel in _biases(leftovers)
  ]
  yield from _together(found, 'pass use_bias=True')


def _untied(leftovers: _Leftovers) -> Iterator[tuple[Sequence[str], str]]:
  tables: dict[tuple[int | None, ...], VariableRecord] = {
    other.shape[::-1]: other
    for other, _ in reversed(leftovers.pairs)
    if len(other.shape) == 2 and other.shape[0] != other.shape[1]
  }
  found = [
    (variable.name, f'it has the transposed shape of {table.name} {table.shape}, which both have')
    for variable in leftovers.variables
    for table in (tables.get(variable.shape),)
    if table is not None
  ]
  yield from _together(
    found, 'where tf1 multiplies by that once more (transpose_b=True), tie the weights likewise'
  )


def _two_objects_for_one(leftovers: _Leftovers) -> Iterator[tuple[Sequence[str], str]]:
  for scope, names, twin in _copies(leftovers):
    yield (
      names,
      f'{scope}: the port has the variables of {twin} once more ({_short(names, scope)}), tf1 has '
      'them once: where tf1 uses them again (reuse=True), call one layer object again',
    )


def _one_object_for_two(leftovers: _Leftovers) -> Iterator[tuple[Sequence[str], str]]:
  for scope, names, twin in _copies(leftovers):
    yield (
      names,
      f'{scope}: tf1 has it beside {twin}, with the same variables ({_short(names, scope)}), the '
      f'port has {twin} only: where one object serves for both ([layer] * n), make one for each',
    )


def _short(names: Sequence[str], scope: str) -> str:
  shown = ', '.join(name.removeprefix(f'{scope}/') for name in names[:4])
  return shown + (f', … {len(names) - 4} more' if len(names) > 4 else '')


_Signature = frozenset[tuple[str, tuple[int | None, ...], str]]


def _copies(leftovers: _Leftovers) -> Iterator[tuple[str, list[str], str]]:
  """Yields (scope of leftovers only, their names, scope of pairs with the same variables)."""
  left = {variable.name for variable in leftovers.variables}
  # What is left over there as well has another name, rather than no counterpart.
  elsewhere = {(role(other.name), other.shape) for other in leftovers.left_there}
  members: dict[str, list[VariableRecord]] = collections.defaultdict(list)
  for variable in leftovers.here:
    for scope in _scopes(variable.name):
      members[scope].append(variable)
  paired: dict[_Signature, list[str]] = collections.defaultdict(list)
  for scope, variables in members.items():
    if not any(variable.name in left for variable in variables):
      paired[_signature(scope, variables)].append(scope)
  explained: set[str] = set()
  for variable in leftovers.variables:
    for scope in _scopes(variable.name):
      names = [member.name for member in members[scope]]
      if not left.issuperset(names) or not explained.isdisjoint(names):
        continue
      if any((role(member.name), member.shape) in elsewhere for member in members[scope]):
        continue
      twins = paired.get(_signature(scope, members[scope]))
      if twins:
        explained.update(names)
        yield scope, names, _most_similar(scope, twins)
        break


def _scopes(name: str) -> list[str]:
  """Returns the scopes around a variable, the outermost first, the root left out."""
  parts = name.split('/')
  return ['/'.join(parts[:count]) for count in range(1, len(parts))]


def _signature(scope: str, variables: Iterable[VariableRecord]) -> _Signature:
  start = len(scope) + 1
  return frozenset((v.name[start:], v.shape, v.dtype) for v in variables)


def _most_similar(name: str, candidates: Sequence[str]) -> str:
  return max(candidates, key=lambda other: difflib.SequenceMatcher(None, name, other).ratio())


def _no_projections(leftovers: _Leftovers) -> Iterator[tuple[Sequence[str], str]]:
  found = [v.name for v in leftovers.variables if owner(v.name).split('/')[-1] in _PROJECTIONS]
  if found:
    yield (
      found,
      f'{", ".join(found)}: the projections of an attention mechanism of TF1; Attention and '
      'AdditiveAttention of Keras have none: put Dense layers before them',
    )
