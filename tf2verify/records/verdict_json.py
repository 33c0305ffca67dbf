"""Verdicts as JSON, and back."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tf2verify.errors import UsageError
from tf2verify.records.difference import ArrayDifference, Deviation
from tf2verify.safe_text import safe, safe_line, safe_values

if TYPE_CHECKING:
  from tf2verify.records.verdict import CaseVerdict

SCHEMA_VERSION = 2

# What JSON calls the types that a record may hold, besides floats, tuples and other records.
_KINDS: dict[Any, str] = {
  dict: 'an object',
  list: 'an array',
  str: 'a string',
  int: 'an integer',
  bool: 'a boolean',
}
# Of what an array holds, and of counts.
_LARGEST_INTEGER = 2**64
_NOT_JSON = {'nan': math.nan, 'inf': math.inf, '-inf': -math.inf}


def _plain(value: Any) -> Any:
  """Returns a record as what JSON knows; non-finite numbers as strings."""
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
  if isinstance(value, str):
    return safe(value)
  if isinstance(value, enum.Enum):
    return value.value
  if isinstance(value, (list, tuple)):
    return [_plain(item) for item in value]
  if isinstance(value, float) and not math.isfinite(value):
    return repr(value)
  if isinstance(value, bytes):
    return safe(value.decode('utf-8', 'backslashreplace'))
  if isinstance(value, complex):
    return repr(value)
  return value


def _foreign(value: Any) -> Any:
  """Returns what JSON does not know, such as numpy's numbers, as what it knows."""
  plain = value.item() if hasattr(value, 'item') and not getattr(value, 'shape', ()) else None
  return _plain(plain) if isinstance(plain, (bool, int, float, str, complex)) else safe(repr(value))


def case_json(case: CaseVerdict) -> str:
  """Returns the case's verdict as a JSON object.

  Its keys: `schema_version` (2), `case`, `module`, `status`, `seconds`,
  `environment` (an object), `run_again`, and `stages`: one object a stage with
  the fields of `StageVerdict`. A number that JSON cannot hold is a string:
  'nan', 'inf', '-inf'.
  """
  report = {
    'schema_version': SCHEMA_VERSION,
    'case': safe_line(case.case),
    'module': safe_line(case.module),
    'status': case.status.value,
    'seconds': round(case.seconds, 3),
    'environment': dict(safe_values(case.environment)),
    'run_again': safe(case.run_again),
    'stages': [_plain(stage) for stage in case.stages],
  }
  return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False, default=_foreign)


def case_from_json(text: str) -> CaseVerdict:
  """Returns the verdict that `case_json` has written.

  Equal to the one written, but for bytes and complex numbers in places of any type,
  which come back as text. Unknown keys are passed over.

  Raises:
    UsageError: it is not a report, not whole, of another schema version, or a value is
      not of its type; the message starts with 'is' or 'has', to follow a file name.
  """
  try:
    report = json.loads(text)
  except (ValueError, RecursionError) as error:
    raise UsageError(f'is not JSON ({error}): cut off, or no report of tf2verify') from error
  return case_from_fields(report)


def case_from_fields(report: Any) -> CaseVerdict:
  """Returns the verdict of parsed JSON, as `case_from_json` does."""
  from tf2verify.records.verdict import CaseVerdict  # which itself writes JSON

  if not isinstance(report, dict) or 'schema_version' not in report or 'stages' not in report:
    raise UsageError(
      'is not a report of tf2verify: a case has the keys schema_version, case and stages; '
      '--report_dir writes one file per case'
    )
  if report['schema_version'] != SCHEMA_VERSION:
    raise UsageError(
      f'has schema_version {report["schema_version"]!r}; this tf2verify reads {SCHEMA_VERSION}: '
      'run the case again'
    )
  environment = report.get('environment', {})
  if not isinstance(environment, dict):
    raise UsageError(f'has environment = {environment!r:.80}; it must be an object')
  fields = {**report, 'environment': [list(pair) for pair in environment.items()]}
  try:
    case: CaseVerdict = safe_values(_reader(CaseVerdict)(fields))
  except _Misfit as misfit:
    raise UsageError(misfit.text()) from misfit
  except RecursionError as error:
    raise UsageError('is nested more deeply than a report can be') from error
  if report.get('status', case.status.value) != case.status.value:
    raise UsageError(
      f'has status = {report["status"]!r:.80}, and stages that make it {case.status.value}: it was '
      'changed after it was written'
    )
  return case


def check_deviations(found: Any) -> None:
  """Checks parsed JSON that holds the deviations of stages, by name.

  Raises:
    UsageError: it is something else.
  """
  if not isinstance(found, dict):
    raise UsageError('has no deviations by stage')
  try:
    for pairs in found.values():
      _reader(tuple[Deviation, ...])(pairs)
  except _Misfit as misfit:
    raise UsageError(misfit.text()) from misfit


