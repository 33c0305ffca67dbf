"""Findings as annotations of GitHub Actions, which shows them next to the line of code.

Source of the format: GitHub's documentation of workflow commands, `::error file=,line=,title=::`;
what is escaped, and how: actions/toolkit, packages/core/src/command.ts.
"""

import os
from collections.abc import Iterable

from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.report import headline


def is_wanted(when: str) -> bool:
  """Returns whether to print annotations: `on`, `off`, or `auto`: where GitHub Actions runs."""
  return when == 'on' or (when == 'auto' and os.environ.get('GITHUB_ACTIONS') == 'true')


def annotation_lines(cases: Iterable[CaseVerdict]) -> list[str]:
  """Returns one for each line of the port that a failed stage is about; none for blocked ones."""
  return [
    _annotation(case, stage, found, number)
    for case in cases
    for stage in case.stages
    if stage.status.is_failure
    for number, found in enumerate(headline.findings(stage))
  ]


def _annotation(
  case: CaseVerdict, stage: StageVerdict, found: headline.Finding, number: int
) -> str:
  place = found.place
  more = f' ({number + 1})' if number else ''
  properties = {'title': f'{case.case}: {stage.stage} {stage.status.value}{more}'}
  if place is not None:
    properties = {'file': _in_repository(place.path), 'line': str(place.line), **properties}
  elif case.module.endswith('.py'):
    properties = {'file': _in_repository(case.module), **properties}
  message = '\n'.join(found.texts)
  if found.tf1 is not None:
    message += f'\ntf1: {_in_repository(found.tf1.path)}:{found.tf1.line}'
  first = case.first_failure
  if not number and case.run_again and first is not None and first.number == stage.number:
    message += f'\nrun again: {case.run_again}'
  listed = ','.join(f'{name}={_property(value)}' for name, value in properties.items())
  return f'::error {listed}::{_data(message)}'


def _in_repository(path: str) -> str:
  """Returns a path as GitHub shows it: below the folder that was checked out."""
  root = os.environ.get('GITHUB_WORKSPACE') or os.getcwd()
  below = os.path.relpath(os.path.abspath(path), os.path.abspath(root))
  return path if below.startswith('..') else below


def _data(text: str) -> str:
  return text.replace('%', '%25').replace('\r', '%0D').replace('\n', '%0A')


def _property(text: str) -> str:
  return _data(text).replace(':', '%3A').replace(',', '%2C')
