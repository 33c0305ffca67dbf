"""Rung 4: with one seed for all random ops, both sides start, compute and end the same."""

from tf2verify.sides.process import randomness
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.vacuity import OutputWatch
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class SeededConstant(Stage):
  """Runs both sides from their own initial values; every random op has the same seed."""

  name = 'seeded_constant'
  needs = ('zero_randomness',)
  proves = (
    'with one seed for all random ops, initial values, outputs, regularization losses and the '
    'state after the call agree, in inference and in training'
  )

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares a run per training mode."""
    comparison, outputs = Comparison(), OutputWatch()
    for training in case.declaration.training_modes:
      tf1, _ = comparison.seeded_run(case, randomness.CONSTANT, training)
      outputs.add(tf1)
      del tf1, _
    if not comparison.differences:
      comparison.blind_spots += outputs.notes()
    return comparison.findings()
