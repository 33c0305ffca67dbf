"""Regularization that TF1 and the port keep in different places."""

import abc
import tempfile

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.sides.recorded_cases import record
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
keras = tf.keras
STAGE = 'training_steps'
SAID = 'regularization is compared as part of the total loss'
FACTOR = 0.01


def kernels():
  return [v for v in v1.trainable_variables() if 'kernel' in v.op.name]


def half_of_squares(weights, factor=FACTOR):
  return factor * tf.nn.l2_loss(weights)


class Port(keras.Model):
  def __init__(self, regularizers):
    super().__init__()
    first, second = regularizers
    self.first = keras.layers.Dense(4, name='first', kernel_regularizer=first)
    self.second = keras.layers.Dense(3, name='second', kernel_regularizer=second)

  def call(self, inputs):
    return self.second(tf.tanh(self.first(inputs)))


class TwoLayers(tf2verify.EquivalenceCase, abc.ABC):
  """Weight decay of two kernels; by hand in TF1, by regularizers in the port."""

  in_collection = (None, None)
  regularizers = (0.5 * FACTOR, 0.5 * FACTOR)

  def build_tf1_graph(self, inputs, training):
    first, second = self.in_collection
    net = v1.layers.dense(inputs, 4, tf.tanh, name='first', kernel_regularizer=first)
    return v1.layers.dense(net, 3, name='second', kernel_regularizer=second)

  def make_tf2_layer(self):
    return Port([None if x is None else keras.regularizers.L2(x) for x in self.regularizers])

  def variable_names(self, name):
    return f'port/{name}'

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 6))

  def make_labels(self):
    return tf2verify.normal_inputs((5, 3), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(0.1)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1)


class ByHand(TwoLayers, abc.ABC):
  def tf1_total_loss(self, outputs, labels):
    return self.tf1_loss(outputs, labels) + sum(map(half_of_squares, kernels()))


class ByHandInThePort(TwoLayers, abc.ABC):
  in_collection = (half_of_squares, half_of_squares)
  regularizers = (None, None)

  def tf2_total_loss(self, layer, outputs, labels):
    weights = (layer.first.kernel, layer.second.kernel)
    return self.tf2_loss(outputs, labels) + sum(map(half_of_squares, weights))


class AddsSize(Port):
  """Adds the size of its output as a loss, times a weight that TF1 has as a number."""

  def __init__(self, weight, is_trained=False):
    super().__init__((None, None))
    self.weight = tf.Variable(weight, name='weight', trainable=is_trained)

  def call(self, inputs):
    outputs = super().call(inputs)
    self.add_loss(self.weight * tf.reduce_mean(tf.square(outputs)))
    return outputs


class ByAddLoss(TwoLayers, abc.ABC):
  """A part of TF1's loss that the port adds within its call: a KL divergence, mostly."""

  weight = 0.25
  tf2_only_variables = {'weight': 'a number in tf1'}

  def make_tf2_layer(self):
    return AddsSize(self.weight)

  def variable_names(self, name):
    return f'adds_size/{name}'

  def tf1_loss(self, outputs, labels):
    fit = tf.reduce_mean(tf.square(outputs - labels))
    return fit + 0.25 * tf.reduce_mean(tf.square(outputs))


class ByAddLossTest(LadderTestCase):
  def test_right(self):
    verdict = self.assert_passes(type('Case', (ByAddLoss,), {}), STAGE)
    self.assertIn('compared as part of the total loss', ' '.join(verdict.to_text().split()))
    loss = next(stage for stage in verdict.stages if stage.stage == 'loss')
    self.assertTrue(any('as by add_loss' in spot for spot in loss.blind_spots), loss.to_text())

  def test_another_weight(self):
    self.assert_first_failure(type('Case', (ByAddLoss,), {'weight': 0.3}), 'loss')

  def test_undeclared(self):
    case = type('Case', (ByAddLoss,), {'tf2_only_variables': {}})
    text = self.assert_first_failure(case, 'variable_inventory')
    self.assertIn("declare tf2_only_variables = {'weight'", ' '.join(text.split()))

  def test_a_weight_that_is_trained(self):
    layer = {'make_tf2_layer': lambda self: AddsSize(self.weight, is_trained=True)}
    self.assert_first_failure(type('Case', (ByAddLoss,), layer), 'variable_inventory')

  def test_twice(self):
    """In tf2_loss as well: the hint says what to return then."""
    case = type('Case', (ByAddLoss,), {'tf2_loss': ByAddLoss.tf1_loss})
    text = self.assert_first_failure(case, 'zero_randomness')
    self.assertIn('tf2_regularization_losses', text)


