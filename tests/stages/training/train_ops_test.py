"""What `make_tf1_train_op` may return, and what it is given."""

import abc
import collections
import tempfile

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.sides.recorded_cases import record
from tests.sides.trained_sides import RATE, Trained, prepared
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import Affine, bias

v1 = tf.compat.v1
STAGE = 'training_steps'
Gan = collections.namedtuple('Gan', ['discriminator', 'generator'])


def sgd(loss, rate=RATE, step=None):
  return v1.train.GradientDescentOptimizer(rate).minimize(loss, step)


def then_count(update):
  """As code counts by hand: what is fetched is the counter after the update."""
  with tf.control_dependencies([update]):
    return v1.train.get_or_create_global_step().assign_add(1)


def counting_resource(loss):
  step = v1.get_variable('counter', [], tf.int64, v1.zeros_initializer(), use_resource=True)
  with tf.control_dependencies([sgd(loss)]):
    return step.assign_add(1)


def slim_like(loss):
  """The loss, after the update: what slim.learning.create_train_op returns."""
  with tf.control_dependencies([sgd(loss)]):
    return tf.identity(loss, name='train_op')


FETCHABLE = (
  ('operation', sgd),
  ('counter', lambda loss: then_count(sgd(loss))),
  ('resource_counter', counting_resource),
  ('tensor', slim_like),
  ('dictionary', lambda loss: {'train': sgd(loss), 'loss': loss}),
  ('nest', lambda loss: {'train': [Gan(sgd(loss), loss)], 'loss': (loss,)}),
  ('namedtuple', lambda loss: Gan(sgd(loss), loss)),
  ('group', lambda loss: tf.group(sgd(loss), loss)),
  ('name_of_an_operation', lambda loss: sgd(loss).name),
  ('name_of_a_tensor', lambda loss: slim_like(loss).name),
  ('names', lambda loss: [sgd(loss).name, loss.name]),
  ('variable_beside', lambda loss: [sgd(loss), v1.train.get_or_create_global_step()]),
  ('sparse', lambda loss: (sgd(loss), tf.SparseTensor([[0]], [loss], [1]))),
)
NOT_FETCHABLE = (
  ('nothing', lambda loss: None, 'missing `return`'),
  ('number', lambda loss: 7, 'session.run'),
  ('function', lambda loss: sgd, 'session.run'),
  ('empty', lambda loss: [], 'session.run'),
  ('none_inside', lambda loss: [sgd(loss), None], 'session.run'),
  ('no_such_name', lambda loss: 'train_op_7', "'train_op_7'"),
  ('optimizer', lambda loss: v1.train.GradientDescentOptimizer(1.0), 'return its minimize'),
)


class FetchableTest(parameterized.TestCase, LadderTestCase):
  @parameterized.named_parameters(*FETCHABLE)
  def test_trains(self, make):
    class Case(Trained):
      def make_tf1_train_op(self, loss):
        return make(loss)

    verdict = tf2verify.verify(case_without_optimizer(Case), stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  @parameterized.named_parameters(*FETCHABLE)
  def test_another_rate_is_found(self, make):
    class Case(Trained):
      def make_tf1_train_op(self, loss):
        return make(loss)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.SGD(1.01 * RATE)

    self.assert_first_failure(case_without_optimizer(Case), STAGE, 'learning rate')

  @parameterized.named_parameters(*NOT_FETCHABLE)
  def test_refused(self, make, words):
    class Case(Trained):
      def make_tf1_train_op(self, loss):
        return make(loss)

    refused = self.assertRaisesRegex(tf2verify.Tf2VerifyError, words)
    with prepared(case_without_optimizer(Case)) as (case, run), refused:
      case.tf1_training.prepare_steps(run, 1)

  def test_recorder(self):
    for name, make in FETCHABLE[:7]:
      with self.subTest(name), tempfile.TemporaryDirectory() as folder:

        class Case(Trained):
          def make_tf1_train_op(self, loss, make=make):
            return make(loss)

        recorded = record(case_without_optimizer(Case), f'{folder}/recording', noise_runs=1)
        verdict = tf2verify.verify(recorded, stages=[STAGE])
        self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


class _Decayed(Trained, abc.ABC):
  """A weight decay in REGULARIZATION_LOSSES, which the port adds to its loss."""

  def model(self, inputs, training):
    decay = v1.keras.regularizers.l2(0.05)
    return v1.layers.dense(inputs, 3, kernel_regularizer=decay, name='fc')

  def make_tf1_train_op(self, loss):
    return sgd(loss)


class AddsAgain(_Decayed, abc.ABC):
  """The train op of a model whose code passes only the data loss to it."""

  def make_tf1_train_op(self, loss):
    return sgd(loss + tf.add_n(v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)))


