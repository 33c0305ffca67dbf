"""Initial values that are drawn differently, or on one side only."""

from collections.abc import Mapping

from tf2verify.diagnosis.evidence.initial_values import OtherDistribution, SharedNumbers
from tf2verify.diagnosis.wording import names_text
from tf2verify.records.diagnosis import Cause
from tf2verify.records.initial_value import JudgedStart, Start

_DRAWN_BY: Mapping[str, str] = {
  'uniform': 'glorot_uniform (the default of tf.get_variable, tf.layers, slim and Keras), '
  'he_uniform and random_uniform draw uniformly',
  'truncated normal': 'glorot_normal, he_normal, variance_scaling and truncated_normal draw from '
  'a truncated normal distribution',
  'normal': 'random_normal draws from a normal distribution',
}


def other_distribution(evidence: OtherDistribution) -> Cause | None:
  """The port has another initializer."""
  tf1, tf2, names = evidence.tf1, evidence.tf2, evidence.names
  whose = names[0] if len(names) == 1 else f'{len(names)} variables ({names_text(names)})'
  text = (
    f'the initial value of {whose} is drawn from another distribution: tf1 {tf1}; the port {tf2}: '
    'give the port the initializer of tf1'
  )
  family = next((family for family in _DRAWN_BY if tf1.startswith(family)), '')
  if family and not tf2.startswith(family):
    text += f' ({_DRAWN_BY[family]})'
  return Cause(text)


def drawn_on_one_side(evidence: JudgedStart) -> Cause | None:
  """One side draws the value, the other does not."""
  if evidence.start is not Start.NOT_DRAWN or not (evidence.tf1 or evidence.tf2):
    return None
  return Cause(f'tf1: {evidence.tf1}; the port: {evidence.tf2}: start it alike on both sides')


def shared_numbers(evidence: SharedNumbers) -> Cause | None:
  """One initializer object, or one variable, serves for two."""
  if evidence.in_port:
    return Cause(
      f'{evidence.name} starts with the very numbers of {evidence.twin} in the port, not so in '
      'tf1: an unseeded Keras initializer object draws the same numbers at every call: make an '
      'initializer of its own for every layer, or pass its name as a string'
    )
  return Cause(
    f'{evidence.name} starts with the very numbers of {evidence.twin} in tf1, not so in the port: '
    'start it with a copy of that variable'
  )
