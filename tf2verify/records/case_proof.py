"""What of a case is proven without running it."""

import dataclasses
import json
from typing import Any

from tf2verify.records.observation import SourceLine
from tf2verify.records.proven import GraphDifference, Proven
from tf2verify.safe_text import safe_values

SCHEMA_VERSION = 1
_SHOWN = 5
_UNPAIRED = (
  'their consumers are not compared: a proof without a run pairs variables by name only;',
  '`python -m tf2verify map PATH::Case --out FILE` derives their pairs by running both sides, and',
  'variable_map = FILE in the case uses them here',
)
_NOTHING_WAS_RUN = (
  'nothing was run: the graphs compute the same, as far as they are proven, for inputs of these',
  'shapes; rounding, initial values, gradients, losses and training steps: python -m tf2verify run',
)


@dataclasses.dataclass(frozen=True)
class ProvenRun:
  """One training mode.

  Attributes:
    proven: how much of it is proven.
    differences: where the graphs are known to differ.
  """

  proven: Proven
  differences: tuple[GraphDifference, ...] = ()


@dataclasses.dataclass(frozen=True)
class CaseProof:
  """What of a case is proven.

  Attributes:
    case: the class's name.
    module: its file or module.
    runs: one for each training mode.
    only_tf1: names of tf1's variables that no variable of the port is paired with.
    only_tf2: the port's, likewise.
    allocated: why the port's variables had to be allocated, and the port called; '' where they
      were not.
    seconds: wall time, by what was done.
  """

  case: str
  module: str
  runs: tuple[ProvenRun, ...]
  only_tf1: tuple[str, ...] = ()
  only_tf2: tuple[str, ...] = ()
  allocated: str = ''
  seconds: tuple[tuple[str, float], ...] = ()

  @property
  def is_whole(self) -> bool:
    """Whether every operation behind what is compared is proven, in every training mode."""
    return bool(self.runs) and all(run.proven.is_whole for run in self.runs)

  def to_text(self) -> str:
    """Returns the report for a terminal."""
    proven = sum(run.proven.tf2_proven for run in self.runs)
    count = sum(run.proven.tf2_operations for run in self.runs)
    lines = [f'{self.case}: {proven:,} of {count:,} operations of the port proven for all inputs']
    for run in self.runs:
      lines += _run_lines(run)
    for side, names in (('tf1', self.only_tf1), ('the port', self.only_tf2)):
      if names:
        lines.append(f'  variables of {side} only: {_listed(names)}')
    if self.only_tf1 and self.only_tf2:
      lines += [f'  {line}' for line in _UNPAIRED]
    lines += [f'  {line}' for line in _NOTHING_WAS_RUN]
    lines.append(f'  {self._variables()}')
    lines.append(f'  {", ".join(f"{what} {seconds:.1f} s" for what, seconds in self.seconds)}')
    return '\n'.join(lines)

  def _variables(self) -> str:
    if not self.allocated:
      return "the port's variables were not allocated: they have shapes and no values"
    return (
      f"the port's variables were allocated, and the port was called to make them: {self.allocated}"
    )

  def to_json(self) -> str:
    """Returns the report as a JSON object.

    Its keys: `schema_version` (1), `case`, `module`, `proven` (whether all is), `was_run` (False),
    `allocated`, `only_tf1`, `only_tf2`, `seconds`, and `runs`: one object each, with the fields of
    `Proven` and its `differences`.
    """
    report = {
      'schema_version': SCHEMA_VERSION,
      'case': self.case,
      'module': self.module,
      'proven': self.is_whole,
      'was_run': False,
      'allocated': self.allocated,
      'only_tf1': list(self.only_tf1),
      'only_tf2': list(self.only_tf2),
      'seconds': {what: round(seconds, 3) for what, seconds in self.seconds},
      'runs': [
        {
          **dataclasses.asdict(run.proven),
          'seconds': round(run.proven.seconds, 3),
          'differences': [_plain(found) for found in run.differences],
        }
        for run in self.runs
      ],
    }
    return json.dumps(safe_values(report), indent=1, ensure_ascii=False)


def _plain(found: GraphDifference) -> dict[str, Any]:
  lines = {name: str(value) for name, value in vars(found).items() if isinstance(value, SourceLine)}
  return {**vars(found), **lines}


def _run_lines(run: ProvenRun) -> list[str]:
  found = run.proven
  if found.reason:
    return [f'  {found.run}: nothing is proven: {found.reason}']
  lines = [
    f'  {found.run}: {found.tf1_proven:,} of {found.tf1_operations:,} operations of tf1, '
    f'{found.tf2_proven:,} of {found.tf2_operations:,} of the port, {found.targets_proven:,} of '
    f'{found.targets:,} results'
  ]
  lines += [f'    differs: {difference.to_text()}' for difference in run.differences]
  for region in found.regions:
    lines.append(f'    not proven, to be tested by a run: {_listed(region.targets)}')
    for side, operations in (('tf1', region.tf1), ('port', region.tf2)):
      lines += [f'      {side}: {operation}' for operation in operations[:_SHOWN]]
  return lines


def _listed(names: tuple[str, ...]) -> str:
  more = f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''
  return ', '.join(names[:_SHOWN]) + more
