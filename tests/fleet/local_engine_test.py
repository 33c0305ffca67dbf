import os
import signal
import time

import pytest
from absl.testing import absltest

from tests import console
from tf2verify.errors import Tf2VerifyError
from tf2verify.fleet import job as jobs
from tf2verify.fleet import processes
from tf2verify.fleet.ended import Asked, verdict_of
from tf2verify.fleet.local_engine import Limits, LocalEngine, Request
from tf2verify.records.resources import Resources
from tf2verify.records.status import Status

pytestmark = pytest.mark.starts_processes

SERVER = 'tests.fleet.stand_in_server'
CASES = """
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time


def segfault(events, job):
  ctypes.string_at(0)


def abort(events, job):
  print('F0000 Check failed: x == y', file=sys.stderr, flush=True)
  os.abort()


def killed(events, job):
  os.kill(os.getpid(), signal.SIGKILL)


def hang(events, job):
  while True:
    time.sleep(0.1)


def hang_in_a_child(events, job):
  subprocess.run(['sleep', '1000'])


def eat(events, job):
  kept = []
  while True:
    kept.append(bytearray(2**24))
    time.sleep(0.005)


def leave(events, job):
  os._exit(3)


def fail_outside(events, job):
  raise ValueError('it is not of the case')


def close_descriptors(events, job):
  os.closerange(0, 256)
  for name in 'abcdefgh':
    open(os.path.join(job.scratch, name), 'w')
  return 'PASSED'


def print_rubbish(events, job):
  os.write(1, bytes(range(256)) * 200 + b'\\x1b[31mred\\n')
  os.kill(os.getpid(), signal.SIGBUS)


def half_a_line(events, job):
  os.write(events._descriptor, b'{"event": "done", "verd')
  os._exit(4)


def fork(events, job):
  os.fork()  # both return: the copy must not tell a second verdict
  return 'PASSED'


def start_children(events, job):
  found = [subprocess.Popen(['sleep', '1000'])]
  found.append(subprocess.Popen(['sleep', '1000'], start_new_session=True))
  found.append(subprocess.Popen(['sleep', '1000'], process_group=0)
               if sys.version_info >= (3, 11) else found[0])
  with open(PIDS, 'w') as file:
    file.write(' '.join(str(one.pid) for one in found))
  return 'PASSED'


def _daemon(exec_it):
  if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
      with open(PIDS, 'a') as file:
        file.write(f'{os.getpid()} ')
      if exec_it:
        os.execve('/bin/sleep', ['sleep', '1000'], {})
      time.sleep(1000)
    os._exit(0)
  os.wait()


def _daemons():
  with open(PIDS, 'a'):
    before = len(open(PIDS).read().split())
  _daemon(exec_it=True)
  _daemon(exec_it=False)
  while len(open(PIDS).read().split()) < before + 2:
    time.sleep(0.01)


def daemonize(events, job):
  _daemons()
  return 'PASSED'


def daemonize_and_end_the_server(events, job):
  _daemons()
  end_the_server(events, job)


def daemonize_and_hang(events, job):
  _daemons()
  time.sleep(1000)


def threads(events, job):
  threading.Thread(target=time.sleep, args=(1000,)).start()
  return 'PASSED'


def end_the_server(events, job):
  os.kill(os.getppid(), signal.SIGKILL)
  time.sleep(60)


def slow(events, job):
  time.sleep(0.5)
  return 'PASSED'


CASES = {name: value for name, value in globals().items() if callable(value)}
CASES['right'] = lambda events, job: 'PASSED'
CASES['wrong'] = lambda events, job: 'FAILED'
"""


class LocalEngineTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    self.pids = self.folder / 'pids'
    self.file = self.folder / 'some_case.py'
    self.file.write_text(f'PIDS = {str(self.pids)!r}\n{CASES}')

  def run_jobs(self, *names, workers=2, **limits):
    """Returns how the process of each case ended, by its name."""
    found = {}
    with LocalEngine(workers, Limits(**limits), SERVER) as engine:
      requests = [Request(jobs.VERIFY, f'{self.file}::{name}', None, name) for name in names]
      for request, ended in engine.run(requests, lambda _: None):
        self.assertNotIn(request.key, found)
        found[request.key] = ended
    self.assertCountEqual(found, names)
    return found

  def verdict(self, name, ended):
    return verdict_of(ended, Asked(name, 'some_case.py', f'some_case.py::{name}', {}))[0]

  def assert_error(self, name, ended, *texts):
    verdict = self.verdict(name, ended)
    self.assertIs(verdict.status, Status.ERROR)
    shown = verdict.to_text()
    for text in texts:
      self.assertIn(text, shown)
    self.assertIn(f'run again: python -m tf2verify run some_case.py::{name} --stages first', shown)
    self.assertIs(verdict.stages[1].status, Status.BLOCKED)
    return shown

  def test_verdicts_are_delivered(self):
    found = self.run_jobs('right', 'wrong', 'fork', 'threads', 'close_descriptors')
    for name, ended in found.items():
      wanted = Status.FAILED if name == 'wrong' else Status.PASSED
      self.assertIs(self.verdict(name, ended).status, wanted, name)
    self.assertLen([one for one in found['fork'].events if one['event'] == jobs.DONE], 1)

  def test_crashes_are_named(self):
    names = ('segfault', 'abort', 'killed', 'leave', 'fail_outside', 'half_a_line', 'right')
    found = self.run_jobs(*names)
    shown = self.assert_error('segfault', found['segfault'], 'SIGSEGV', 'ctypes.string_at(0)')
    self.assertIn(f'File "{self.file}", line', shown)
    self.assertIn('while standing in', shown)
    for left_out in ('Extension modules', 'runpy', 'tf2verify/fleet', '<string>'):
      self.assertNotIn(left_out, shown)
    self.assert_error('abort', found['abort'], 'SIGABRT', 'Check failed: x == y', 'os.abort()')
    self.assert_error('killed', found['killed'], 'SIGKILL', 'lack of memory')
    self.assert_error('leave', found['leave'], 'exit status 3', 'os._exit')
    self.assert_error('fail_outside', found['fail_outside'], 'ValueError: it is not of the case')
    self.assert_error('half_a_line', found['half_a_line'], 'exit status 4')
    self.assertIs(self.verdict('right', found['right']).status, Status.PASSED)

  def test_rubbish_does_not_reach_the_terminal(self):
    shown = self.assert_error('x', self.run_jobs('print_rubbish')['print_rubbish'], 'SIGBUS', 'red')
    self.assertTrue(all(character in '\t\n' or character.isprintable() for character in shown))

  @pytest.mark.runs_alone
  def test_limits(self):
    found = self.run_jobs('hang', 'right', 'hang_in_a_child', seconds=2.0)
    self.assert_error('hang', found['hang'], 'no verdict after 2 s', 'in hang', 'time.sleep(0.1)')
    self.assert_error('x', found['hang_in_a_child'], 'no verdict after 2 s', "'sleep', '1000'")
    self.assertIs(self.verdict('right', found['right']).status, Status.PASSED)
    found = self.run_jobs('eat', 'right', memory=2**28)
    self.assert_error('eat', found['eat'], 'GiB of memory, and may take 0.25 (--memory)')
    self.assertGreater(found['eat'].greatest_memory, 2**28)
    self.assertIs(self.verdict('right', found['right']).status, Status.PASSED)

  def test_children_are_ended(self):
    found = self.run_jobs('start_children')
    self.assertIs(self.verdict('x', found['start_children']).status, Status.PASSED)
    self.assert_gone(map(int, self.pids.read_text().split()))

  def test_daemons_end_with_their_case(self):
    requests = [
      Request(jobs.VERIFY, f'{self.file}::{name}', None, name) for name in ('hang', 'daemonize')
    ]
    with LocalEngine(2, Limits(), SERVER) as engine:
      request, ended = next(engine.run(requests, lambda _: None))
      self.assertEqual(request.key, 'daemonize')
      self.assertIs(self.verdict('x', ended).status, Status.PASSED)
      daemons = list(map(int, self.pids.read_text().split()))
      self.assertLen(daemons, 2)
      self.assert_gone(daemons)  # while the other runs

  @pytest.mark.runs_alone
  def test_daemons_end_at_a_limit(self):
    found = self.run_jobs('daemonize_and_hang', seconds=1.0)
    self.assert_error('x', found['daemonize_and_hang'], 'no verdict after 1 s')
    self.assert_gone(map(int, self.pids.read_text().split()))

  def test_daemons_end_with_a_killed_server(self):
    found = self.run_jobs('daemonize_and_end_the_server', 'right')
    self.assert_error('x', found['daemonize_and_end_the_server'], 'was ended by SIGKILL')
    self.assertIs(self.verdict('right', found['right']).status, Status.PASSED)
    daemons = list(map(int, self.pids.read_text().split()))
    self.assertGreaterEqual(len(daemons), 4)  # it ran twice
    self.assert_gone(daemons)

  def assert_gone(self, numbers):
    left = set(numbers)
    end = time.monotonic() + 10
    while left and time.monotonic() < end:
      left = {number for number in left if os.path.exists(f'/proc/{number}')}
      time.sleep(0.05)
    self.assertEmpty(left)

  def test_a_case_that_ends_the_server_is_to_blame(self):
    found = self.run_jobs('slow', 'end_the_server', 'right', 'wrong')
    self.assert_error('x', found['end_the_server'], 'was ended by SIGKILL', 'not its own')
    for name in ('slow', 'right'):
      self.assertIs(self.verdict(name, found[name]).status, Status.PASSED, name)

  def test_server_that_ends_for_another_reason_is_started_again(self):
    found = []
    with LocalEngine(1, Limits(), SERVER) as engine:
      requests = (Request(jobs.VERIFY, f'{self.file}::slow', None, n) for n in range(3))

      def started(request):
        if request.key == 1:
          os.kill(engine._server.number, signal.SIGKILL)

      found = [ended for _, ended in engine.run(requests, started)]
    self.assertLen(found, 3)
    for ended in found:
      self.assertIs(self.verdict('slow', ended).status, Status.PASSED)

  def test_what_cases_declare(self):
    large, wide = Resources(memory_gib=0.25), Resources(cpus=3)
    limits = Limits(memory=2**27, memory_of_all=2**28)
    names = {'slow 1': large, 'slow 2': Resources(), 'slow 3': wide, 'slow 4': Resources()}
    begun, most = [], {}
    with LocalEngine(2, limits, SERVER) as engine:
      requests = [
        Request(jobs.VERIFY, f'{self.file}::slow', None, name, needed)
        for name, needed in names.items()
      ]

      def started(request):
        under_way = [running.request.key for running in engine._running.values()]
        begun.append(request.key)
        most[request.key] = under_way

      found = [request.key for request, _ in engine.run(requests, started)]
    self.assertEqual(found, list(names))
    self.assertEqual(begun, list(names))
    # None has room beside the first, which declares all memory, or the third, all processors.
    self.assertEqual(most, {name: [] for name in names})
    found = self.run_jobs('slow', 'right')  # two without demands run at once
    self.assertLen(found, 2)

  def test_declared_memory_is_the_limit(self):
    with LocalEngine(1, Limits(memory=2**40), SERVER) as engine:
      request = Request(jobs.VERIFY, f'{self.file}::eat', None, None, Resources(memory_gib=0.25))
      ((_, ended),) = engine.run([request], lambda _: None)
    self.assert_error('eat', ended, 'GiB of memory, and may take 0.25 (its resources)')

  def test_server_that_does_not_start(self):
    with (
      LocalEngine(1, Limits(), 'tests.fleet.absent_module') as engine,
      self.assertRaisesRegex(
        Tf2VerifyError, r'ended with exit status 1; .*doctor`(.|\n)*absent_module'
      ),
    ):
      list(engine.run([Request(jobs.VERIFY, f'{self.file}::right', None)], lambda _: None))

  def test_jobs_end_with_an_engine_that_is_left(self):
    with LocalEngine(1, Limits(), SERVER) as engine:
      requests = [Request(jobs.VERIFY, f'{self.file}::{name}', None) for name in ('right', 'hang')]
      next(engine.run(requests, lambda _: None))
      for _ in range(100):
        found = processes.children(engine._server.number) if engine._server else []
        if found:
          break
        list(engine._ready_server().messages(0.05))
      folder = engine._folder
    self.assert_gone(found)
    self.assertFalse(os.path.exists(folder))


if __name__ == '__main__':
  absltest.main()
