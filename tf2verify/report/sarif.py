"""The findings as SARIF 2.1.0, which code scanning of GitHub and editors show at the line.

Source of the format: OASIS, Static Analysis Results Interchange Format 2.1.0.
"""

import importlib.metadata
import json
import os
from collections.abc import Iterable
from typing import Any

from tf2verify.environment.version import VERSION
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.report.headline import Place, findings
from tf2verify.report.html import words
from tf2verify.safe_text import safe_line, safe_values

_SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'


def sarif_text(verdicts: Iterable[CaseVerdict]) -> str:
  """Returns a result per stage that failed, whose rule is the stage."""
  found = [
    (case, stage) for case in map(safe_values, verdicts) for stage in case.stages
    if stage.status.is_failure
  ]  # fmt: skip
  rules = [_rule(name) for name in dict.fromkeys(stage.stage for _, stage in found)]
  driver = {'name': 'tf2verify', 'version': VERSION, 'rules': rules}
  results = [_result(case, stage) for case, stage in found]
  log = {
    '$schema': _SCHEMA,
    'version': '2.1.0',
    'runs': [{'tool': {'driver': driver}, 'results': results}],
  }
  return json.dumps(log, indent=2, ensure_ascii=False) + '\n'


def _rule(stage: str) -> dict[str, Any]:
  """Returns what a stage is: code scanning shows it next to each of its results."""
  proves = words.PROVES.get(stage, stage)
  rule: dict[str, Any] = {
    'id': stage,
    'shortDescription': {'text': f'{proves[0].upper()}{proves[1:]}.'},
    'help': {'text': f'docs/stages.md of tf2verify, section {stage}'},
  }
  repository = _repository()
  if repository:
    rule['helpUri'] = f'{repository}/blob/main/docs/stages.md#{stage}'
  return rule


def _repository() -> str:
  """Returns the address of tf2verify's repository; '' as long as pyproject.toml has none."""
  try:
    urls = importlib.metadata.metadata('tf2verify').get_all('Project-URL') or []
  except importlib.metadata.PackageNotFoundError:
    return ''
  named: dict[str, str] = dict(url.split(', ', 1) for url in urls if ', ' in url)
  return named.get('Repository', '').rstrip('/')


def _result(case: CaseVerdict, stage: StageVerdict) -> dict[str, Any]:
  """Returns a finding at the line of the port, or in the case's file where none is known."""
  first, *others = findings(stage)
  causes = '; also: '.join(first.texts)
  text = safe_line(f'{case.case}, {stage.stage} {stage.status.value}: {causes}')
  related = [] if first.tf1 is None else [_location(first.tf1, 'the line of TF1')]
  for other in others:
    related += [] if other.place is None else [_location(other.place, '; also: '.join(other.texts))]
    related += [] if other.tf1 is None else [_location(other.tf1, 'the line of TF1 for that')]
  result: dict[str, Any] = {
    'ruleId': stage.stage,
    'level': 'error',
    'message': {'text': text},
    'locations': [_location(first.place or case.module)],
    # The same finding of another run is the same to who lists them.
    'partialFingerprints': {'tf2verify/v1': f'{case.module}::{case.case}::{stage.stage}'},
  }
  if related:
    result['relatedLocations'] = [{'id': n, **one} for n, one in enumerate(related, 1)]
  return result


def _location(at: Place | str, text: str = '') -> dict[str, Any]:
  """Returns a line, or a file, with what is said about it."""
  path = at if isinstance(at, str) else at.path
  where: dict[str, Any] = {'artifactLocation': {'uri': _uri(path)}}
  if not isinstance(at, str):
    where['region'] = {'startLine': at.line}
  message = {'message': {'text': text}} if text else {}
  return {'physicalLocation': where, **message}


def _uri(path: str) -> str:
  """Returns a path as SARIF has it: relative to the working folder where it is below."""
  below = os.path.relpath(os.path.abspath(path))
  return (path if below.startswith('..') else below).replace(os.sep, '/')
