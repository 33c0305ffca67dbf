"""On a real Ray cluster: nodes are processes of this machine."""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import pytest
from absl.testing import absltest

from tests import console
from tests.fleet.fleet_test import Watched
from tf2verify.commands import fleet
from tf2verify.errors import EnvironmentProblem, Tf2VerifyError, UsageError
from tf2verify.fleet import content, ray_cluster
from tf2verify.fleet import job as jobs
from tf2verify.fleet.ended import Asked, verdict_of
from tf2verify.fleet.fleet import Options, run_fleet
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.local_engine import Limits, LocalEngine, Request
from tf2verify.fleet.places import places_of
from tf2verify.fleet.ray_engine import Cluster, RayEngine
from tf2verify.fleet.shipping import roots_of
from tf2verify.records.resources import Resources
from tf2verify.records.status import Status

pytestmark = pytest.mark.runs_alone

SERVER = 'tests.fleet.stand_in_server'
STORE = 100 * 2**20
# What each notes goes to a folder of its own, which is not shipped.
CASES = """
import ctypes
import os
import signal
import sys
import time

import beside

NOTES = {notes!r}


def note(job, text=''):
  with open(os.path.join(NOTES, job.target.rpartition('::')[2]), 'a') as file:
    file.write(f'{{os.getpid()}} {{text}}\\n')


def case(events, job):
  note(job, 'begins')
  time.sleep({seconds})
  while os.path.exists(NOTES + '.hold'):
    time.sleep(0.02)
  note(job, 'ends')
  return 'PASSED'


CASES = {{f'Case{{number:02}}': case for number in range({count})}}
CASES['Case03'] = lambda events, job: 'FAILED'
CASES['Case05'] = lambda events, job: ctypes.string_at(0)
"""
FATAL = """
import os
import signal
import time


def hang(events, job):
  while True:
    time.sleep(0.1)


def eat(events, job):
  kept = []
  while True:
    kept.append(bytearray(2**24))
    time.sleep(0.005)


def worker_above():
  process = os.getpid()
  while True:
    with open(f'/proc/{process}/stat') as file:
      process = int(file.read().rpartition(')')[2].split()[1])
    with open(f'/proc/{process}/cmdline') as file:
      if file.read().startswith('ray::'):
        return process


def end_the_worker(events, job):
  with open(os.path.join(NOTES, 'ended'), 'a') as file:
    file.write('once\\n')
  os.kill(worker_above(), signal.SIGKILL)
  time.sleep(60)


def end_the_worker_once(events, job):
  path = os.path.join(NOTES, 'once')
  if not os.path.exists(path):
    open(path, 'w').close()
    os.kill(worker_above(), signal.SIGKILL)
    time.sleep(60)
  return 'PASSED'


def surroundings(events, job):
  shown = {name: value for name, value in os.environ.items() if name.startswith(('RAY', 'OMP'))}
  print(os.getcwd(), shown, os.environ.get('PYTHONPATH'), os.environ['TF_OF_THE_FLEET'], flush=True)
  os._exit(3)


def gpu(events, job):
  print('devices:', os.environ['CUDA_VISIBLE_DEVICES'], flush=True)
  os._exit(3)


gpu.resources = {'gpus': 1}
CASES = {name: value for name, value in globals().items() if callable(value)}
del CASES['worker_above']
"""
WITHOUT_RAY = """
import sys
sys.modules['ray'] = None
sys.orig_argv = ['python', '-m', 'tf2verify', 'fleet', '']
from tf2verify.commands import cli
sys.exit(cli.main(['fleet', 'some_case.py', '--journal', 'run.sqlite', '--engine', 'ray']))
"""


