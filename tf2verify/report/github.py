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
  """Returns a line for each stage that failed; none for those that it blocked."""
  return [
    _annotation(case, stage) for case in cases for stage in case.stages if stage.status.is_failure
  ]


def _annotation(case: CaseVerdict, stage: StageVerdict) -> str:
  place = headline.place(stage)
  properties = {'title': f'{case.case}: {stage.stage} {stage.status.value}'}
  if place is not None:
    properties = {'file': _in_repository(place.path), 'line': str(place.line), **properties}
  elif case.module.endswith('.py'):
    properties = {'file': _in_repository(case.module), **properties}
  message = headline.headline(stage)
  first = case.first_failure
  if case.run_again and first is not None and first.number == stage.number:
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
