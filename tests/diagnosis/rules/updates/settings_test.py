import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.updates.settings import update_rule
from tf2verify.records.training import OptimizerRecord


def form(rule, **settings):
  return Form(rule, tuple({'learning_rate': 0.01, **settings}.items()))


def keras(name, made, **settings):
  rule = 'momentum' if made.rule == 'velocity' else made.rule.rpartition(' ')[2]
  return OptimizerRecord(f'tf.keras.optimizers.{name}', (*made.settings, *settings.items()), rule)


def cause(tf1, tf2, number=1, **more):
  return update_rule(training_evidence(tf1, tf2, simulated.PAIRS, number, **more))


class UpdateRuleTest(absltest.TestCase):
  def test_epsilon(self):
    tf1 = simulated.run('tf1', form('adam', epsilon=1e-8))
    other = form('adam', epsilon=1e-7)
    found = cause(tf1, simulated.run('tf2', other, optimizer=keras('Adam', other)))
    self.assertIn(
      'epsilon is 1e-08 in TF1 and 1e-07 in the port, which by itself makes the steps differ: pass '
      'epsilon=1e-08 to tf.keras.optimizers.Adam',
      found.text,
    )

  def test_epsilon_of_0_that_legacy_keras_replaces(self):
    tf1 = simulated.run('tf1', form('adam', epsilon=0.0))
    other = form('adam', epsilon=1e-7)
    made = simulated.record(other, 'tf.keras.optimizers.legacy.Adam')
    found = cause(tf1, simulated.run('tf2', other, optimizer=made))
    self.assertIn(
      'pass epsilon=1e-30 to tf.keras.optimizers.legacy.Adam, which replaces 0 by its default',
      found.text,
    )
    found = cause(tf1, simulated.run('tf2', other, optimizer=keras('Adam', other)))
    self.assertIn('pass epsilon=0 to tf.keras.optimizers.Adam (', found.text)

  def test_epsilon_beside_a_gradient_that_is_rounding(self):
    def noise(size):
      return lambda gradients: {**gradients, 'bias': np.float32([size, -size])}

    tf1 = simulated.run('tf1', form('adam', epsilon=1e-8), clip=noise(1e-8))
    other = form('adam', epsilon=1e-7)
    tf2 = simulated.run('tf2', other, optimizer=keras('Adam', other), clip=noise(3e-8))
    found = cause(tf1, tf2)
    self.assertIn('epsilon is 1e-08 in TF1 and 1e-07 in the port, which by itself', found.text)
    self.assertEqual(found.variables, ('kernel',))
    # Gradients that differ and are no rounding have another cause: the others tell of the rule.
    tf2 = simulated.run('tf2', other, optimizer=keras('Adam', other), clip=noise(1e-3))
    found = cause(tf1, tf2)
    self.assertIn('at kernel, whose gradients agree: epsilon is 1e-08 in TF1', found.text)
    self.assertEqual(found.variables, ('kernel',))
    self.assertIn('epsilon', cause(tf1, tf2, rounding={'bias'}).text)

  def test_beside_elements_of_a_gradient_that_are_rounding(self):
    where = np.zeros((3, 2), bool)
    where[:, 0] = True

    def noise(size):
      cut = np.where(where, np.float32(size), 0)
      return lambda gradients: {**gradients, 'kernel': gradients['kernel'] * ~where + cut}

    # The first step of Adam is the same with any beta_2, but that of rounding is its own.
    ones, others = (form('adam', beta2=beta, epsilon=1e-12) for beta in (0.98, 0.999))
    tf1 = simulated.run('tf1', ones, clip=noise(1e-9))
    tf2 = simulated.run('tf2', others, optimizer=keras('Adam', others), clip=noise(-1e-9))
    self.assertIsNone(cause(tf1, tf2))
    found = cause(tf1, tf2, rounding_elements={'kernel': where})
    self.assertIn('beta2 is 0.98 in TF1 and 0.999 in the port', found.text)
    # All of a variable: the others are looked at.
    found = cause(tf1, tf2, rounding_elements={'kernel': np.ones((3, 2), bool)})
    self.assertEqual(found.variables, ('bias',))

  def test_steps_that_are_nearly_the_same(self):
    tf1 = simulated.run('tf1', form('adam', epsilon=1e-8))
    other = form('adam', epsilon=1.05e-8)
    found = cause(tf1, simulated.run('tf2', other, optimizer=keras('Adam', other)))
    self.assertRegex(found.text, r'the steps differ by up to 3\.\d %')

  def test_epsilon_that_no_gradient_shows_is_no_cause(self):
    tf1 = simulated.run('tf1', form('adagrad', epsilon=0.0))
    tf2 = simulated.run('tf2', form('adagrad', epsilon=1e-9))
    self.assertIsNone(cause(tf1, tf2))

  def test_start_of_a_slot(self):
    made = form('rmsprop', epsilon=1e-10)
    tf1 = simulated.run('tf1', made, slots={'squared gradient': 1.0})
    found = cause(tf1, simulated.run('tf2', made, optimizer=keras('RMSprop', made)))
    self.assertIn('starts at 0 in tf.keras.optimizers.RMSprop, at 1 in TF1', found.text)
    self.assertNotIn('epsilon', found.text)

  def test_start_that_is_an_argument(self):
    made = form('adagrad', epsilon=0.0, initial_accumulator=0.1)
    known = OptimizerRecord(
      'tf.keras.optimizers.Adagrad',
      (('epsilon', 0.0), ('initial_accumulator_value', 0.01), ('learning_rate', 0.01)),
      'adagrad',
    )
    tf1 = simulated.run('tf1', made, slots={'squared gradient': 0.1})
    tf2 = simulated.run('tf2', made, slots={'squared gradient': 0.01}, optimizer=known)
    self.assertIn('pass initial_accumulator_value=0.1', cause(tf1, tf2).text)

  def test_start_and_epsilon(self):
    other = form('rmsprop', epsilon=1e-2)
    tf1 = simulated.run('tf1', form('rmsprop', epsilon=1e-10), slots={'squared gradient': 1.0})
    found = cause(tf1, simulated.run('tf2', other, optimizer=keras('RMSprop', other)))
    self.assertStartsWith(found.text, "2 changes together turn TF1's step into the port's: ")
    self.assertNotIn('by itself', found.text)
    self.assertIn('starts at 0', found.text)
    self.assertIn('pass epsilon=1e-10', found.text)

  def test_a_setting_that_slots_alone_show(self):
    tf1 = simulated.run('tf1', form('adam', epsilon=1e-8, beta1=0.5))
    other = form('adam', epsilon=1e-8, beta1=0.9)
    found = cause(tf1, simulated.run('tf2', other, optimizer=keras('Adam', other)))
    self.assertIn('pass beta1=0.5', found.text)

  def test_momentum(self):
    tf1 = simulated.run('tf1', form('momentum', momentum=0.9))
    other = form('velocity', momentum=0.5)
    tf2 = simulated.run('tf2', other, optimizer=keras('SGD', other))
    self.assertIsNone(cause(tf1, tf2, number=1))
    self.assertIn('pass momentum=0.9', cause(tf1, tf2, number=2).text)

  def test_momentum_and_a_schedule(self):
    rates = [0.1, 0.1, 0.01]
    tf1 = simulated.run('tf1', form('momentum', momentum=0.9), rates=rates)
    other = form('velocity', momentum=0.9)
    tf2 = simulated.run('tf2', other, optimizer=keras('SGD', other), rates=rates)
    found = cause(tf1, tf2, number=3)
    self.assertIn('until the learning rate changes, as it has before step 3', found.text)

  def test_nesterov(self):
    made = form('momentum', momentum=0.9, nesterov=1.0)
    tf1 = simulated.run('tf1', made)
    other = form('velocity', momentum=0.9)
    found = cause(tf1, simulated.run('tf2', other, optimizer=keras('SGD', other)))
    self.assertIn('pass nesterov=True to', found.text)

  def test_schedule_of_nadam(self):
    tf1 = simulated.run(
      'tf1',
      form('nadam', epsilon=1e-8),
      optimizer=OptimizerRecord('own.NadamOptimizer', (('epsilon', 1e-8),), 'adam'),
    )
    made = form('scheduled nadam', epsilon=1e-8)
    tf2 = simulated.run('tf2', made, optimizer=keras('Nadam', made))
    self.assertIn('schedule of the momentum', cause(tf1, tf2).text)

  def test_decoupled_weight_decay(self):
    made = form('adam', epsilon=1e-8)
    tf1 = simulated.run('tf1', made, decay=1e-3)
    tf2 = simulated.run('tf2', made, decay=1e-5, optimizer=keras('AdamW', made, weight_decay=1e-3))
    self.assertIn('pass weight_decay=0.1', cause(tf1, tf2).text)

  def test_weight_decay_of_the_port_alone(self):
    made = form('adam', epsilon=1e-8)
    tf2 = simulated.run('tf2', made, decay=1e-5, optimizer=keras('AdamW', made, weight_decay=1e-3))
    found = cause(simulated.run('tf1', made), tf2).text
    self.assertEndsWith(
      found, 'by weight_decay=0.001, set in AdamW: use tf.keras.optimizers.Adam, or weight_decay=0'
    )
    # None is passed: AdamW has one all the same.
    own = keras('AdamW', made, weight_decay=0.004)
    found = cause(simulated.run('tf1', made), simulated.run('tf2', made, decay=4e-5, optimizer=own))
    self.assertIn('weight_decay=0.004, which AdamW has by default: use ', found.text)
    own = keras('Adam', made, weight_decay=1e-3)
    found = cause(simulated.run('tf1', made), simulated.run('tf2', made, decay=1e-5, optimizer=own))
    self.assertIn('pass no weight_decay', found.text)

  def test_weight_decay_that_the_port_lacks(self):
    made = form('adam', epsilon=1e-8)
    tf1 = simulated.run('tf1', made, decay=1e-3)
    found = cause(tf1, simulated.run('tf2', made, optimizer=keras('Adam', made)))
    self.assertIn('pass weight_decay=0.1', found.text)

  def test_another_optimizer(self):
    tf1 = simulated.run('tf1', form('adagrad'))
    made = form('sgd')
    found = cause(tf1, simulated.run('tf2', made, optimizer=keras('SGD', made)))
    self.assertIn("that of Adagrad, the port's that of gradient descent", found.text)

  def test_the_learning_rate_is_compared_by_itself(self):
    tf1, tf2 = (simulated.run('tf1', form('sgd', learning_rate=rate)) for rate in (0.1, 0.2))
    self.assertIsNone(cause(tf1, tf2))

  def test_the_same_is_no_cause(self):
    made = form('adam', epsilon=1e-8)
    self.assertIsNone(cause(simulated.run('tf1', made), simulated.run('tf2', made)))

  def test_what_the_records_do_not_reproduce_has_no_cause(self):
    made = form('adam', epsilon=1e-8)
    said = keras('Adam', form('adam', epsilon=1e-7))
    tf1 = simulated.run('tf1', made)
    tf2 = simulated.run('tf2', form('rmsprop', epsilon=1e-3), optimizer=said)
    self.assertIsNone(cause(tf1, tf2))

  def test_other_gradients_have_another_cause(self):
    made = form('adam', epsilon=1e-8)
    other = form('adam', epsilon=1e-3)

    def halved(gradients):
      return {name: gradient / 2 for name, gradient in gradients.items()}

    tf1, tf2 = simulated.run('tf1', made), simulated.run('tf2', other, clip=halved)
    self.assertIsNone(cause(tf1, tf2))


