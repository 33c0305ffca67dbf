"""Rung 4: with one seed for all random ops, both sides start, compute and end the same."""

import dataclasses

from tf2verify.numerics.telling import Blank
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proving import relate_training
from tf2verify.stages.comparison.regularization_in_total import settle
from tf2verify.stages.comparison.seeded_runs import SeededPair, constant_run
from tf2verify.stages.comparison.vacuity import OutputWatch
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

_NEXT = 'seeded_num_random_ops'


class SeededConstant(Stage):
  """Runs both sides from their own initial values; every random op has the same seed."""

  name = 'seeded_constant'
  needs = ('zero_randomness',)
  proves = (
    'with one seed for all random ops, initial values, or the distributions that they are drawn '
    'from, outputs, regularization losses and the state after the call agree, in inference and in '
    'training'
  )

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares a run per training mode."""
    comparison, outputs = Comparison(), OutputWatch()
    draws = False
    comparison.telling.told_elsewhere = (('output', Blank.ZERO),)
    for training in case.declaration.training_modes:
      pair = constant_run(comparison, case, training)
      outputs.add(pair.tf1)
      draws = draws or _draws_in_computation(pair)
      del pair
      settle(case, comparison, case_fill(case))
    if not comparison.differences:
      comparison.blind_spots += outputs.notes()
    if draws and _NEXT in case.left_out:
      comparison.blind_spots.append(
        f'the model draws random numbers, and the case leaves {_NEXT} out: with one seed for all '
        'random ops, draws of one shape are the same numbers, so two that are exchanged, and a '
        'second draw in place of the first, do not show'
      )
    proven = None
    if not comparison.differences and True in case.declaration.training_modes:
      proven = relate_training(case, comparison)
    return dataclasses.replace(comparison.findings(), proven=proven)


def _draws_in_computation(pair: SeededPair) -> bool:
  return any(draw.feeds_outputs for draw in pair.tf1_draws) or any(
    draw.variable is None and not draw.before_calls for draw in pair.tf2_draws
  )
