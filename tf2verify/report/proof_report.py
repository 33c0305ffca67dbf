"""What the command `prove` says of a case: of both graphs, once for all training modes."""

import dataclasses
import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from tf2verify.records.case_proof import CaseProof, ProvenRun
from tf2verify.records.difference import Difference
from tf2verify.records.observation import SourceLine
from tf2verify.records.proven import GraphDifference, Proven
from tf2verify.records.text_line import TextLine, indented
from tf2verify.records.verdict import ErrorRecord
from tf2verify.records.verdict_text import differences_text
from tf2verify.records.wording import listed
from tf2verify.safe_text import safe_values

SCHEMA_VERSION = 1
_SHOWN = 5  # operations of a region, of each side
_UNPAIRED = (
  'their consumers are not compared: a proof without a run pairs variables by name only; '
  '`python -m tf2verify map PATH::Case --out FILE` derives their pairs by running both sides, and '
  'variable_map = FILE in the case uses them here'
)
_NOT_COVERED = (
  'rounding, initial values, gradients, losses and training steps are not covered: use python -m '
  'tf2verify run'
)
_Found = TypeVar('_Found', bound=Hashable)


def proof_lines(proof: CaseProof) -> list[TextLine]:
  """Returns the report for a terminal."""
  if proof.error is not None:
    head = f'ERROR on the {proof.error.side} side: {proof.error.summary}'
    below = _error_lines(proof.error, proof.allocated)
  else:
    head, below = _head(proof), map(TextLine, _found(proof))
  return [TextLine(f'{proof.case}: {head}'), *indented(below)]


def _error_lines(error: ErrorRecord, allocated: str) -> Iterator[TextLine]:
  for line in error.traceback_text.splitlines():
    yield TextLine(f'| {line}', verbatim=True)
  if allocated:
    yield TextLine(f"the port's variables were allocated: {allocated}")


def _head(proof: CaseProof) -> str:
  related = _related(proof.runs)
  others = [run.proven.run for run in proof.runs if run.proven.reason]
  port = sum(one.tf2_proven for one in related), sum(one.tf2_operations for one in related)
  counts = [(*port, 'operations of the port')]
  if not port[1] or not proof.is_whole:
    tf1 = sum(one.tf1_proven for one in related), sum(one.tf1_operations for one in related)
    results = sum(one.targets_proven for one in related), sum(one.targets for one in related)
    counts += [(*tf1, 'operations of tf1'), (*results, 'results')]
  known = [f'{proven:,} of {count:,} {what}' for proven, count, what in counts if count]
  if not known:
    return 'nothing is proven'
  unknown = f'; nothing in {" and ".join(others)}' if others else ''
  return f'{", ".join(known)} proven for all inputs{unknown}'


def _found(proof: CaseProof) -> Iterator[str]:
  modes = [run.proven.run for run in proof.runs]
  yield from _mode_lines(proof.runs)
  yield from differences_text(_merged(proof.differing, modes))
  found = [(run.proven.run, one) for run in proof.runs for one in run.differences]
  for difference, names in _by_modes(found):
    yield f'differs{_among(names, modes)}: {difference.to_text()}'
  yield from _region_lines(proof.runs, modes)
  for side, left in (('tf1', proof.only_tf1), ('the port', proof.only_tf2)):
    if left:
      yield f'variables of {side} only: {listed(left, most=5)}'
  if proof.only_tf1 and proof.only_tf2 and not proof.allocated:
    yield _UNPAIRED
  yield from _statements(proof)
  yield ', '.join(f'{what} {seconds:.1f} s' for what, seconds in proof.seconds)


def _mode_lines(runs: Iterable[ProvenRun]) -> Iterator[str]:
  for found in _related(runs):
    yield (
      f'{found.run}: {found.tf1_proven:,} of {found.tf1_operations:,} operations of tf1, '
      f'{found.tf2_proven:,} of {found.tf2_operations:,} of the port, {found.targets_proven:,} '
      f'of {found.targets:,} results'
    )
  reasons = [(run.proven.run, run.proven.reason) for run in runs if run.proven.reason]
  for reason, names in _by_modes(reasons):
    yield f'{", ".join(names)}: nothing is proven: {reason}'


