import dataclasses
import re
import xml.etree.ElementTree as ElementTree

from absl.testing import absltest

from tests.report.html import made_up
from tf2verify.records.side_by_side import Curve
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.report.html.figures import figures_of


class FiguresTest(absltest.TestCase):
  def test_each_has_a_sentence_and_a_table(self):
    found = figures_of(made_up.failed(), draws=False)
    self.assertEqual([f.kind for f in found], ['growth', 'gradients', 'training', 'training'])
    self.assertEqual(
      [f.table for f in found],
      ['growth-gradients', '', 'training_steps-0', 'training_steps-0'],
    )
    self.assertEqual([f.svg for f in found], [''] * 4)
    self.assertStartsWith(found[0].sentence, 'From dense/kernel_0 (relative difference 0.0001)')
    self.assertStartsWith(found[1].sentence, '2 gradients are beyond the tolerance')
    self.assertIn('to a value that was not reported in tf2', found[3].sentence)

  def test_nothing_to_see_is_not_drawn(self):
    self.assertEqual(figures_of(made_up.passed(), draws=False), ())
    level = Curve('learning rate', (1, 2), (0.1, 0.1), (0.1, 0.1))
    stage = StageVerdict('training_steps', 8, Status.PASSED, curves=(level,))
    self.assertEqual(figures_of(CaseVerdict('Case', 'case.py', (stage,)), draws=False), ())

  @made_up.needs_report_extra
  def test_labels_of_long_names_have_room(self):
    case = made_up.failed()
    stages = []
    for stage in case.stages:
      known = stage.diagnosis
      if known is not None and known.growth:
        points = [dataclasses.replace(p, op='net/' + 'a' * 40 + '_end') for p in known.growth]
        stage = dataclasses.replace(
          stage, diagnosis=dataclasses.replace(known, growth=tuple(points))
        )
      stages.append(stage)
    figure, *_ = figures_of(dataclasses.replace(case, stages=tuple(stages)), draws=True)
    labels = re.findall(r'>(…[^<]*_end)<', figure.svg)
    self.assertNotEmpty(labels)
    self.assertEqual({len(label) for label in labels}, {23})
    self.assertNotIn('a' * 40, figure.svg)

  @made_up.needs_report_extra
  def test_svg_of_the_page(self):
    for figure in figures_of(made_up.failed(subject=made_up.EVIL), draws=True):
      with self.subTest(figure.kind):
        root = ElementTree.fromstring(figure.svg)
        names = {part.tag.partition('}')[2] for part in root.iter()}
        self.assertContainsSubset({'path', 'text'}, names)
        self.assertNoCommonElements({'script', 'style', 'metadata', 'img', 'image'}, names)
        self.assertEqual([part for part in root.iter() if part.get('style')], [])
        self.assertIn('var(--ink)', figure.svg)
        self.assertNotIn('mathdefault', figure.svg)
        for part in root.iter():
          for name in ('fill', 'stroke'):
            self.assertNotRegex(part.get(name, ''), '^#0')  # a colour that was not replaced

  @made_up.needs_report_extra
  def test_the_same_data_gives_the_same_text(self):
    one, other = (figures_of(made_up.failed(), draws=True) for _ in range(2))
    self.assertEqual(one, other)

  def assertNoCommonElements(self, one, other):
    self.assertEqual(set(one) & set(other), set())


if __name__ == '__main__':
  absltest.main()
