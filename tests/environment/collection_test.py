"""Garbage collection is paused for imports, whose objects count as old afterwards."""

import gc

from absl.testing import absltest

from tf2verify.environment import collection


class _Node:
  pass


class PausedTest(absltest.TestCase):
  def test_what_was_made_meanwhile_counts_as_old(self) -> None:
    with collection.paused():
      self.assertFalse(gc.isenabled())
      node = _Node()
    self.assertTrue(gc.isenabled())
    self.assertTrue(any(one is node for one in gc.get_objects(generation=2)))
    self.assertEqual(gc.get_freeze_count(), 0)

  def test_objects_that_the_caller_froze_stay_frozen(self) -> None:
    # One object is the witness: other frozen ones may end meanwhile, which lowers their count.
    node = _Node()
    gc.freeze()
    self.addCleanup(gc.unfreeze)
    self.assertFalse(any(one is node for one in gc.get_objects()))
    with collection.paused():
      pass
    self.assertFalse(any(one is node for one in gc.get_objects()))

  def test_collection_that_the_caller_turned_off_stays_off(self) -> None:
    gc.disable()
    self.addCleanup(gc.enable)
    with collection.paused():
      pass
    self.assertFalse(gc.isenabled())

  def test_garbage_made_meanwhile_is_still_collected(self) -> None:
    with collection.paused():
      node = _Node()
      node.itself = node  # type: ignore[attr-defined]
      del node
    self.assertGreaterEqual(gc.collect(), 1)


if __name__ == '__main__':
  absltest.main()
