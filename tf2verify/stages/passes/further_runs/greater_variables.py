"""Other and greater values of variables, which reach what the usual ones do not.

What decides between elements may decide the same for both sides as long as numbers are ordinary: a
mask of -10 for -1e7, an order of beams that no example changes. Greater weights make sharper
distributions, other weights other choices.
"""

import contextlib
import dataclasses

from tf2verify.diagnosis.diagnose import diagnose
from tf2verify.errors import Tf2VerifyError
from tf2verify.records.proven import Proven
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.fill import OtherFill, PerturbedFill, StartedFill
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.failures.failed_stage import traced_port
from tf2verify.stages.passes.further_runs.compared_again import (
  CLEAR,
  apart,
  compared_at,
  part_apart,
)
from tf2verify.stages.stage import CaseUnderTest

# Times the distinct values, of another draw each. Choices between elements need more of them.
_FACTORS = (5.0, 20.0, 50.0)
_OF_CHOICES = (10.0, 20.0, 50.0, 5.0) * 3
# Rounding as of so many bits, tried so many times.
_BITS, _MOVED = 16, 3
# By how much more the sides have to be apart than that.
_TIMES = 5.0
_OUTPUT = 'output '
# So many operations run in a moment.
_MOST_OPERATIONS = 1000
_TEXT = (
  "at the case's own values both sides agree, at other ones, times {factor:g}, their outputs differ"
  '{where}, and not all operations are proven: weights in training may become as great; make the '
  'port the same as tf1, or give by fill_values what the variables can be'
)


def greater_variables(case: CaseUnderTest, run: RunSpec, proven: Proven | None) -> list[str]:
  """Runs both sides with other variables where not all is proven; returns what to say of it.

  Args:
    case: both sides, which agree.
    run: of tf1, at which they do.
    proven: what is proven of them.
  """
  if proven is None or proven.reason or not proven.regions or not isinstance(run.fill, StartedFill):
    return []
  if case.tf1.recorded() is not None or proven.tf1_operations > _MOST_OPERATIONS:
    return []
  for draw, factor in enumerate(_OF_CHOICES if _chooses(case, run) else _FACTORS):
    fill = run.fill.over(OtherFill(run.fill.given, draw, factor))
    other = dataclasses.replace(run, fill=fill)
    trial = compared_at(case, other)
    if trial is not None and trial.differences and _is_stable(case, other):
      where = first_parting(case, other, trial)
      return [] if where is None else [_TEXT.format(factor=factor, where=where)]
  return []


def _chooses(case: CaseUnderTest, run: RunSpec) -> bool:
  """Returns whether an output is no floating number: choices between elements lead to it."""
  (observed,) = case.tf1.prepare_filled([run])()
  values = [record.value for record in observed.outputs if record.value is not None]
  return any(value.dtype.kind in 'biu' for value in values)


def _is_stable(case: CaseUnderTest, run: RunSpec) -> bool:
  """Returns whether the sides are further apart than each is for variables moved a little.

  Where values cancel, rounding decides, and each side rounds in its own way.
  """
  names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
  fills = [run.fill, *(PerturbedFill(run.fill, Perturber(n, 0, _BITS)) for n in range(_MOVED))]
  runs = [dataclasses.replace(run, fill=fill) for fill in fills]
  try:
    ones = case.tf1.prepare_filled(runs)()
    others = case.tf2.observe_filled([dataclasses.replace(r, tf1_names=names) for r in runs])
  except Tf2VerifyError:
    return False
  noise = max(apart(first, one) for first, *more in (ones, others) for one in more)
  return apart(ones[0], others[0]) > _TIMES * noise and noise < CLEAR


def first_parting(case: CaseUnderTest, run: RunSpec, trial: Comparison) -> str | None:
  """Returns the lines at which both sides part first, as an addition to a text.

  Args:
    case: both sides.
    run: of tf1, at which they differ.
    trial: how.

  Returns:
    None where 32 bits do not suffice for what a side computes.
  """
  found, run = trial.findings(), dataclasses.replace(run, unrolls=True)
  with contextlib.ExitStack() as opened:
    try:
      tf1 = opened.enter_context(contextlib.closing(case.tf1.inspectable(run)))
      port = opened.enter_context(contextlib.closing(traced_port(case, run).run()))
      if _is_lost(tf1) or _is_lost(port):
        return None
      known = found.differences, found.failed_tensors
      told = diagnose('zero_randomness', run.description, *known, (tf1, port))
    except Exception:  # noqa: BLE001 - lines are an addition
      return ''
  return told.sources[0].to_lines() if told.sources else ''


def _is_lost(run: GraphRun) -> bool:
  """Returns whether outputs are others if they are computed with 64 bits."""
  graph = run.op_graph
  ends = [end for name, end in graph.targets().items() if name.startswith(_OUTPUT)]
  tensors = [graph.tensor(key) for end in ends for key in graph.ops[end].inputs]
  wide = run.in_double(tensors)
  return wide is not None and any(
    part_apart(one, other) > CLEAR for one, other in zip(run.fetch(tensors), wide, strict=True)
  )