class DataAlone(AddsAgain, abc.ABC):
  def tf1_total_loss(self, outputs, labels):
    return self.tf1_loss(outputs, labels)

  def tf2_total_loss(self, layer, outputs, labels):
    return self.tf2_loss(outputs, labels)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
      total = loss + sum(layer.losses)
    variables = layer.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(total, variables), variables, strict=True))
    return loss


class RegularizationTest(absltest.TestCase):
  SAID = 'adds the regularization losses at train_ops_test.py:'

  def stage(self, case):
    return tf2verify.verify(case_without_optimizer(case), stages=[STAGE]).stages[-1]

  def test_it_is_added_to_a_loss_that_has_it(self):
    stage = self.stage(AddsAgain)
    self.assertIs(stage.status, tf2verify.Status.FAILED)
    self.assertIn(self.SAID, stage.diagnosis.causes[0].text)
    self.assertIn('declare tf1_total_loss', stage.diagnosis.causes[0].text)
    self.assertTrue(any(self.SAID in note for note in stage.notes))

  def test_as_the_cause_advises(self):
    stage = self.stage(DataAlone)
    self.assertIs(stage.status, tf2verify.Status.PASSED, stage.to_text())
    self.assertFalse(any(self.SAID in note for note in stage.notes))

  def test_it_is_in_the_loss_once(self):
    stage = self.stage(_Decayed)
    self.assertIs(stage.status, tf2verify.Status.PASSED, stage.to_text())
    self.assertFalse(any(self.SAID in note for note in stage.notes))


def case_without_optimizer(case):
  return type(case.__name__, (case,), {'make_tf1_optimizer': _NO_HOOK})


_NO_HOOK = tf2verify.EquivalenceCase.make_tf1_optimizer


