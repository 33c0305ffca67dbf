import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.diagnosis.formulas import update_rules
from tf2verify.diagnosis.formulas.update_rules import Form, UpdateInputs

train = tf.compat.v1.train
new, legacy = tf.keras.optimizers, tf.keras.optimizers.legacy

_ADAM = {'beta1': 0.8, 'beta2': 0.95, 'epsilon': 1e-3}
_KERAS_ADAM = {'beta_1': 0.8, 'beta_2': 0.95, 'epsilon': 1e-3}
_RATE = 0.1
# Rule, its settings, the optimizer, the start of its squared gradients.
_OPTIMIZERS = {
  'v1 sgd': ('sgd', {}, lambda: train.GradientDescentOptimizer(_RATE)),
  'new sgd': ('sgd', {}, lambda: new.SGD(_RATE)),
  'v1 momentum': ('momentum', {'momentum': 0.9}, lambda: train.MomentumOptimizer(_RATE, 0.9)),
  'v1 nesterov': (
    'momentum',
    {'momentum': 0.9, 'nesterov': 1.0},
    lambda: train.MomentumOptimizer(_RATE, 0.9, use_nesterov=True),
  ),
  'new momentum': ('velocity', {'momentum': 0.9}, lambda: new.SGD(_RATE, 0.9)),
  'new nesterov': (
    'velocity',
    {'momentum': 0.9, 'nesterov': 1.0},
    lambda: new.SGD(_RATE, 0.9, nesterov=True),
  ),
  'legacy momentum': ('velocity', {'momentum': 0.9}, lambda: legacy.SGD(_RATE, 0.9)),
  'legacy nesterov': (
    'velocity',
    {'momentum': 0.9, 'nesterov': 1.0},
    lambda: legacy.SGD(_RATE, 0.9, nesterov=True),
  ),
  'v1 adam': ('adam', _ADAM, lambda: train.AdamOptimizer(_RATE, **_ADAM)),
  'new adam': ('adam', _ADAM, lambda: new.Adam(_RATE, **_KERAS_ADAM)),
  'legacy adam': ('adam', _ADAM, lambda: legacy.Adam(_RATE, **_KERAS_ADAM)),
  'new adamax': ('adamax', _ADAM, lambda: new.Adamax(_RATE, **_KERAS_ADAM)),
  'legacy adamax': ('adamax', _ADAM, lambda: legacy.Adamax(_RATE, **_KERAS_ADAM)),
  'new nadam': ('scheduled nadam', _ADAM, lambda: new.Nadam(_RATE, **_KERAS_ADAM)),
  'legacy nadam': (
    'scheduled nadam',
    {**_ADAM, 'schedule': 0.004},
    lambda: legacy.Nadam(_RATE, **_KERAS_ADAM),
  ),
  'v1 rmsprop': (
    'rmsprop',
    {'rho': 0.8, 'epsilon': 1e-3, 'squares': 1.0},
    lambda: train.RMSPropOptimizer(_RATE, 0.8, epsilon=1e-3),
  ),
  'v1 centered rmsprop with momentum': (
    'rmsprop',
    {'rho': 0.8, 'epsilon': 1e-3, 'momentum': 0.7, 'centered': 1.0, 'squares': 1.0},
    lambda: train.RMSPropOptimizer(_RATE, 0.8, 0.7, epsilon=1e-3, centered=True),
  ),
  'new rmsprop': (
    'rmsprop',
    {'rho': 0.8, 'epsilon': 1e-3, 'momentum': 0.7},
    lambda: new.RMSprop(_RATE, 0.8, 0.7, epsilon=1e-3),
  ),
  'new centered rmsprop': (
    'rmsprop',
    {'rho': 0.8, 'epsilon': 1e-2, 'centered': 1.0},
    lambda: new.RMSprop(_RATE, 0.8, epsilon=1e-2, centered=True),
  ),
  'legacy rmsprop': (
    'rmsprop, epsilon outside',
    {'rho': 0.8, 'epsilon': 1e-3},
    lambda: legacy.RMSprop(_RATE, 0.8, epsilon=1e-3),
  ),
  'legacy rmsprop with momentum': (
    'rmsprop',
    {'rho': 0.8, 'epsilon': 1e-3, 'momentum': 0.7},
    lambda: legacy.RMSprop(_RATE, 0.8, 0.7, epsilon=1e-3),
  ),
  'v1 adagrad': ('adagrad', {}, lambda: train.AdagradOptimizer(_RATE)),
  'new adagrad': ('adagrad', {'epsilon': 1e-2}, lambda: new.Adagrad(_RATE, epsilon=1e-2)),
  'v1 adadelta': (
    'adadelta',
    {'rho': 0.8, 'epsilon': 1e-3},
    lambda: train.AdadeltaOptimizer(_RATE, 0.8, 1e-3),
  ),
  'new adadelta': (
    'adadelta',
    {'rho': 0.8, 'epsilon': 1e-3},
    lambda: new.Adadelta(_RATE, 0.8, 1e-3),
  ),
  'v1 ftrl': (
    'ftrl',
    {'l1': 0.1, 'l2': 0.2},
    lambda: train.FtrlOptimizer(
      _RATE, l1_regularization_strength=0.1, l2_regularization_strength=0.2
    ),
  ),
  'new ftrl': (
    'ftrl',
    {'l1': 0.1, 'l2': 0.2},
    lambda: new.Ftrl(_RATE, l1_regularization_strength=0.1, l2_regularization_strength=0.2),
  ),
}
_START = np.array([0.5, -0.3, 0.0, 2.0], np.float32)
_GRADIENTS = np.array([[0.3, -2.0, 1e-3, 0.0], [0.1, 1.0, 1e-3, 0.0], [-4.0, 0.5, 1e-3, 1.0]])


