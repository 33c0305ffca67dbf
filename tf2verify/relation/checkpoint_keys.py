"""The keys of a name-based checkpoint accounted for, by name, shape and dtype."""

import dataclasses
import difflib
import math
import re
from collections.abc import Collection, Mapping, Sequence

from tf2verify.records.checkpoint import (
  AccountedKey,
  ChangedKey,
  CheckpointKey,
  KeyAccount,
  KeyKind,
  KeySource,
  MissingKey,
)
from tf2verify.records.observation import VariableRecord

SHADOW_SUFFIX = 'ExponentialMovingAverage'
# The slots of tf.compat.v1.train's optimizers, which also bear these names in files of TF 1.x.
_SLOT_NAMES = (
  'Adadelta',
  'Adagrad',
  'AdagradDA',
  'Adam',
  'Ftrl',
  'Momentum',
  'ProximalAdagrad',
  'RMSProp',
  'adam_m',
  'adam_v',
)
_BETA_POWER = re.compile(r'beta[12]_power(_\d+)?')
_PART = re.compile(r'(?P<whole>.+)/part_(?P<number>\d+)')
# Names beyond these get no suggestion: looking for the closest takes its time.
_SUGGESTED = 20


def account(
  keys: Sequence[CheckpointKey],
  variables: Sequence[VariableRecord],
  evaluate_with_ema: bool = False,
  global_steps: Collection[str] = (),
  left_out: Collection[str] = (),
) -> KeyAccount:
  """Accounts for every key and every variable.

  Args:
    keys: of the checkpoint.
    variables: of the tf1 side.
    evaluate_with_ema: whether variables are read from their shadows, where they have one.
    global_steps: names of counters of steps, besides `global_step`.
    left_out: names of variables of tf1 that the port leaves out on purpose.
  """
  by_name = {key.name: key for key in keys}
  sources: list[KeySource] = []
  changed: list[ChangedKey] = []
  absent: list[VariableRecord] = []
  for variable in variables:
    name = variable.name
    shadow = f'{name}/{SHADOW_SUFFIX}'
    chosen = shadow if evaluate_with_ema and shadow in by_name else name
    if chosen not in by_name:
      absent.append(variable)
    elif _fits(by_name[chosen], variable):
      sources.append(KeySource(name, chosen))
    else:
      changed.append(ChangedKey(by_name[chosen], variable.shape, variable.dtype))
  parts = _partitioned(absent, by_name)
  sources += parts
  found = {source.variable for source in parts}
  missing = [variable.name for variable in absent if variable.name not in found]
  read = {source.key for source in sources}
  owners = {variable.name for variable in variables} | {source.key for source in parts}
  known = [
    AccountedKey(by_name[name], KeyKind.GLOBAL_STEP, '', read=False)
    if name in global_steps and name not in owners
    else _accounted(by_name[name], owners.union(left_out), by_name, read)
    for name in sorted(by_name)
  ]
  accounted = tuple(
    dataclasses.replace(key, kind=KeyKind.LEFT_OUT)
    if key.variable in left_out and key.variable not in owners
    else key
    for key in known
  )
  free = [key.key.name for key in accounted if key.kind is KeyKind.UNKNOWN]
  order = {variable.name: number for number, variable in enumerate(variables)}
  return KeyAccount(
    accounted,
    tuple(sorted(sources, key=lambda source: order[source.variable])),
    tuple(
      MissingKey(name, closest(name, free) if number < _SUGGESTED else '')
      for number, name in enumerate(missing)
    ),
    tuple(changed),
  )


def kinds(keys: Sequence[CheckpointKey]) -> tuple[AccountedKey, ...]:
  """Tells what keys hold by their names alone, sorted by name; what belongs to none is MODEL."""
  by_name = {key.name: key for key in keys}
  found = []
  for name in sorted(by_name):
    kind, owner = _kind(by_name[name], by_name.keys() - {name}, by_name)
    kind = KeyKind.MODEL if kind is KeyKind.UNKNOWN else kind
    found.append(AccountedKey(by_name[name], kind, owner, read=False))
  return tuple(found)


def closest(name: str, among: Sequence[str]) -> str:
  """Returns the name that is most like another; '' where none is."""
  return next(iter(difflib.get_close_matches(name, among, n=1, cutoff=0.6)), '')


