"""Tests of the versions that a recording has to have."""

from absl.testing import absltest

from tf2verify.numerics import noise_codes, sampling
from tf2verify.recordings import manifest
from tf2verify.reference import versions
from tf2verify.sides import fill


class VersionsTest(absltest.TestCase):
  def test_versions_are_those_of_the_package(self):
    found = manifest.VERSIONS
    self.assertEqual(found['fill'], fill.VERSION)
    self.assertEqual(found['sampling'], sampling.VERSION)
    self.assertEqual(found['noise'], noise_codes.VERSION)

  def test_the_recorder_writes_what_is_read(self):
    self.assertEqual(manifest.VERSIONS, versions.VERSIONS)


if __name__ == '__main__':
  absltest.main()
