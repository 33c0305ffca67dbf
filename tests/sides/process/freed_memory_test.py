"""Freed memory leaves the process."""

import pathlib
import sys
import unittest

import numpy as np
from absl.testing import absltest

from tf2verify.sides.process import freed_memory


def resident_mb() -> float:
  text = pathlib.Path('/proc/self/status').read_text()
  return int(text.partition('VmRSS:')[2].split()[0]) / 1024


class FreedMemoryTest(absltest.TestCase):
  @unittest.skipUnless(sys.platform == 'linux', 'only glibc keeps freed memory')
  def test_what_was_freed_below_a_block_in_use_goes_back(self):
    # Blocks below the size that malloc maps by itself; the last one holds the heap's end.
    blocks = [np.ones(4096) for _ in range(4000)]
    last = blocks[-1]
    del blocks
    before = resident_mb()
    freed_memory.give_back()
    self.assertLess(resident_mb(), before - 60, last.shape)


if __name__ == '__main__':
  absltest.main()