class TwoLosses(Affine, abc.ABC):
  """A GAN in small: one loss per variable, each with an optimizer of its own."""

  rates = 0.1, 0.2

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=3)

  def parts(self, outputs, labels):
    return {
      'discriminator': tf.reduce_mean(tf.square(outputs - labels)),
      'generator': tf.reduce_mean(tf.nn.softplus(-outputs)),
    }

  def tf1_loss(self, outputs, labels):
    return self.parts(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return self.parts(outputs, labels)

  def make_tf1_train_op(self, loss):
    of_kernel, of_bias = ([v for v in v1.trainable_variables() if name in v.name] for name in NAMES)
    make = v1.train.GradientDescentOptimizer
    return [
      make(self.rates[0]).minimize(loss['discriminator'], var_list=of_kernel),
      make(self.rates[1]).minimize(loss['generator'], var_list=of_bias),
    ]

  def make_tf2_optimizer(self):
    return tuple(map(tf.keras.optimizers.SGD, self.rates))

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape(persistent=True) as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    chosen = [v for name in NAMES for v in layer.trainable_variables if name in v.name]
    for one, part, variable in zip(optimizer, ('discriminator', 'generator'), chosen, strict=True):
      one.apply_gradients([(tape.gradient(loss[part], variable), variable)])


NAMES = 'kernel', 'bias'


class PartsTest(LadderTestCase):
  def test_parts_reach_the_train_op(self):
    self.assert_passes(TwoLosses, STAGE)

  def test_a_step_may_return_them(self):
    class Case(TwoLosses):
      scale = 1.0

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        parts = self.tf2_loss(layer(inputs, training=True), labels)
        super().tf2_train_step(layer, inputs, labels, optimizer)
        return {name: self.scale * part for name, part in parts.items()}

    class Wrong(Case):
      scale = 2.0

    verdict = self.assert_passes(Case, STAGE)
    self.assertNotIn('the loss is not known', verdict.to_text())
    self.assert_first_failure(Wrong, STAGE, 'loss')

  def test_a_momentum_of_each(self):
    class Case(TwoLosses):
      momentum = 0.9

      def make_tf1_train_op(self, loss):
        made = []
        for name, rate, part in zip(NAMES, self.rates, loss.values(), strict=True):
          variables = [v for v in v1.trainable_variables() if name in v.name]
          made.append(v1.train.MomentumOptimizer(rate, 0.9).minimize(part, var_list=variables))
        return made

      def make_tf2_optimizer(self):
        momenta = 0.9, self.momentum
        return tuple(map(tf.keras.optimizers.legacy.SGD, self.rates, momenta))

    class Wrong(Case):
      momentum = 0.8

    self.assert_passes(Case, STAGE)
    self.assert_first_failure(Wrong, STAGE, 'momentum of bias')

  def test_changed_places_are_found(self):
    class Case(TwoLosses):
      def tf2_train_step(self, layer, inputs, labels, optimizer):
        super().tf2_train_step(layer, inputs, labels, optimizer[::-1])

    self.assert_first_failure(Case, STAGE)

  def test_a_namedtuple_and_a_tuple(self):
    class Named(TwoLosses):
      def tf1_loss(self, outputs, labels):
        return Gan(**self.parts(outputs, labels))

      def make_tf1_train_op(self, loss):
        assert isinstance(loss, Gan)
        return super().make_tf1_train_op(loss._asdict())

    class InATuple(TwoLosses):
      def parts(self, outputs, labels):
        return tuple(super().parts(outputs, labels).values())

      def make_tf1_train_op(self, loss):
        return super().make_tf1_train_op(dict(zip(Gan._fields, loss, strict=True)))

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        case = TwoLosses()
        case.tf2_train_step(layer, inputs, labels, optimizer)

    for case in (Named, InATuple):
      with self.subTest(case.__name__):
        self.assert_passes(case, STAGE)

  def test_total_loss_of_parts(self):
    class Case(TwoLosses):
      def tf1_loss(self, outputs, labels):
        return self.parts(outputs, labels)['discriminator']

      tf2_loss = tf1_loss

      def tf1_total_loss(self, outputs, labels):
        return {'loss': self.tf1_loss(outputs, labels), **self.parts(outputs, labels)}

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        TwoLosses().tf2_train_step(layer, inputs, labels, optimizer)

    self.assert_passes(Case, STAGE)

  def test_framework_minimizes_the_entry_loss(self):
    class Case(Trained):
      def tf1_loss(self, outputs, labels):
        return {
          'loss': tf.reduce_mean(tf.square(outputs - labels)),
          'mean': tf.reduce_mean(outputs),
        }

      tf2_loss = tf1_loss

    self.assert_passes(Case, STAGE)


class Annealed(Trained, abc.ABC):
  """A loss whose weight grows with the global step, which the loss itself makes."""

  growth = 0.25

  def tf1_loss(self, outputs, labels):
    step = tf.cast(v1.train.get_or_create_global_step(), tf.float32)
    return (1.0 + self.growth * step) * tf.reduce_mean(tf.square(outputs - labels))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def make_tf1_train_op(self, loss):
    return sgd(loss, step=v1.train.get_or_create_global_step())

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    weight = 1.0 + 0.25 * tf.cast(optimizer.iterations, tf.float32)
    with tf.GradientTape() as tape:
      loss = weight * self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


class WeighedParts(Trained, abc.ABC):
  """The parts of a loss, which the train op weighs; the port's step returns what it minimizes."""

  weight = 0.25

  def tf1_loss(self, outputs, labels):
    fit = tf.reduce_mean(tf.square(outputs - labels))
    return {'fit': fit, 'size': tf.reduce_mean(tf.square(outputs))}

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    return sgd(loss['fit'] + 0.25 * loss['size'])

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      parts = self.tf2_loss(layer(inputs, training=True), labels)
      loss = parts['fit'] + self.weight * parts['size']
    variables = layer.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return self.returned(parts, loss)

  def returned(self, parts, loss):
    return loss


class WeighedPartsTest(LadderTestCase):
  def test_a_right_port(self):
    self.assert_passes(case_without_optimizer(WeighedParts), STAGE)

  def test_that_returns_the_parts(self):
    class Case(WeighedParts):
      def returned(self, parts, loss):
        return parts

    self.assert_passes(case_without_optimizer(Case), STAGE)

  def test_another_weight(self):
    class Case(WeighedParts):
      weight = 0.3

    self.assert_first_failure(case_without_optimizer(Case), STAGE, 'loss (minimized)', '0.3')

  def test_without_weights(self):
    class Case(WeighedParts):
      weight = 1.0

    self.assert_first_failure(case_without_optimizer(Case), STAGE, 'gradient')


class VariableOfALossTest(LadderTestCase):
  def test_a_right_port(self):
    self.assert_passes(case_without_optimizer(Annealed), STAGE)

  def test_another_growth(self):
    class Case(Annealed):
      growth = 0.5

    self.assert_first_failure(case_without_optimizer(Case), STAGE, 'loss (total) [step 2]')

  def test_without_a_train_op(self):
    class Case(Affine):
      def tf1_loss(self, outputs, labels):
        start = v1.ones_initializer()
        return tf.reduce_mean(outputs * v1.get_variable('weights', [3], initializer=start))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(outputs)

    class Wrong(Case):
      def tf2_loss(self, outputs, labels):
        return 2 * tf.reduce_mean(outputs)

    self.assert_passes(Case, 'loss')
    self.assert_first_failure(Wrong, 'loss')


class DefaultTotalLossTest(LadderTestCase):
  def test_in_hooks(self):
    class Case(Trained):
      def model(self, inputs, training):
        weights = v1.get_variable('kernel', [3, 3], regularizer=tf.nn.l2_loss)
        return tf.matmul(inputs, weights) + bias()

      def make_tf1_train_op(self, loss, outputs, labels):
        return sgd(self.tf1_total_loss(outputs, labels))

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.minimized(layer, layer(inputs, training=True), labels)
        variables = layer.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

      def minimized(self, layer, outputs, labels):
        return self.tf2_total_loss(layer, outputs, labels)

    self.assert_passes(case_without_optimizer(Case), STAGE)

    class WithoutRegularization(Case):
      def minimized(self, layer, outputs, labels):
        return self.tf2_loss(outputs, labels)

    self.assert_first_failure(case_without_optimizer(WithoutRegularization), STAGE)

    class WithoutRegularizationInTf1(Case):
      def make_tf1_train_op(self, loss, labels, outputs):
        return sgd(self.tf1_loss(outputs, labels))

    self.assert_first_failure(case_without_optimizer(WithoutRegularizationInTf1), STAGE)

  def test_by_super(self):
    class Case(Trained):
      def tf1_total_loss(self, outputs, labels):
        return 2.0 * super().tf1_total_loss(outputs, labels)

      def tf2_total_loss(self, layer, outputs, labels):
        return 2.0 * super().tf2_total_loss(layer, outputs, labels)

    self.assert_passes(Case, STAGE)

    class Wrong(Case):
      def tf2_total_loss(self, layer, outputs, labels):
        return 2.1 * Trained.tf2_total_loss(self, layer, outputs, labels)

    self.assert_first_failure(Wrong, 'loss', 'total loss')

  def test_of_the_default_loss_and_in_a_function(self):
    class Case(Affine):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(RATE)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.SGD(RATE)

      def tf2_train_step(self, layer, inputs, optimizer):
        @tf.function
        def step():
          with tf.GradientTape() as tape:
            loss = self.tf2_total_loss(layer, layer(inputs, training=True), None)
          variables = layer.trainable_variables
          gradients = tape.gradient(loss, variables)
          optimizer.apply_gradients(zip(gradients, variables, strict=True))
          return loss

        return step()

    self.assert_passes(Case, STAGE)


if __name__ == '__main__':
  absltest.main()