def stepped_by_two(side, bias, kernel):
  """Returns a run whose variables have an optimizer each."""
  runs = {'bias': simulated.run(side, bias), 'kernel': simulated.run(side, kernel)}
  runs_steps = zip(*(run.steps for run in runs.values()), strict=True)
  own = {name: list(run.steps) for name, run in runs.items()}
  fields = {'variables': [], 'slots': [], 'gradients': [], 'applied_gradients': []}
  for number, _ in enumerate(runs_steps):
    for field, values in fields.items():
      values.append(
        tuple(
          record
          for name, steps in own.items()
          for record in getattr(steps[number], field)
          if getattr(record, 'variable', getattr(record, 'name', '')) == name
        )
      )
  optimizers = tuple(run.optimizers[0] for run in runs.values())
  return dataclasses.replace(simulated.with_steps(runs['bias'], **fields), optimizers=optimizers)


class SeveralOptimizersTest(absltest.TestCase):
  def test_setting_of_the_second(self):
    one, other = form('adam', epsilon=1e-8), form('adam', epsilon=1e-3)
    found = cause(stepped_by_two('tf1', one, one), stepped_by_two('tf2', one, other))
    self.assertIn('in the step of kernel, epsilon is 1e-08 in TF1 and 0.001', found.text)
    self.assertEqual(found.variables, ('kernel',))

  def test_learning_rate_of_the_second(self):
    one = form('adam', epsilon=1e-8)
    other = one.replaced(learning_rate=0.03)
    found = cause(stepped_by_two('tf1', one, one), stepped_by_two('tf2', one, other))
    self.assertIn('learning_rate is 0.01 in TF1 and 0.03 in the port', found.text)

  def test_setting_that_slots_alone_show(self):
    one, other = form('adam', epsilon=1e-8, beta1=0.5), form('adam', epsilon=1e-8, beta1=0.9)
    found = cause(stepped_by_two('tf1', one, one), stepped_by_two('tf2', one, other))
    self.assertIn('pass beta1=0.5', found.text)

  def test_the_same_is_no_cause(self):
    one, other = form('adam', epsilon=1e-8), form('momentum', momentum=0.9)
    self.assertIsNone(cause(*(stepped_by_two(side, one, other) for side in ('tf1', 'tf2'))))


if __name__ == '__main__':
  absltest.main()
