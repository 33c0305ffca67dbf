"""Optimizers of one's own: any object on the port's side, slots that pair by words and values."""

import abc
import functools
import tempfile

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.sides.recorded_cases import record
from tests.sides.trained_sides import RATE, Trained
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
keras = tf.keras.optimizers
STAGE = 'training_steps'
BETA_1, BETA_2, EPSILON, DECAY = 0.9, 0.999, 1e-3, 0.01


def last(verdict):
  return verdict.stages[-1]


class AdamWeightDecayOptimizer(v1.train.Optimizer):
  """Adam without bias correction, its state made by get_variable, as BERT's own is written."""

  names = 'adam_m', 'adam_v'

  def __init__(self, rate, decay=DECAY):
    super().__init__(use_locking=False, name='AdamWeightDecayOptimizer')
    self._rate, self._decay = rate, decay

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    updates = []
    for gradient, variable in grads_and_vars:
      m, v = (
        v1.get_variable(
          self.slot_name(variable.op.name, word),
          variable.shape.as_list(),
          trainable=False,
          initializer=v1.zeros_initializer(),
        )
        for word in self.names
      )
      next_m = BETA_1 * m + (1.0 - BETA_1) * gradient
      next_v = BETA_2 * v + (1.0 - BETA_2) * tf.square(gradient)
      step = next_m / (tf.sqrt(next_v) + EPSILON) + self._decay * variable
      updates += [variable.assign(variable - self._rate * step), m.assign(next_m), v.assign(next_v)]
    return tf.group(*updates, name=name)

  def slot_name(self, variable, word):
    return f'{variable}/{word}'


class OwnAdam:
  """The same for eager tensors; a plain object."""

  def __init__(self, rate=RATE, decay=DECAY, beta_2=BETA_2):
    self.rate, self.decay, self.beta_2 = rate, decay, beta_2
    self.m, self.v = {}, {}

  def apply(self, gradients, variables):
    for gradient, variable in zip(gradients, variables, strict=True):
      key = variable.name
      if key not in self.m:
        self.m[key], self.v[key] = self.make(variable), self.make(variable)
      m, v = self.m[key], self.v[key]
      m.assign(BETA_1 * m + (1.0 - BETA_1) * gradient)
      v.assign(self.beta_2 * v + (1.0 - self.beta_2) * tf.square(gradient))
      step = m / (tf.sqrt(v) + EPSILON) + self.decay * variable
      variable.assign_sub(self.rate * step)

  def make(self, variable):
    return tf.Variable(tf.zeros_like(variable))


class ByReference(OwnAdam):
  """State in one dictionary of dictionaries, by `variable.ref()`."""

  def __init__(self):
    super().__init__()
    self.state = {}

  def apply(self, gradients, variables):
    for gradient, variable in zip(gradients, variables, strict=True):
      if variable.ref() not in self.state:
        made = {'exp_avg': self.make(variable), 'exp_avg_sq': self.make(variable)}
        self.state[variable.ref()] = made
      kept = self.state[variable.ref()]
      self.m, self.v = {variable.name: kept['exp_avg']}, {variable.name: kept['exp_avg_sq']}
      super().apply([gradient], [variable])
    self.m, self.v = {}, {}


class InLists(tf.Module):
  """State in lists in the order of the variables, of a tf.Module."""

  def __init__(self):
    super().__init__()
    self.first_moments, self.second_moments = [], []
    self.rate = tf.Variable(RATE, trainable=False)
    self.iterations = tf.Variable(0, dtype=tf.int64, trainable=False)

  def apply(self, gradients, variables):
    if not self.first_moments:
      self.first_moments = [tf.Variable(tf.zeros_like(v)) for v in variables]
      self.second_moments = [tf.Variable(tf.zeros_like(v)) for v in variables]
    adam = OwnAdam()
    kept = zip(variables, self.first_moments, self.second_moments, strict=True)
    for variable, m, v in kept:
      adam.m[variable.name], adam.v[variable.name] = m, v
    adam.apply(gradients, variables)
    self.iterations.assign_add(1)