def steps_of_tensorflow(optimizer):
  variable, values = tf.Variable(_START), []
  for gradient in _GRADIENTS:
    optimizer.apply_gradients([(tf.constant(gradient, tf.float32), variable)])
    values.append(variable.numpy())
  return np.array(values)


def steps_in_numpy(form, slots):
  value, values = _START.astype(np.float64), []
  for number, gradient in enumerate(_GRADIENTS, start=1):
    stepped = form.step(UpdateInputs(value, gradient, slots, number))
    value, slots = value + stepped.update, stepped.slots
    values.append(value)
  return np.array(values)


class RulesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (f'_{name.replace(" ", "_")}', *arguments) for name, arguments in _OPTIMIZERS.items()
  )
  def test_steps_as_tensorflow_does(self, rule, settings, make_optimizer):
    settings = {**settings, 'learning_rate': _RATE}
    squares = settings.pop('squares', None)
    slots = {} if squares is None else {'squared gradient': np.full(4, squares)}
    expected = steps_of_tensorflow(make_optimizer())
    found = steps_in_numpy(Form(rule, tuple(settings.items())), slots)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)

  def test_nadam_without_schedule_is_the_op_with_nesterov(self):
    form = Form('nadam', (('beta1', 0.8), ('beta2', 0.95), ('epsilon', 1e-3)))
    variable, m, v = (tf.Variable(value) for value in (_START, np.zeros(4, 'f'), np.zeros(4, 'f')))
    for number, gradient in enumerate(_GRADIENTS, start=1):
      tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=m.handle,
        v=v.handle,
        beta1_power=np.float32(0.8**number),
        beta2_power=np.float32(0.95**number),
        lr=np.float32(0.001),
        beta1=np.float32(0.8),
        beta2=np.float32(0.95),
        epsilon=np.float32(1e-3),
        grad=tf.constant(gradient, tf.float32),
        use_nesterov=True,
      )
    np.testing.assert_allclose(steps_in_numpy(form, {})[-1], variable.numpy(), rtol=2e-6)

  def test_every_rule_is_tested(self):
    tested = {rule for rule, _, _ in _OPTIMIZERS.values()} | {'nadam'}
    self.assertEqual(tested, set(update_rules.RULES))


class FormTest(absltest.TestCase):
  def test_replaced(self):
    form = Form('adam', (('epsilon', 1e-8),))
    self.assertEqual(form.replaced(epsilon=1e-7).setting('epsilon'), 1e-7)
    self.assertEqual(form.setting('beta2'), 0.999)

  def test_a_slot_of_another_shape_is_none(self):
    moment = UpdateInputs(np.zeros(2), np.ones(2), {'momentum': np.ones(3)}, 1)
    np.testing.assert_array_equal(moment.slot('momentum', 0.5), [0.5, 0.5])

  def test_division_by_zero_is_told_by_the_result(self):
    moment = UpdateInputs(np.zeros(1), np.zeros(1), {}, 1)
    self.assertTrue(np.isnan(Form('rmsprop', ()).step(moment).update).all())


if __name__ == '__main__':
  absltest.main()
