"""Tests of tf2verify.diagnosis.edits.needed."""

import dataclasses

from absl.testing import absltest

from tf2verify.diagnosis.edits.needed import Needed, Progress
from tf2verify.diagnosis.places.bench import Judged


@dataclasses.dataclass(eq=False)
class _Edit:
  """Stands for a mistake; how far apart it and others leave the sides is said by the test."""

  name: str


def _needed(distance, is_over=False):
  """Returns what judges by a function of the edits' names, and the sets that were judged."""
  judged = []

  def judge(edits):
    names = ''.join(sorted(edit.name for edit in edits))
    judged.append(names)
    return _told(distance(names))

  return Needed(judge, lambda: is_over), judged


def _told(distance):
  left = frozenset([('output', 'y', 'run')]) if distance else frozenset()
  return None if distance is None else Judged(left, 3, distance, distance)


def _names(edits):
  return ''.join(edit.name for edit in edits)


class ProgressTest(absltest.TestCase):
  def _rounds(self, *distances):
    progress = Progress(_told(1.0))
    return [progress.is_over(_told(distance)) for distance in distances]

  def test_four_edits_of_a_place_may_be_in_vain(self):
    self.assertEqual(self._rounds(1.0, 2.0, 1.0), [False] * 3)
    self.assertEqual(self._rounds(1.0, 2.0, 1.0, 0.5), [False] * 4)
    self.assertEqual(self._rounds(1.0, 2.0, 0.995, 1.0), [False, False, False, True])

  def test_what_is_nearer_starts_anew(self):
    rounds = self._rounds(1.0, 1.0, 1.0, 0.5, 0.9, 0.9, 0.9, 0.4, 0.4, 0.4, 0.4, 0.4)
    self.assertEqual(rounds, [False] * 11 + [True])


class EnoughTest(absltest.TestCase):
  edits = [_Edit(name) for name in 'abcd']

  def test_one_mistake_beside_edits_that_are_right_together_only(self):
    def distance(names):
      apart = 0.0 if 'b' in names else 1.0
      return apart + (0.0 if names.replace('b', '') in ('', 'acd') else 0.5)

    needed, judged = _needed(distance)
    # Nothing of the four can be taken away.
    self.assertTrue(all(distance('abcd'.replace(one, '')) for one in 'abcd'))
    self.assertEqual(_names(needed.enough(self.edits, _told(0.0))), 'b')
    self.assertEqual(judged, ['a', 'b', 'c', 'd'])

  def test_two_mistakes_beside_others(self):
    needed, _ = _needed(lambda names: sum(one not in names for one in 'ac') / 2)
    self.assertEqual(_names(needed.enough(self.edits, _told(0.0))), 'ac')

  def test_all_of_them_are_needed(self):
    needed, _ = _needed(lambda names: 1.0 - len(names) / 4)
    self.assertEqual(_names(needed.enough(self.edits, _told(0.0))), 'abcd')

  def test_an_edit_that_makes_no_graph_alone(self):
    needed, _ = _needed(lambda names: None if names == 'a' else 0.0 if 'd' in names else 1.0)
    self.assertEqual(_names(needed.enough(self.edits, _told(0.0))), 'd')

  def test_nothing_is_tried_where_the_stage_does_not_pass_or_time_is_over(self):
    for left, is_over in ((0.5, False), (0.0, True)):
      needed, judged = _needed(lambda names: 0.0, is_over)
      self.assertEqual(_names(needed.enough(self.edits, _told(left))), 'abcd')
      self.assertEqual(judged, [])

  def test_runs_are_limited(self):
    many = [_Edit(chr(ord('a') + n)) for n in range(12)]
    needed, judged = _needed(lambda names: 1.0 - len(names) / 12)
    self.assertLen(needed.enough(many, _told(0.0)), 12)
    self.assertLen(judged, 12)


if __name__ == '__main__':
  absltest.main()
