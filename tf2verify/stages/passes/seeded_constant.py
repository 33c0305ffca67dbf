"""Rung 4: with one seed for all random ops, both sides start, compute and end the same."""

import dataclasses
import math
from collections.abc import Sequence

from tf2verify.numerics.telling import Blank
from tf2verify.records.observation import RandomDraw
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.proving import relate_training
from tf2verify.stages.comparison.regularization_in_total import settle
from tf2verify.stages.comparison.seeded.runs import SeededPair, constant_run
from tf2verify.stages.comparison.vacuity import OutputWatch
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

_NEXT = 'seeded_num_random_ops'


class SeededConstant(Stage):
  """Runs both sides from their own initial values; every random op has the same seed."""

  name = 'seeded_constant'
  needs = ('zero_randomness',)
  tried_when_blocked = tells_sure_starts = True
  proves = (
    'with one seed for all random ops, initial values, or the distributions that they are drawn '
    'from, outputs, regularization losses and the state after the call agree, in inference and in '
    'training'
  )

  def check_alone(self, case: CaseUnderTest) -> Findings:
    """Does the same without initial values that may differ by a wrong map alone."""
    return self.check(case, sure_starts=True)

  def check(self, case: CaseUnderTest, sure_starts: bool = False) -> Findings:
    """Compares a run per training mode."""
    comparison, outputs = Comparison(), OutputWatch()
    draws = False
    comparison.telling.told_elsewhere = (('output', Blank.ZERO),)
    for training in case.declaration.training_modes:
      pair = constant_run(comparison, case, training, sure_starts)
      outputs.add(pair.tf1)
      if training and (once := _once_for_all_steps(case.tf1.fixed_draws, pair.tf2_fixed)):
        comparison.undecide(once)
      draws = draws or _draws_in_computation(pair)
      del pair
      settle(case, comparison, case_fill(case))
    if not comparison.differences:
      comparison.blind_spots += outputs.notes()
    comparison.blind_spots += _fixed(case.tf1.fixed_draws)
    if draws and _NEXT in case.left_out:
      comparison.blind_spots.append(
        f'the model draws random numbers, and the case leaves {_NEXT} out: with one seed for all '
        'random ops, draws of one shape are the same numbers, so two exchanged draws, or a second '
        'draw in place of the first, go unnoticed'
      )
    proven = None
    if not comparison.differences and True in case.declaration.training_modes:
      proven = relate_training(case, comparison)
    return dataclasses.replace(comparison.findings(), proven=proven)


def _draws_in_computation(pair: SeededPair) -> bool:
  return any(draw.feeds_outputs for draw in pair.tf1_draws) or any(
    draw.variable is None and not draw.before_calls for draw in pair.tf2_draws
  )


def _fixed(draws: Sequence[RandomDraw]) -> list[str]:
  """Returns what to say of draws that fixed numbers stand for."""
  looped = [draw for draw in draws if draw.in_loop]
  if not looped:
    return []
  alike = [draw for draw in draws if not draw.in_loop]
  others = f', and of what is drawn like that, {_listed(alike)}' if alike else ''
  return [
    f'tf1 draws random numbers inside a loop, {_listed(looped)}, in an order that no seed fixes: '
    f'in place of these{others}, both sides were given fixed numbers, the same for all steps and '
    'examples. Rates and scales are compared, and what is dropped along the last axis; that every '
    'step and example draws its own numbers is not'
  ]


def _once_for_all_steps(tf1: Sequence[RandomDraw], tf2: Sequence[RandomDraw]) -> str:
  """Returns that a call of the port draws what tf1 draws in each step of a loop; '' if not.

  With the same numbers in all steps, no value shows that.
  """
  looped = [draw for draw in tf1 if draw.in_loop]
  wanted, found = _numbers(looped), _numbers(tf2)
  if len(looped) < len(tf1) or None in (wanted, found) or wanted != found:
    return ''
  return (
    f'a call of the port draws {found} random numbers where tf1 draws as many in each step of a '
    f'loop, {_listed(looped)}: if the loop takes more than one step, the port has one mask for all '
    'of them (as `dropout` of a Keras RNN), and DropoutWrapper of TF1 has one for each step'
  )


def _numbers(draws: Sequence[RandomDraw]) -> int | None:
  """Returns how many numbers some operations draw when each runs once; None if not known."""
  sizes = [math.prod(size or 0 for size in draw.shape) for draw in draws]
  return sum(sizes) if sizes and all(sizes) else None


def _listed(draws: Sequence[RandomDraw]) -> str:
  """Returns draws as text, those of one line once."""
  return '; '.join(dict.fromkeys(_at_line(draw) for draw in draws))


def _at_line(draw: RandomDraw) -> str:
  sizes = ', '.join('?' if size is None else str(size) for size in draw.shape)
  where = '' if draw.source is None else f' at {draw.source.path}:{draw.source.line}'
  return f'{draw.op_type} ({sizes}){where}'
