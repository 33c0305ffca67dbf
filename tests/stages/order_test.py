import pathlib
import re

from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify.stages import STAGES, Stage

_STAGES_FOLDER = pathlib.Path(tf2verify.__file__).parent / 'stages'


class OrderTest(absltest.TestCase):
  def test_ladder_order(self):
    self.assertEqual(
      [stage.name for stage in STAGES],
      [
        'no_new_variables',
        'variable_inventory',
        'zero_randomness',
        'seeded_constant',
        'seeded_num_random_ops',
        'gradients',
        'loss',
        'training_steps',
        'checkpoint',
        'execution_modes',
        'determinism',
      ],
    )

  def test_every_stage_says_what_it_is(self):
    for stage in STAGES:
      with self.subTest(stage.name):
        self.assertTrue(issubclass(stage, Stage))
        self.assertTrue(re.fullmatch('[a-z_]+', stage.name))
        self.assertGreater(len(stage.proves), 20)
        self.assertFalse(stage.proves.endswith('.'))
        self.assertTrue(stage.__doc__)
        self.assertIsInstance(stage.needs, tuple)

  def test_a_stage_needs_only_earlier_ones(self):
    for number, stage in enumerate(STAGES):
      earlier = {before.name for before in STAGES[:number]}
      self.assertEmpty(set(stage.needs) - earlier, stage.name)

  def test_one_file_a_stage(self):
    defining = {
      path.stem
      for path in _STAGES_FOLDER.glob('*/*.py')
      if re.search(r'^class \w+\(Stage\)', path.read_text(), flags=re.MULTILINE)
    }
    self.assertEqual(defining, {stage.name for stage in STAGES})
    for stage in STAGES:
      self.assertEqual(stage.__module__.rpartition('.')[2], stage.name)

  def test_every_stage_has_tests(self):
    for stage in STAGES:
      folder = stage.__module__.split('.')[-2]
      path = pathlib.Path(__file__).parent / folder / f'{stage.name}_test.py'
      self.assertTrue(path.is_file(), path)


class BlockingTest(absltest.TestCase):
  def test_what_stands_on_a_failure_is_blocked_by_it(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return 2.0 * self.model(inputs, training)

    verdict = tf2verify.verify(Case)
    self.assertEqual(
      [stage.status.value for stage in verdict.stages],
      ['PASSED', 'PASSED', 'FAILED', *['BLOCKED'] * 7, 'PASSED'],
    )
    for stage in verdict.stages[3:-1]:
      self.assertEqual(stage.reason, 'blocked: zero_randomness FAILED')
    self.assertIs(verdict.status, tf2verify.Status.FAILED)

  def test_the_order_of_random_ops_blocks_no_gradients(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, exchanged=False):
        net = inputs * tiny_models.kernel()[0]
        one, other = (tiny_models.v1.random_normal([3]) for _ in range(2))
        return (net + other, one) if exchanged else (net + one, other)

      def port(self, inputs, training):
        return self.model(inputs, training, exchanged=True)

    verdict = tf2verify.verify(Case)
    self.assertEqual(
      [stage.status.value for stage in verdict.stages[3:6]], ['PASSED', 'FAILED', 'PASSED']
    )
    assert verdict.first_failure is not None
    self.assertEqual(verdict.first_failure.stage, 'seeded_num_random_ops')

  def test_one_stage_brings_what_it_needs(self):
    class Case(tiny_models.Affine):
      pass

    verdict = tf2verify.verify(Case, stages=['zero_randomness'])
    self.assertEqual(
      [stage.stage for stage in verdict.stages],
      ['no_new_variables', 'variable_inventory', 'zero_randomness'],
    )


if __name__ == '__main__':
  absltest.main()
