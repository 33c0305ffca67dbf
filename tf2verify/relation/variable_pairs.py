"""Paired variables compared as what they are: shape, dtype, trainability, role."""

import posixpath
from collections.abc import Collection, Iterator, Sequence

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import VariableRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.wording import listed
from tf2verify.relation.layouts.variable_layouts import layout_of
from tf2verify.relation.names.roles import owner

VARIABLE = 'variable'
# No variable of one of these names serves as another of them.
_NORMALIZATION = ('beta', 'gamma', 'moving_mean', 'moving_variance')

# Of variables with one slip, those that are named.
_NAMED = 3
# What is said of a variable that is float64 in tf1 alone.
FLOATX = "Keras casts to floatx: pass dtype='float64' to the layer"
_Pair = tuple[VariableRecord, VariableRecord]


def described(variable: VariableRecord) -> str:
  """Returns shape, dtype and origin of a variable, for reports."""
  where = f', created at {variable.source.with_layer()}' if variable.source else ''
  return f'{_shape(variable)} {variable.dtype}{where}'


def compare_pairs(
  pairs: Sequence[_Pair], of_doubles: str = FLOATX, trained_by_tf1: Collection[str] | None = None
) -> tuple[list[Difference], list[str]]:
  """Compares the attributes of paired variables.

  Args:
    pairs: (tf1, tf2).
    of_doubles: what is said of a variable that is float64 in tf1 alone.
    trained_by_tf1: the variables that its train op moves by gradients; None where that is not
      known.

  Returns:
    The differences, and notes on what looks like one and is none.
  """
  differences: list[Difference] = []
  notes: list[str] = []
  trained = {owner(tf2.name) for _, tf2 in pairs if tf2.trainable}
  flags: dict[str, list[_Pair]] = {}
  frozen: list[_Pair] = []
  for tf1, tf2 in pairs:
    layout = layout_of(tf1, tf2)
    if layout is None:
      differences += _attributes(tf1, tf2, of_doubles)
    else:
      notes.append(
        f'{_key(tf1, tf2).subject} is {_shape(tf1)} in tf1 and {_shape(tf2)} in the port, the same '
        'but for axes of length 1: its values are compared in the shape of tf1'
      )
    if tf1.trainable == tf2.trainable:
      continue
    if tf1.trainable and not tf1.trainable_flag:
      # FaceNet's batch norm: variables_collections names TRAINABLE_VARIABLES.
      notes.append(
        f'{_key(tf1, tf2).subject} is in TRAINABLE_VARIABLES of tf1 although it was made with '
        'trainable=False (variables_collections): a quirk of the reference, no fault of the port'
      )
    elif tf1.trainable and trained_by_tf1 is not None and tf1.name not in trained_by_tf1:
      frozen.append((tf1, tf2))
    else:
      is_known = trained_by_tf1 is not None
      slip = _flag_slip(tf1, tf2, owner(tf2.name) in trained, is_known)
      flags.setdefault(slip, []).append((tf1, tf2))
  if frozen:
    notes.append(
      f'{_called(frozen, pairs)} frozen in the port, and in TRAINABLE_VARIABLES of tf1, whose '
      'train op moves nothing there by a gradient: neither side trains that'
    )
  for slip, alike in flags.items():
    differences += _trainability(slip, alike, pairs)
  return differences + _crossed(pairs), notes


def _key(tf1: VariableRecord, tf2: VariableRecord) -> TensorKey:
  return TensorKey(VARIABLE, tf1.name, port_name=tf2.name)


def _shape(variable: VariableRecord) -> str:
  return '(' + ', '.join('?' if s is None else str(s) for s in variable.shape) + ')'


def _attributes(tf1: VariableRecord, tf2: VariableRecord, of_doubles: str) -> list[Difference]:
  key, found = _key(tf1, tf2), []
  if tf1.shape != tf2.shape:
    hint = _shape_hint(tf1, tf2)
    found.append(Difference.of(key, Aspect.SHAPE, described(tf1), described(tf2), hint=hint))
  if tf1.dtype != tf2.dtype:
    hint = ''
    if (tf1.dtype, tf2.dtype) == ('float64', 'float32'):
      hint = of_doubles
    found.append(Difference.of(key, Aspect.DTYPE, described(tf1), described(tf2), hint=hint))
  return found


