"""Verdicts as JSON, and back."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import types
import typing
from typing import TYPE_CHECKING, Any

from tf2verify.errors import UsageError
from tf2verify.records.difference import ArrayDifference

if TYPE_CHECKING:
  from tf2verify.records.verdict import CaseVerdict

SCHEMA_VERSION = 2

_NOT_JSON = {'nan': math.nan, 'inf': math.inf, '-inf': -math.inf}


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

  Its keys: `schema_version` (2), `case`, `module`, `status`, `seconds`,
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


def case_from_json(text: str) -> CaseVerdict:
  """Returns the verdict that `case_json` has written.

  Equal to the one written, but for bytes and complex numbers in places of any type,
  which come back as text. Unknown keys are passed over.

  Raises:
    UsageError: it is no report, not whole, of another schema version, or a value is
      not of its type; the message starts with 'is' or 'has', to go behind a file name.
  """
  try:
    report = json.loads(text)
  except ValueError as error:
    raise UsageError(f'is not JSON ({error}): cut off, or no report of tf2verify') from error
  return case_from_fields(report)


def case_from_fields(report: Any) -> CaseVerdict:
  """Returns the verdict of parsed JSON, as `case_from_json` does."""
  from tf2verify.records.verdict import CaseVerdict  # which itself writes JSON

  if not isinstance(report, dict) or 'schema_version' not in report or 'stages' not in report:
    raise UsageError(
      'is no report of tf2verify: a case has the keys schema_version, case and stages; '
      '--report_dir writes one file per case'
    )
  if report['schema_version'] != SCHEMA_VERSION:
    raise UsageError(
      f'has schema_version {report["schema_version"]!r}; this tf2verify reads {SCHEMA_VERSION}: '
      'run the case again'
    )
  environment = _checked(report.get('environment', {}), dict, 'environment')
  fields = {**report, 'environment': [list(pair) for pair in environment.items()]}
  case: CaseVerdict = _record(CaseVerdict, fields, '')
  return case


def _record(cls: Any, value: Any, path: str) -> Any:
  """Returns a dataclass of its fields; the annotations say what these are."""
  _checked(value, dict, path)
  annotations, fields = _annotations(cls)
  found = {}
  for field in fields:
    place = f'{path}.{field.name}'.lstrip('.')
    if field.name in value:
      found[field.name] = _typed(annotations[field.name], value[field.name], place)
    elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
      raise UsageError(f'has no {place}: it is no report of tf2verify, or not whole')
  if cls is ArrayDifference:
    for side in ('tf1', 'tf2'):
      found[side] = _element(found[side], found['dtype'])
  return cls(**found)


@functools.cache
def _annotations(cls: Any) -> tuple[dict[str, Any], tuple[dataclasses.Field[Any], ...]]:
  """Returns what the fields of a dataclass are; a report has thousands of its records."""
  return typing.get_type_hints(cls), dataclasses.fields(cls)


@functools.cache
def _parts(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
  return typing.get_origin(annotation), typing.get_args(annotation)


def _element(value: Any, dtype: str) -> Any:
  """Returns an element of an array; non-finite and complex numbers are text in JSON."""
  if not isinstance(value, str) or dtype == 'str':
    return value
  if value in _NOT_JSON:
    return _NOT_JSON[value]
  try:
    return complex(value)
  except ValueError:
    return value


def _typed(annotation: Any, value: Any, path: str) -> Any:
  """Returns a value of JSON as what an annotation says."""
  origin, arguments = _parts(annotation)
  if annotation is Any:
    return tuple(_typed(Any, item, path) for item in value) if isinstance(value, list) else value
  if origin in (typing.Union, types.UnionType):
    if value is None:
      return None
    (annotation,) = (argument for argument in arguments if argument is not types.NoneType)
    return _typed(annotation, value, path)
  if origin is tuple:
    return _tuple(arguments, _checked(value, list, path), path)
  if dataclasses.is_dataclass(annotation):
    return _record(annotation, value, path)
  if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
    return _member(annotation, value, path)
  if annotation is float:
    return _number(value, path)
  return _checked(value, annotation, path)


def _tuple(arguments: tuple[Any, ...], value: list[Any], path: str) -> tuple[Any, ...]:
  if arguments[-1] is Ellipsis:
    arguments = arguments[:1] * len(value)
  if len(arguments) != len(value):
    raise UsageError(f'has {len(value)} values in {path}; there are {len(arguments)}')
  if all(type(item) is known for item, known in zip(value, arguments, strict=True)):
    return tuple(value)  # of plain numbers and texts, as most are
  pairs = enumerate(zip(arguments, value, strict=True))
  return tuple(_typed(annotation, item, f'{path}[{n}]') for n, (annotation, item) in pairs)


def _member(annotation: type[enum.Enum], value: Any, path: str) -> enum.Enum:
  try:
    return annotation(value)
  except ValueError as error:
    allowed = ', '.join(str(member.value) for member in annotation)
    raise UsageError(f'has {path} = {value!r:.80}; it is one of {allowed}') from error


def _number(value: Any, path: str) -> float:
  if isinstance(value, str) and value in _NOT_JSON:
    return _NOT_JSON[value]
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    raise UsageError(f'has {path} = {value!r:.80}; it is a number')
  return float(value)


def _checked(value: Any, annotation: Any, path: str) -> Any:
  known = {
    dict: 'an object',
    list: 'an array',
    str: 'a string',
    int: 'an integer',
    bool: 'a boolean',
  }
  if annotation not in known:
    raise TypeError(f'{path} is declared as {annotation}, which the reader does not know')
  if not isinstance(value, annotation) or (annotation is int and isinstance(value, bool)):
    raise UsageError(f'has {path or "the report"} = {value!r:.80}; it is {known[annotation]}')
  return value
