import dataclasses

from absl.testing import absltest

from tests.report.html import made_up
from tf2verify.records.diagnosis import BY_EXPERIMENT, Cause, Diagnosis, GraphAspect
from tf2verify.records.experiment import Edit, Experiment, Outcome
from tf2verify.records.status import Status
from tf2verify.records.verdict import Compared
from tf2verify.report import headline
from tf2verify.report.html.finding import finding_of


def _with_gradients(case, **changes):
  """Returns the case with another verdict of its gradients."""
  stages = tuple(
    dataclasses.replace(stage, **changes) if stage.stage == 'gradients' else stage
    for stage in case.stages
  )
  return dataclasses.replace(case, stages=stages)


class FindingTest(absltest.TestCase):
  def test_cause_then_hint_then_place(self):
    found = finding_of(made_up.failed())
    self.assertEqual((found.number, found.stage, found.status), (6, 'gradients', Status.FAILED))
    self.assertEqual(
      [cause.text for cause in found.causes],
      ['the cause is dense/kernel', 'a hint on dense/kernel'],
    )
    self.assertEqual(found.headline, 'the cause is dense/kernel')
    [place] = found.places
    self.assertEqual(place.name, 'dense/kernel')
    self.assertRegex(place.text, '^inputs agree, its outputs differ ')
    self.assertEqual([side.line.path for side in place.sides], ['tf1.py', 'tf2.py'])
    self.assertEqual(
      place.differences, ('dense/kernel (Mul): the constant y is 0.1 in tf1, 0.2 in tf2',)
    )
    self.assertEqual(found.facts, ('9 of 10 tf1 operations have a match in tf2',))
    self.assertEqual(
      found.passed, ('no_new_variables', 'variable_inventory', 'seeded_num_random_ops')
    )

  def test_each_cause_stands_by_the_place_where_it_was_tried(self):
    case = made_up.failed()
    diagnosis = case.stages[3].diagnosis
    [source] = diagnosis.sources
    edits = [
      Experiment(Edit.SETTING, text, Outcome.PROVEN, 1, 2, 0.0, 3) for text in ('one', 'other')
    ]
    causes = tuple(Cause(edit.text, experiment=edit) for edit in edits)
    line = dataclasses.replace(source.tf2_source, path='other.py')
    sources = (
      dataclasses.replace(source, tf1_op='b', tf2_source=line, experiment=edits[1]),
      dataclasses.replace(source, tf1_op='a', experiment=edits[0]),
    )
    for shown, places in ((causes, ['a', 'b']), (causes[1:], ['b']), (causes[::-1], ['b', 'a'])):
      changed = dataclasses.replace(diagnosis, causes=shown, sources=sources)
      case = _with_gradients(case, diagnosis=changed, differences=())
      found = finding_of(case)
      stage = next(one for one in case.stages if one.stage == 'gradients')
      with self.subTest(places=places):
        self.assertEqual(
          [one.name[0] for one in (found.place, *(m.place for m in found.further))], places
        )
        self.assertEqual(headline.place(stage).path, {'a': 'tf2.py', 'b': 'other.py'}[places[0]])
    # A cause that was tried nowhere has no line of another one.
    untried = (Cause('untried'), causes[1])
    changed = dataclasses.replace(diagnosis, causes=untried, sources=sources[:1])
    found = finding_of(_with_gradients(case, diagnosis=changed, differences=()))
    self.assertIsNone(found.place)
    self.assertEqual([one.place.name[0] for one in found.further], ['b'])

  def test_without_a_cause_the_graphs_tell(self):
    case = made_up.failed()
    diagnosis = dataclasses.replace(case.stages[3].diagnosis, causes=())
    found = finding_of(_with_gradients(case, diagnosis=diagnosis, differences=()))
    self.assertEqual(
      found.headline,
      'no known mistake matches; the graphs differ: dense/kernel (Mul): the constant y is 0.1 in '
      'tf1, '
      '0.2 in tf2',
    )
    self.assertEqual(found.without_cause, found.headline)
    renamed = dataclasses.replace(
      case.stages[3].diagnosis.sources[0].differences[0], aspect=GraphAspect.WIRING
    )
    diagnosis = dataclasses.replace(diagnosis, sources=(), gradient_differences=(renamed,))
    found = finding_of(_with_gradients(case, diagnosis=diagnosis, differences=()))
    self.assertIn('dense/kernel (Mul): wiring, y 0.1 (tf1)', found.headline)
    self.assertStartsWith(found.facts[0], 'gradient path: dense/kernel')

  def test_a_reader_is_told_to_compare_the_lines_where_no_cause_says_what_to_write(self):
    case = made_up.failed()
    self.assertFalse(finding_of(case).is_for_reader)
    diagnosis = case.stages[3].diagnosis
    [source] = diagnosis.sources
    zeros = 'the port has zeros where tf1 keeps other values'
    edit = Cause('the port lacks Sub', rule=BY_EXPERIMENT)
    for causes in ((), (edit,)):
      found = dataclasses.replace(
        diagnosis, causes=causes, sources=(dataclasses.replace(source, values=zeros),)
      )
      found = finding_of(_with_gradients(case, diagnosis=found, differences=()))
      self.assertTrue(found.is_for_reader)
      self.assertEqual(found.places[0].values, zeros)

  def test_without_anything_the_counts_tell(self):
    found = finding_of(
      _with_gradients(
        made_up.failed(), differences=(made_up.difference('w'),), diagnosis=Diagnosis()
      )
    )
    self.assertEqual(
      found.headline,
      '1 of 60 tensors differ (60 compared, 0 unmatched); first gradient w [training] (2, 3) '
      'float32: 1 of 6 elements differ (16.7 %)',
    )
    self.assertEqual(found.without_cause, 'no known mistake matches')

  def test_without_a_cause_the_first_differences_tell(self):
    many = tuple(made_up.difference(f'w{n}', size=1.0 / (n + 1)) for n in range(5))
    found = finding_of(_with_gradients(made_up.failed(), differences=many, diagnosis=None))
    self.assertEqual([known.text[:11] for known in found.differences], [
      'gradient w0', 'gradient w1', 'gradient w2',
    ])  # fmt: skip
    self.assertEqual(found.more_differences, 2)
    self.assertStartsWith(found.differences[0].details[0], 'max absolute difference 1 at (1, 2)')
    explained = tuple(dataclasses.replace(known, hint='a hint') for known in many)
    found = finding_of(_with_gradients(made_up.failed(), differences=explained, diagnosis=None))
    self.assertEqual((found.differences, found.more_differences), ((), 0))

  def test_initial_values_come_first(self):
    bias = dataclasses.replace(made_up.difference('gates/bias'), quantity='initial value')
    again = dataclasses.replace(bias, run='inference')
    many = (made_up.difference('w'), bias, again)
    found = finding_of(_with_gradients(made_up.failed(), differences=many, diagnosis=None))
    self.assertEqual(
      [known.text.partition(' (')[0] for known in found.differences],
      ['initial value gates/bias [training]', 'gradient w [training]'],
    )
    self.assertEqual(found.more_differences, 1)
    other = dataclasses.replace(made_up.difference('w'), hint='a hint on w')
    found = finding_of(_with_gradients(made_up.failed(), differences=(other, bias), diagnosis=None))
    self.assertLen(found.differences, 1)
    named = dataclasses.replace(other, hint='the port starts gates/bias with 0')
    found = finding_of(_with_gradients(made_up.failed(), differences=(named, bias), diagnosis=None))
    self.assertEmpty(found.differences)

  def test_causes_are_counted_not_dropped(self):
    many = tuple(made_up.difference('w', hint=f'hint {n}') for n in range(9))
    found = finding_of(_with_gradients(made_up.failed(), differences=many, diagnosis=None))
    self.assertLen(found.causes, 6)
    self.assertEqual(found.more_causes, 3)

  def test_error_and_inconclusive(self):
    found = finding_of(made_up.error())
    self.assertEqual(found.outcome, 'tf2 side: call raised ValueError: no')
    self.assertIn('port.py', found.traceback)
    unclear = _with_gradients(
      made_up.failed(), status=Status.INCONCLUSIVE, differences=(), diagnosis=None,
      reason='nothing was compared', compared=Compared(),
    )  # fmt: skip
    self.assertEqual(finding_of(unclear).headline, 'nothing was compared')

  def test_nothing_is_wrong(self):
    self.assertIsNone(finding_of(made_up.passed()))


if __name__ == '__main__':
  absltest.main()
