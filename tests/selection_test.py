from absl.testing import absltest

import tf2verify
from tf2verify.selection import StageSelection, check_stage_name, stage_names
from tf2verify.stages import STAGES

_ALL = [stage.name for stage in STAGES]


class AllStagesExceptTest(absltest.TestCase):
  def test_reason_is_kept(self) -> None:
    selection = tf2verify.all_stages_except(gradients='inference only')
    self.assertEqual(selection.reason_without('gradients'), 'inference only')
    self.assertEqual(selection.reason_without('seeded_constant'), '')

  def test_nothing_left_out(self) -> None:
    self.assertEqual(tf2verify.all_stages_except(), StageSelection())

  def test_unknown_stage(self) -> None:
    with self.assertRaisesRegex(tf2verify.Tf2VerifyError, r"did you mean 'gradients'\?"):
      tf2verify.all_stages_except(gradient='inference only')

  def test_no_reason(self) -> None:
    for reason in ('', '  ', None, True):
      with self.assertRaisesRegex(tf2verify.Tf2VerifyError, r'gradients=.* gives no reason'):
        tf2verify.all_stages_except(gradients=reason)

  def test_a_name_without_reason(self) -> None:
    with self.assertRaisesRegex(tf2verify.Tf2VerifyError, r"all_stages_except\(loss='why'\)"):
      tf2verify.all_stages_except('loss')


class StageSelectionTest(absltest.TestCase):
  def test_selection_and_whole_ladder(self) -> None:
    selection = tf2verify.all_stages_except(gradients='inference only')
    self.assertIs(StageSelection.of(selection), selection)
    self.assertEqual(StageSelection.of(_ALL), StageSelection())

  def test_stage_missing_without_reason(self) -> None:
    with self.assertRaisesRegex(tf2verify.Tf2VerifyError, 'leaves out gradients without a reason'):
      StageSelection.of([name for name in _ALL if name != 'gradients'])

  def test_neither_selection_nor_names(self) -> None:
    for declared in (None, 6, 'gradients'):
      with self.assertRaisesRegex(tf2verify.Tf2VerifyError, 'leave it out for the whole ladder'):
        StageSelection.of(declared)

  def test_stage_names(self) -> None:
    for name in _ALL:
      check_stage_name(name)
    for name in ('', 6, None, 'training'):
      with self.assertRaisesRegex(
        tf2verify.Tf2VerifyError, 'is not a stage.*the stages are no_new'
      ):
        check_stage_name(name)

  def test_numbers_are_those_of_the_tables(self) -> None:
    self.assertEqual(stage_names(['3']), ('zero_randomness',))
    self.assertEqual(stage_names(['1-2', 3, 'gradients', '6']), (*_ALL[:3], 'gradients'))
    self.assertEqual(stage_names(['1-11']), tuple(_ALL))
    for word in ('0', '12', '6-1', '3-99', 12):
      with self.assertRaisesRegex(
        tf2verify.Tf2VerifyError, 'is not the number of a stage.* 1 no_new_variabl'
      ):
        stage_names([word])
    for word in ('1-', '-1', '1-2-3', '1.5', 'gradient'):
      with self.assertRaisesRegex(tf2verify.Tf2VerifyError, 'is not a stage'):
        stage_names([word])


if __name__ == '__main__':
  absltest.main()
