"""Tests of tf2verify.diagnosis.steps.read_times."""

import numpy as np
from absl.testing import absltest

from tf2verify.diagnosis.steps.read_times import left_after

_NAMES = ('gradient offset', 'update of offset', 'update of first moment of offset')


class _Ends:
  """Ends of a step, of which some are explained, and others but for a few elements."""

  def __init__(self, names, apart, near):
    self.names, self._apart, self._near = list(names), apart, near

  def left(self, _, new, names=None):
    names = self.names if names is None else names
    assert len(new) == len(names)
    return None if self._apart & {*names} else 1e-6

  def are_near(self, _, new, names):
    assert len(new) == len(names)
    return self._near >= {*names}


def _left(apart, near=(), names=_NAMES):
  return left_after(_Ends(names, {*apart}, {*near}), 0, [np.zeros(8)] * len(names))


class LeftAfterTest(absltest.TestCase):
  def test_all_explained(self):
    self.assertEqual(_left(()), 1e-6)

  def test_an_update_that_is_made_of_rounding(self):
    """Adam makes a whole step of one element whose gradient is zero but for rounding."""
    self.assertEqual(_left(_NAMES[1:2], _NAMES[1:2]), 1e-6)

  def test_not_explained(self):
    self.assertIsNone(_left(_NAMES[1:2]))
    self.assertIsNone(_left(_NAMES[:1], _NAMES), 'a gradient tells all of its elements')
    self.assertIsNone(_left(_NAMES[2:], _NAMES), 'and so does a slot')
    self.assertIsNone(_left(_NAMES[1:2], _NAMES, _NAMES[1:]), 'of no known gradient')


if __name__ == '__main__':
  absltest.main()