class Counting(tf.Module):
  """Adam with a correction of the bias by a count of its own."""

  def __init__(self, each=1.0):
    super().__init__()
    self.t = tf.Variable(0.0, trainable=False)
    self.m, self.v = {}, {}
    self.each = each

  def apply(self, gradients, variables):
    self.t.assign_add(self.each)
    t = self.t / self.each
    rate = RATE * tf.sqrt(1.0 - BETA_2**t) / (1.0 - BETA_1**t)
    for gradient, variable in zip(gradients, variables, strict=True):
      for kept in (self.m, self.v):
        if variable.name not in kept:
          kept[variable.name] = tf.Variable(tf.zeros_like(variable), trainable=False)
      m, v = self.m[variable.name], self.v[variable.name]
      m.assign(BETA_1 * m + (1.0 - BETA_1) * gradient)
      v.assign(BETA_2 * v + (1.0 - BETA_2) * tf.square(gradient))
      variable.assign_sub(rate * m / (tf.sqrt(v) + EPSILON))


class Nameless(OwnAdam):
  """State under words that mean nothing."""

  def __init__(self):
    super().__init__()
    self.a, self.b = {}, {}

  def apply(self, gradients, variables):
    self.m, self.v = self.a, self.b
    super().apply(gradients, variables)
    self.m, self.v = {}, {}


class AsKeras(keras.legacy.Optimizer):
  """The same as a legacy Keras optimizer of one's own."""

  words = 'm', 'v'

  def __init__(self, name='AsKeras', **keywords):
    super().__init__(name, **keywords)
    self._set_hyper('learning_rate', RATE)

  def _create_slots(self, var_list):
    for word in self.words:
      for variable in var_list:
        self.add_slot(variable, word)

  def _resource_apply_dense(self, grad, var, apply_state=None):
    m, v = (self.get_slot(var, word) for word in self.words)
    m.assign(BETA_1 * m + (1.0 - BETA_1) * grad)
    v.assign(BETA_2 * v + (1.0 - BETA_2) * tf.square(grad))
    var.assign_sub(RATE * (m / (tf.sqrt(v) + EPSILON) + DECAY * var))

  def get_config(self):
    return super().get_config()


class OwnStep(Trained, abc.ABC):
  """A step around an object that is not an optimizer of Keras."""

  def make_tf1_train_op(self, loss):
    optimizer = self.tf1_optimizer()
    step = v1.train.get_or_create_global_step()
    update = optimizer.apply_gradients(optimizer.compute_gradients(loss))
    return tf.group(update, step.assign_add(1))

  def tf1_optimizer(self):
    return AdamWeightDecayOptimizer(RATE)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    self.update(optimizer, tape.gradient(loss, variables), variables)
    return loss

  def update(self, optimizer, gradients, variables):
    optimizer.apply(gradients, variables)


OwnStep.make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer


def with_optimizer(make, base=OwnStep, **body):
  return type('Case', (base,), {'make_tf2_optimizer': lambda self: make(), **body})


