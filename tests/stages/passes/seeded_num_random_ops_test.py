import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
STAGE = 'seeded_num_random_ops'


class TwoKernels(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training, order=('first', 'second')):
    kernels = {name: v1.get_variable(name, [3, 3]) for name in order}
    return inputs @ kernels['first'] @ kernels['second']


class LayersInTurn(tf.keras.layers.Layer):
  """A Keras port; its layers make their variables at their first call."""

  def __init__(self):
    super().__init__()
    self.first = tf.keras.layers.Dense(3, use_bias=False, name='first')
    self.dropout = tf.keras.layers.Dropout(0.5)
    self.second = tf.keras.layers.Dense(3, use_bias=False, name='second')

  def call(self, inputs, training=False):
    return self.second(self.dropout(self.first(inputs), training=training))


class KeepsAll(tf2verify.EquivalenceCase, abc.ABC):
  """Masks by hand, the first of which keeps everything: the port draws nothing there."""

  keep, rate = 1.0, 0.0

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 3, use_bias=False, name='first')
    if training:
      net = net / self.keep * tf.floor(self.keep + v1.random_uniform(tf.shape(net)))
    net = v1.layers.dense(net, 3, use_bias=False, name='second')
    return v1.nn.dropout(net, rate=0.5) if training else net

  def make_tf2_layer(self):
    rate = self.rate

    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.second = tf.keras.layers.Dense(3, use_bias=False, name='second')
        self.first = tf.keras.layers.Dense(3, use_bias=False, name='first')

      def build(self, shape):
        self.second.build((None, 3))  # before the first: initial values differ
        self.first.build(shape)

      def call(self, inputs, training=False):
        net = self.first(inputs)
        net = self.second(tf.nn.dropout(net, rate) if training and rate else net)
        return tf.nn.dropout(net, 0.5) if training else net

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


