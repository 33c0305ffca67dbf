"""`[tool.tf2verify]` in pyproject.toml: defaults of the options of `run`."""

import difflib
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from tf2verify.errors import UsageError

if sys.version_info >= (3, 11):
  import tomllib
else:
  import tomli as tomllib

FILE = 'pyproject.toml'
TABLE = 'tool.tf2verify'
_PATHS = ('report_dir', 'html', 'junit', 'markdown', 'sarif', 'tensorboard_dir')
# Key and what it takes; the keys are the options of `run`.
_TAKES = {
  'stages': "a list of names of stages, or of their numbers as strings: ['1-6']",
  **dict.fromkeys(_PATHS, 'a path, relative to the folder of pyproject.toml'),
  'timeout': 'a number of seconds, at least 0',
  'deprecations': 'true or false',
  'reuse_reference': 'true, false, or a path, relative to the folder of pyproject.toml',
  'diagnose': "'all' or 'first'",
  'github_annotations': "'auto', 'on' or 'off'",
}
# What would have to hold for every runner, and so belongs to the case.
_OF_THE_CASE = ('rtol', 'atol', 'tolerance', 'gradient_tolerance')


def run_defaults(folder: str) -> dict[str, Any]:
  """Returns the defaults that a project declares.

  Args:
    folder: of it or of its nearest parent that has a pyproject.toml.

  Returns:
    Option of `run` to value, paths made absolute; empty without the table.

  Raises:
    UsageError: the file cannot be read, or the table has an unknown key or a wrong value.
  """
  path = nearest(os.path.abspath(folder))
  if not path:
    return {}
  try:
    with open(path, 'rb') as file:
      tools = tomllib.load(file).get('tool', {})
  except (OSError, ValueError) as error:
    raise UsageError(f'{path} cannot be read for [{TABLE}]: {error}') from error
  table = tools.get('tf2verify', {}) if isinstance(tools, Mapping) else {}
  if not isinstance(table, Mapping):
    raise UsageError(f'{path}: tool.tf2verify is {table!r:.80}; it must be a table, [{TABLE}]')
  return {key: _value(path, key, value) for key, value in table.items()}


def nearest(folder: str) -> str:
  """Returns the path of the pyproject.toml of a folder or its nearest parent; '' for none."""
  while True:
    path = os.path.join(folder, FILE)
    if os.path.isfile(path):
      return path
    above = os.path.dirname(folder)
    if above == folder:
      return ''
    folder = above


def _value(path: str, key: str, value: Any) -> Any:
  if key in _OF_THE_CASE:
    raise UsageError(
      f'{path}: [{TABLE}] has {key}; a tolerance belongs to the case, so that every runner uses '
      'the same '
      'one: put tolerance = tf2verify.Tolerance(rtol=..., atol=...) into a base class of the '
      'cases'
    )
  if key not in _TAKES:
    close = difflib.get_close_matches(key, _TAKES, 1)
    guess = f' (did you mean {close[0]}?)' if close else ''
    raise UsageError(f'{path}: [{TABLE}] has no key {key}{guess}; it has {", ".join(_TAKES)}')
  if not _fits(key, value):
    raise UsageError(f'{path}: [{TABLE}] {key} is {value!r:.80}; it must be {_TAKES[key]}')
  if key in _PATHS:
    return os.path.join(os.path.dirname(path), value)
  if key == 'reuse_reference' and isinstance(value, str):
    return os.path.join(os.path.dirname(path), value)
  return float(value) if key == 'timeout' else value


def _fits(key: str, value: Any) -> bool:
  if key == 'stages':
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)
  if key == 'timeout':
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0
  if key == 'deprecations':
    return isinstance(value, bool)
  if key == 'reuse_reference':
    return isinstance(value, (bool, str)) and value != ''
  if key == 'diagnose':
    return value in ('all', 'first')
  if key == 'github_annotations':
    return value in ('auto', 'on', 'off')
  return isinstance(value, str) and bool(value)
