"""Rung 1: repeated calls of the port create no variable."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.variables import CreatedVariable
from tf2verify.hooks import PLACEHOLDER
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import SourceLine, VariableCreation
from tf2verify.records.verdict import Compared
from tf2verify.sides.graphs.lines.traces import Trace
from tf2verify.sides.side import training_name
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

_OF_PLACEHOLDER = (
  'the port is still the placeholder of `python -m tf2verify new`, so that TF1 code is compared '
  f'with itself: replace it by the port, and delete {PLACEHOLDER}'
)


class NoNewVariables(Stage):
  """Calls one layer twice in every training mode."""

  name = 'no_new_variables'
  needs = ()
  proves = (
    'every call after the first, in inference and in training mode, reuses the variables of the '
    'first'
  )

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares what was created in the first call with what was created later."""
    report = case.tf2.creation_report()
    later = report.later
    notes: tuple[str, ...] = ()
    if later:
      expected = _only_in_later_modes(case)
      allowed = tuple(creation for creation in later if creation.name in expected)
      later = tuple(creation for creation in later if creation.name not in expected)
      if allowed:
        notes = (
          f'{len(allowed)} variables, {allowed[0].name} first, exist only in the '
          f'{training_name(case.declaration.training_modes[-1])} graph of tf1, as in the port',
        )
    spots = (_OF_PLACEHOLDER,) if report.of_placeholder else ()
    first = frozenset(earlier.name for earlier in report.first_call)
    return Findings(
      # A call that TensorFlow ended, be it the first, has been looked at.
      Compared(tensors=max(1, len(report.calls) - 1), noun='calls', blind_spots=len(spots)),
      tuple(_with_causes(later, first, case.tf2.is_of_keras3())),
      (*notes, *_retracing(report.retraced), *spots),
      blind_spots=spots,
    )


def _with_causes(
  later: Iterable[VariableCreation], first: frozenset[str], of_keras3: bool
) -> Iterator[Difference]:
  """Yields a finding for each variable, whichever calls make it.

  A line that creates again and again has one cause, that of the first.
  """
  known: dict[SourceLine, str] = {}
  for creation in _over_calls(later):
    cause = known.get(creation.source, '') if creation.source else ''
    cause = cause or first_cause(CreatedVariable(creation, first, of_keras3))
    if creation.source:
      known[creation.source] = cause
    yield created(creation, cause)


def _over_calls(later: Iterable[VariableCreation]) -> Iterator[VariableCreation]:
  """Yields a record for each variable, of all calls that make it."""
  made: collections.Counter[VariableCreation] = collections.Counter()
  calls: dict[tuple[VariableCreation, int], list[str]] = {}
  for creation in later:
    made[creation] += 1  # a call may make several that are alike
    key = dataclasses.replace(creation, call=''), made[creation]
    calls.setdefault(key, []).append(creation.call)
  for (creation, _), its in calls.items():
    names = its[-1] if len(its) == 1 else f'{", ".join(its[:-1])} and {its[-1]}'
    yield dataclasses.replace(creation, call=names)


def _only_in_later_modes(case: CaseUnderTest) -> frozenset[str]:
  """Returns the tf2 names of variables that tf1 too creates only in a later training mode."""
  modes = case.tf1.inventory().variables_by_training
  first = set(modes[0][1])
  later = {name for _, names in modes[1:] for name in names} - first
  if not later:
    return frozenset()
  return frozenset(tf2 for tf1, tf2 in case.alignment().pairs if tf1 in later)


def _retracing(retraced: Sequence[Trace]) -> list[str]:
  notes = []
  for function in dict.fromkeys(trace.function for trace in retraced):
    traces = [trace for trace in retraced if trace.function == function]
    notes.append(
      f'{", ".join(trace.call for trace in traces)} traced {function} again, at '
      f'{traces[0].source}: a tf.function is retraced for every new Python value among its '
      'arguments, or is created again in every call; pass tensors, and create it once'
    )
  return notes


def created(creation: VariableCreation, hint: str) -> Difference:
  """Returns the finding of a variable that is made where none should be."""
  shape = '(' + ', '.join('?' if s is None else str(s) for s in creation.shape) + ')'
  verb = 'tried to create' if creation.refused else 'created'
  where = f' at {creation.source}' if creation.source else ''
  text = f'{creation.call} {verb} it, {shape} {creation.dtype}{where}'
  return Difference('variable', creation.name, Aspect.CREATION, tf2=text, hint=hint)