# Ray ends the process of a driver, with exit status 1 and no exception, when it takes a part of its
# cluster for dead; a machine that stands still for a while is enough (seen once). Such a test, and
# no test that fails, runs again with a new cluster; the summary counts it.
@pytest.mark.flaky(reruns=2, only_rerun=['^only where the process has ended$'])
@unittest.skipUnless(importlib.util.find_spec('ray'), 'Ray is not installed')
class RayEngineTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
    from ray.cluster_utils import Cluster as Machines

    head = {'num_cpus': 0, 'object_store_memory': STORE, 'include_dashboard': False}
    cls.machines = Machines(initialize_head=True, head_node_args=head)
    cls.addClassCleanup(cls.machines.shutdown)
    cls.add_node(num_gpus=1)

  @classmethod
  def add_node(cls, **options):
    node = cls.machines.add_node(num_cpus=1, object_store_memory=STORE, **options)
    cls.machines.wait_for_nodes()
    return node

  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    self.code = self.folder / 'code'
    self.code.mkdir()
    (self.code / '.git').mkdir()
    (self.code / 'beside.py').write_text('VALUE = 1\n')
    self.notes = self.folder / 'notes'
    self.notes.mkdir()

  def write(self, count=30, seconds=0.2):
    text = CASES.format(notes=str(self.notes), count=count, seconds=seconds)
    # Of the stand-ins, only the file itself is imported; it says what is beside it.
    text = f'import sys\nsys.path.insert(0, __file__.rpartition("/")[0])\n{text}'
    (self.code / 'some_case.py').write_text(text)

  def pids(self):
    """Returns the processes of the cases that have begun and not ended."""
    texts = [path.read_text() for path in self.notes.iterdir()]
    return [text.split()[0] for text in texts if text.count('begins') > text.count('ends')]

  def noted(self, word):
    return sum(path.read_text().count(word) for path in self.notes.iterdir())

  def engine(self, patience=60.0, **limits):
    targets = [str(self.code)]
    cluster = Cluster(self.machines.address, roots_of(places_of(targets)), patience=patience)
    return RayEngine(cluster, Limits(**limits), module=SERVER)

  def run_fleet(self, engine, watched, **options):
    journal = str(self.folder / 'run.sqlite')
    with Journal(journal, writable=True) as opened, engine:
      outcome = run_fleet(Options((str(self.code),), **options), opened, engine, watched)
    with Journal(journal) as opened:
      last = opened.runs()[-1]
      entries = opened.entries(last.number)
      return outcome, {
        entry.target.rpartition('::')[2]: (entry, opened.verdict(entry)) for entry in entries
      }

  def run_jobs(self, *names, resources=None, **limits):
    """Returns how the process of each case ended, by its name."""
    path = self.code / 'fatal_case.py'
    path.write_text(f'NOTES = {str(self.notes)!r}\n{FATAL}')
    found = {}
    with self.engine(**limits) as engine:
      needed = resources or Resources()
      requests = [Request(jobs.VERIFY, f'{path}::{name}', None, name, needed) for name in names]
      for request, ended in engine.run(requests, lambda _: None):
        self.assertNotIn(request.key, found)
        found[request.key] = ended
    self.assertCountEqual(found, names)
    return found

  def text(self, name, ended):
    verdict, _ = verdict_of(ended, Asked(name, 'some_case.py', f'some_case.py::{name}', {}))
    self.assertIs(verdict.status, Status.ERROR)
    return verdict.to_text()

  def test_a_node_is_lost_in_the_middle(self):
    self.write()
    node = self.add_node()

    class Losing(Watched):
      def ended(watched, result):
        super().ended(result)
        if len(watched.ran) == 8:
          hold = pathlib.Path(f'{self.notes}.hold')
          hold.touch()
          self.wait(lambda: self.noted('begins') - self.noted('ends') == 2)  # one on each node
          running = self.pids()
          self.machines.remove_node(node, allow_graceful=False)
          self.wait(lambda: sum(os.path.exists(f'/proc/{pid}') for pid in running) == 1)
          hold.unlink()

    watched = Losing()
    outcome, found = self.run_fleet(self.engine(), watched)
    names = [f'Case{number:02}' for number in range(30)]
    self.assertCountEqual(found, names)  # 0 lost
    self.assertCountEqual(watched.ran, [f'some_case.py::{name}' for name in names])  # 0 twice
    other = {'Case03': Status.FAILED, 'Case05': Status.ERROR}
    for name, (entry, verdict) in found.items():
      self.assertIs(entry.status, other.get(name, Status.PASSED), name)
      self.assertEqual(entry.attempt, 1)
      self.assertIn(str(self.code / 'some_case.py'), entry.files)
      self.assertNotIn('ray', verdict.to_text())
    crash = found['Case05'][1].to_text()
    self.assertIn('SIGSEGV', crash)
    self.assertIn(f'File "{self.code}/some_case.py", line', crash)
    self.assertIn('ctypes.string_at(0)', crash)
    self.assertEqual(outcome.passed, 28)
    self.assertEqual(self.noted('begins'), 29)  # what was lost began again
    # What was shipped has the digests of what is here.
    with LocalEngine(1, Limits(), SERVER) as local:
      watched = Watched()
      self.run_fleet(local, watched, resume=True)
    self.assertEqual(watched.kept, 30)
    self.machines.wait_for_nodes()  # the next test connects to a cluster that knows of it

  def test_limits_and_crashes_are_those_of_the_local_engine(self):
    with mock.patch.dict(os.environ, TF_OF_THE_FLEET='on'):
      found = self.run_jobs('hang', 'surroundings', 'end_the_worker_once', 'gpu', seconds=2.0)
    shown = self.text('hang', found['hang'])
    self.assertIn('no verdict after 2 s', shown)
    self.assertIn('time.sleep(0.1)', shown)
    shown = self.text('surroundings', found['surroundings'])
    self.assertIn('exit status 3', shown)
    self.assertIn(f'{self.code} {{}} None on', shown)
    self.assertEqual(found['end_the_worker_once'].last(jobs.DONE)['event'], jobs.DONE)

  def test_memory(self):
    found = self.run_jobs('eat', memory=2**28)
    self.assertIn('GiB of memory, and may take 0.25 (--memory)', self.text('x', found['eat']))

  def test_a_declared_gpu(self):
    found = self.run_jobs('gpu', resources=Resources(gpus=1, memory_gib=0.5))
    self.assertIn('devices: 0', self.text('gpu', found['gpu']))

  def test_a_case_that_ends_its_worker_every_time_is_to_blame(self):
    found = self.run_jobs('end_the_worker')
    shown = self.text('end_the_worker', found['end_the_worker'])
    self.assertIn('the Ray worker that ran it ended 3 times, on nodes that stayed up', shown)
    self.assertEqual((self.notes / 'ended').read_text(), 'once\n' * 3)

  def test_a_demand_that_no_node_can_meet(self):
    self.write(3, 0.0)
    text = (self.code / 'some_case.py').read_text()
    text += "\ndef large(events, job):\n  return 'PASSED'\n\nlarge.resources = {'gpus': 7}\n"
    (self.code / 'some_case.py').write_text(text + "CASES['large'] = large\n")
    start = time.monotonic()
    _, found = self.run_fleet(self.engine(patience=1.0), Watched())
    self.assertLess(time.monotonic() - start, 40)
    self.assertIs(found['Case01'][0].status, Status.PASSED)
    shown = found['large'][1].to_text()
    self.assertIn('no node of the Ray cluster can hold the case: it needs CPU 1, GPU 7;', shown)
    self.assertIn('1 node of CPU 1, GPU 1', shown)

  def test_a_node_with_other_packages(self):
    self.write(1)
    with mock.patch.dict(content.package_versions.__globals__, {'_PACKAGES': ('numpy',)}):
      engine = self.engine()
    with (
      self.assertRaisesRegex(EnvironmentProblem, r'node .*: tensorflow \d.* started with none'),
      engine,
    ):
      list(engine.run([Request(jobs.CHECK, '', ())], lambda _: None))

  def test_a_fork_server_that_does_not_start(self):
    self.write(1)
    cluster = Cluster(self.machines.address, (str(self.code),))
    with (
      RayEngine(cluster, Limits(), module='tests.fleet.absent_module') as engine,
      self.assertRaisesRegex(Tf2VerifyError, r'node .* ended with exit status 1(.|\n)*absent_mod'),
    ):
      list(engine.run([Request(jobs.CHECK, '', ())], lambda _: None))

  def test_a_real_case(self):
    console.write_files(self.code, real_case=console.CASES)
    cluster = Cluster(self.machines.address, (str(self.code),))
    path = f'{self.code}/real_case.py'
    chosen = ('variable_inventory',)
    with RayEngine(cluster, Limits()) as engine:
      ((_, found),) = engine.run([Request(jobs.DISCOVER, path, None)], lambda _: None)
      request = Request(jobs.VERIFY, f'{path}::RightCase', chosen)
      ((_, ended),) = engine.run([request], lambda _: None)
    needed = Resources().to_fields()
    told = found.last(jobs.FOUND)
    self.assertEqual(told['cases'], {'RightCase': needed, 'WrongCase': needed})
    done = ended.last(jobs.DONE)
    self.assertEqual(done['verdict']['status'], 'PASSED')
    self.assertEqual(done['files'][path], content.sha256_of(path))

  def test_sigterm_ends_the_fleet_and_its_cases(self):
    self.write(1, 1000)  # and two that end at once
    script = console.REPOSITORY / 'tests' / 'fleet' / 'stand_in_fleet.py'
    journal = self.folder / 'run.sqlite'
    options = ['--engine', 'ray', '--ray_address', self.machines.address, '--journal', journal]
    process = subprocess.Popen(
      [sys.executable, script, '.', *options],
      cwd=self.code,
      env={**os.environ, 'PYTHONPATH': str(console.REPOSITORY)},
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )
    self.addCleanup(process.kill)
    self.wait(lambda: (self.notes / 'Case00').exists() or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    said, complained = process.communicate(timeout=60)
    self.assertEqual(process.returncode, 143, said + complained)
    self.assertRegex(said, r'interrupted: .* has \d verdicts? of this run; .*--resume')
    self.assert_case_has_ended()

  def wait(self, condition):
    end = time.monotonic() + 60
    while not condition():
      self.assertLess(time.monotonic(), end)
      time.sleep(0.05)

  def assert_case_has_ended(self):
    process = int((self.notes / 'Case00').read_text().split()[0])
    self.wait(lambda: not os.path.exists(f'/proc/{process}'))

  def test_jobs_end_with_an_engine_that_is_left(self):
    self.run_left_engine()
    self.assert_case_has_ended()

  def run_left_engine(self):
    self.write(1, 1000)
    place = f'{self.code}/some_case.py::Case00'
    with self.engine() as engine:
      requests = iter([Request(jobs.VERIFY, place, None)])

      def started(_):
        while not (self.notes / 'Case00').exists():
          time.sleep(0.05)
        raise KeyboardInterrupt

      with self.assertRaises(KeyboardInterrupt):
        next(engine.run(requests, started))


class WithoutClusterTest(absltest.TestCase):
  def test_ray_is_not_installed(self):
    with tempfile.TemporaryDirectory() as folder:
      pathlib.Path(folder, 'some_case.py').write_text('')
      done = console.run('-c', WITHOUT_RAY, folder=folder)
    self.assertEqual(done.returncode, 2, done.stderr)
    self.assertIn('--engine ray needs ray, which this Python does not have', done.stderr)
    self.assertIn("pip install 'tf2verify[ray]'", done.stderr)

  def test_addresses(self):
    for address, text in (
      ('127.0.0.1:1', 'could not connect to the Ray cluster at 127.0.0.1:1: .*refused'),
      ('ray://head:10001', 'of the Ray client'),
      ('head:port', 'is not HOST:PORT'),
      ('127.0.0.1:70000', 'could not connect to the Ray cluster at 127.0.0.1:70000'),
    ):
      with self.subTest(address), self.assertRaisesRegex(UsageError, text):
        ray_cluster._check(address)

  def test_an_address_without_ray(self):
    with self.assertRaisesRegex(UsageError, '--ray_address names a cluster for --engine ray'):
      fleet._engine(fleet.Arguments(['x'], 'y', ray_address='a:1'), SERVER)


if __name__ == '__main__':
  absltest.main()
