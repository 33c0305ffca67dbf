import threading
import time
from unittest import mock

from absl.testing import absltest

from tf2verify.environment import time_limit
from tf2verify.environment.time_limit import TimeLimitReached, limited, seconds_left
from tf2verify.errors import CaseDefinitionError


class TimeLimitTest(absltest.TestCase):
  def test_what_takes_longer_is_ended_where_it_is(self):
    def wait():
      try:
        time.sleep(60)
      except Exception:  # noqa: BLE001 - as a case may have it
        self.fail('it was held up')

    try:
      with limited(0.05):
        self.assertGreater(seconds_left(), 0)
        wait()
    except TimeLimitReached as reached:
      self.assertIn('no verdict after 0.05 s', str(reached))
      self.assertIn('in wait', reached.stack())
    else:
      self.fail('nothing was raised')
    self.assertIsNone(seconds_left())

  def test_what_is_done_in_time_is_left_alone(self):
    for seconds in (None, 0, 60.0):
      with limited(seconds):
        pass
    self.assertIsNone(seconds_left())

  def test_what_is_no_number_is_refused(self):
    for seconds in ('1', True, [1.0]):
      with self.assertRaisesRegex(CaseDefinitionError, 'it must be a number of seconds'):
        limited(seconds).__enter__()

  def test_what_does_not_come_back_is_told(self):
    told = threading.Event()
    with mock.patch.object(time_limit, 'GRACE_SECONDS', 0.05), limited(0.05, told.set):
      try:
        time.sleep(60)
      except TimeLimitReached:  # which native code would not see
        self.assertTrue(told.wait(10))

  def test_a_thread_cannot_be_interrupted(self):
    found = []

    def verify():
      try:
        with limited(1.0):
          pass
      except CaseDefinitionError as error:
        found.append(str(error))

    thread = threading.Thread(target=verify)
    thread.start()
    thread.join()
    self.assertRegex(found[0], 'only the main thread can be interrupted')


if __name__ == '__main__':
  absltest.main()