class _Misfit(Exception):
  """A value that is not what its annotation says; containers add where it lies.

  Attributes:
    before: the start of the message.
    path: where the value lies, as far as it is known.
    after: the end of the message.
  """

  def __init__(self, before: str, after: str, path: str = '') -> None:
    super().__init__(before, after)
    self.before, self.path, self.after = before, path, after

  def inside(self, place: str) -> _Misfit:
    """Returns itself, known to lie in `place`: `.name` or `[3]`."""
    self.path = place + self.path
    return self

  def text(self) -> str:
    return f'{self.before} {self.path.lstrip(".") or "the report"}{self.after}'


_Reader = Callable[[Any], Any]


@functools.cache
def _reader(annotation: Any) -> _Reader:
  """Returns what turns a value of JSON into what an annotation says, or raises `_Misfit`.

  Made once for each annotation: a report has thousands of values of each.
  """
  origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
  if annotation is Any:
    return _anything
  if origin in (typing.Union, types.UnionType):
    (one,) = (argument for argument in arguments if argument is not types.NoneType)
    read = _reader(one)
    return lambda value: None if value is None else read(value)
  if origin is tuple:
    return _tuple_reader(arguments)
  if dataclasses.is_dataclass(annotation):
    return _record_reader(annotation)
  if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
    return functools.partial(_member, annotation, {member.value: member for member in annotation})
  if annotation is float:
    return _number
  return functools.partial(_checked, annotation, _KINDS[annotation])


def _record_reader(cls: Any) -> _Reader:
  """Reads a dataclass of its fields."""
  annotations = typing.get_type_hints(cls)
  fields = [
    (
      field.name,
      _reader(annotations[field.name]),
      field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
    )
    for field in dataclasses.fields(cls)
  ]

  def read_record(value: Any) -> Any:
    _checked(dict, _KINDS[dict], value)
    found = {}
    for name, read, needed in fields:
      if name in value:
        try:
          found[name] = read(value[name])
        except _Misfit as misfit:
          raise misfit.inside(f'.{name}') from None
      elif needed:
        raise _Misfit('has no', ': it is not a report of tf2verify, or not whole', f'.{name}')
    if cls is ArrayDifference:
      for side in ('tf1', 'tf2'):
        found[side] = _element(found[side], found['dtype'])
    return cls(**found)

  return read_record


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


def _anything(value: Any) -> Any:
  if type(value) is int and abs(value) > _LARGEST_INTEGER:
    raise _Misfit('has', ' = a number beyond 64 bits')
  return tuple(map(_anything, value)) if isinstance(value, list) else value


def _tuple_reader(arguments: tuple[Any, ...]) -> _Reader:
  any_length = arguments[-1] is Ellipsis
  kinds = arguments[:1] if any_length else arguments
  readers = [_reader(kind) for kind in kinds]
  same = kinds[0] if len(set(kinds)) == 1 else None

  def read_tuple(value: Any) -> tuple[Any, ...]:
    _checked(list, _KINDS[list], value)
    if not any_length and len(value) != len(kinds):
      raise _Misfit(f'has {len(value)} values in', f'; there are {len(kinds)}')
    if same in (str, float) and {same}.issuperset(map(type, value)):
      return tuple(value)  # of plain numbers or texts, as most are
    found = []
    for item, read in zip(value, readers * len(value) if any_length else readers, strict=True):
      try:
        found.append(read(item))
      except _Misfit as misfit:
        raise misfit.inside(f'[{len(found)}]') from None
    return tuple(found)

  return read_tuple


def _member(cls: type[enum.Enum], members: dict[Any, enum.Enum], value: Any) -> enum.Enum:
  try:
    return members[value]
  except (KeyError, TypeError):  # TypeError: a list or an object cannot be looked up
    allowed = ', '.join(str(member.value) for member in cls)
    raise _Misfit('has', f' = {value!r:.80}; it must be one of {allowed}') from None


def _number(value: Any) -> float:
  if type(value) is float:
    return value
  if isinstance(value, str) and value in _NOT_JSON:
    return _NOT_JSON[value]
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    raise _Misfit('has', f' = {value!r:.80}; it must be a number')
  if abs(value) > _LARGEST_INTEGER:
    raise _Misfit('has', ' = a number beyond 64 bits')
  return float(value)


def _checked(cls: type, kind: str, value: Any) -> Any:
  if type(value) is not cls:  # what JSON gives is of no subclass; True is not an integer
    raise _Misfit('has', f' = {value!r:.80}; it must be {kind}')
  if type(value) is int and abs(value) > _LARGEST_INTEGER:
    raise _Misfit('has', ' = a number beyond 64 bits')
  return value
