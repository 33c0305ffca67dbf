from absl.testing import absltest, parameterized

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.updates.learning_rates import learning_rate
from tf2verify.records.training import OptimizerRecord

_FORM = Form('sgd', (('learning_rate', 0.1),))


def cause(tf1, tf2, name='tf.keras.optimizers.SGD', **further):
  runs = (
    simulated.run(side, _FORM, len(rates), OptimizerRecord(name, (), 'sgd'), rates)
    for side, rates in (('tf1', tf1), ('tf2', tf2))
  )
  return learning_rate(training_evidence(*runs, simulated.PAIRS, 1, **further))


class LearningRateTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('constant', [0.1] * 3, [0.05] * 3, "0.5 of TF1's at every step"),
    ('greater', [0.1] * 3, [0.2] * 3, "2 times TF1's at every step"),
    ('default_of_sgd', [0.1] * 3, [0.01] * 3, '(0.01 is the default of tf.keras.optimizers.SGD)'),
    (
      'scaled_schedule',
      [0.1, 0.05],
      [0.2, 0.1],
      'at every step: 0.2 in place of 0.1; multiply the schedule by 0.5',
    ),
    ('frozen', [0.1, 0.05, 0.025], [0.1] * 3, 'stays at 0.1 in the port'),
    ('frozen_in_tf1', [0.1] * 3, [0.1, 0.05, 0.025], 'stays at 0.1 in TF1'),
    ('stairs', [0.1, 0.1, 0.05, 0.05], [0.1, 0.07, 0.05, 0.035], 'pass staircase=True'),
    ('stairs_of_the_port', [0.1, 0.07, 0.05, 0.035], [0.1, 0.1, 0.05, 0.05], 'staircase=False'),
    (
      'stairs_of_other_lengths',
      [0.1, 0.1, 0.05, 0.05, 0.025, 0.025, 0.0125],
      [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025],
      'every 2 steps and every 3: pass the decay_steps (or boundaries) of TF1, 2',
    ),
    (
      'stairs_twice_as_long',
      [0.1, 0.1, 0.05, 0.05, 0.025, 0.025],
      [0.1, 0.1, 0.1, 0.1, 0.05, 0.05],
      'at steps 3, 5 in TF1 and at step 5 in the port',
    ),
    (
      'boundaries',
      [0.1, 0.1, 0.1, 0.05, 0.05, 0.01],
      [0.1, 0.1, 0.1, 0.1, 0.05, 0.01],
      'at steps 4, 6 in TF1 and at steps 5, 6 in the port: pass the boundaries',
    ),
    (
      'stairs_of_another_factor',
      [0.1, 0.1, 0.05, 0.05, 0.025, 0.025],
      [0.1, 0.1, 0.06, 0.06, 0.036, 0.036],
      'every 2 steps by a factor of 0.5 in TF1 and 0.6 in the port',
    ),
    (
      'decay_steps',
      [0.1, 0.05, 0.025],
      [0.1, 0.1 * 0.5**0.5, 0.05],
      'the decay_steps of the port are 2 times those of TF1',
    ),
    (
      'decay_steps_or_rate',
      [0.1, 0.05, 0.025],
      [0.1, 0.06, 0.036],
      'decay_rate or decay_steps differs',
    ),
    ('slow', [0.1, 0.05, 0.025], [0.1, 0.07, 0.05], "TF1's learning rate at step t is the port's"),
    ('fast', [0.1, 0.07, 0.05], [0.1, 0.05, 0.025], "the port's learning rate at step t is TF1's"),
    ('ahead', [0.1, 0.07, 0.06], [0.07, 0.06, 0.01], 'one step ahead of'),
    (
      'warm_up_from_zero',
      [0.05, 0.1, 0.1, 0.08],
      [0.0, 0.05, 0.1, 0.08],
      'from zero in the port, where its first 2 values are those of TF1 one step late',
    ),
    (
      'warm_up_from_zero_in_tf1',
      [0.0, 0.05, 0.1, 0.08],
      [0.05, 0.1, 0.1, 0.08],
      'write step in the warm-up of the port',
    ),
    (
      'behind, of four steps',
      [0.05, 0.035, 0.0245, 0.01715],
      [0.05, 0.05, 0.035, 0.0245],
      'one step behind',
    ),
    ('behind', [0.07, 0.06, 0.01], [0.1, 0.07, 0.06], 'one step behind'),
    (
      'floor',
      [0.01, 0.01, 0.005, 0.005, 0.003, 0.003],
      [0.01, 0.01, 0.005, 0.005, 0.0025, 0.0025],
      'of TF1 is never less than 0.003, that of the port is 0.0025 at step 5',
    ),
    (
      'floor_of_the_port',
      [0.1, 0.05, 0.025, 0.0125],
      [0.1, 0.05, 0.03, 0.03],
      'of the port is never less than 0.03, that of TF1 is 0.025 at step 3',
    ),
    ('ceiling', [0.1, 0.2, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4], 'of TF1 is never more than 0.25'),
  )
  def test_is_named(self, tf1, tf2, words):
    self.assertIn(words, cause(tf1, tf2).text)

  @parameterized.named_parameters(
    ('unlike', [0.1, 0.05, 0.02], [0.3, 0.2, 0.19]),
    # In stairs either, as those of every fourth step: no staircase=True.
    ('stairs', [0.1, 0.1, 0.1, 0.1, 0.02, 0.02], [0.1, 0.1, 0.07, 0.07, 0.02, 0.02]),
    ('other_stairs', [0.1, 0.07, 0.05, 0.035, 0.025], [0.1, 0.1, 0.1, 0.04, 0.04]),
    # From zero, but not by the same steps; and only the first one, which any fault may make.
    ('another_warm_up', [0.05, 0.1, 0.1, 0.08], [0.0, 0.03, 0.1, 0.08]),
    ('zero_once', [0.05, 0.1, 0.08], [0.0, 0.1, 0.08]),
    ('few_that_agree', [0.1, 0.09, 0.08, 0.05, 0.04, 0.03], [0.1, 0.05, 0.01, 0.01, 0.01, 0.01]),
    # A warm-up and a plateau that both have, and then another decay.
    ('plateau', [0.05, 0.1, 0.1, 0.094], [0.05, 0.1, 0.1, 0.093]),
    ('no_bound_that_is_seen', [0.1, 0.05, 0.03], [0.1, 0.05, 0.02]),
    ('no_bound_of_one_rate', [0.0067, 0.0133, 0.02], [0.0067, 0.0133, 0.01525]),
  )
  def test_is_told_as_it_is(self, tf1, tf2):
    text = cause(tf1, tf2).text
    self.assertRegex(
      text,
      r'^the learning rates (are the same up to step|differ from the first step|start the same)',
    )
    first = next(n for n, (a, b) in enumerate(zip(tf1, tf2, strict=True)) if a != b)
    self.assertIn(f'{tf1[first]:g}', text)
    self.assertIn(f'{tf2[first]:g}', text)

  @parameterized.named_parameters(
    ('same', [0.1, 0.05], [0.1, 0.05]),
    ('same_in_float32', [0.1], [0.10000000149]),
    ('untold', [0.1, 0.05], [0.1, None]),
  )
  def test_is_not_named(self, tf1, tf2):
    if None in tf2:
      runs = [simulated.run(side, _FORM, 2, rates=tf1) for side in ('tf1', 'tf2')]
      runs[1] = simulated.with_steps(runs[1], learning_rate=tf2)
      self.assertIsNone(learning_rate(training_evidence(*runs, simulated.PAIRS, 1)))
    else:
      self.assertIsNone(cause(tf1, tf2))

  def test_rate_that_is_zero_at_first(self):
    text = cause([0.0], [0.08]).text
    self.assertIn('differ from the first step on', text)
    self.assertNotIn('inf', text)

  def test_factor_of_one_step_that_later_ones_do_not_have(self):
    def rates(counts):
      return [0.1] * len(counts), [0.2 * 0.5**count for count in counts]

    self.assertNotIn('at every step', cause([0.1], [0.2], rates=rates).text)

    def twice(counts):
      return [0.1 * 0.5**count for count in counts], [0.2 * 0.5**count for count in counts]

    self.assertIn('at every step', cause([0.1], [0.2], rates=twice).text)

  def test_no_schedule_in_tf1(self):
    for counts, setting, words in (
      ([1, 2], 0.0, 'a number in place of a schedule'),
      ([0, 0], 0.0, 'counts no global_step'),
      ([1, 2], 0.5, 'pass no decay to tf.keras.optimizers.legacy.SGD (it is 0.5)'),
    ):
      record = OptimizerRecord('tf.keras.optimizers.legacy.SGD', (('decay', setting),), 'sgd')
      tf1 = simulated.with_steps(simulated.run('tf1', _FORM, 2), global_step=counts)
      tf2 = simulated.run('tf2', _FORM, 2, record, [0.1, 0.05])
      self.assertIn(words, learning_rate(training_evidence(tf1, tf2, simulated.PAIRS, 2)).text)

  @parameterized.parameters(True, False)
  def test_a_count_that_stays(self, is_read):
    rates = [0.1, 0.05, 0.025]

    def by_count(counts):
      return [
        ('other', 0, [0.1, 0.09]),
        ('step', 0, [rates[n] if is_read else 0.1 for n in counts]),
      ]

    text = cause(rates, [0.1] * 3, rates_by_count=by_count).text
    self.assertEqual('the schedule reads step, which is 0 after 3 steps' in text, is_read)
    self.assertEqual('the optimizer has no schedule' in text, not is_read)

  def test_default_of_others(self):
    found = cause([0.1] * 2, [0.001] * 2, 'tf.keras.optimizers.Adagrad')
    self.assertIn('(0.001 is the default of tf.keras.optimizers.Adagrad)', found.text)

  def test_a_rate_that_is_no_default(self):
    self.assertNotIn('default', cause([0.1] * 2, [0.001] * 2).text)


if __name__ == '__main__':
  absltest.main()
