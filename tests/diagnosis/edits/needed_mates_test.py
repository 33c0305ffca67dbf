"""Tests of tf2verify.diagnosis.edits.needed: edits that undo each other."""

import functools
from types import SimpleNamespace

from absl.testing import absltest

from tf2verify.diagnosis.edits.mistakes import Mistake, first_of
from tf2verify.diagnosis.edits.needed import Needed
from tf2verify.diagnosis.places.bench import Judged
from tf2verify.records.experiment import Edit
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import NodeChange
from tf2verify.sides.graphs.edits.repairs import Repair

_BEFORE = Judged(frozenset({('output', 'a', 'run')}), 1, 1.0, 1.0)


def _judged(distance):
  left = frozenset() if not distance else _BEFORE.left
  return Judged(left, 1, distance, distance)


class _Bench:
  """Knows how far apart the sides are with some edits."""

  def __init__(self, distances):
    self._distances = distances

  def judged(self, repairs):
    return _judged(self._distances[''.join(sorted(map(_name, repairs)))])


def _name(repair):
  return ''.join(change.op for change in repair.changes)


def _mistake(name):
  return Mistake((), Edit.SETTING, Repair((NodeChange(name),)))


def _kept(distances, names):
  mistakes, judged = list(map(_mistake, names)), _judged(distances[''.join(sorted(names))])
  bench = _Bench(distances)
  needed = Needed(lambda some: bench.judged([one.repair for one in some]), lambda: False)
  kept, judged = needed.without_mates(_BEFORE, mistakes, judged)
  return [_name(one.repair) for one in kept], judged.distance


class EditsThatUndoEachOtherTest(absltest.TestCase):
  def test_they_are_no_mistakes(self):
    # x is the mistake; a moves a factor away, and b moves it back.
    found = {'x': 0.0, 'abx': 0.0, 'a': 1.5, 'b': 1.5, 'ab': 1.0, 'ax': 0.5, 'bx': 0.5}
    self.assertEqual(_kept(found, 'abx'), (['x'], 0.0))

  def test_where_they_do_not_make_the_stage_pass(self):
    self.assertEqual(_kept({'a': 1.6, 'x': 0.4, 'ax': 0.3}, 'ax'), (['x'], 0.4))
    self.assertEqual(_kept({'a': 1.6, 'b': 1.7, 'ab': 0.3}, 'ab'), ([], 1.0))
    # Each of several mistakes may be too small beside another one to be seen.
    self.assertEqual(_kept({'a': 1.0, 'b': 0.9, 'ab': 0.3}, 'ab'), (['a', 'b'], 0.3))

  def test_what_takes_several_edits_is_one(self):
    self.assertEqual(_kept({'a': 2.0, 'b': 3.0, 'ab': 0.0}, 'ab'), (['ab'], 0.0))
    found = {'a': 2.0, 'b': 3.0, 'x': 0.3, 'ax': 0.6, 'bx': 0.7, 'ab': 0.3, 'abx': 0.0}
    self.assertEqual(_kept(found, 'axb'), (['ab', 'x'], 0.0))

  def test_mistakes_of_which_each_counts_stay(self):
    self.assertEqual(_kept({'a': 0.5, 'b': 0.5, 'ab': 0.0}, 'ab'), (['a', 'b'], 0.0))
    self.assertEqual(_kept({'a': 1.2, 'b': 0.5, 'ab': 0.0}, 'ab'), (['a', 'b'], 0.0))
    # No tensor counts for more than 1, so that two mistakes need not be worse than one.
    self.assertEqual(_kept({'a': 1.0, 'b': 1.0, 'ab': 0.0}, 'ab'), (['a', 'b'], 0.0))


def _part(name, end, line):
  """Returns an edit of one place, at an operation of tf1 and a line."""
  source = SimpleNamespace(
    tf1_type='Mul', tf1_path=('Mul',), tf1_source=SourceLine('a.py', line, '', 'x'), tf2_source=None
  )
  region = SimpleNamespace(regions=SimpleNamespace(tf1=SimpleNamespace(end=end)))
  place = SimpleNamespace(evidence=SimpleNamespace(source=source), source=region)
  return Mistake((place,), Edit.OPERATIONS, Repair((NodeChange(name),)))


class PartsTest(absltest.TestCase):
  def kept(self, passes, *parts, others=()):
    """Returns the edits that are kept of a mistake, and how many sets were judged."""
    one = functools.reduce(Mistake.joined, parts)
    judged = []

    def judge(some):
      judged.append(''.join(sorted(_name(mistake.repair) for mistake in some)))
      return _judged(0.0 if passes(judged[-1]) else 1.0)

    needed = Needed(judge, lambda: False)
    kept, found = needed.of_parts([one, *others], _judged(0.0))
    self.assertTrue(found.passes)
    return [_name(mistake.repair) for mistake in kept], len(judged)

  def parts(self):
    # Of two variables each: the place of the mistake, and two behind it of other lines.
    known = enumerate(('a', 'b', 'c', 'd', 'e', 'f'))
    return [_part(name, n, n // 2) for n, name in known]

  def test_what_is_not_needed_is_no_place(self):
    kept, _ = self.kept(lambda names: {'a', 'b'} <= set(names), *self.parts())
    self.assertEqual(kept, ['ab'])

  def test_the_first_of_two_ways(self):
    def passes(names):
      return {'a', 'b'} <= set(names) or set('cdef') <= set(names)

    kept, _ = self.kept(passes, *self.parts()[::-1])
    self.assertEqual(kept, ['ab'])

  def test_all_kinds_are_needed(self):
    kept, _ = self.kept(lambda names: set('abcdef') <= set(names), *self.parts())
    self.assertEqual(kept, ['abcdef'])

  def test_a_mistake_of_one_kind_is_not_judged_again(self):
    kept, runs = self.kept(lambda names: True, _part('a', 0, 1), _part('b', 1, 1))
    self.assertEqual((kept, runs), (['ab'], 0))

  def test_beside_another_mistake(self):
    other = _mistake('x')
    kept, _ = self.kept(lambda names: {'a', 'b', 'x'} <= set(names), *self.parts(), others=[other])
    self.assertEqual(kept, ['ab', 'x'])


class FirstTest(absltest.TestCase):
  def test_what_another_edit_leads_to_waits(self):
    before = {0: {0}, 1: {0, 1}, 2: {2}, 3: {2, 3}}
    graph = SimpleNamespace(ancestors=lambda ends: before[ends[0]])
    parts = [_part(name, n, n) for n, name in enumerate('abcd')]
    found = first_of(graph, parts)
    self.assertEqual([_name(one.repair) for one in found], ['a', 'c'])


if __name__ == '__main__':
  absltest.main()