def _region_lines(runs: Iterable[ProvenRun], modes: Sequence[str]) -> Iterator[str]:
  found = [(run.proven.run, region) for run in runs for region in run.proven.regions]
  for targets, names in _by_modes((name, region.targets) for name, region in found):
    yield f'not proven, to be tested by a run{_among(names, modes)}: {listed(targets, most=5)}'
    here = [region for _, region in found if region.targets == targets]
    for side, lists in (('tf1', [r.tf1 for r in here]), ('port', [r.tf2 for r in here])):
      # The first ones of each mode, those of all modes once.
      operations = dict.fromkeys(one for known in lists for one in known[:_SHOWN])
      yield from (f'  {side}: {operation}' for operation in operations)


def _statements(proof: CaseProof) -> Iterator[str]:
  reasons = {run.proven.reason for run in proof.runs}
  if not proof.allocated:
    yield (
      "nothing was run, and the port's variables were not allocated: they have shapes and no values"
    )
  else:
    why = ', for the same reason' if proof.allocated in reasons else f': {proof.allocated}'
    yield f"the port's variables were allocated, and the port was called to make them{why}"
  if proof.ran_both:
    yield 'both sides were run, to derive which variables are pairs'
  if proof.is_whole:
    yield 'the graphs compute the same for all inputs of these shapes'
  elif any(one.tf2_proven or one.targets_proven for one in _related(proof.runs)):
    yield 'what is proven is the same for all inputs of these shapes'
  yield _NOT_COVERED


def proof_json(proof: CaseProof) -> str:
  """Returns the report as a JSON object.

  Its keys: `schema_version` (1), `case`, `module`, `proven` (whether all is), `was_run` (whether
  the port was called, None where it ended with an error), `allocated`, `only_tf1`, `only_tf2`,
  `seconds`, `runs`: one object each, with the fields of `Proven` and its `differences`,
  `differing`: one object for each difference of variables and structures, with `quantity`,
  `subject`, `aspect`, `tf1`, `tf2`, `run` and `hint`, and `error`: None, or `side`, `summary` and
  `traceback_text`.
  """
  report = {
    'schema_version': SCHEMA_VERSION,
    'case': proof.case,
    'module': proof.module,
    'proven': proof.is_whole,
    'was_run': proof.was_run,
    'allocated': proof.allocated,
    'only_tf1': list(proof.only_tf1),
    'only_tf2': list(proof.only_tf2),
    'seconds': {what: round(seconds, 3) for what, seconds in proof.seconds},
    'runs': [
      {
        **dataclasses.asdict(run.proven),
        'seconds': round(run.proven.seconds, 3),
        'differences': [_plain(found) for found in run.differences],
      }
      for run in proof.runs
    ],
    'differing': [
      {
        'quantity': one.quantity,
        'subject': one.subject,
        'aspect': one.aspect.value,
        'tf1': one.tf1,
        'tf2': one.tf2,
        'run': one.run,
        'hint': one.hint,
      }
      for one in proof.differing
    ],
    'error': None if proof.error is None else dataclasses.asdict(proof.error),
  }
  return json.dumps(safe_values(report), indent=1, ensure_ascii=False)


def _plain(found: GraphDifference) -> dict[str, Any]:
  lines = {name: str(value) for name, value in vars(found).items() if isinstance(value, SourceLine)}
  return {**vars(found), **lines}


def _related(runs: Iterable[ProvenRun]) -> list[Proven]:
  return [run.proven for run in runs if not run.proven.reason]


def _by_modes(found: Iterable[tuple[str, _Found]]) -> Iterable[tuple[_Found, list[str]]]:
  """Returns what was found, each once, with the names of the training modes that it is of."""
  names: dict[_Found, list[str]] = {}
  for name, one in found:
    names.setdefault(one, []).append(name)
  return names.items()


def _merged(differing: Iterable[Difference], modes: Sequence[str]) -> list[Difference]:
  """Returns differences that several training modes have, each once."""
  found = _by_modes((one.run, dataclasses.replace(one, run='')) for one in differing)
  return [
    dataclasses.replace(one, run='' if names == list(modes) else ', '.join(names))
    for one, names in found
  ]


def _among(names: Sequence[str], modes: Sequence[str]) -> str:
  """Returns, to go on with, of which training modes something is; '' of all."""
  return '' if list(names) == list(modes) else f' [{", ".join(names)}]'