class CustomOptimizersTest(parameterized.TestCase, LadderTestCase):
  def compared(self, case):
    return last(self.assert_passes(case, STAGE))

  @parameterized.named_parameters(
    ('dictionaries', OwnAdam, None),
    ('references', ByReference, None),
    ('lists_of_a_module', InLists, None),
    ('words_that_mean_nothing', Nameless, None),
    ('tuple', lambda: (OwnAdam(), 'adam'), lambda self, o, g, v: o[0].apply(g, v)),
    ('dictionary', lambda: {'of': [OwnAdam()]}, lambda self, o, g, v: o['of'][0].apply(g, v)),
    ('method', lambda: OwnAdam().apply, lambda self, o, g, v: o(g, v)),
    ('partial', lambda: functools.partial(OwnAdam().apply), lambda self, o, g, v: o(g, v)),
  )
  def test_any_object(self, make, update):
    body = {} if update is None else {'update': update}
    found = self.compared(with_optimizer(make, **body))
    # Loss and gradient, two slots and the update of two variables; three times.
    self.assertGreaterEqual(found.compared.tensors, 3 * (1 + 2 + 4 + 2), found.to_text())
    self.assertNotIn('only tf1 keeps', found.to_text())
    self.assertNotIn('only tf2 keeps', found.to_text(), found.to_text())

  def test_count_of_ones_own(self):
    class Late(InLists):
      def apply(self, gradients, variables):
        super().apply(gradients, variables)
        self.iterations.assign(2 * self.iterations)

    self.assert_first_failure(with_optimizer(Late), STAGE, 'global step')

  def test_a_count_is_no_power_of_a_decay_and_no_state_that_a_side_lacks(self):
    def adam(self):
      return v1.train.AdamOptimizer(RATE, BETA_1, BETA_2, EPSILON)

    found = self.compared(with_optimizer(Counting, tf1_optimizer=adam)).to_text()
    for words in ('slot_names', 'keeps'):
      self.assertNotIn(words, found)
    # What grows otherwise may be anything.
    found = self.compared(with_optimizer(lambda: Counting(2.0), tf1_optimizer=adam)).to_text()
    self.assertIn('only tf2 keeps t', found)
    self.assertNotIn('slot_names', found)

  def test_a_power_of_ones_own_may_be_that_of_tf1(self):
    class Power(Counting):
      def __init__(self):
        super().__init__()
        self.power = tf.Variable(BETA_1, trainable=False)

      def apply(self, gradients, variables):
        super().apply(gradients, variables)
        self.power.assign(BETA_1 * self.power)

    def adam(self):
      return v1.train.AdamOptimizer(RATE, BETA_1, BETA_2, EPSILON)

    found = self.compared(with_optimizer(Power, tf1_optimizer=adam)).to_text()
    self.assertIn("slot_names = {'beta1 power': 'power'}", ' '.join(found.split()))

  def test_slots_that_differ(self):
    class Off(OwnAdam):
      def apply(self, gradients, variables):
        for variable in self.v.values():  # kept twice as large as it is used
          variable.assign(variable / 2.0)
        super().apply(gradients, variables)
        for variable in self.v.values():
          variable.assign(variable * 2.0)

    self.assert_first_failure(with_optimizer(Off), STAGE, 'slot')

  def test_wrong_updates_are_found(self):
    for name, make in (
      ('decay', lambda: OwnAdam(decay=0.02)),
      ('beta_2', lambda: OwnAdam(beta_2=0.99)),
      ('rate', lambda: OwnAdam(1.01 * RATE)),
    ):
      with self.subTest(name):
        self.assert_first_failure(with_optimizer(make), STAGE)

  def test_keras_optimizer_of_ones_own(self):
    class Case(OwnStep):
      def make_tf2_optimizer(self):
        return AsKeras()

      def update(self, optimizer, gradients, variables):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    found = self.compared(Case)
    self.assertNotIn('keeps', found.to_text())

  def test_names_around_and_before_the_variable(self):
    class Scoped(AdamWeightDecayOptimizer):
      def slot_name(self, variable, word):
        return f'optimizer/{variable}/{word}'

    class Before(AdamWeightDecayOptimizer):
      def slot_name(self, variable, word):
        return f'{word}/{variable}'

    class Underscored(AdamWeightDecayOptimizer):
      def slot_name(self, variable, word):
        return f'{variable}_{word}'

    for optimizer in (Scoped, Before, Underscored):
      with self.subTest(optimizer.__name__):
        case = with_optimizer(OwnAdam, tf1_optimizer=lambda self, make=optimizer: make(RATE))
        self.assertNotIn('keeps', self.compared(case).to_text())

  def test_slots_that_nothing_pairs_are_a_blind_spot(self):
    class Scaled(OwnAdam):
      """The second moment is kept as its root, under a name of its own."""

      def __init__(self):
        super().__init__()
        self.root = {}

      def apply(self, gradients, variables):
        for root in self.root.values():
          root.assign(tf.square(root))
        self.v = self.root
        super().apply(gradients, variables)
        self.v = {}
        for root in self.root.values():
          root.assign(tf.sqrt(root))

    found = self.compared(with_optimizer(Scaled))
    self.assertEqual(found.compared.blind_spots, 2, found.to_text())
    self.assertIn('tf1 keeps second moment, and tf2 keeps root', ' '.join(found.to_text().split()))


class OwnMomentum(v1.train.Optimizer):
  """Keeps what is subtracted from the variable, as LARS does."""

  def __init__(self):
    super().__init__(False, 'OwnMomentum')

  def _create_slots(self, var_list):
    for variable in var_list:
      self._zeros_slot(variable, 'momentum', self._name)

  def _resource_apply_dense(self, grad, handle):
    momentum = self.get_slot(handle, 'momentum')
    updated = momentum.assign(0.9 * momentum + RATE * grad)
    return tf.group(handle.assign_sub(updated), updated)

  _apply_dense = _resource_apply_dense


