"""Regularization losses of both sides, brought to the same groups of variables."""

from collections.abc import Iterable

import numpy as np

from tf2verify.records.observation import RegularizationLoss

LossesByVariables = dict[tuple[str, ...], np.ndarray]


def by_variables(
  losses: Iterable[RegularizationLoss], tf1_names: dict[str, str]
) -> LossesByVariables:
  """Adds up the losses that read the same variables, by the tf1 names of those."""
  found: LossesByVariables = {}
  for loss in losses:
    key = tuple(sorted(tf1_names.get(name, name) for name in loss.variables))
    # The shim makes a zero of every Keras layer without regularizers.
    if key or np.any(loss.value):
      _add_loss(found, key, loss.value)
  return found


def _add_loss(losses: LossesByVariables, key: tuple[str, ...], value: np.ndarray) -> None:
  losses[key] = np.asarray(losses[key] + value, value.dtype) if key in losses else value


def by_common_groups(
  ones: LossesByVariables, others: LossesByVariables
) -> tuple[LossesByVariables, LossesByVariables]:
  """Adds up, on both sides, the losses whose variables overlap: the shim has one per layer."""
  groups: list[set[str]] = []
  for key in (*ones, *others):
    overlapping = [group for group in groups if group & set(key)]
    groups = [group for group in groups if group not in overlapping]
    groups.append(set(key).union(*overlapping))
  group_of = {name: tuple(sorted(group)) for group in groups for name in group}

  def regrouped(losses: LossesByVariables) -> LossesByVariables:
    found: LossesByVariables = {}
    for key, value in losses.items():
      _add_loss(found, group_of[key[0]] if key else (), value)
    return found

  return regrouped(ones), regrouped(others)
