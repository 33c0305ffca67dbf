"""Tests of tf2verify.sides.seen: objects that were met, and are not kept alive."""

import gc
import weakref

from absl.testing import absltest

from tf2verify.sides.seen import Seen


class _Object:
  pass


class SeenTest(absltest.TestCase):
  def test_by_identity(self):
    one, other = [1], [1]  # which have no weak references
    seen = Seen()
    seen.add(one)
    self.assertIn(one, seen)
    self.assertNotIn(other, seen)

  def test_not_kept_alive(self):
    seen, one = Seen(), _Object()
    seen.add(one)
    self.assertIn(one, seen)
    known = weakref.ref(one)
    del one
    gc.collect()
    self.assertIsNone(known())
    self.assertNotIn(None, seen)

  def test_what_is_gone_is_nothing_that_was_met(self):
    seen = Seen()
    seen.add(_Object())
    gc.collect()
    self.assertNotIn(_Object(), seen)

  def test_a_copy_stays_as_it_is(self):
    seen, one = Seen(), _Object()
    copy = seen.copy()
    seen.add(one)
    self.assertIn(one, seen)
    self.assertNotIn(one, copy)


if __name__ == '__main__':
  absltest.main()
