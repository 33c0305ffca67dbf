"""Verdicts as JSON."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from tf2verify.records.verdict import CaseVerdict

SCHEMA_VERSION = 1


def _plain(value: Any) -> Any:
  """Returns a record as what JSON knows; non-finite numbers as strings."""
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
  if isinstance(value, enum.Enum):
    return value.value
  if isinstance(value, (list, tuple)):
    return [_plain(item) for item in value]
  if isinstance(value, float) and not math.isfinite(value):
    return repr(value)
  if isinstance(value, bytes):
    return value.decode('utf-8', 'backslashreplace')
  if isinstance(value, complex):
    return repr(value)
  return value


def case_json(case: CaseVerdict) -> str:
  """Returns the case's verdict as a JSON object.

  Its keys: `schema_version` (1), `case`, `module`, `status`, `seconds`,
  `environment` (an object), `run_again`, and `stages`: one object a stage with
  the fields of `StageVerdict`. A number that JSON cannot hold is a string:
  'nan', 'inf', '-inf'.
  """
  report = {
    'schema_version': SCHEMA_VERSION,
    'case': case.case,
    'module': case.module,
    'status': case.status.value,
    'seconds': round(case.seconds, 3),
    'environment': dict(case.environment),
    'run_again': case.run_again,
    'stages': [_plain(stage) for stage in case.stages],
  }
  return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
