"""Why training parts: known reasons, each verified with the numbers of both runs."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tf2verify.numerics.gradient_clips import Clip
from tf2verify.records.difference import Difference
from tf2verify.records.training import TrainingRun
from tf2verify.stages.training.causes.amsgrad import amsgrad
from tf2verify.stages.training.causes.averages import moving_average
from tf2verify.stages.training.causes.cause import About, Cause, Search
from tf2verify.stages.training.causes.clipping import clipping
from tf2verify.stages.training.causes.counts import count_of_steps
from tf2verify.stages.training.causes.evidence import Evidence
from tf2verify.stages.training.causes.learning_rates import learning_rate
from tf2verify.stages.training.causes.losses import (
  loss_factor,
  loss_of_next_step,
  regularization_left_out,
)
from tf2verify.stages.training.causes.parts import (
  averages_at_rest,
  lazy_rows,
  pruned,
  step_at_rest,
)
from tf2verify.stages.training.causes.updates import update_rule

# What explains a difference first is its hint.
SEARCHES: tuple[Search, ...] = (
  loss_of_next_step,
  regularization_left_out,
  loss_factor,
  step_at_rest,
  averages_at_rest,
  pruned,
  clipping,
  lazy_rows,
  update_rule,
  amsgrad,
  count_of_steps,
  learning_rate,
  moving_average,
)


def causes(
  tf1: TrainingRun,
  tf2: TrainingRun,
  pairs: Sequence[tuple[str, str]],
  number: int,
  rounding: Collection[str] = (),
  clip_beyond: Callable[[], Clip | None] = lambda: None,
  rounding_elements: Mapping[str, np.ndarray] | None = None,
) -> tuple[Cause, ...]:
  """Returns the causes that the numbers show.

  Args:
    tf1: the reference's run.
    tf2: the port's, with as many steps.
    pairs: variable names of tf1 and tf2.
    number: of the first step that differs, from 1.
    rounding: tf1 names of variables whose gradients differ by no more than their noise.
    clip_beyond: see `Evidence`.
    rounding_elements: see `Evidence`.
  """
  evidence = Evidence(tf1, tf2, pairs, number, rounding, clip_beyond, rounding_elements)
  found = (search(evidence) for search in SEARCHES)
  return tuple(cause for cause in found if cause is not None)


def explained(
  difference: Difference, about: About, variable: str, known: Sequence[Cause]
) -> Difference:
  """Returns a difference with the first cause that explains it as its hint.

  Args:
    difference: of the first step that differs.
    about: what differs.
    variable: whose, by its tf1 name; '' where it is of none.
    known: from `causes`.
  """
  for cause in known:
    if about in cause.explains and (not cause.variables or variable in cause.variables):
      return dataclasses.replace(difference, hint=cause.text)
  return difference
