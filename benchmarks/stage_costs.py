"""Where the processor time of a failing stage goes.

    python -m benchmarks.stage_costs MODEL.MISTAKE [...]

Runs mistakes of the blind trial up to the stage that fails, each in a process of its own, and takes
the stack every 8 ms. A sample weighs as much as the processor time of the process since the last
one, of all threads, so that other processes on the machine do not count. Printed are the seconds of
processor time of the whole run, of the failing stage, and within it of its check and its diagnosis,
then those of the diagnosis by what they were for.
"""

import argparse
import collections
import multiprocessing
import sys
import threading
import time
import types
from concurrent.futures import ProcessPoolExecutor

import tf2verify
from benchmarks import blind_trial
from tf2verify.records.verdict import CaseVerdict
from tf2verify.sides.process import logical_devices

_EVERY = 0.008
_LEFT_OUT = ('checkpoint', 'execution_modes', 'determinism')
# What a sample is for: the first of these of which a frame is on its stack.
_KINDS = (
  ('tracing the port', ('tracing.py:trace', 'step_tracing.py:trace')),
  ('its steps taken again', ('training.py:begin_steps', 'steps.py:take')),
  ('taking writes apart', ('without_state.py:without_state',)),
  ('importing graphs', ('importer.py:import_graph_def', 'step_run.py:_imported')),
  ('sessions', ('session.py:run', 'session.py:__init__', 'run.py:close')),
)
_ELSE = 'search and comparison'


class _Sampler:
  """Takes the stack of the thread that makes it."""

  def __init__(self) -> None:
    self.samples: collections.Counter[tuple[str, ...]] = collections.Counter()
    self._thread = threading.get_ident()
    self._ends = threading.Event()
    self._sampling = threading.Thread(target=self._sample, daemon=True)

  def __enter__(self) -> '_Sampler':
    self._sampling.start()
    return self

  def __exit__(self, *_: object) -> None:
    self._ends.set()
    self._sampling.join()

  def _sample(self) -> None:
    last = time.process_time()
    while not self._ends.wait(_EVERY):
      frame, stack = sys._current_frames().get(self._thread), []
      while isinstance(frame, types.FrameType):  # the thread goes on, and lets go of them
        stack.append(f'{frame.f_code.co_filename}:{frame.f_code.co_name}')
        frame = frame.f_back
      now = time.process_time()
      self.samples[tuple(stack)] += now - last  # type: ignore[assignment]
      last = now


def _climbed(title: str) -> tuple[CaseVerdict, _Sampler]:
  model, _, name = title.partition('.')
  folder = blind_trial.FOLDER / model
  mistake = next((one for one in blind_trial.mistakes(folder) if one.name == name), None)
  known = tf2verify.verify

  def shorter(case: type[tf2verify.EquivalenceCase]) -> CaseVerdict:
    case.stages = tf2verify.all_stages_except(**dict.fromkeys(_LEFT_OUT, 'not measured'))
    return known(case)

  tf2verify.verify = shorter
  try:
    with _Sampler() as sampler:
      verdict, _ = blind_trial.climb(folder, [mistake] if mistake else [])
  finally:
    tf2verify.verify = known
  return verdict, sampler


def measured(title: str) -> tuple[str, dict[str, float], dict[str, float]]:
  """Climbs with a mistake; returns the stage that fails, its costs, and those of its diagnosis."""
  verdict, sampler = _climbed(title)
  failed = verdict.first_failure
  stage = 'training_steps' if failed is None else failed.stage
  costs: dict[str, float] = collections.defaultdict(float)
  kinds: dict[str, float] = collections.defaultdict(float)
  for stack, seconds in sampler.samples.items():
    costs['whole run'] += seconds
    if any(frame.endswith('ladder.py:_diagnosed') for frame in stack):
      costs['diagnosis'] += seconds
      kinds[_kind(stack)] += seconds
    elif any(frame.endswith(f'/{stage}.py:check') for frame in stack):
      costs['check'] += seconds
  return stage, costs, kinds


def _kind(stack: tuple[str, ...]) -> str:
  for kind, ends in _KINDS:
    if any(frame.endswith(ends) for frame in stack):
      return kind
  return _ELSE


def main() -> int:
  """Measures and prints."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('mistakes', nargs='+')
  arguments = parser.parse_args()
  for title in arguments.mistakes:
    # A process for each: what was imported and traced before would be missing from the next.
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(1, context, logical_devices.ask_for_two_cpus) as process:
      stage, costs, kinds = process.submit(measured, title).result()
    shown = ', '.join(f'{name} {costs[name]:.1f}' for name in ('whole run', 'check', 'diagnosis'))
    print(f'{title}: {stage}: {shown}', flush=True)
    for kind in (*(name for name, _ in _KINDS), _ELSE):
      print(f'  {kind:<24} {kinds[kind]:6.1f}')
  return 0


if __name__ == '__main__':
  sys.exit(main())
