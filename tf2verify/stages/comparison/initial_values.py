"""Why initial values differ, as far as the random ops of a run tell."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.records.difference import Difference
from tf2verify.records.observation import Observation

# Part of the type of a random op, and what it draws from; the longer name first.
_DISTRIBUTIONS = (
  ('TruncatedNormal', 'truncated normal'),
  ('Normal', 'normal'),
  ('Uniform', 'uniform'),
)
_DRAWN_BY: Mapping[str, str] = {
  'uniform': 'glorot_uniform (the default of tf.get_variable, tf.layers, slim and Keras), '
  'he_uniform and random_uniform draw so',
  'truncated normal': 'glorot_normal, he_normal, variance_scaling and truncated_normal draw so',
  'normal': 'random_normal draws so',
}


def explained(
  difference: Difference, tf1: Observation, tf2: Observation, pairs: Sequence[tuple[str, str]]
) -> Difference:
  """Returns a difference of initial values with a hint, where the run tells the cause.

  Args:
    difference: a finding of the run.
    tf1: the run of the tf1 side.
    tf2: the same run of the tf2 side.
    pairs: tf1 and tf2 names of the variables.
  """
  if difference.quantity != 'initial value' or difference.run != tf1.run or difference.hint:
    return difference
  name = difference.subject.partition(' (tf2: ')[0]
  hint = _one_initializer(name, tf1, tf2, dict(pairs)) or _seed(name, tf1, tf2, dict(pairs))
  return dataclasses.replace(difference, hint=hint)


def _one_initializer(
  name: str, tf1: Observation, tf2: Observation, tf2_names: Mapping[str, str]
) -> str:
  """Tells of another variable of the port that starts with the same random numbers."""
  ones = {record.name: record.value for record in tf1.initial_values}
  others = {record.name: record.value for record in tf2.initial_values}
  for twin, twin_in_tf2 in tf2_names.items():
    if twin == name:
      continue
    if not _same_numbers(others.get(tf2_names.get(name, '')), others.get(twin_in_tf2)):
      continue
    if not _same_numbers(ones.get(name), ones.get(twin)):
      return (
        f'{name} starts with the very numbers of {twin} in the port, not so in tf1: an unseeded '
        'Keras initializer object draws the same numbers at every call: make an initializer of '
        'its own for every layer, or pass its name as a string'
      )
  return ''


def _same_numbers(one: np.ndarray | None, other: np.ndarray | None) -> bool:
  """Tells whether two arrays hold the same numbers, and not one number only."""
  if one is None or other is None or one.shape != other.shape or one.size < 2:
    return False
  return bool((one == other).all()) and bool((one != one.flat[0]).any())


def _kind(op_type: str) -> str:
  """Returns the distribution that a random op draws from; its type where that is not known."""
  for known, distribution in _DISTRIBUTIONS:
    if known in op_type:
      return distribution
  return op_type


def _distribution(one: str, other: str) -> str:
  """Tells of two initializers of other kinds; '' for two of one."""
  kinds = [_kind(op_type) for op_type in (one, other)]
  if kinds[0] == kinds[1]:
    return ''
  return (
    f'the initializer of tf1 draws from a {kinds[0]} distribution ({one}), that of the port from a '
    f'{kinds[1]} one ({other}): {_DRAWN_BY[kinds[0]]}; pass one of these to the port'
    if kinds[0] in _DRAWN_BY
    else f'tf1 draws it by {one}, the port by {other}: take the same initializer on both sides'
  )


def _seed(name: str, tf1: Observation, tf2: Observation, tf2_names: Mapping[str, str]) -> str:
  """Tells of a variable that a stateful op draws on one side and a stateless one on the other."""
  kinds = [
    {draw.op_type for draw in side.random_draws if draw.variable == variable}
    for side, variable in ((tf1, name), (tf2, tf2_names.get(name, name)))
  ]
  if any(len(kind) != 1 for kind in kinds):
    return ''
  one, other = kinds[0].pop(), kinds[1].pop()
  unlike = _distribution(one, other)
  if one.startswith('Stateless') == other.startswith('Stateless'):
    return unlike
  # tf.compat.v1.layers without an initializer takes that of Keras.
  fix = 'tf.compat.v1 for variables of TF1'
  if one.startswith('Stateless'):
    fix = 'tf1 has one of Keras here, as tf.compat.v1.layers does by default: take that, not one '
    fix += 'of tf.compat.v1'
  return (
    f'{name} is drawn by {one} in tf1 and by {other} in the port, which make other numbers of one '
    'seed: a seed means nothing across the two: take the same initializer on both sides '
    f'({fix}), at least for this check' + (f'. Beside that, {unlike}' if unlike else '')
  )
