"""The loop of a port author: the second run after a change of the port alone, and `watch`.

    python -m benchmarks.loop [--models small flagship] [--repeats 3]

Runs the first six stages in processes of their own, one after the other: as they are, with the
reference's graphs being kept, and with those taken from the run before. Of each: the whole process,
imports included, and the ladder alone. Then `watch` with the small model: seconds from a saved
change to the verdict of the first failing stage. Targets: second run against the first at most 0.5
(small) and 0.45 (flagship); watch at most 1.5 s. Exits with 1 when one is missed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TARGETS = {'small': 0.5, 'flagship': 0.45}
WATCH_SECONDS = 1.5
_HERE = os.path.dirname(os.path.abspath(__file__))
_PORT = """
import tensorflow as tf
from benchmarks import small_model


class Port(small_model.SmallModel):
  pass  # PORT
"""
_CASE = """
import tf2verify
import loop_port
from benchmarks import small_model


class LoopCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return small_model.small_model(inputs, 10, training)

  def make_tf2_layer(self):
    return loop_port.Port(10)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 16, 16, 3))
"""
_WRONG = """def call(self, images, training=False):
    return 1.01 * super().call(images, training=training)"""


def _climb(model: str, folder: str) -> None:
  """Climbs in this process and prints what it took."""
  start = time.perf_counter()
  import tf2verify
  from tf2verify.stages import STAGES

  if model == 'flagship':
    from examples.inception_resnet_v2.full_size_case import InceptionResnetV2FullSizeCase as case
  else:
    from benchmarks.small_case import SmallCase as case
  imported = time.perf_counter()
  names = [stage.name for stage in STAGES[:6]]
  verdict = tf2verify.verify(case, names, reuse_reference=folder or False)
  ended = time.perf_counter()
  said = dict(verdict.environment).get('reference', '')
  print(json.dumps([imported - start, ended - imported, verdict.passed, said]))


def _process(model: str, folder: str) -> tuple[float, float, str]:
  """Returns the seconds of a process and of its ladder, and what it says of the reference."""
  start = time.perf_counter()
  done = subprocess.run(
    [sys.executable, '-m', 'benchmarks.loop', '--climb', model, '--folder', folder],
    cwd=os.path.dirname(_HERE),
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    check=True,
    text=True,
  )
  seconds = time.perf_counter() - start
  _, ladder, passed, said = json.loads(done.stdout.splitlines()[-1])
  if not passed:
    raise RuntimeError(f'{model} does not pass')
  return seconds, ladder, said


def _kept(model: str, repeats: int) -> bool:
  rows: dict[str, list[tuple[float, float, str]]] = {'live': [], 'keeping': [], 'reused': []}
  for _ in range(repeats):
    folder = tempfile.mkdtemp()
    try:
      rows['live'].append(_process(model, ''))
      rows['keeping'].append(_process(model, folder))
      rows['reused'].append(_process(model, folder))
    finally:
      shutil.rmtree(folder)
  found = {
    name: (statistics.median(row[0] for row in known), statistics.median(row[1] for row in known))
    for name, known in rows.items()
  }
  for name, (process, ladder) in found.items():
    print(
      f'{model:<9} {name:<8} process {process:6.1f} s, {process / found["live"][0]:.2f}; '
      f'ladder {ladder:6.1f} s, {ladder / found["live"][1]:.2f}   {rows[name][-1][2]}',
      flush=True,
    )
  return found['reused'][1] / found['keeping'][1] <= TARGETS[model]


def _watch(repeats: int) -> bool:
  """Saves a wrong port and a right one in turns, and prints how long each verdict took."""
  from tf2verify.commands.watch import Watch

  with tempfile.TemporaryDirectory() as folder:
    port = os.path.join(folder, 'loop_port.py')
    with open(os.path.join(folder, 'loop_case.py'), 'w') as file:
      file.write(_CASE)
    seconds: dict[str, list[float]] = {'first': [], 'wrong': [], 'right': []}
    names = ['first'] + ['wrong', 'right'] * repeats
    with open(port, 'w') as file:
      file.write(_PORT)
    names_of_stages = ['no_new_variables', 'variable_inventory', 'zero_randomness']
    names_of_stages += ['seeded_constant', 'seeded_num_random_ops', 'gradients']
    watch = Watch(os.path.join(folder, 'loop_case.py'), names_of_stages)
    for name, found in zip(names, watch.rounds(len(names)), strict=True):
      seconds[name].append(found.seconds)
      if found.verdicts[-1].passed != (name != 'wrong'):
        raise RuntimeError(found.verdicts[-1].to_text() + found.error)
      text = _PORT if name == 'wrong' else _PORT.replace('pass  # PORT', _WRONG)
      with open(port, 'w') as file:
        file.write(text)
  for name, values in seconds.items():
    print(
      f'watch, small: {name} {statistics.median(values):.2f} s ({min(values):.2f} to '
      f'{max(values):.2f})'
    )
  return statistics.median(seconds['wrong']) <= WATCH_SECONDS


def main() -> int:
  """Measures and prints."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--models', nargs='*', choices=sorted(TARGETS), default=['small', 'flagship'])
  parser.add_argument('--repeats', type=int, default=3)
  parser.add_argument('--climb', choices=sorted(TARGETS), help=argparse.SUPPRESS)
  parser.add_argument('--folder', default='', help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.climb:
    _climb(arguments.climb, arguments.folder)
    return 0
  met = [_kept(model, arguments.repeats) for model in arguments.models]
  met.append(_watch(arguments.repeats))
  return 0 if all(met) else 1


if __name__ == '__main__':
  sys.exit(main())