class BesideAnotherMistakeTest(LadderTestCase):
  def test_no_innocent_regularizer_is_named(self):
    class Linear(Port):
      def call(self, inputs):
        return self.second(self.first(inputs))

    class Case(ByHand):
      def make_tf2_layer(self):
        return Linear([keras.regularizers.L2(0.5 * FACTOR), None])

      def variable_names(self, name):
        return f'linear/{name}'

    text = self.assert_first_failure(Case, 'zero_randomness', 'Tanh')
    self.assertNotIn('the port regularizes a variable', text)


class RightTest(LadderTestCase):
  def assert_said(self, case):
    verdict = self.assert_passes(case, STAGE)
    for stage in verdict.stages[2:5]:
      self.assertTrue(any(SAID in spot for spot in stage.blind_spots), stage.to_text())

  def test_by_hand_in_tf1(self):
    self.assert_said(type('Case', (ByHand,), {}))

  def test_by_hand_in_the_port(self):
    self.assert_said(type('Case', (ByHandInThePort,), {}))

  def test_by_hand_in_the_loss_itself(self):
    class Case(TwoLayers):
      def tf1_loss(self, outputs, labels):
        own = super().tf1_loss(outputs, labels)
        return own + tf.add_n([half_of_squares(weights) for weights in kernels()])

    self.assert_said(Case)

  def test_one_of_two_by_hand(self):
    class Case(TwoLayers):
      in_collection = (half_of_squares, None)

      def tf1_total_loss(self, outputs, labels):
        _, second = kernels()
        return super().tf1_total_loss(outputs, labels) + half_of_squares(second)

    self.assert_said(Case)

  def test_half_of_each_by_hand(self):
    class Case(TwoLayers):
      in_collection = 2 * (lambda weights: half_of_squares(weights, 0.5 * FACTOR),)

      def tf1_total_loss(self, outputs, labels):
        more = [half_of_squares(weights, 0.5 * FACTOR) for weights in kernels()]
        return super().tf1_total_loss(outputs, labels) + sum(more)

    self.assert_said(Case)

  def test_small_beside_a_large_loss(self):
    class Case(ByHand):
      regularizers = (0.5e-4, 0.5e-4)

      def tf1_loss(self, outputs, labels):
        return 100.0 + tf.reduce_mean(tf.square(outputs - labels))

      def tf2_loss(self, outputs, labels):
        return 100.0 + super().tf2_loss(outputs, labels)

      def tf1_total_loss(self, outputs, labels):
        more = [half_of_squares(weights, 1e-4) for weights in kernels()]
        return self.tf1_loss(outputs, labels) + sum(more)

    self.assert_said(Case)

  def test_collection_that_is_never_minimized(self):
    class Case(TwoLayers):
      in_collection = (half_of_squares, half_of_squares)
      regularizers = (None, None)

      def tf1_total_loss(self, outputs, labels):
        return self.tf1_loss(outputs, labels)

    self.assert_said(Case)

  def test_only_the_total_losses_are_declared(self):
    class Case(ByHand):
      tf1_loss = tf2verify.EquivalenceCase.tf1_loss
      tf2_loss = tf2verify.EquivalenceCase.tf2_loss

      def tf1_total_loss(self, outputs, labels):
        return self.loss(outputs) + sum(map(half_of_squares, kernels()))

    self.assert_said(Case)
    wrong = type('Wrong', (Case,), {'regularizers': (FACTOR, FACTOR)})
    self.assert_first_failure(wrong, 'zero_randomness', 'regularization loss')

  def test_one_loss_for_several(self):
    class Case(TwoLayers):
      in_collection = (half_of_squares, half_of_squares)

      def tf2_regularization_losses(self, layer):
        return [tf.add_n(layer.losses)]

    self.assertNotIn(SAID, self.assert_passes(Case, STAGE).to_text())

  def test_recorded(self):
    class Case(ByHand):
      pass

    with tempfile.TemporaryDirectory() as folder:
      self.assert_said(record(Case, f'{folder}/recording', noise_runs=2))


