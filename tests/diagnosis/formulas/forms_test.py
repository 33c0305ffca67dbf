from absl.testing import absltest

from tf2verify.diagnosis.formulas import forms
from tf2verify.diagnosis.formulas.update_rules import RULES
from tf2verify.records.training import OptimizerRecord

_KERAS = 'tf.keras.optimizers'


def rules(name, rule, **settings):
  record = OptimizerRecord(name, tuple(settings.items()), rule)
  return [form.rule for form in forms.forms(record, 0.1)]


class FormsTest(absltest.TestCase):
  def test_rules(self):
    self.assertEqual(rules('tf.compat.v1.train.MomentumOptimizer', 'momentum'), ['momentum'])
    self.assertEqual(rules(f'{_KERAS}.SGD', 'momentum'), ['velocity'])
    self.assertEqual(rules(f'{_KERAS}.RMSprop', 'rmsprop'), ['rmsprop'])
    legacy = f'{_KERAS}.legacy.RMSprop'
    self.assertEqual(rules(legacy, 'rmsprop'), ['rmsprop, epsilon outside'])
    self.assertEqual(rules(legacy, 'rmsprop', momentum=0.9), ['rmsprop'])
    self.assertEqual(rules(f'{_KERAS}.Nadam', 'nadam'), ['scheduled nadam'])

  def test_a_class_of_the_users_own_may_do_something_else(self):
    self.assertEqual(rules('own.Sgd', 'momentum'), ['momentum', 'velocity'])

  def test_an_unknown_rule_is_guessed(self):
    self.assertIn('adam', rules('own.Optimizer', ''))

  def test_settings_by_either_sides_names(self):
    tf1 = OptimizerRecord('own', (('lr', 0.5), ('beta1', 0.8), ('use_nesterov', 1.0)), 'adam')
    tf2 = OptimizerRecord(f'{_KERAS}.Adam', (('learning_rate', 0.5), ('beta_1', 0.8)), 'adam')
    for record in (tf1, tf2):
      form = next(forms.forms(record, None))
      self.assertEqual(form.settings, (('learning_rate', 0.5), ('beta1', 0.8)))
    self.assertEqual(forms.setting_of(tf1, 'beta1'), 'beta1')
    self.assertEqual(forms.setting_of(tf2, 'beta1'), 'beta_1')

  def test_the_learning_rate_is_that_of_the_step(self):
    record = OptimizerRecord('own', (('lr', 0.5),), 'sgd')
    self.assertEqual(next(forms.forms(record, 0.25)).setting('learning_rate'), 0.25)

  def test_decay_of_legacy_keras_is_no_rate_of_a_mean(self):
    record = OptimizerRecord(f'{_KERAS}.legacy.RMSprop', (('decay', 0.0), ('rho', 0.8)), 'rmsprop')
    self.assertEqual(next(forms.forms(record, 0.1)).setting('rho'), 0.8)

  def test_every_rule_has_its_settings(self):
    self.assertEqual(set(forms.READ), set(RULES))


if __name__ == '__main__':
  absltest.main()
