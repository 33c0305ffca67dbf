"""Tests of tf2verify.diagnosis.edits.mistakes."""

from types import SimpleNamespace

from absl.testing import absltest

from tf2verify.diagnosis.edits.mistakes import Mistake, of_the_port
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.experiment import Edit
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import OF_TF1
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput


def _mistake(reads):
  """Returns a mistake that is seen by what a target of the port reads."""
  difference = GraphDifference(GraphAspect.WIRING, 'gradient w', '', 'input 0', 'grad', reads)
  source = SimpleNamespace(differences=(difference,))
  place = SimpleNamespace(evidence=SimpleNamespace(source=source))
  repair = Repair(inputs=(OtherInput('op', 0, reads, ()),))
  return Mistake((place,), Edit.OPERATIONS, repair)


class AsSeenTest(absltest.TestCase):
  """An edit that takes the place of another one is seen as the port was before that."""

  def places(self, edit):
    seen, later, elsewhere = (
      SimpleNamespace(evidence=SimpleNamespace(source=SimpleNamespace(tf2_op=name)))
      for name in ('mul', 'mul', 'add')
    )

    def first(place):
      return seen if place is later else place

    known = Mistake((later, elsewhere), edit, Repair())
    found = Mistake((later, elsewhere), edit, Repair(), parts=(known,)).as_seen(first)
    self.assertEqual([found.parts[0].places], [found.places])
    return [place is seen for place in found.places], [one is elsewhere for one in found.places]

  def test_first(self):
    for edit in (Edit.VALUE, Edit.OPERATIONS):
      self.assertEqual(self.places(edit), ([True, False], [False, True]))

  def test_what_is_set_is_told_by_its_place(self):
    self.assertEqual(self.places(Edit.SETTING), ([False, False], [False, True]))


class OfThePortTest(absltest.TestCase):
  def test_what_undoes_a_part_of_an_edit_belongs_to_it(self):
    own, further = _mistake('clip_by_norm/truediv'), _mistake('Adam/Sqrt')
    undone = _mistake(f'{OF_TF1}clip_by_global_norm/mul_2')
    found = of_the_port([own, undone, further])
    self.assertEqual([one.places for one in found], [own.places, further.places])
    self.assertEqual(found[0].repair.inputs, (*own.repair.inputs, *undone.repair.inputs))
    self.assertEqual(found[1].repair.inputs, further.repair.inputs)

  def test_nothing_is_lost_where_no_edit_is_read(self):
    known = [_mistake('a'), _mistake('b')]
    self.assertEqual(of_the_port(known), known)

  def test_alone(self):
    known = [_mistake(f'{OF_TF1}mul')]
    self.assertEqual(of_the_port(known), known)


if __name__ == '__main__':
  absltest.main()