class WrongTest(LadderTestCase):
  def test_another_factor(self):
    for factors, words in (
      ((FACTOR, FACTOR), '2 times as much'),
      ((0.515 * FACTOR, 0.515 * FACTOR), '1.03 times as much'),
      ((FACTOR, FACTOR), '2 times as much as tf1: by 0.01·sum(w²), tf1 by 0.005·sum(w²)'),
      ((0.5 * FACTOR, FACTOR), 'the port regularizes second/kernel (created at'),
      ((0.5 * FACTOR, None), 'the port does not regularize second/kernel (created at'),
      ((None, None), 'the port does not regularize first/kernel (created at'),
    ):
      with self.subTest(f'{factors}'):
        case = type('Case', (ByHand,), {'regularizers': factors})
        self.assert_first_failure(case, 'loss', 'total loss', words)

  def test_another_factor_in_the_port_by_hand(self):
    class Case(ByHandInThePort):
      def tf2_total_loss(self, layer, outputs, labels):
        weights = (layer.first.kernel, layer.second.kernel)
        more = [half_of_squares(one, 2.0 * FACTOR) for one in weights]
        return self.tf2_loss(outputs, labels) + sum(more)

    self.assert_first_failure(Case, 'loss', 'total loss', '2 times as much')

  def test_what_tf1_does_not_regularize(self):
    class Case(ByHand):
      def tf1_total_loss(self, outputs, labels):
        return self.tf1_loss(outputs, labels) + half_of_squares(kernels()[0])

    self.assert_first_failure(Case, 'loss', 'only the port regularizes second/kernel')

  def test_decay_of_the_biases_too(self):
    class Case(ByHandInThePort):
      def tf2_total_loss(self, layer, outputs, labels):
        more = [half_of_squares(one) for one in layer.trainable_variables]
        return self.tf2_loss(outputs, labels) + sum(more)

    words = 'only the port regularizes first/bias', 'second/bias (created', 'by 0.005·sum(w²)'
    text = self.assert_first_failure(Case, 'loss', 'total loss', *words)
    self.assertNotIn('kernel (created', text)

  def test_another_norm_of_some_beside_a_large_loss(self):
    class Case(TwoLayers):
      regularizers = (None, None)

      def tf1_loss(self, outputs, labels):
        return 50.0 + 20.0 * tf.reduce_mean(tf.square(outputs - labels))

      def tf2_loss(self, outputs, labels):
        return 50.0 + 20.0 * tf.reduce_mean(tf.square(outputs - labels))

      def tf1_total_loss(self, outputs, labels):
        return self.tf1_loss(outputs, labels) + sum(map(half_of_squares, kernels()))

      def tf2_total_loss(self, layer, outputs, labels):
        decay = half_of_squares(layer.first.kernel)
        return self.tf2_loss(outputs, labels) + decay + FACTOR * tf.norm(layer.second.kernel)

    words = 'the port adds a different term for second/kernel (created'
    text = self.assert_first_failure(Case, 'loss', 'total loss', words)
    self.assertNotIn('first/kernel (created', text)

  def test_penalty_of_rows_that_are_looked_up(self):
    ids = [0, 2, 2]

    class Case(TwoLayers):
      regularizers = (None, None)

      def tf1_total_loss(self, outputs, labels):
        rows = tf.nn.embedding_lookup(kernels()[0], ids)
        return self.tf1_loss(outputs, labels) + half_of_squares(rows)

      def tf2_total_loss(self, layer, outputs, labels):
        rows = tf.nn.embedding_lookup(layer.first.kernel, ids)
        more = half_of_squares(rows) + half_of_squares(layer.second.bias)
        return self.tf2_loss(outputs, labels) + more

    words = 'only the port regularizes second/bias (created'
    text = self.assert_first_failure(Case, 'loss', 'total loss', words)
    self.assertNotIn('kernel (created', text)

  def test_another_norm(self):
    class Case(ByHand):
      def make_tf2_layer(self):
        return Port(2 * [keras.regularizers.L1(FACTOR)])

    words = 'by the absolute value of its elements, tf1 by the square'
    self.assert_first_failure(Case, 'loss', 'total loss', words)

  def test_nothing_by_hand(self):
    for case in (
      type('OnlyPort', (TwoLayers,), {}),
      type('OnlyTf1', (TwoLayers,), {**WITHOUT, 'in_collection': 2 * (half_of_squares,)}),
      type('OneLost', (TwoLayers,), {**LOST, 'in_collection': 2 * (half_of_squares,)}),
    ):
      with self.subTest(case.__name__):
        self.assert_first_failure(case, 'zero_randomness', 'regularization loss')

  def test_no_loss_declared(self):
    base = tf2verify.EquivalenceCase
    body = {hook: getattr(base, hook) for hook in ('tf1_loss', 'tf2_loss', 'tf1_total_loss')}
    self.assert_first_failure(
      type('Case', (ByHand,), body), 'zero_randomness', 'the port regularizes a variable'
    )

  def test_recorded(self):
    class Case(ByHand):
      regularizers = (FACTOR, FACTOR)

    with tempfile.TemporaryDirectory() as folder:
      recorded = record(Case, f'{folder}/recording', noise_runs=2)
      self.assert_first_failure(recorded, 'loss', 'total loss')


WITHOUT = {'regularizers': (None, None)}
LOST = {'regularizers': (0.5 * FACTOR, None)}

if __name__ == '__main__':
  absltest.main()
