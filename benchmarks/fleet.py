"""Many small cases: two workers against one, and a fleet against a process per case.

    python -m benchmarks.fleet [--cases 200] [--separate 20] [--fatal]

Every case is the whole ladder with the three-layer model, in a file of its own. The
`separate` first of them are also run one after the other as `python FILE`, as a shell loop
would; their time is scaled to all cases. `--fatal` plants among 50 cases one that
segfaults, one that eats memory and one that hangs.

Targets: two workers are at least 1.7 times as fast as one; the fleet takes at most 0.3 of
the time of separate processes; of the 50, 47 pass and three are named as what they are.
Exits with 1 when a target is missed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LEAST_SPEED_UP = 1.7
MOST_OF_SEPARATE = 0.3
_ROOT = pathlib.Path(__file__).parents[1]
_CASE = """
import tf2verify
from benchmarks.small_case import SmallCase as Base


class {name}(Base):
{body}


if __name__ == '__main__':
  tf2verify.main()
"""
_FATAL = {
  'Crashes': '  def make_inputs(self):\n    import ctypes\n    ctypes.string_at(0)\n',
  'Hangs': '  def make_tf2_layer(self):\n    import time\n    time.sleep(1e6)\n',
  'Eats': (
    '  def build_tf1_graph(self, inputs, training):\n'
    '    import numpy as np\n'
    '    kept = []\n'
    '    while True:\n'
    '      kept.append(np.ones(2**24))\n'
  ),
}
_CAUSES = {
  'Crashes': 'SIGSEGV',
  'Hangs': 'no verdict after',
  'Eats': 'GiB of memory, and may take',
}


def _write(folder: pathlib.Path, count: int, fatal: bool) -> list[pathlib.Path]:
  cases = {f'Small{number}': '  pass\n' for number in range(count - 3 * fatal)}
  cases |= _FATAL if fatal else {}
  for name, body in cases.items():
    (folder / f'{name.lower()}_case.py').write_text(_CASE.format(name=name, body=body))
  return sorted(folder.iterdir())


def _run(*words: object) -> tuple[float, int]:
  start = time.monotonic()
  done = subprocess.run(
    [sys.executable, *map(str, words)],
    cwd=_ROOT,
    env={**os.environ, 'PYTHONPATH': str(_ROOT), 'TF_CPP_MIN_LOG_LEVEL': '3'},
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    check=False,
  )
  return time.monotonic() - start, done.returncode


def _fleet(cases: pathlib.Path, journal: pathlib.Path, *options: object) -> tuple[float, int]:
  return _run('-m', 'tf2verify', 'fleet', cases, '--journal', journal, *options)


def speed(count: int, separate: int) -> bool:
  """Prints the two ratios; returns whether the targets are met."""
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / 'cases').mkdir()
    files = _write(folder / 'cases', count, fatal=False)
    seconds = {}
    for jobs in (1, 2):
      seconds[jobs], status = _fleet(folder / 'cases', folder / f'{jobs}.sqlite', '--jobs', jobs)
      print(
        f'{count} cases, {jobs} workers: {seconds[jobs]:.1f} s, exit status {status}', flush=True
      )
    alone = [_run(path)[0] for path in files[:separate]]
  scaled = sum(alone) / len(alone) * count
  print(f'{len(alone)} separate processes: {sum(alone):.1f} s, {scaled:.0f} s for {count}')
  speed_up, share = seconds[1] / seconds[2], seconds[2] / scaled
  print(f'2 workers against 1: {speed_up:.2f} (at least {LEAST_SPEED_UP})')
  print(f'fleet against separate processes: {share:.2f} (at most {MOST_OF_SEPARATE})')
  print(f'  with 1 worker: {seconds[1] / scaled:.2f}')
  return speed_up >= LEAST_SPEED_UP and share <= MOST_OF_SEPARATE


def fatal() -> bool:
  """Prints what became of 50 cases of which three are fatal."""
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / 'cases').mkdir()
    _write(folder / 'cases', 50, fatal=True)
    report = folder / 'report'
    options = ('--report_dir', report, '--timeout', 60, '--memory', 4)
    seconds, _ = _fleet(folder / 'cases', folder / 'run.sqlite', *options)
    verdicts = [json.loads(path.read_text()) for path in report.glob('*.json')]
  passed = sum(verdict['status'] == 'PASSED' for verdict in verdicts)
  named = 0
  for verdict in verdicts:
    if verdict['case'] in _CAUSES:
      (error,) = (stage['error'] for stage in verdict['stages'] if stage['error'])
      named += _CAUSES[verdict['case']] in error['summary']
      print(f'{verdict["case"]}: {error["summary"]}')
  print(f'{passed} of {len(verdicts)} passed, {named} of 3 named, {seconds:.0f} s')
  return passed == 47 and named == 3 and len(verdicts) == 50


def main() -> int:
  """Runs what is asked for and prints the figures beside their targets."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--cases', type=int, default=200)
  parser.add_argument('--separate', type=int, default=20)
  parser.add_argument('--fatal', action='store_true', help='only the 50 with three fatal ones')
  arguments = parser.parse_args()
  if arguments.fatal:
    return 0 if fatal() else 1
  return 0 if speed(arguments.cases, arguments.separate) else 1


if __name__ == '__main__':
  sys.exit(main())
