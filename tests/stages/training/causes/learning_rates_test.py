from absl.testing import absltest, parameterized

from tests.stages.training.causes import simulated
from tf2verify.compare.update_rules import Form
from tf2verify.records.training import OptimizerRecord
from tf2verify.stages.training.causes.evidence import Evidence
from tf2verify.stages.training.causes.learning_rates import learning_rate

_FORM = Form('sgd', (('learning_rate', 0.1),))


def cause(tf1, tf2, name='tf.keras.optimizers.SGD'):
  runs = (
    simulated.run(side, _FORM, len(rates), OptimizerRecord(name, (), 'sgd'), rates)
    for side, rates in (('tf1', tf1), ('tf2', tf2))
  )
  return learning_rate(Evidence(*runs, simulated.PAIRS, 1))


class LearningRateTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('constant', [0.1] * 3, [0.05] * 3, "0.5 of TF1's at every step"),
    ('default_of_sgd', [0.1] * 3, [0.01] * 3, '(0.01 is the default of tf.keras.optimizers.SGD)'),
    ('scaled_schedule', [0.1, 0.05], [0.2, 0.1], "2 of TF1's at every step"),
    ('frozen', [0.1, 0.05, 0.025], [0.1] * 3, 'stays at 0.1 in the port'),
    ('frozen_in_tf1', [0.1] * 3, [0.1, 0.05, 0.025], 'stays at 0.1 in TF1'),
    ('stairs', [0.1, 0.1, 0.05, 0.05], [0.1, 0.07, 0.05, 0.035], 'pass staircase=True'),
    ('stairs_of_the_port', [0.1, 0.07, 0.05, 0.035], [0.1, 0.1, 0.05, 0.05], 'staircase=False'),
    ('slow', [0.1, 0.05, 0.025], [0.1, 0.07, 0.05], "TF1's learning rate at step t is the port's"),
    ('fast', [0.1, 0.07, 0.05], [0.1, 0.05, 0.025], "the port's learning rate at step t is TF1's"),
    ('ahead', [0.1, 0.07, 0.06], [0.07, 0.06, 0.01], 'one step ahead of'),
    ('behind', [0.07, 0.06, 0.01], [0.1, 0.07, 0.06], 'one step behind'),
  )
  def test_is_named(self, tf1, tf2, words):
    self.assertIn(words, cause(tf1, tf2).text)

  @parameterized.named_parameters(
    ('same', [0.1, 0.05], [0.1, 0.05]),
    ('same_in_float32', [0.1], [0.10000000149]),
    ('unlike', [0.1, 0.05, 0.02], [0.3, 0.2, 0.19]),
    ('untold', [0.1, 0.05], [0.1, None]),
  )
  def test_is_not_named(self, tf1, tf2):
    if None in tf2:
      runs = [simulated.run(side, _FORM, 2, rates=tf1) for side in ('tf1', 'tf2')]
      runs[1] = simulated.with_steps(runs[1], learning_rate=tf2)
      self.assertIsNone(learning_rate(Evidence(*runs, simulated.PAIRS, 1)))
    else:
      self.assertIsNone(cause(tf1, tf2))

  def test_no_schedule_in_tf1(self):
    for counts, setting, words in (
      ([1, 2], 0.0, 'a number in place of a schedule'),
      ([0, 0], 0.0, 'counts no global_step'),
      ([1, 2], 0.5, 'pass no decay to tf.keras.optimizers.legacy.SGD (it is 0.5)'),
    ):
      record = OptimizerRecord('tf.keras.optimizers.legacy.SGD', (('decay', setting),), 'sgd')
      tf1 = simulated.with_steps(simulated.run('tf1', _FORM, 2), global_step=counts)
      tf2 = simulated.run('tf2', _FORM, 2, record, [0.1, 0.05])
      self.assertIn(words, learning_rate(Evidence(tf1, tf2, simulated.PAIRS, 2)).text)

  def test_default_of_others(self):
    found = cause([0.1] * 2, [0.001] * 2, 'tf.keras.optimizers.Adagrad')
    self.assertIn('(0.001 is the default of tf.keras.optimizers.Adagrad)', found.text)

  def test_a_rate_that_is_no_default(self):
    self.assertNotIn('default', cause([0.1] * 2, [0.001] * 2).text)


if __name__ == '__main__':
  absltest.main()