class MomentumTest(LadderTestCase):
  def test_units(self):
    for make in (
      lambda: keras.SGD(RATE, momentum=0.9),
      lambda: keras.legacy.SGD(RATE, momentum=0.9),
      lambda: v1.train.MomentumOptimizer(RATE, 0.9),
    ):
      case = with_optimizer(make, Trained, make_tf1_optimizer=lambda self: OwnMomentum())
      found = last(self.assert_passes(case, STAGE))
      self.assertNotIn('keeps', found.to_text())
      self.assertEqual(found.compared.tensors, 24, found.to_text())

  def test_another_momentum_is_found(self):
    case = with_optimizer(
      lambda: keras.SGD(RATE, momentum=0.8),
      Trained,
      make_tf1_optimizer=lambda self: OwnMomentum(),
    )
    self.assert_first_failure(case, STAGE)


class RecordedTest(LadderTestCase):
  def test_custom_optimizers(self):
    right, wrong = (
      with_optimizer(lambda beta=beta: OwnAdam(beta_2=beta)) for beta in (BETA_2, 0.9)
    )
    with tempfile.TemporaryDirectory() as folder:
      recorded = record(right, f'{folder}/recording', noise_runs=2)
      self.assertNotIn('keeps', last(self.assert_passes(recorded, STAGE)).to_text())
      body = {'make_tf2_optimizer': wrong.make_tf2_optimizer}
      self.assert_first_failure(type('Wrong', (recorded,), body), STAGE, 'slot')


class SlotNamesTest(LadderTestCase):
  def test_declared_pairs_are_compared(self):
    class Doubled(Nameless):
      def apply(self, gradients, variables):
        for variable in self.b.values():
          variable.assign(variable / 2.0)
        super().apply(gradients, variables)
        for variable in self.b.values():
          variable.assign(variable * 2.0)

    undeclared = with_optimizer(Doubled)
    text = ' '.join(last(self.assert_passes(undeclared, STAGE)).to_text().split())
    self.assertIn("declare slot_names = {'second moment': 'b'}", text)
    for names in (
      {'adam_v': 'b'},
      {'second moment': 'b'},
      {'kernel/adam_v': 'b', 'bias/adam_v': 'b'},
      lambda self, name: 'b' if name.endswith('_v') else None,
    ):
      declared = with_optimizer(Doubled, slot_names=names)
      self.assert_first_failure(declared, STAGE, 'slot second moment of')
    no_counterpart = with_optimizer(Doubled, slot_names={'adam_v': None})
    self.assertNotIn('only tf1', last(self.assert_passes(no_counterpart, STAGE)).to_text())

  def test_names_that_are_not_there(self):
    for names, words in (
      ({'adam_w': 'b'}, "slot_names names 'adam_w', and tf1 keeps no such slot; it keeps: "),
      ({'adam_v': 'c'}, "gives 'c' for "),
      ('adam_v', 'it must be a mapping'),
    ):
      verdict = tf2verify.verify(with_optimizer(Nameless, slot_names=names), stages=[STAGE])
      self.assertIs(last(verdict).status, tf2verify.Status.ERROR, verdict.to_text())
      self.assertIn(words, verdict.to_text())


class WrongObjectsTest(LadderTestCase):
  def test_refused(self):
    shared, of_keras = OwnAdam(), keras.SGD(RATE)
    shared.m['kernel:0'] = tf.Variable(0.0)
    for make, words in (
      (lambda: None, 'missing `return`'),
      (lambda: keras.SGD, 'it is the class'),
      (lambda: shared, 'returned the same variable'),
      (lambda: (of_keras, 1), 'returned the same tf.keras.optimizers.SGD twice'),
    ):
      case = with_optimizer(make, update=lambda *_: None)
      verdict = tf2verify.verify(case, stages=['training_steps'])
      self.assertIs(last(verdict).status, tf2verify.Status.ERROR, verdict.to_text())
      self.assertIn(words, verdict.to_text())

  def test_without_a_step_of_ones_own(self):
    class Case(Trained):
      def make_tf2_optimizer(self):
        return OwnAdam()

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIn('which is not an optimizer', verdict.to_text())


if __name__ == '__main__':
  absltest.main()