def _shape_hint(tf1: VariableRecord, tf2: VariableRecord) -> str:
  if tf2.name.endswith('bias') and tf2.shape == (2, *tf1.shape):
    return (
      f'{tf2.name} {_shape(tf2)} is the bias of a Keras GRU with reset_after=True, the default of '
      'TF2; GRUCell of TF1 resets before the product: pass reset_after=False'
    )
  if len(tf1.shape) == len(tf2.shape) == 2 and tf1.shape == tf2.shape[::-1]:
    return f'{tf2.name} is transposed: {_shape(tf1)} in tf1, {_shape(tf2)} in the port'
  if None not in tf1.shape + tf2.shape and sorted(map(str, tf1.shape)) == sorted(
    map(str, tf2.shape)
  ):
    return f'{tf2.name} has the sizes of {tf1.name} in a different order: its axes are permuted'
  return ''


def _flag_slip(
  tf1: VariableRecord, tf2: VariableRecord, owner_is_trained: bool, is_trained: bool
) -> str:
  """Returns what to say of a variable, after its name, that one side alone trains."""
  if not tf1.trainable:
    return 'frozen in tf1 but would be trained in tf2: pass trainable=False'
  if tf2.trainable_flag and owner_is_trained:
    return (
      'missing from layer.trainable_variables although its own flag is True and its layer is not '
      'frozen: if a list is filtered by `v not in frozen`, `in` compares values in TF2, so a '
      'variable of equal value is lost, too: compare v.ref()'
    )
  if is_trained:
    return (
      'trained by the train op of tf1 but frozen in the port: layer.trainable=False, or a lost '
      'collection'
    )
  return (
    'trainable in tf1 but frozen in the port: layer.trainable=False, or a lost collection (what no '
    'train op of tf1 updates may be trainable in the port, too)'
  )


def _trainability(
  slip: str, alike: Sequence[_Pair], pairs: Sequence[_Pair]
) -> Iterator[Difference]:
  """Yields the differences of variables with one slip, which is said once, with their names."""
  said = _called(alike, pairs)
  for tf1, tf2 in alike:
    where = f', created at {tf2.source.with_layer()}' if tf2.source else ''
    yield Difference.of(
      _key(tf1, tf2),
      Aspect.TRAINABLE,
      _trained(tf1, 'TRAINABLE_VARIABLES'),
      f'{_trained(tf2, "layer.trainable_variables")}{where}',
      hint=f'{said} {slip}',
    )


def _called(alike: Sequence[_Pair], pairs: Sequence[_Pair]) -> str:
  """Returns the names of some pairs as the subject of a sentence, with its verb."""
  names = [_key(*pair).subject for pair in alike]
  scope = _scope_of(alike, pairs)
  if scope:
    return f'all {len(names)} variables of {scope} are'
  if len(names) > _NAMED:
    return f'{listed(names, _NAMED)} are'
  *others, last = names
  return f'{", ".join(others)} and {last} are' if others else f'{last} is'


def _trained(variable: VariableRecord, listed: str) -> str:
  flag = f'trainable={variable.trainable_flag}'
  if variable.trainable == variable.trainable_flag:
    return f'{"" if variable.trainable else "not "}in {listed} ({flag})'
  return f'{"" if variable.trainable else "not "}in {listed}, although its own flag is {flag}'


def _scope_of(alike: Sequence[_Pair], pairs: Sequence[_Pair]) -> str:
  """Returns the tf1 scope of which these are all variables, and not all there are; ''."""
  scope = posixpath.commonpath([tf1.name for tf1, _ in alike]) if len(alike) > 1 else ''
  inside = sum(tf1.name.startswith(f'{scope}/') for tf1, _ in pairs)
  return scope if scope and inside == len(alike) < len(pairs) else ''


def _crossed(pairs: Sequence[_Pair]) -> list[Difference]:
  """Returns the pairs of a beta and a gamma, say, where the port's layer has a beta too."""
  here = {tf2.name: tf2 for _, tf2 in pairs}
  found = []
  for tf1, tf2 in pairs:
    role, other = tf1.name.split('/')[-1], tf2.name.split('/')[-1]
    if role == other or not {role, other}.issubset(_NORMALIZATION):
      continue
    scope = owner(tf2.name)
    right = here.get(f'{scope}/{role}' if scope else role)
    if right is not None and right.shape == tf2.shape:
      found.append(
        Difference.of(
          _key(tf1, tf2),
          Aspect.ORDER,
          f'{tf1.name}, a {role}',
          f'{tf2.name}, a {other}; the port has {right.name} as well',
          hint=f'variable_names pairs {tf1.name} with {tf2.name} although the port has '
          f'{right.name}: the names were paired by position (zip), and their shapes agree by '
          'chance; pair them by name',
        )
      )
  return found
