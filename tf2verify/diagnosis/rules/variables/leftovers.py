"""What the variables that only one side has tell about the port."""

import functools
from collections.abc import Sequence

from tf2verify.diagnosis.evidence.variables import (
  CopiedScope,
  ExtraVariables,
  Leftovers,
  MissingVariables,
)
from tf2verify.records.diagnosis import Cause
from tf2verify.records.observation import VariableRecord
from tf2verify.relation.names.roles import owner, role

_KERNELS = ('kernel', 'depthwise_kernel', 'pointwise_kernel')
# The variable of a normalization layer, and the argument that gives or takes it.
_NORMALIZATION = {'gamma': 'scale', 'beta': 'center'}
_STATISTICS = ('beta', 'gamma', 'moving_mean', 'moving_variance')
# The projections of tf.contrib.seq2seq's attention mechanisms.
_PROJECTIONS = ('memory_layer', 'query_layer')


def _together(found: Sequence[tuple[str, str]], advice: str) -> Cause | None:
  """Returns one text for all of (name, evidence): that of the first, and how many there are."""
  if not found:
    return None
  more = f', and {len(found) - 1} more like it' if len(found) > 1 else ''
  text = f'{found[0][0]}{more}: {found[0][1]}: {advice}'
  return Cause(text, variables=tuple(name for name, _ in found))


def _lacking(
  leftovers: Leftovers, wanted: str, roles: Sequence[str]
) -> list[tuple[VariableRecord, VariableRecord]]:
  """Returns leftovers in a role beside one of some roles, whose layer lacks that role there."""
  beside = leftovers.beside(roles)
  there = leftovers.roles_there()
  return [
    (variable, beside[scope])
    for variable in leftovers.variables
    for scope in (owner(variable.name),)
    if role(variable.name) == wanted
    and scope in beside
    and (owner(beside[scope].name), wanted) not in there
    and not leftovers.may_be_renamed(variable)
  ]


def _extra_of_normalization(wanted: str, evidence: ExtraVariables) -> Cause | None:
  """The port's normalization layers have a variable that those of tf1 lack."""
  default = ', as slim.batch_norm does by default (scale=False)' if wanted == 'gamma' else ''
  found = [
    (variable.name, f'tf1 has {other.name} without a {wanted}{default}')
    for variable, other in _lacking(evidence.of_port, wanted, _STATISTICS)
  ]
  return _together(found, f'pass {_NORMALIZATION[wanted]}=False')


def _missing_of_normalization(wanted: str, evidence: MissingVariables) -> Cause | None:
  """The normalization layers of tf1 have a variable that the port's lack."""
  found = [
    (variable.name, f'the port has {other.name} without a {wanted}')
    for variable, other in _lacking(evidence.of_tf1, wanted, _STATISTICS)
  ]
  return _together(found, f'pass {_NORMALIZATION[wanted]}=True')


EXTRA_SCALE = functools.partial(_extra_of_normalization, 'gamma')
EXTRA_CENTER = functools.partial(_extra_of_normalization, 'beta')
MISSING_SCALE = functools.partial(_missing_of_normalization, 'gamma')
MISSING_CENTER = functools.partial(_missing_of_normalization, 'beta')


def _biases(leftovers: Leftovers) -> list[tuple[VariableRecord, VariableRecord]]:
  """Returns (bias, kernel of the other side) where that side has a kernel without a bias."""
  return _lacking(leftovers, 'bias', _KERNELS)


def extra_bias_of_normalized(evidence: ExtraVariables) -> Cause | None:
  """A kernel has a bias in the port, and a normalization layer in tf1."""
  found = [
    (
      bias.name,
      f'tf1 has {kernel.name} without a bias, and {norm.name} of its shape instead (slim creates '
      'no '
      'biases with a normalizer_fn)',
    )
    for bias, kernel in _biases(evidence.of_port)
    for norm in (_normalization_of(kernel, bias, evidence.of_port),)
    if norm is not None
  ]
  return _together(found, 'pass use_bias=False')


def extra_bias(evidence: ExtraVariables) -> Cause | None:
  """A kernel has a bias in the port alone."""
  found = [
    (bias.name, f'tf1 has {kernel.name} without a bias')
    for bias, kernel in _biases(evidence.of_port)
    if _normalization_of(kernel, bias, evidence.of_port) is None
  ]
  return _together(found, 'pass use_bias=False')


def _normalization_of(
  kernel: VariableRecord, bias: VariableRecord, leftovers: Leftovers
) -> VariableRecord | None:
  """Returns a variable of a normalization layer beside a kernel, in the shape of a bias."""
  scope = owner(kernel.name) + '/'
  found = (
    other
    for other in leftovers.there
    if other.name.startswith(scope)
    and role(other.name) in _STATISTICS
    and other.shape == bias.shape
  )
  return next(found, None)


def missing_bias(evidence: MissingVariables) -> Cause | None:
  """A kernel has a bias in tf1 alone."""
  found = [
    (bias.name, f'the port has {kernel.name} without a bias')
    for bias, kernel in _biases(evidence.of_tf1)
  ]
  return _together(found, 'pass use_bias=True')


def untied_weights(evidence: ExtraVariables) -> Cause | None:
  """A variable has the transposed shape of one that both sides have.

  Where tf1 has tables alone as well, they are those of other layers that could not be paired.
  """
  leftovers = evidence.of_port
  if any(len(other.shape) > 1 for other in leftovers.left_there):
    return None
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
  return _together(
    found,
    'if tf1 multiplies by that table again (transpose_b=True), tie the weights in the same way',
  )


def attention_projections(evidence: MissingVariables) -> Cause | None:
  """Keras' attention layers have no projections."""
  names = [v.name for v in evidence.of_tf1.variables]
  found = [name for name in names if owner(name).split('/')[-1] in _PROJECTIONS]
  if not found:
    return None
  return Cause(
    f'{", ".join(found)}: the projections of an attention mechanism of TF1; Attention and '
    'AdditiveAttention of Keras have none: put Dense layers before them',
    variables=tuple(found),
  )


def two_objects_for_one(evidence: CopiedScope) -> Cause | None:
  """The port makes anew what tf1 uses again."""
  if not evidence.in_port:
    return None
  return Cause(
    f'{evidence.scope}: the port has the variables of {evidence.twin} a second time '
    f'({_short(evidence)}), tf1 has them once: where tf1 uses them again (reuse=True), call one '
    'layer object again',
    variables=evidence.names,
  )


def one_object_for_two(evidence: CopiedScope) -> Cause | None:
  """The port uses again what tf1 makes anew."""
  if evidence.in_port:
    return None
  return Cause(
    f'{evidence.scope}: tf1 has it in addition to {evidence.twin}, with the same variables '
    f'({_short(evidence)}), the port has {evidence.twin} only: where one object serves for both '
    '([layer] * n), make one for each',
    variables=evidence.names,
  )


def _short(evidence: CopiedScope) -> str:
  names = evidence.names
  shown = ', '.join(name.removeprefix(f'{evidence.scope}/') for name in names[:4])
  return shown + (f', … {len(names) - 4} more' if len(names) > 4 else '')
