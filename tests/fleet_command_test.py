import contextlib
import io
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from absl.testing import absltest

from tests import console, tensorboard_events
from tests.report.html import made_up
from tf2verify.commands import cli
from tf2verify.fleet.journal import Journal

pytestmark = pytest.mark.starts_processes

# How many fleets are killed; 36 were once, see decision 0042.
ROUNDS = int(os.environ.get('TF2VERIFY_TEST_KILLS', '8'))
# Each notes that it has begun, and that it has come to its verdict.
CASES = """
import os
import time


def case(events, job):
  with open({log!r}, 'a') as file:
    file.write(f'begun {{job.target}}\\n')
  time.sleep({seconds})
  return 'PASSED'


CASES = {{f'Case{{number}}': case for number in range({count})}}
"""


class FleetCommandTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    console.wide(self)
    self.folder = console.own_folder(self)
    (self.folder / '.git').mkdir()
    self.log = self.folder / 'log'
    self.log.touch()
    self.scratch = self.folder / 'scratch'
    self.scratch.mkdir()
    self.journal = self.folder / 'run.sqlite'

  def write(self, count, seconds=0.0, name='some_case', text=CASES):
    text = text.format(log=str(self.log), seconds=seconds, count=count)
    (self.folder / f'{name}.py').write_text(text)

  def start(self, *arguments, targets=('.',), **environment):
    script = console.REPOSITORY / 'tests' / 'fleet' / 'stand_in_fleet.py'
    return subprocess.Popen(
      [sys.executable, script, *targets, '--journal', self.journal, *arguments],
      cwd=self.folder,
      env={
        **os.environ,
        'PYTHONPATH': str(console.REPOSITORY),
        'TMPDIR': str(self.scratch),  # by which its processes are known, too
        **environment,
      },
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )

  def run_all(self, *arguments, **environment):
    process = self.start(*arguments, **environment)
    said, complained = process.communicate()
    return process.returncode, said, complained

  def wait_for(self, count, process=None):
    end = time.monotonic() + 60
    while len(self.log.read_text().splitlines()) < count:
      self.assertLess(time.monotonic(), end, 'no case began')
      if process is not None:
        self.assertIsNone(process.poll(), 'it ended by itself')
      time.sleep(0.01)

  def written(self):
    with Journal(str(self.journal)) as journal:
      return [entry.target for run in journal.runs() for entry in journal.entries(run.number)]

  def processes_of_the_fleet(self):
    mark = f'TMPDIR={self.scratch}'.encode()
    found = []
    for name in filter(str.isdecimal, os.listdir('/proc')):
      try:
        if mark in pathlib.Path(f'/proc/{name}/environ').read_bytes():
          found.append(int(name))
      except OSError:
        continue
    return found

  def test_all_pass(self):
    self.write(3)
    status, said, complained = self.run_all('--jobs', '2')
    self.assertEqual((status, complained), (0, ''))
    self.assertIn('3 cases in 1 file, 3 to run', said)
    self.assertRegex(said, r'\n\[3/3\] Case\d: PASSED, 1 of 1 stages passed')
    self.assertEndsWith(said, '\n3 of 3 cases passed\n')
    status, said, _ = self.run_all('--resume')
    self.assertEqual(status, 0)
    self.assertIn('3 unchanged since the verdict in the journal, 0 to run', said)
    self.assertLen(self.log.read_text().splitlines(), 3)

  def test_some_do_not(self):
    self.write(1)
    text = "import os\nCASES = {{'Dies': lambda *_: os._exit(3), 'Wrong': lambda *_: 'FAILED'}}\n"
    self.write(2, name='bad_case', text=text)
    report = self.folder / 'report'
    status, said, _ = self.run_all('--report_dir', str(report))
    self.assertEqual(status, 1)
    self.assertRegex(
      said,
      r'\nERROR: bad_case.py::Dies\n  \w+ ERROR: .*exit status 3.*\n'
      r'FAILED: bad_case.py::Wrong\n  \w+ FAILED: .*\n1 of 3 cases',
    )
    self.assertNotIn('in full: ', said)  # it is above
    self.assertIn('1 of 3 cases passed.', (report / 'summary.md').read_text())
    self.assertTrue((report / 'bad_case.Dies.json').is_file())
    # Also of what is kept.
    status, said, _ = self.run_all('--resume', GITHUB_ACTIONS='true')
    self.assertIn('1 ERROR, some of them from an earlier run: --retry runs those again', said)
    self.assertRegex(said, r'\nFAILED: bad_case.py::Wrong\n  \w+ FAILED: ')
    self.assertRegex(said, r'\nin full: python -m tf2verify report \S+ -q\n')
    annotations = [line for line in said.splitlines() if line.startswith('::error ')]
    self.assertLen(annotations, 2)
    self.assertRegex('\n'.join(annotations), r'title=Wrong%3A \w+ FAILED::')

  @tensorboard_events.needs_tensorboard
  @made_up.needs_report_extra
  def test_pages(self):
    self.write(2)
    text = "CASES = {{'Wrong': lambda *_: 'FAILED'}}\n"
    self.write(1, name='bad_case', text=text)
    pages = ('--html', 'page.html', '--junit', 'junit.xml', '--markdown', 'summary.md')
    status, said, complained = self.run_all(*pages, '--tensorboard_dir', 'events')
    self.assertEqual(status, 1, complained)
    self.assertIn(
      '\npage: page.html\nJUnit: junit.xml\nsummary: summary.md\n'
      'TensorBoard: tensorboard --logdir events\nFAILED: bad',
      said,
    )
    self.assertEndsWith(said, '\n2 of 3 cases passed\n')
    found = tensorboard_events.read(self.folder / 'events')
    self.assertCountEqual(found, ['bad_case.Wrong', 'some_case.Case0', 'some_case.Case1'])
    again = [str(self.folder / f'again_{name}') for name in pages[1::2]]
    words = [word for pair in zip(pages[::2], again, strict=True) for word in pair]
    # A page names the project in which it is written, and the commit.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self.folder)
    with contextlib.redirect_stdout(io.StringIO()):
      cli.main(['report', str(self.journal), *words])
    for name, other in zip(pages[1::2], again, strict=True):
      texts = (self.folder / name).read_text(), pathlib.Path(other).read_text()
      written, read_again = (re.sub('Written .* UTC', '', text) for text in texts)
      self.assertEqual(written, read_again)
      self.assertIn('Wrong', written)

  def test_a_folder_that_cannot_be_stops_it_before_a_case_runs(self):
    self.write(1)
    status, said, complained = self.run_all('--tensorboard_dir', 'some_case.py/events')
    self.assertEqual((status, said), (2, ''))
    self.assertIn('--tensorboard_dir', complained)
    self.assertEqual(self.log.read_text(), '')

  def test_usage(self):
    self.write(1)
    for arguments, text in (
      (['--jobs', '0'], "'0' is not a whole number of at least 1"),
      (['--timeout', '-1'], "'-1' is not a number of at least 0"),
      (['--memory', 'nan'], "'nan' is not a number of at least 0"),
      (['--stages', 'absent'], "tf2verify: 'absent' is not a stage"),
    ):
      with self.subTest(text):
        status, said, complained = self.run_all(*arguments)
        self.assertEqual((status, said), (2, ''))
        self.assertIn(text, complained)
    status, _, complained = self.run_all(TEST_TOTAL_SHARDS='2', TEST_SHARD_INDEX='2')
    self.assertEqual(status, 2)
    self.assertIn('TEST_SHARD_INDEX=2', complained)

  def test_a_shard(self):
    self.write(5)
    touched = self.folder / 'touched'
    status, said, _ = self.run_all(
      TEST_TOTAL_SHARDS='2', TEST_SHARD_INDEX='1', TEST_SHARD_STATUS_FILE=str(touched)
    )
    self.assertEqual(status, 0)
    self.assertEndsWith(said, '2 of 2 cases passed\n')
    self.assertTrue(touched.is_file())

  def test_cases_of_one_name_are_told_apart(self):
    for name in ('a_case', 'b_case'):
      self.write(1, name=name)
    self.write(1, name='c_case', text="CASES = {{'Other': lambda *_: 'PASSED'}}\n")
    status, said, _ = self.run_all('--jobs', '1')
    self.assertEqual(status, 0, said)
    self.assertRegex(said, r'\[1/3\] a_case.py::Case0: PASSED')
    self.assertRegex(said, r'\[2/3\] b_case.py::Case0: PASSED')
    self.assertRegex(said, r'\[3/3\] Other: PASSED')

  def test_what_runs_again_is_said_and_what_still_holds_is_counted(self):
    for name in ('a_case', 'b_case'):
      self.write(1, name=name)
    self.assertEqual(self.run_all('--jobs', '1')[0], 0)
    self.write(1, 5.0, name='b_case')
    lines = len(self.log.read_text().splitlines())
    process = self.start('--jobs', '1', '--resume')
    self.wait_for(lines + 1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    self.assertIn('\n  again: b_case.py::Case0, since b_case.py changed\n', said)
    self.assertIn(' has 0 verdicts of this run and 1 of earlier runs; continue', said)

  def test_interrupted(self):
    for number, name in ((signal.SIGINT, 'one'), (signal.SIGTERM, 'two')):
      with self.subTest(name):
        self.log.write_text('')
        self.journal = self.folder / f'{name}.sqlite'
        self.write(4, 0.3)
        process = self.start('--jobs', '1')
        self.wait_for(3)
        process.send_signal(number)
        said, complained = process.communicate(timeout=30)
        self.assertEqual((process.returncode, complained), (128 + number, ''))
        count = int(re.search(r'interrupted: .* has (\d) verdicts? of this run', said)[1])
        self.assertIn('continue with: python -m tf2verify fleet', said)
        self.assertEndsWith(said, ' --resume\n')
        self.assertLen(self.written(), count)
        self.assertEmpty(self.processes_of_the_fleet())
        self.assertEqual(self.run_all('--resume')[0], 0)
        self.assertLen(self.written(), 4)

  def test_killed_at_random_moments(self):
    # A run is killed soon after its first two cases have begun: there are enough for all.
    count, rounds = 5 * ROUNDS, ROUNDS
    self.write(count, 0.1)
    chance = random.Random(0)
    killed = 0
    before = set()
    for _ in range(rounds):
      lines = len(self.log.read_text().splitlines())
      process = self.start('--jobs', '2', '--resume')
      # It has begun a case or two; then the moment is any.
      self.wait_for(lines + chance.choice((1, 2)), process)
      time.sleep(chance.uniform(0.0, 0.1))
      self.assertIsNone(process.poll(), 'it ended by itself')
      process.kill()
      killed += 1
      process.communicate()
      there = set(self.written()) if self.journal.exists() else set()
      self.assertContainsSubset(before, there)  # none is lost
      ran = {line.rpartition('::')[2] for line in self.log.read_text().splitlines()[lines:]}
      self.assertNoCommonElements(ran, {target.rpartition('::')[2] for target in before})
      before = there
    self.assertEqual(killed, rounds)
    self.assertEqual(self.run_all('--jobs', '2', '--resume')[0], 0)
    self.assertLen(set(self.written()), count)
    begun = self.log.read_text().splitlines()
    # Each kill may cost the two cases that were under way, and no more.
    self.assertLessEqual(len(begun) - count, 2 * killed)
    end = time.monotonic() + 20
    while self.folders_of_jobs() and time.monotonic() < end:
      time.sleep(0.1)
    self.assertEmpty(self.folders_of_jobs())
    self.assertEmpty(self.processes_of_the_fleet())

  def folders_of_jobs(self):
    # Killed in the moment before its server starts, a fleet leaves an empty folder behind.
    return [path for path in self.scratch.glob('*/*') if path.is_dir()]

  def test_processes_end_with_a_killed_fleet(self):
    self.write(2, 1000)
    process = self.start('--jobs', '2')
    self.wait_for(2)
    self.assertGreaterEqual(len(self.processes_of_the_fleet()), 4)
    process.kill()
    process.communicate()
    end = time.monotonic() + 20
    while self.processes_of_the_fleet() and time.monotonic() < end:
      time.sleep(0.1)
    self.assertEmpty(self.processes_of_the_fleet())
    self.assertEmpty(list(self.scratch.iterdir()))

  @pytest.mark.runs_alone
  def test_fifty_cases_three_of_them_fatal(self):
    text = (
      'import ctypes, time\n'
      'def hang(*_): time.sleep(1000)\n'
      'def eat(*_):\n'
      '  kept = []\n'
      '  while True: kept.append(bytearray(2**24)); time.sleep(0.002)\n'
      "CASES = {{f'Case{{n}}': lambda *_: 'PASSED' for n in range(47)}}\n"
      "CASES |= {{'Segv': lambda *_: ctypes.string_at(0), 'Hang': hang, 'Eat': eat}}\n"
    )
    self.write(50, text=text)
    status, said, _ = self.run_all('--jobs', '2', '--timeout', '3', '--memory', '0.5')
    self.assertEqual(status, 1)
    self.assertEndsWith(said, '47 of 50 cases passed\n')
    for name, cause in (
      ('Segv', 'the process was ended by SIGSEGV'),
      ('Hang', 'ended by the fleet: no verdict after 3 s'),
      ('Eat', r'ended by the fleet: it took 0\.\d+ GiB of memory'),
    ):
      self.assertRegex(said, rf"{name}: stage 'first' ERROR on the case side: {cause}")


if __name__ == '__main__':
  absltest.main()