def other_scope(missing: Sequence[str], keys: Collection[str]) -> str:
  """Returns what to do where all missing names are keys under another scope; '' elsewhere."""
  if not missing:
    return ''
  first = missing[0]
  for key in sorted(keys):
    if key.endswith(f'/{first}'):
      scope = key[: -len(first)]
      if all(f'{scope}{name}' in keys for name in missing):
        return (
          f'every key has {scope!r} in front: build the model in '
          f'tf.compat.v1.variable_scope({scope.rstrip("/")!r}) in both sides'
        )
    elif first.endswith(f'/{key}'):
      scope = first[: -len(key)]
      if all(name.removeprefix(scope) in keys for name in missing):
        return f'the keys lack {scope!r} in front: build the model without that scope'
  return ''


def steps_done(beta_power: float, beta: float) -> int | None:
  """Returns the number of Adam's steps that a `beta_power` stands for; None where it is no power.

  `tf.compat.v1.train.AdamOptimizer` starts with beta and multiplies by it after every
  step: beta ** (steps + 1).
  """
  if not (0.0 < beta < 1.0 and 0.0 < beta_power < 1.0):
    return None
  steps = math.log(beta_power) / math.log(beta) - 1.0
  # float32 powers drift by a rounding a step.
  return round(steps) if abs(steps - round(steps)) < 0.02 and round(steps) >= 0 else None


def _fits(key: CheckpointKey, variable: VariableRecord) -> bool:
  if key.dtype != variable.dtype and not {key.dtype, variable.dtype} <= {'str', 'string'}:
    return False
  if variable.shape == (None,) and len(key.shape) != 1:
    return True  # of unknown rank
  return len(key.shape) == len(variable.shape) and all(
    size in (None, own) for own, size in zip(key.shape, variable.shape, strict=True)
  )


def _accounted(
  key: CheckpointKey,
  owners: Collection[str],
  by_name: Mapping[str, CheckpointKey],
  read: Collection[str],
) -> AccountedKey:
  if key.name in owners:
    return AccountedKey(key, KeyKind.MODEL, key.name, key.name in read)
  kind, owner = _kind(key, owners, by_name)
  return AccountedKey(key, kind, owner, key.name in read)


def _kind(
  key: CheckpointKey, owners: Collection[str], by_name: Mapping[str, CheckpointKey]
) -> tuple[KeyKind, str]:
  head, _, last = key.name.rpartition('/')
  if last == 'global_step':
    return KeyKind.GLOBAL_STEP, ''
  if _BETA_POWER.fullmatch(last):
    return KeyKind.OPTIMIZER, ''
  owner = _owner(head, owners)
  if owner and last == SHADOW_SUFFIX:
    return KeyKind.SHADOW, owner
  if owner and re.sub(r'_\d+$', '', last) in _SLOT_NAMES:
    return KeyKind.SLOT, owner
  # An optimizer of the model's own code keeps something of the variable's shape.
  if owner == head and owner in by_name and by_name[owner].shape == key.shape:
    return KeyKind.SLOT, owner
  return KeyKind.UNKNOWN, ''


def _owner(head: str, owners: Collection[str]) -> str:
  """Returns the variable that a slot belongs to, whose name may stand after a scope."""
  while head:
    if head in owners:
      return head
    head = head.partition('/')[2]
  return ''


def _partitioned(
  absent: Sequence[VariableRecord], by_name: Mapping[str, CheckpointKey]
) -> list[KeySource]:
  """Finds the parts of variables that a `Saver` has written as one tensor."""
  wholes: dict[str, list[tuple[int, VariableRecord]]] = {}
  for variable in absent:
    match = _PART.fullmatch(variable.name)
    if match and match['whole'] in by_name and None not in variable.shape:
      wholes.setdefault(match['whole'], []).append((int(match['number']), variable))
  sources = []
  for whole, numbered in wholes.items():
    shapes = [part.shape for _, part in sorted(numbered, key=lambda pair: pair[0])]
    axis = _partitioned_axis(shapes, by_name[whole].shape)
    if axis is None:
      continue
    start = 0
    for _, part in sorted(numbered, key=lambda pair: pair[0]):
      offset = tuple(start if n == axis else 0 for n in range(len(part.shape)))
      sources.append(KeySource(part.name, whole, offset))
      start += part.shape[axis] or 0
  return sources


def _partitioned_axis(
  shapes: Sequence[tuple[int | None, ...]], whole: tuple[int, ...]
) -> int | None:
  """Returns the axis along which parts make the whole; None where they do not."""
  for axis in range(len(whole)):
    if any(len(shape) != len(whole) for shape in shapes):
      return None
    joined = sum(shape[axis] or 0 for shape in shapes)
    others = {shape[:axis] + shape[axis + 1 :] for shape in shapes}
    if joined == whole[axis] and others == {whole[:axis] + whole[axis + 1 :]}:
      return axis
  return None
