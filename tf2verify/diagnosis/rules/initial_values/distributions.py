"""Initial values that are drawn differently, or on one side only."""

from collections.abc import Mapping

from tf2verify.diagnosis.evidence.initial_values import OtherDistribution, SharedNumbers
from tf2verify.diagnosis.rules.rule import Sentence
from tf2verify.records.diagnosis import Cause
from tf2verify.records.initial_value import JudgedStart, Start
from tf2verify.records.wording import names_text

_DRAWN_BY: Mapping[str, str] = {
  'uniform': 'glorot_uniform (the default of tf.get_variable, tf.layers, slim and Keras), '
  'he_uniform and random_uniform draw uniformly',
  'truncated normal': 'glorot_normal, he_normal, variance_scaling and truncated_normal draw from '
  'a truncated normal distribution',
  'normal': 'random_normal draws from a normal distribution',
}
# 1.1368 of the numbers' own: 1 / 0.8796, the factor of `tf.initializers.variance_scaling`.
_BEFORE_TRUNCATION = (
  '; the standard deviation of a truncated normal distribution is the one before truncation, 1.137 '
  'times that of the numbers'
)


def other_distribution(evidence: OtherDistribution) -> Cause | None:
  """The port has another initializer."""
  tf1, tf2 = evidence.tf1, evidence.tf2
  names = [name for one in (evidence, *evidence.further) for name in one.names]
  whose = names[0] if len(names) == 1 else f'{len(names)} variables ({names_text(names)})'
  each = f' for {names_text(evidence.names)}' if evidence.further else ''
  more = len(evidence.further)
  pairs = '1 more such pair' if more == 1 else f'{more} more such pairs'
  others = f' ({pairs}, of other scales, for the others)' if more else ''
  text = (
    f'the initial value of {whose} is drawn from a different distribution: tf1 {tf1}; the port '
    f'{tf2}{each}{others}: '
    'give the port the initializer of tf1'
  )
  family = next((family for family in _DRAWN_BY if tf1.startswith(family)), '')
  if family and not tf2.startswith(family):
    text += f' ({_DRAWN_BY[family]})'
    if any(one.startswith('truncated') for one in (tf1, tf2)):
      text += _BEFORE_TRUNCATION
  return Cause(text)


DRAWN_ON_ONE_SIDE = Sentence[JudgedStart](
  lambda seen: seen.start is Start.NOT_DRAWN and bool(seen.tf1 or seen.tf2),
  'tf1: {0.tf1}; the port: {0.tf2}: initialize it in the same way on both sides',
)
SHARED_INITIALIZER = Sentence[SharedNumbers](
  lambda seen: seen.in_port,
  '{0.name} and {0.twin} start with exactly the same numbers in the port, but not in tf1: an '
  'unseeded Keras initializer object draws the same numbers at every call: make a separate '
  'initializer for every layer, or pass its name as a string',
)
SHARED_IN_TF1 = Sentence[SharedNumbers](
  lambda seen: not seen.in_port,
  '{0.name} and {0.twin} start with exactly the same numbers in tf1, but not in the port: start '
  '{0.name} with a copy of {0.twin}',
)
