"""The ladder with a recorded reference beside that with one that is built here.

    make record
    python -m benchmarks.replay [--recording build/recordings/inception_resnet_v2] [--runs 2]

climbs Inception-ResNet-v2 at 299 x 299 to the gradients, each time in a process of its
own, one after the other in turn, and prints seconds by stage; and how many of them the
port alone takes, which no recording can spare. Target: at most half the time.
"""

import argparse
import json
import subprocess
import sys
import time
from typing import Any
from unittest import mock

_STAGES = (
  'no_new_variables',
  'variable_inventory',
  'zero_randomness',
  'seeded_constant',
  'seeded_num_random_ops',
  'gradients',
)
_OF_THE_PORT = ('creation_report', 'observe_filled', 'observe_seeded')


def climb(kind: str, recording: str) -> None:
  """Climbs in this process and prints seconds as JSON, by stage, and of the port."""
  import tf2verify
  from examples.inception_resnet_v2 import full_size_case, port
  from tf2verify.sides.tf2.layer import Tf2Layer

  class Recorded(tf2verify.EquivalenceCase):
    tf1_recording = recording

    def make_tf2_layer(self) -> Any:
      return port.InceptionResnetV2(1000)

  of_the_port = 0.0

  def timed(method: Any) -> Any:
    def run(*arguments: Any) -> Any:
      nonlocal of_the_port
      start = time.perf_counter()
      try:
        return method(*arguments)
      finally:
        of_the_port += time.perf_counter() - start

    return run

  case = Recorded if kind == 'recorded' else full_size_case.InceptionResnetV2FullSizeCase
  methods = {name: timed(getattr(Tf2Layer, name)) for name in _OF_THE_PORT}
  with mock.patch.multiple(Tf2Layer, **methods):
    verdict = tf2verify.verify(case, _STAGES)
  found = {stage.stage: stage.seconds for stage in verdict.stages}
  found['(all)'] = sum(found.values())
  found['(the port alone)'] = of_the_port
  print(json.dumps({'status': verdict.status.value, 'seconds': found}))


def main() -> int:
  """Prints the table; returns 0."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--recording', default='build/recordings/inception_resnet_v2')
  parser.add_argument('--runs', type=int, default=2)
  parser.add_argument('--climb', choices=('recorded', 'live'), help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.climb:
    climb(arguments.climb, arguments.recording)
    return 0
  best: dict[str, dict[str, float]] = {}
  for _ in range(arguments.runs):
    for kind in ('recorded', 'live'):
      command = [sys.executable, '-m', 'benchmarks.replay', '--climb', kind]
      done = subprocess.run(
        [*command, '--recording', arguments.recording],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
      )
      found = json.loads(done.stdout.splitlines()[-1])
      print(kind, found['status'], f'{found["seconds"]["(all)"]:.1f} s', flush=True)
      if kind not in best or found['seconds']['(all)'] < best[kind]['(all)']:
        best[kind] = found['seconds']
  print(f'{"stage":<26} {"recorded":>9} {"live":>9} {"ratio":>6}')
  for stage, seconds in best['recorded'].items():
    live = best['live'][stage]
    print(f'{stage:<26} {seconds:>9.1f} {live:>9.1f} {seconds / max(live, 0.1):>6.2f}')
  return 0


if __name__ == '__main__':
  sys.exit(main())
