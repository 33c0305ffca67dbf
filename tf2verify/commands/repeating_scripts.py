"""Whole training scripts, run several times: do their metrics repeat, and at what price?

A metric is what the script prints to standard output as `name=value`: the last value of
each name counts. The script itself needs nothing of tf2verify.
"""

import dataclasses
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from tf2verify.errors import UsageError
from tf2verify.records.table import Table
from tf2verify.records.table_text import table_lines

_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'seeded_script.py')
_METRIC = re.compile(
  r'(?<![\w.-])([A-Za-z_][\w./-]*)=([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf|nan)(?![\w.])'
)
_SHOWN_LINES = 12


@dataclasses.dataclass(frozen=True)
class Setting:
  """What is set in a script's process before it trains."""

  name: str  # for reports and the command line
  seeds: bool = False  # whether Python, numpy, TensorFlow and PYTHONHASHSEED have a seed
  # Whether `enable_op_determinism` is called (TF_DETERMINISTIC_OPS=1 before TensorFlow 2.8).
  op_determinism: bool = False
  one_thread: bool = False  # whether TensorFlow has one thread within and one between operations

  def options(self, seed: int) -> list[str]:
    """Returns the options of the program that runs the script."""
    found = ['--seed', str(seed)] if self.seeds else []
    found += ['--op_determinism'] if self.op_determinism else []
    return found + (['--threads', '1'] if self.one_thread else [])

  def environment(self, seed: int) -> dict[str, str]:
    """Returns the environment variables that are set besides those of this process."""
    found = {'PYTHONHASHSEED': str(seed)} if self.seeds else {}
    if self.op_determinism:
      found['TF_DETERMINISTIC_OPS'] = '1'
    if self.one_thread:
      found |= {'TF_NUM_INTEROP_THREADS': '1', 'TF_NUM_INTRAOP_THREADS': '1'}
    return found


SETTINGS = (
  Setting('none'),
  Setting('seeds', seeds=True),
  Setting('seeds+op_determinism', seeds=True, op_determinism=True),
  Setting('seeds+op_determinism+one_thread', seeds=True, op_determinism=True, one_thread=True),
)
DEFAULT_SETTINGS = ('none', 'seeds', 'seeds+op_determinism+one_thread')


@dataclasses.dataclass(frozen=True)
class ScriptRuns:
  """The runs of a script under one setting."""

  setting: Setting  # the setting
  metrics: tuple[tuple[str, tuple[float, ...]], ...]  # name, and the value of every run
  seconds: tuple[float, ...]  # wall time of every run, from the start of its process to the end

  @property
  def repeatable(self) -> bool:
    """Whether every metric had one value in all runs."""
    return all(distinct(values) == 1 for _, values in self.metrics)


def distinct(values: Sequence[float]) -> int:
  """Returns how many different values there are; all NaN are one."""
  return len({'nan' if math.isnan(value) else value for value in values})


def metrics_of(output: str) -> dict[str, float]:
  """Returns the last value of each `name=value` in a script's output."""
  return {name: float(value) for name, value in _METRIC.findall(output)}


def repeat(
  script: str,
  arguments: Sequence[str],
  settings: Sequence[Setting],
  runs: int,
  seed: int = 0,
  wanted: Sequence[str] = (),
  progress: Callable[[str], None] = lambda _: None,
) -> list[ScriptRuns]:
  """Runs a script several times under each setting, one process after the other.

  The settings take turns, so that what else the machine does falls on all of them alike.

  Args:
    script: path of the script.
    arguments: its arguments.
    settings: what is set.
    runs: how many of each.
    seed: the seed of all runs, where a setting has seeds.
    wanted: names of the metrics; all that the script prints if empty.
    progress: called with a line before every run.

  Raises:
    UsageError: there is no such script, it ended with an error, or printed no metric.
  """
  if not os.path.isfile(script):
    raise UsageError(f'{script} is not a file; repeat takes the path of a Python script')
  found: dict[str, list[dict[str, float]]] = {setting.name: [] for setting in settings}
  seconds: dict[str, list[float]] = {setting.name: [] for setting in settings}
  for number in range(1, runs + 1):
    for setting in settings:
      progress(f'{setting.name}, run {number} of {runs}')
      start = time.perf_counter()
      output = _output_of(script, arguments, setting, seed)
      seconds[setting.name].append(time.perf_counter() - start)
      found[setting.name].append(_wanted(metrics_of(output), wanted, script))
  return [
    ScriptRuns(setting, _by_metric(found[setting.name]), tuple(seconds[setting.name]))
    for setting in settings
  ]


