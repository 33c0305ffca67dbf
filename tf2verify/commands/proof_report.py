"""What the command `prove` says of a case: of both graphs, once for all training modes."""

import dataclasses
import json
import sys
import textwrap
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from tf2verify.records.case_proof import CaseProof, ProvenRun
from tf2verify.records.difference import Difference
from tf2verify.records.proven import Proven
from tf2verify.records.verdict import ErrorRecord
from tf2verify.records.verdict_text import differences_text
from tf2verify.report.terminal import width_of
from tf2verify.safe_text import safe_values

_SHOWN = 5
_UNPAIRED = (
  'their consumers are not compared: a proof without a run pairs variables by name only; '
  '`python -m tf2verify map PATH::Case --out FILE` derives their pairs by running both sides, and '
  'variable_map = FILE in the case uses them here'
)
_NOT_COVERED = (
  'rounding, initial values, gradients, losses and training steps are not covered: use python -m '
  'tf2verify run'
)
_VERBATIM = '| '  # a line of a traceback
_Found = TypeVar('_Found', bound=Hashable)


@dataclasses.dataclass(frozen=True)
class ProofReport:
  """What of a case is proven, and what was found besides.

  Attributes:
    case: as in `CaseProof`.
    module: as in `CaseProof`.
    runs: as in `CaseProof`.
    only_tf1: as in `CaseProof`.
    only_tf2: as in `CaseProof`.
    allocated: as in `CaseProof`.
    seconds: as in `CaseProof`.
    differing: paired variables that cannot hold the same values, and outputs of which the
      structures differ, once for each training mode.
    ran_both: whether both sides were run, to derive which variables are pairs.
    error: what ended it before anything was related; None where it was not ended.
  """

  case: str
  module: str
  runs: tuple[ProvenRun, ...]
  only_tf1: tuple[str, ...] = ()
  only_tf2: tuple[str, ...] = ()
  allocated: str = ''
  seconds: tuple[tuple[str, float], ...] = ()
  differing: tuple[Difference, ...] = ()
  ran_both: bool = False
  error: ErrorRecord | None = None

  @property
  def is_whole(self) -> bool:
    """Whether all that is compared is proven, in every training mode, and nothing differs."""
    return self._proof().is_whole and not self.differing and self.error is None

  def _proof(self) -> CaseProof:
    known = {field.name for field in dataclasses.fields(CaseProof)}
    return CaseProof(**{name: value for name, value in vars(self).items() if name in known})

  def to_text(self) -> str:
    """Returns the report for a terminal, in lines of its width."""
    width = width_of(sys.stdout)
    lines = self._error_lines(self.error) if self.error is not None else self._lines()
    return '\n'.join(row for line in lines for row in _wrapped(line, width))

  def _error_lines(self, error: ErrorRecord) -> list[str]:
    trace = error.traceback_text.splitlines()
    return [
      f'{self.case}: ERROR on the {error.side} side: {error.summary}',
      *(f'  {_VERBATIM}{line}' for line in trace),
      *([f"  the port's variables were allocated: {self.allocated}"] if self.allocated else []),
    ]

  def _lines(self) -> list[str]:
    lines = [f'{self.case}: {self._head()}', *self._mode_lines()]
    modes = [run.proven.run for run in self.runs]
    lines += [f'  {line}' for line in differences_text(_merged(self.differing, modes))]
    found = [(run.proven.run, one) for run in self.runs for one in run.differences]
    for difference, names in _by_modes(found):
      lines.append(f'  differs{_among(names, modes)}: {difference.to_text()}')
    lines += self._region_lines(modes)
    for side, left in (('tf1', self.only_tf1), ('the port', self.only_tf2)):
      if left:
        lines.append(f'  variables of {side} only: {_listed(left)}')
    if self.only_tf1 and self.only_tf2 and not self.allocated:
      lines.append(f'  {_UNPAIRED}')
    lines += [f'  {line}' for line in self._statements()]
    lines.append(f'  {", ".join(f"{what} {seconds:.1f} s" for what, seconds in self.seconds)}')
    return lines

  def _head(self) -> str:
    related = _related(self.runs)
    others = [run.proven.run for run in self.runs if run.proven.reason]
    port = sum(one.tf2_proven for one in related), sum(one.tf2_operations for one in related)
    counts = [(*port, 'operations of the port')]
    if not port[1] or not self.is_whole:
      one = sum(one.tf1_proven for one in related), sum(one.tf1_operations for one in related)
      results = sum(one.targets_proven for one in related), sum(one.targets for one in related)
      counts += [(*one, 'operations of tf1'), (*results, 'results')]
    known = [f'{proven:,} of {count:,} {what}' for proven, count, what in counts if count]
    if not known:
      return 'nothing is proven'
    unknown = f'; nothing in {" and ".join(others)}' if others else ''
    return f'{", ".join(known)} proven for all inputs{unknown}'

  def _mode_lines(self) -> Iterator[str]:
    for found in _related(self.runs):
      yield (
        f'  {found.run}: {found.tf1_proven:,} of {found.tf1_operations:,} operations of tf1, '
        f'{found.tf2_proven:,} of {found.tf2_operations:,} of the port, {found.targets_proven:,} '
        f'of {found.targets:,} results'
      )
    reasons = [(run.proven.run, run.proven.reason) for run in self.runs if run.proven.reason]
    for reason, names in _by_modes(reasons):
      yield f'  {", ".join(names)}: nothing is proven: {reason}'

  def _region_lines(self, modes: Sequence[str]) -> Iterator[str]:
    found = [(run.proven.run, region) for run in self.runs for region in run.proven.regions]
    for targets, names in _by_modes((name, region.targets) for name, region in found):
      yield f'  not proven, to be tested by a run{_among(names, modes)}: {_listed(targets)}'
      here = [region for _, region in found if region.targets == targets]
      for side, lists in (('tf1', [r.tf1 for r in here]), ('port', [r.tf2 for r in here])):
        # The first ones of each mode, those of all modes once.
        operations = dict.fromkeys(one for known in lists for one in known[:_SHOWN])
        yield from (f'    {side}: {operation}' for operation in operations)

  def _statements(self) -> Iterator[str]:
    reasons = {run.proven.reason for run in self.runs}
    if not self.allocated:
      yield (
        "nothing was run, and the port's variables were not allocated: they have shapes and no "
        'values'
      )
    else:
      why = ', for the same reason' if self.allocated in reasons else f': {self.allocated}'
      yield f"the port's variables were allocated, and the port was called to make them{why}"
    if self.ran_both:
      yield 'both sides were run, to derive which variables are pairs'
    if self.is_whole:
      yield 'the graphs compute the same for all inputs of these shapes'
    elif any(one.tf2_proven or one.targets_proven for one in _related(self.runs)):
      yield 'what is proven is the same for all inputs of these shapes'
    yield _NOT_COVERED

  def to_json(self) -> str:
    """Returns the report as a JSON object: that of `CaseProof`, with three keys of its own.

    `was_run` is whether the port was called, None where it ended with an error. `differing` has
    one object for each difference of variables and structures: `quantity`, `subject`, `aspect`,
    `tf1`, `tf2`, `run` and `hint`. `error` is None, or has `side`, `summary` and `traceback_text`.
    """
    report = json.loads(self._proof().to_json())
    report['proven'] = self.is_whole
    report['was_run'] = bool(self.allocated) if self.error is None else None
    report['differing'] = [
      {
        'quantity': one.quantity,
        'subject': one.subject,
        'aspect': one.aspect.value,
        'tf1': one.tf1,
        'tf2': one.tf2,
        'run': one.run,
        'hint': one.hint,
      }
      for one in self.differing
    ]
    report['error'] = None if self.error is None else dataclasses.asdict(self.error)
    return json.dumps(safe_values(report), indent=1, ensure_ascii=False)


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


def _listed(names: Sequence[str]) -> str:
  more = f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''
  return ', '.join(names[:_SHOWN]) + more


def _wrapped(line: str, width: int) -> list[str]:
  """Returns the rows of a line; words that are too long stay whole: paths are copied."""
  text = line.lstrip(' ')
  indent = ' ' * (len(line) - len(text))
  if len(line) <= width or text.startswith(_VERBATIM):
    return [line]
  return textwrap.wrap(
    indent + text,
    width,
    subsequent_indent=f'{indent}  ',
    break_long_words=False,
    break_on_hyphens=False,
  )
