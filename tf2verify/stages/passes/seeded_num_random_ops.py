"""Rung 5: the same with one seed per random op, so that their order counts."""

import dataclasses
import gc
from collections.abc import Sequence

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import RandomDraw
from tf2verify.records.side_by_side import RandomOps
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.large_graphs import LargeGraphs
from tf2verify.stages.comparison.seeded.runs import numbered_run
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class SeededNumRandomOps(Stage):
  """Runs both sides from initial values whose seeds count the random ops."""

  name = 'seeded_num_random_ops'
  needs = ('seeded_constant',)
  tried_when_blocked = True
  proves = 'the same with one seed per random op: also the order of random ops is the same'

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares a run per training mode, and the order of random ops where values differ."""
    comparison = Comparison()
    names = {tf2_name: tf1_name for tf1_name, tf2_name in case.alignment().pairs}
    notes: list[str] = []
    orders: list[RandomOps] = []
    draws = 0
    variables_first: list[str] = []
    harmless = False
    large = LargeGraphs(case)
    for training in case.declaration.training_modes:
      before = len(comparison.differences)
      pair, comparison = numbered_run(comparison, case, training, large.reader(training))
      tf1, tf2 = pair.tf1, pair.tf2
      draws += len(tf1.random_draws)
      variables_first += [tf1.run] if pair.variables_first else []
      notes += [*_idle_notes('tf1', pair.idle), *_idle_notes('the port', pair.port_idle)]
      first = first_order_difference(tf1.random_draws, tf2.random_draws, names, tf1.run)
      differs = len(comparison.differences) > before
      for once in draws_made_once(pair.tf1_draws, pair.tf2_draws, tf1.run):
        comparison.add(once)
      if first is not None:
        orders.append(_side_by_side(tf1.random_draws, tf2.random_draws, names, tf1.run))
      if first is not None and differs:
        comparison.add(first)
      elif first is not None:
        notes.append(_harmless_text(first))
        harmless = True
      elif differs:
        notes.append(
          f'in {tf1.run} the random ops of both sides have the same types, shapes and variables: '
          'two of a kind have changed places, one seed serves two of them, or what is computed of '
          'them differs'
        )
      del tf1, tf2, pair
      gc.collect()
    if variables_first:
      notes.append(
        f'in {"; ".join(variables_first)}: the port draws initial values in a different order, or '
        'with '
        "different operations, so its variables were set to tf1's values first, and only the "
        'random '
        'ops of the computation were numbered, on both sides'
      )
    if not comparison.differences and (draws or not variables_first) and not harmless:
      notes.append(f'{draws:,} random op{"" if draws == 1 else "s"} in the same order')
    proven = None if comparison.differences else large.relate(comparison)
    return dataclasses.replace(comparison.findings(notes), random_ops=tuple(orders), proven=proven)


def _side_by_side(
  tf1: Sequence[RandomDraw], tf2: Sequence[RandomDraw], tf1_names: dict[str, str], run: str
) -> RandomOps:
  renamed = [
    dataclasses.replace(draw, variable=tf1_names.get(draw.variable, draw.variable))
    if draw.variable
    else draw
    for draw in tf2
  ]
  return RandomOps(
    run,
    tuple(str(draw) for draw in tf1),
    tuple(str(draw) for draw in renamed),
    tuple(str(draw.source or '') for draw in tf1),
    tuple(str(draw.source or '') for draw in tf2),
  )


def _idle_notes(side: str, draws: Sequence[RandomDraw]) -> list[str]:
  if not draws:
    return []
  more = f', and {len(draws) - 1} more' if len(draws) > 1 else ''
  return [
    f'not counted, since the outputs are the same whatever {side} draws there: '
    f'{_draw_text(draws[0])}{more}'
  ]


def _harmless_text(first: Difference) -> str:
  return (
    f'all values agree in {first.run} although the random ops differ from {first.subject} on: '
    f'tf1 {first.tf1}; tf2 {first.tf2}'
  )


def _same_draw(tf1: RandomDraw, tf2: RandomDraw, tf1_names: dict[str, str]) -> bool:
  name = tf1_names.get(tf2.variable, tf2.variable) if tf2.variable else None
  shapes = len(tf1.shape) == len(tf2.shape) and all(
    one == other or one is None or other is None
    for one, other in zip(tf1.shape, tf2.shape, strict=True)
  )
  unknown = tf1.shape == (None,) or tf2.shape == (None,)
  return tf1.op_type == tf2.op_type and tf1.variable == name and (shapes or unknown)


def first_order_difference(
  tf1: Sequence[RandomDraw], tf2: Sequence[RandomDraw], tf1_names: dict[str, str], run: str
) -> Difference | None:
  """Returns the first random op whose type, shape or variable differs; None if none does.

  Args:
    tf1: the random ops of the tf1 side in order.
    tf2: those of the tf2 side.
    tf1_names: from tf2 to tf1 variable names.
    run: for the report.
  """
  for number in range(max(len(tf1), len(tf2))):
    one = tf1[number] if number < len(tf1) else None
    other = tf2[number] if number < len(tf2) else None
    if one and other and _same_draw(one, other, tf1_names):
      continue
    per_step = _drawn_per_step(tf1, tf2, one)
    return Difference(
      'random op',
      f'number {number} (of {len(tf1)} in tf1, {len(tf2)} in tf2)',
      Aspect.ORDER,
      _draw_text(one),
      _draw_text(other),
      run,
      hint=per_step
      or 'the order of random ops differs from there on (an additional, missing or moved dropout '
      'or other random op): draw as tf1 does, or set tf2verify.random_tool().operation_seed if '
      'the port draws in a different, known order',
    )
  return None


def _drawn_per_step(
  tf1: Sequence[RandomDraw], tf2: Sequence[RandomDraw], first: RandomDraw | None
) -> str:
  """Returns the hint where the port draws once what tf1 draws several times; '' elsewhere."""
  if first is None or first.variable:
    return ''
  counts = [
    sum(
      (draw.op_type, draw.shape, draw.variable) == (first.op_type, first.shape, None) for draw in d
    )
    for d in (tf1, tf2)
  ]
  if counts[0] < 2 or counts[1] != 1:
    return ''
  return (
    f'tf1 draws {_draw_name(first)} {counts[0]} times and the port once: either a mask per step in '
    'tf1 (DropoutWrapper) and one for all steps in the port (dropout and recurrent_dropout of a '
    'Keras RNN): apply tf.nn.dropout in the step; or a dropout that the port leaves out'
  )


def draws_made_once(
  tf1: Sequence[RandomDraw], tf2: Sequence[RandomDraw], run: str
) -> list[Difference]:
  """Returns the draws that the port makes once, although every run of tf1 makes them anew.

  The first call uses the same numbers as tf1; that all later ones use them too, no
  comparison of values shows. So this goes by the ops: fewer draws of a type and
  shape in the call than tf1's outputs are computed from, and one while the layer
  was made.
  """
  differences = []
  for made in tf2:
    if not made.before_calls:
      continue
    kind = made.op_type, made.shape
    in_run = [draw for draw in tf1 if draw.feeds_outputs and (draw.op_type, draw.shape) == kind]
    in_call = [
      draw
      for draw in tf2
      if (draw.op_type, draw.shape) == kind and not draw.variable and not draw.before_calls
    ]
    if len(in_call) < len(in_run):
      differences.append(
        Difference(
          'random op',
          _draw_name(made),
          Aspect.PRESENCE,
          f'{_draw_text(in_run[len(in_call)])}; every run draws again',
          f'{_draw_text(made)}; drawn once, in make_tf2_layer',
          run,
          hint='every call of the port uses the same random numbers, which were drawn while the '
          'layer was made: draw them in call',
        )
      )
  return differences


def _draw_name(draw: RandomDraw) -> str:
  return f'{draw.op_type} {draw.shape}'


def _draw_text(draw: RandomDraw | None) -> str:
  if draw is None:
    return 'no random op left'
  return f'{draw}, at {draw.source}' if draw.source else str(draw)
