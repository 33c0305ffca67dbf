import dataclasses
import itertools
import math

from absl.testing import absltest

from tests.report.html import made_up
from tf2verify.records.difference import Aspect, Difference, ErrorSummary, Judgement
from tf2verify.records.events import Histogram, Scalar, Text
from tf2verify.records.side_by_side import Curve
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, StageVerdict
from tf2verify.report.tensorboard.events import folders_of, run_of_case
from tf2verify.report.tensorboard.quantities import MOST_TENSORS, numbers_of


def events(case, *numbers):
  """Returns the events of a case, the same verdict in each run, by folder."""
  folders = folders_of([run_of_case(case, number) for number in numbers or (1,)])
  return {folder.name: folder.events for folder in folders}


def scalars(found):
  return {(event.tag, event.step): event.value for event in found if isinstance(event, Scalar)}


def training(*extents, **changes):
  curve = Curve('learning rate', (1, 2, 3), (0.5, 0.25, math.nan), (0.5, None, 0.125))
  stage = StageVerdict(
    'training_steps', 8, Status.PASSED, Compared(9, 90), curves=(curve,), extents=extents
  )
  return dataclasses.replace(stage, **changes)


def step(number, differing=0, absolute=1e-7):
  return ErrorSummary(
    f'step {number}', differing, absolute, 0.5, 0.25, 1e-8, 1e-9, None, (2, number)
  )