def _wanted(metrics: dict[str, float], wanted: Sequence[str], script: str) -> dict[str, float]:
  missing = [name for name in wanted if name not in metrics]
  if missing or not metrics:
    raise UsageError(
      f'{script} printed no metric {" and no ".join(missing) or "at all"}: print each to standard '
      'output as name=value (the last one of a name counts); found: '
      f'{", ".join(metrics) or "none"}'
    )
  return {name: metrics[name] for name in wanted or metrics}


def _by_metric(found: Sequence[dict[str, float]]) -> tuple[tuple[str, tuple[float, ...]], ...]:
  """Returns the values of every metric that all runs have printed."""
  names = [name for name in found[0] if all(name in metrics for metrics in found)]
  return tuple((name, tuple(metrics[name] for metrics in found)) for name in names)


def _output_of(script: str, arguments: Sequence[str], setting: Setting, seed: int) -> str:
  command = [sys.executable, _CHILD, *setting.options(seed), script, *arguments]
  done = subprocess.run(
    command,
    env={**os.environ, **setting.environment(seed)},
    capture_output=True,
    text=True,
    errors='replace',
    check=False,
  )
  if done.returncode:
    last = '\n'.join(done.stderr.splitlines()[-_SHOWN_LINES:])
    raise UsageError(f'{script} ended with status {done.returncode} [{setting.name}]\n{last}')
  return done.stdout


def settings_named(names: Sequence[str]) -> list[Setting]:
  """Returns settings by name.

  Raises:
    UsageError: there is no such setting.
  """
  by_name = {setting.name: setting for setting in SETTINGS}
  for name in names:
    if name not in by_name:
      raise UsageError(f'{name!r} is not a setting; there are {", ".join(by_name)}')
  return [by_name[name] for name in dict.fromkeys(names)]


def report_lines(measured: Sequence[ScriptRuns]) -> list[str]:
  """Returns a table per metric, and one of the time."""
  lines: list[str] = []
  for name in dict(measured[0].metrics):
    rows = [
      _metric_row(runs.setting.name, dict(runs.metrics)[name])
      for runs in measured
      if name in dict(runs.metrics)
    ]
    columns = ('setting', 'runs', 'mean', 'variance', 'max - min', 'different values')
    lines += table_lines(Table(name, columns, tuple(rows)))
  first = statistics.mean(measured[0].seconds)
  heads = ('setting', 'seconds a run', f'times {measured[0].setting.name}')
  times = [
    (runs.setting.name, f'{statistics.mean(runs.seconds):.2f}', f'{_ratio(runs, first):.2f}')
    for runs in measured
  ]
  return [*lines, *table_lines(Table('time', heads, tuple(times)))]


def _ratio(runs: ScriptRuns, first: float) -> float:
  return statistics.mean(runs.seconds) / first if first else math.nan


def _metric_row(setting: str, values: Sequence[float]) -> tuple[str, ...]:
  finite = all(map(math.isfinite, values))
  spread = max(values) - min(values) if finite else math.nan
  variance = statistics.variance(values) if finite and len(values) > 1 else math.nan
  if distinct(values) == 1:
    spread = variance = 0.0
  mean = statistics.fmean(values) if finite else math.nan
  numbers = (f'{mean:.8g}', f'{variance:.3g}', f'{spread:.3g}')
  return (setting, str(len(values)), *numbers, str(distinct(values)))
