"""The findings as SARIF 2.1.0, which code scanning of GitHub and editors show at the line.

Source of the format: OASIS, Static Analysis Results Interchange Format 2.1.0.
"""

import json
import os
from collections.abc import Iterable
from typing import Any

from tf2verify.environment.version import VERSION
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.report.headline import headline, place
from tf2verify.safe_text import safe_line, safe_values

_SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'


def sarif_text(verdicts: Iterable[CaseVerdict]) -> str:
  """Returns a result per stage that failed, whose rule is the stage."""
  found = [
    (case, stage) for case in map(safe_values, verdicts) for stage in case.stages
    if stage.status.is_failure
  ]  # fmt: skip
  rules = [{'id': name} for name in dict.fromkeys(stage.stage for _, stage in found)]
  driver = {'name': 'tf2verify', 'version': VERSION, 'rules': rules}
  results = [_result(case, stage) for case, stage in found]
  log = {
    '$schema': _SCHEMA,
    'version': '2.1.0',
    'runs': [{'tool': {'driver': driver}, 'results': results}],
  }
  return json.dumps(log, indent=2, ensure_ascii=False) + '\n'


def _result(case: CaseVerdict, stage: StageVerdict) -> dict[str, Any]:
  """Returns a finding at the line of the port, or in the case's file where none is known."""
  line = place(stage)
  path = case.module if line is None else line.path
  where: dict[str, Any] = {'artifactLocation': {'uri': _uri(path)}}
  if line is not None:
    where['region'] = {'startLine': line.line}
  text = safe_line(f'{case.case}, {stage.stage} {stage.status.value}: {headline(stage)}')
  return {
    'ruleId': stage.stage,
    'level': 'error',
    'message': {'text': text},
    'locations': [{'physicalLocation': where}],
    # The same finding of another run is the same to who lists them.
    'partialFingerprints': {'tf2verify/v1': f'{case.module}::{case.case}::{stage.stage}'},
  }


def _uri(path: str) -> str:
  """Returns a path as SARIF has it: relative to the working folder where it is below."""
  below = os.path.relpath(os.path.abspath(path))
  return (path if below.startswith('..') else below).replace(os.sep, '/')