class EventsTest(absltest.TestCase):
  def test_numbers_of_a_failed_stage(self):
    case = made_up.failed()
    found = scalars(events(case)[''])
    # 'bias' differs by 9 where tf1 is 0.5, and 1e-5 + 1e-6 * 0.5 is allowed.
    self.assertEqual(found['gradients/greatest_absolute', 1], 9.0)
    self.assertEqual(found['gradients/greatest_relative', 1], 18.0)
    self.assertAlmostEqual(found['gradients/share_of_tolerance', 1], 9.0 / 1.05e-5)
    self.assertAlmostEqual(found['gradients/required_atol', 1], 9.0, delta=0.01)
    self.assertAlmostEqual(found['gradients/required_rtol', 1], 18.0, delta=0.02)
    self.assertEqual(found['gradients/rounding_noise', 1], 1e-3)
    self.assertEqual(found['gradients/tensors_that_differ', 1], 2)
    self.assertEqual(found['variable_inventory/tensors_that_differ', 1], 0)
    self.assertNotIn(('variable_inventory/greatest_absolute', 1), found)
    self.assertEqual(found['seeded_num_random_ops/greatest_absolute', 1], 0.0)
    self.assertFalse([tag for tag, _ in found if tag.startswith('training_steps/greatest')])

  def test_distributions(self):
    case = made_up.failed()
    found = {event.tag: event.buckets for event in events(case)[''] if isinstance(event, Histogram)}
    pairs = len(case.stages[3].deviations)
    whole = ((-0.5, 0.5, 5.0 * pairs), (0.5, 1.5, 3.0 * pairs), (1.5, 2.5, 0.0))
    self.assertEqual(found['gradients/ulps'], (*whole, (2.5, 3.5, pairs)))
    shares = found['gradients/tensors_by_share']
    self.assertEqual(sum(count for _, _, count in shares), pairs)
    for (_, right, _), (left, _, _) in itertools.pairwise(shares):
      self.assertEqual(left, right)
    # log10(9 / 1.05e-5) is 5.9, alone in the last bucket.
    self.assertEqual(shares[-1], (5.5, 6.0, 1.0))
    failed = [tag for tag in found if '/failed_tensors/' in tag]
    self.assertEqual(
      failed,
      [
        'gradients/failed_tensors/gradient bias [training]',
        'gradients/failed_tensors/gradient dense/kernel [training]',
      ],
    )

  def test_what_is_left_out_is_told(self):
    failed = [
      made_up.deviation(f'w{n}', Judgement.FAILED, 1.0 + n) for n in range(MOST_TENSORS + 2)
    ]
    signs = dataclasses.replace(made_up.deviation('signs'), frontier=())
    stage = made_up.failed().stages[3]
    found = numbers_of(dataclasses.replace(stage, deviations=(*failed, signs)), 1)
    tags = [event.tag for event in found.of_last]
    self.assertLen(tags, MOST_TENSORS)
    self.assertIn('gradients/failed_tensors/gradient w51 [training]', tags)
    self.assertNotIn('gradients/failed_tensors/gradient w1 [training]', tags)
    self.assertIn(
      f'gradients: the {MOST_TENSORS} worst failed tensors are drawn, 2 more are not', found.remarks
    )
    self.assertStartsWith(found.remarks[0], 'gradients: 1 of 53 tensors have no finite share')

  def test_not_finite_as_such_and_as_text(self):
    shape = Difference('output', 'x', Aspect.SHAPE, '(2,)', '(3,)')
    stage = StageVerdict('zero_randomness', 3, Status.FAILED, Compared(1, 2), (shape,))
    found = events(CaseVerdict('Case', 'case.py', (stage,)))['']
    numbers = scalars(found)
    self.assertTrue(math.isnan(numbers['zero_randomness/greatest_absolute', 1]))
    self.assertEqual(numbers['zero_randomness/required_atol', 1], math.inf)
    [text] = [event.markdown for event in found if isinstance(event, Text)]
    self.assertIn('zero_randomness: max absolute difference nan', text)

  def test_training_steps_have_an_axis_of_their_own(self):
    case = CaseVerdict('Case', 'case.py', (training(step(1), step(2), step(3)),))
    found = events(case, 4)
    numbers = scalars(found[''])
    self.assertEqual(numbers['training_steps/greatest_absolute', 4], 1e-7)
    each = {
      number: numbers['training_steps/each_step/required_atol', number] for number in (1, 2, 3)
    }
    self.assertEqual(each, {1: 1e-8, 2: 1e-8, 3: 1e-8})
    self.assertNotIn(('training_steps/each_step/required_atol', 4), numbers)
    tf1, tf2 = scalars(found['tf1']), scalars(found['tf2'])
    self.assertEqual((tf1['training_steps/learning_rate', 1], len(tf1)), (0.5, 3))
    self.assertTrue(math.isnan(tf1['training_steps/learning_rate', 3]))
    self.assertNotIn(('training_steps/learning_rate', 2), tf2)  # not told

  def test_consequences_are_drawn_but_are_not_the_stage(self):
    extents = step(1), step(2, 1, 0.5), step(3, 2, 64.0)
    stage = training(*extents, status=Status.FAILED, differences=(made_up.difference('w'),))
    numbers = scalars(events(CaseVerdict('Case', 'case.py', (stage,)))[''])
    self.assertEqual(numbers['training_steps/greatest_absolute', 1], 0.5)
    self.assertEqual(numbers['training_steps/each_step/greatest_absolute', 3], 64.0)
    self.assertEqual(numbers['training_steps/each_step/tensors_that_differ', 3], 2)

  def test_stages_that_compared_nothing_have_no_point(self):
    stages = [
      StageVerdict('zero_randomness', 3, status, reason='why')
      for status in (Status.BLOCKED, Status.NOT_APPLICABLE, Status.ERROR, Status.INCONCLUSIVE)
    ]
    numbers = scalars(events(CaseVerdict('Case', 'case.py', tuple(stages)))[''])
    self.assertEqual(numbers, {('zero_randomness/tensors_that_differ', 1): 0.0})

  def test_several_runs(self):
    found = events(made_up.failed(), 2, 5)['']
    steps = {event.step for event in found if event.tag == 'gradients/greatest_absolute'}
    self.assertEqual(steps, {2, 5})
    steps = [event.step for event in found if '/failed_tensors/gradient bias' in event.tag]
    self.assertEqual(steps, [5])
    self.assertEqual([event.step for event in found if event.tag == 'summary'], [2, 5])
    again = events(made_up.failed(), 2, 1)['']
    self.assertEqual({event.step for event in again if event.tag == 'summary'}, {1, 2})

  def test_summary(self):
    evil = made_up.EVIL.replace('`', '')
    [text] = [e.markdown for e in events(made_up.failed(subject=evil))[''] if isinstance(e, Text)]
    self.assertStartsWith(text, '**FAILED** WrongCase: FAILED, 3 of 5 stages passed')
    self.assertIn('likely cause: the cause is &#60;/script', text)
    self.assertIn(
      '| 6 gradients | FAILED | 2 of 60 tensors differ (60 compared, 0 unmatched) |', text
    )
    prose, _, rest = text.partition('```text\n')
    self.assertNotIn('<img', prose)
    self.assertIn("stage 'gradients' FAILED", rest)
    [well] = [e.markdown for e in events(made_up.passed())[''] if isinstance(e, Text)]
    self.assertNotIn('```', well)
    self.assertNotIn('likely cause', well)


if __name__ == '__main__':
  absltest.main()