class FaultTest(LadderTestCase):
  def test_draw_without_an_effect(self):
    class Case(KeepsAll):
      pass

    verdict = tf2verify.verify(Case, stages=[STAGE])
    text = verdict.to_text()
    self.assertIs(verdict.status, tf2verify.Status.PASSED, text)
    self.assertRegex(text, r'not counted, since .* tf1 draws there: RandomUniform \(4, 3\)')

  def test_dropout_that_the_port_lacks(self):
    class Case(KeepsAll):
      keep = 0.7

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())

  def test_draws_of_the_port_without_an_effect(self):
    class ThrownAway(tiny_models.Dropped):
      def port(self, inputs, training):
        tf.random.normal([2, 3])
        return self.model(inputs, training)

    class NotTaken(tiny_models.Dropped):
      def port(self, inputs, training):
        tf.random.categorical(inputs, 1)
        return self.model(inputs, training)

    class TimesZero(tiny_models.Dropped):
      def port(self, inputs, training):
        noise = tf.random.normal(tf.shape(inputs)) if training else 1.0
        return self.model(inputs + 0.0 * noise, training)

    class KeepsAllOfThem(tiny_models.Dropped):
      def port(self, inputs, training):
        shape = [4, 3]  # as the dropout after it
        inputs *= tf.floor(1.0 + tf.random.uniform(shape)) if training else 1.0
        return self.model(inputs, training)

    said = r'not counted, since .* the port draws there: '
    for case, kind in (
      (ThrownAway, r'RandomStandardNormal \(2, 3\), .* at tests'),
      (NotTaken, r'Multinomial \(4, 1\)'),
      (TimesZero, r'RandomStandardNormal \(4, 3\)'),
      (KeepsAllOfThem, r'RandomUniform \(4, 3\)'),
    ):
      with self.subTest(case.__name__):
        text = self.assert_passes(case, STAGE).to_text()
        self.assertRegex(' '.join(text.split()), said + kind)

  def test_draws_that_change_nothing_by_chance(self):
    class KeepsNearlyAll(tiny_models.Dropped):
      def port(self, inputs, training):
        inputs = tf.nn.dropout(inputs, 1e-4) if training else inputs
        return self.model(inputs, training)

    class AddsLittle(tiny_models.Dropped):
      def port(self, inputs, training):
        noise = tf.random.normal(tf.shape(inputs)) if training else 0.0
        return self.model(inputs + tf.maximum(noise - 4.5, 0.0), training)

    for case in (KeepsNearlyAll, AddsLittle):
      with self.subTest(case.__name__):
        verdict = tf2verify.verify(case, stages=[STAGE])
        self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())

  def test_draw_that_the_port_spares(self):
    class Case(tiny_models.Dropped):
      def build_tf1_graph(self, inputs, training):
        net = inputs @ kernel() + bias()
        if training:
          v1.nn.dropout(net, rate=0.5)  # of a branch whose output nobody takes
          net = v1.nn.dropout(net, rate=0.2)
        return net

    self.assert_first_failure(
      Case,
      STAGE,
      'random op number 2 (of 3 in tf1, 2 in tf2) [training, num_random_ops]',
      'tf2: no random op left',
    )

  def test_two_dropouts_swapped(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, rows_first=True):
        net = inputs * v1.get_variable('scale', [3])
        if not training:
          return net, net
        one = v1.nn.dropout(net, rate=0.5)
        other = v1.nn.dropout(net, rate=0.5)
        return (one, other) if rows_first else (other, one)

      def port(self, inputs, training):
        return self.model(inputs, training, rows_first=False)

    self.assert_first_failure(
      Case, STAGE, 'output [0] [training, num_random_ops]', 'two of a kind have changed places'
    )

  def test_one_initializer_for_two_layers(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(v1.layers.dense(inputs, 3, name='first'), 3, name='second')

      def make_tf2_layer(self):
        glorot = tf.keras.initializers.GlorotUniform()  # it draws its seed once
        return tf.keras.Sequential(
          [tf.keras.layers.Dense(3, kernel_initializer=glorot, name=n) for n in ('first', 'second')]
        )

    text = self.assert_first_failure(
      Case, STAGE, 'initial value second/kernel', 'one seed serves two of them'
    )
    self.assertNotIn('initial value first/kernel', text)

  def test_noise_drawn_once_for_all_calls(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs @ kernel() + tf.random.normal([3])

      def make_tf2_layer(self):
        noise = tf.random.normal([3])
        return tiny_models.ShimLayer(lambda inputs, training: inputs @ kernel() + noise)

    self.assert_first_failure(
      Case,
      STAGE,
      'random op RandomStandardNormal (3,) [',
      'in make_tf2_layer: noise = tf.random.normal([3])',
    )

  def test_noise_drawn_once_with_the_numbers_of_the_first_run(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return (inputs + tf.random.normal([3])) @ kernel()

      def make_tf2_layer(self):
        noise = tf.random.normal([3])
        return tiny_models.ShimLayer(lambda inputs, training: (inputs + noise) @ kernel())

    text = self.assert_first_failure(
      Case,
      STAGE,
      'random op RandomStandardNormal (3,) [inference, num_random_ops]: presence differs',
      'every run draws again',
      'drawn once, in make_tf2_layer',
      'every call of the port uses the same random numbers',
    )
    self.assertNotIn('output (the output)', text)


class NativePort(tf.keras.layers.Layer):
  """Draws its initial values by Keras, in another order, and makes one variable in between."""

  def __init__(self, fault):
    super().__init__(name='port')
    options = {'use_bias': False, 'kernel_initializer': tf.keras.initializers.TruncatedNormal}
    kernels = {name: options | {'name': name} for name in ('first', 'second')}
    for choice in kernels.values():
      choice['kernel_initializer'] = choice['kernel_initializer'](stddev=0.5)
    self.second = tf.keras.layers.Dense(3, **kernels['second'])
    self.first = tf.keras.layers.Dense(3, **kernels['first'])
    self.dropout = tf.keras.layers.Dropout(0.5)
    self.fault = fault

  def call(self, inputs, training=False):
    net = self.dropout(self.first(inputs), training=training)
    if self.fault == 'dropout too many' and training:
      net = tf.nn.dropout(net, 0.1)
    net = self.second(net)
    net, noise, other = self.traced(net) if self.fault == 'function' else self.noisy(net)
    drawn = tf.random.normal([4, 3]) if self.fault == 'second draw' else noise
    return net, tf.reduce_sum(drawn**2, 1), other

  @tf.function
  def traced(self, net):
    return self.noisy(net)

  def noisy(self, net):
    noise, other = tf.random.normal([4, 3]), tf.random.normal([4, 3])
    if self.fault == 'exchanged':
      noise, other = other, noise
    return net + noise, noise, other


class NativePortTest(LadderTestCase):
  """Variables are set first, and only the random ops of the computation are numbered."""

  def case(self, fault=''):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        start = v1.truncated_normal_initializer(stddev=0.5)
        first, second = (v1.get_variable(n, [3, 3], initializer=start) for n in ('first', 'second'))
        net = v1.nn.dropout(inputs @ first, rate=0.5) if training else inputs @ first
        noise = v1.random_normal([4, 3])
        return net @ second + noise, tf.reduce_sum(noise**2, 1), v1.random_normal([4, 3])

      def make_tf2_layer(self):
        return NativePort(fault)

      def variable_names(self, name):
        return f'port/{name}/kernel'

    return Case

  def test_right_port(self):
    text = self.assert_passes(self.case(), 'gradients').to_text()
    self.assertIn('in inference, num_random_ops of the computation; training, num_random_ops', text)
    self.assertIn("so its variables were set to tf1's values first, and only the random ops", text)
    self.assertIn('5 random ops in the same order', text)

  def test_right_port_with_a_traced_function(self):
    self.assert_passes(self.case('function'), STAGE)

  def test_second_draw(self):
    self.assert_first_failure(
      self.case('second draw'),
      STAGE,
      'output [1] [inference, num_random_ops of the computation]',
      'random op number 2 (of 2 in tf1, 3 in tf2)',
    )

  def test_dropout_too_many(self):
    self.assert_first_failure(
      self.case('dropout too many'), 'seeded_constant', 'output [0] [training, constant]'
    )

  def test_two_draws_exchanged(self):
    self.assert_first_failure(
      self.case('exchanged'),
      STAGE,
      'output [0] [training, num_random_ops of the computation]',
      'two of a kind have changed places',
    )

  def test_one_variable_starts_as_another(self):
    class Case(TwoKernels):
      def port(self, inputs, training):
        second = v1.get_variable('second', [3, 3])
        first = v1.get_variable('first', initializer=second.read_value())
        return inputs @ first @ second

    text = self.assert_first_failure(
      Case,
      STAGE,
      'second and first start with exactly the same numbers in the port, but not in tf1',
    )
    self.assertNotIn('initial value first', text)

  def test_one_variable_no_longer_starts_as_another(self):
    class Case(TwoKernels):
      def model(self, inputs, training, copied=True):
        first = v1.get_variable('first', [3, 3])
        if copied:
          second = v1.get_variable('second', initializer=first.initial_value)
        else:
          second = v1.get_variable('second', [3, 3])
        return inputs @ first @ second

      def port(self, inputs, training):
        return self.model(inputs, training, copied=False)

    self.assert_first_failure(
      Case,
      STAGE,
      'second and first start with exactly the same numbers in tf1, but not in the port',
    )


class RightPortTest(LadderTestCase):
  def test_same_order(self):
    class Case(TwoKernels):
      pass

    self.assertIn('4 random ops in the same order', self.assert_passes(Case, STAGE).to_text())

  def test_variables_created_in_another_order(self):
    class Case(TwoKernels):
      def port(self, inputs, training):
        return self.model(inputs, training, order=('second', 'first'))

    text = self.assert_passes(Case, STAGE).to_text()
    self.assertIn(
      '2 initial values are drawn with different random numbers from the same dist', text
    )
    self.assertIn('first, second (uniform in ±1)', text)

  def test_dropout_drawn_before_the_last_variable(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        first, second = v1.get_variable('first', [3, 3]), v1.get_variable('second', [3, 3])
        return self.dropped(inputs @ first, training) @ second

      def port(self, inputs, training):
        net = self.dropped(inputs @ v1.get_variable('first', [3, 3]), training)
        return net @ v1.get_variable('second', [3, 3])

      def dropped(self, net, training):
        return v1.nn.dropout(net, rate=0.5) if training else net

    self.assert_passes(Case, STAGE)

  def test_draw_without_effect_between_two_variables(self):
    class Case(TwoKernels):
      def port(self, inputs, training):
        first = v1.get_variable('first', [3, 3])
        noisy = inputs + 0.0 * tf.random.uniform([3])
        return noisy @ first @ v1.get_variable('second', [3, 3])

    text = self.assert_passes(Case, STAGE).to_text()
    self.assertIn('although the random ops differ from number 0 (of 0 in tf1, 1 in tf2) on', text)

  def test_known_other_order(self):
    class Case(TwoKernels):
      def port(self, inputs, training):
        tool = tf2verify.random_tool()
        variables = {}
        for number, name in ((1, 'second'), (0, 'first')):
          if tool is not None:
            tool.operation_seed = number
          variables[name] = v1.get_variable(name, [3, 3])
        return inputs @ variables['first'] @ variables['second']

    self.assert_passes(Case, STAGE)

  def test_keras_layers_in_turn(self):
    class Case(tiny_models.OneModel):
      def variable_names(self, name):
        return f'layers_in_turn/{name}'

      def model(self, inputs, training):
        net = v1.layers.dense(inputs, 3, use_bias=False, name='first')
        net = v1.layers.dropout(net, rate=0.5, training=training)
        return v1.layers.dense(net, 3, use_bias=False, name='second')

      def make_tf2_layer(self):
        return LayersInTurn()

    self.assert_passes(Case, STAGE)

  def test_other_order_that_changes_no_value(self):
    class Case(tiny_models.OneModel):
      def variable_names(self, name):
        return f'layers_in_turn/{name}'

      def model(self, inputs, training):
        first = v1.layers.Dense(3, use_bias=False, name='first')
        second = v1.layers.Dense(3, use_bias=False, name='second')
        first.build([4, 3])
        second.build([4, 3])
        return second(v1.layers.dropout(first(inputs), rate=0.5, training=training))

      def make_tf2_layer(self):
        return LayersInTurn()

    # Keras initializers have seeds of their own, so a dropout in between moves none.
    text = self.assert_passes(Case, STAGE).to_text()
    self.assertIn('all values agree in training, num_random_ops although the random ops', text)
    self.assertIn('differ from number 1 (of 3 in tf1, 3 in tf2) on', text)
    self.assertNotIn('random ops in the same order', text)

  def test_initial_values_drawn_while_the_layer_is_made(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal([3, 3]), name='kernel')

      def __call__(self, inputs):
        return inputs @ self.kernel

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs @ v1.get_variable('kernel', initializer=tf.random.normal([3, 3]))

      def make_tf2_layer(self):
        return Port()

    self.assert_passes(Case, STAGE)

  def test_left_out_with_a_reason(self):
    class Case(TwoKernels):
      stages = tf2verify.all_stages_except(seeded_num_random_ops='the port sorts its variables')

      def port(self, inputs, training):
        return self.model(inputs, training, order=('second', 'first'))

    self.assertIn('the port sorts its variables', self.assert_passes(Case).to_text())


if __name__ == '__main__':
  absltest.main()
