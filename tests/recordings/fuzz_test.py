"""No damage to a recording is silent, and none shows as anything but a RecordingError."""

import collections
import pathlib
import tempfile
from unittest import mock

import numpy as np
from absl.testing import absltest

from tests.recordings import hand_made, mutations
from tf2verify.errors import RecordingError
from tf2verify.recordings.recording import Recording

_REFUSED, _SAME, _SILENT, _FOREIGN = 'refused', 'the same', 'silent', 'foreign exception'


def _contents(path):
  """Returns the manifest and every array, bit by bit."""
  with Recording.open(path) as recording:
    recording.check()
    arrays = {}
    for name in recording.manifest.arrays:
      value = recording.array(name)
      data = value.tolist() if value.dtype == object else np.asarray(value).tobytes()
      arrays[name] = value.dtype.str, value.shape, data
    return recording.manifest, arrays


class FuzzTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    self._source = hand_made.make(self._folder / 'source')
    self._before = _contents(self._source)

  def _became(self, mutate, seed):
    """Returns what comes of a mutation, and of an exception what it is."""
    copy = mutations.fresh(self._source, self._folder / 'copy' / 'recording')
    mutate(copy, np.random.RandomState(seed))
    try:
      after = _contents(str(copy))
    except RecordingError as error:
      self.assertRegex(str(error), r'^[^\n]{20,900}$', f'{mutate.__name__} {seed}')
      return _REFUSED, ''
    except Exception as error:  # noqa: BLE001
      return _FOREIGN, repr(error)
    return (_SAME if after == self._before else _SILENT), ''

  def _tally(self, table):
    found = collections.defaultdict(list)
    for mutate, times in table.items():
      for number in range(times):
        outcome, text = self._became(mutate, 1000 * number + len(mutate.__name__))
        found[outcome].append((mutate.__name__, number, text))
    return found

  def test_nothing_is_silent_and_nothing_foreign(self):
    table = {**mutations.UNSIGNED, **mutations.SIGNED}
    self.assertGreaterEqual(sum(table.values()), 1000)
    found = self._tally(table)
    self.assertEqual(found[_SILENT], [])
    self.assertEqual(found[_FOREIGN], [])
    # What leaves all as it was: a flip in a date, or in what pads a header.
    self.assertLess(len(found[_SAME]), 100, collections.Counter(n for n, _, _ in found[_SAME]))
    self.assertGreater(len(found[_REFUSED]), 900)

  def test_every_signed_mutation_is_refused(self):
    found = self._tally(mutations.SIGNED)
    self.assertEqual(found[_SAME] + found[_SILENT] + found[_FOREIGN], [])

  def test_without_the_digests_of_arrays_the_fuzz_test_would_fail(self):
    with mock.patch.object(Recording, '_check_digest'):
      found = self._tally({mutations.swap_members: 10, mutations.change_an_element: 20})
    self.assertGreater(len(found[_SILENT]), 20)

  def test_without_the_digest_of_the_manifest_the_fuzz_test_would_fail(self):
    with mock.patch('tf2verify.recordings.manifest._check_digest'):
      found = self._tally({mutations.swap_values: 20, mutations.flip_a_bit: 60})
    self.assertGreater(len(found[_SILENT]), 3)


if __name__ == '__main__':
  absltest.main()
