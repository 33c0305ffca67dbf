"""Tests of the versions that a recording has to have."""

from absl.testing import absltest

from tf2verify.recordings import manifest
from tf2verify.reference import versions


class VersionsTest(absltest.TestCase):
  def test_the_recorder_writes_what_is_read(self):
    self.assertEqual(manifest.VERSIONS, versions.VERSIONS)


if __name__ == '__main__':
  absltest.main()
