import abc
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests import recorded_small
from tests.stages import tiny_models
from tests.stages.first_failure import WHOLE_LADDER, LadderTestCase
from tf2verify.hooks import OF_REFERENCE

v1 = tf.compat.v1
STAGE = 'variable_inventory'
INCONCLUSIVE = tf2verify.Status.INCONCLUSIVE


class Trained(tf2verify.EquivalenceCase, abc.ABC):
  """A loss and Adam on both sides."""

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.legacy.Adam(0.01, epsilon=1e-8)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 8))


def inventory_of(case):
  verdict = tf2verify.verify(case, stages=[STAGE])
  return verdict.stages[-1]


class OnlyTf1(Trained, abc.ABC):
  """A head of TF1 that nothing reads, and that the port leaves out."""

  def dead(self, inputs, training):
    net = v1.layers.dense(inputs, 2, kernel_initializer=v1.zeros_initializer(), name='dead')
    return v1.layers.batch_normalization(net, training=training, name='dead/norm')

  def build_tf1_graph(self, inputs, training):
    self.dead(inputs, training)
    return v1.layers.dense(inputs, 3, name='fc')

  def make_tf2_layer(self):
    return tf.keras.layers.Dense(3, name='fc')


class DeclaredHead(OnlyTf1, abc.ABC):
  tf1_only_variables = {'dead/*': 'a head of another task'}


class LeftOutTest(LadderTestCase):
  def test_declared_passes_every_stage(self):
    verdict = self.assert_passes(DeclaredHead, WHOLE_LADDER)
    text = verdict.to_text()
    self.assertIn('as tf1_only_variables says: a head of another task', text)
    self.assertNotIn('blind spot: variables dead', text)
    self.assertIn('left out by the port', text)
    remarks = {row.tf1.name: row.remark for row in verdict.stages[1].inventory}
    self.assertEqual(remarks['dead/kernel'], 'left out')
    self.assertEqual(remarks['fc/kernel'], '')

  def test_undeclared_is_inconclusive_with_the_line_to_paste(self):
    class Case(OnlyTf1):
      pass

    verdict = tf2verify.verify(Case)
    stages = {stage.stage: stage.status for stage in verdict.stages}
    self.assertIs(stages.pop(STAGE), INCONCLUSIVE)
    self.assertEqual(set(stages.values()), {tf2verify.Status.PASSED}, verdict.to_text())
    self.assertIn(
      "\n  tf1_only_variables = {'dead/*': 'no output, loss or update depends on it'}",
      verdict.stages[1].to_text(),
    )

  def test_declared_but_read_in_training(self):
    class Case(OnlyTf1):
      tf1_only_variables = {'dead/*': 'wrong'}

      def build_tf1_graph(self, inputs, training):
        head = self.dead(inputs, training)
        net = v1.layers.dense(inputs, 3, name='fc')
        return net + tf.reduce_sum(head) if training else net

    self.assert_first_failure(
      Case,
      STAGE,
      'tf2: missing, as tf1_only_variables says',
      'dead/kernel has an effect: dead/MatMul (MatMul) reads it on the way to the output '
      '[training graph], at',
      "name='dead')",
    )

  def test_declared_but_read_by_the_loss(self):
    class Case(OnlyTf1):
      tf1_only_variables = {'centers': 'wrong'}

      def dead(self, inputs, training):
        self.centers = v1.get_variable('centers', [3])

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(outputs**2) + tf.reduce_sum(self.centers**2)

    self.assert_first_failure(Case, STAGE, 'centers has an effect: ', 'on the way to the loss')

  def test_undeclared_but_read_fails_as_ever(self):
    class Case(OnlyTf1):
      def build_tf1_graph(self, inputs, training):
        return v1.layers.dense(inputs, 3, name='fc') + self.dead(inputs, training)[:, :1]

    self.assert_first_failure(Case, STAGE, 'variable dead/kernel: presence differs')

  def test_the_two_names_of_one_variable_that_is_read(self):
    class Case(OnlyTf1):
      variable_names = {'fc/kernel': 'own/kernel'}
      tf1_only_variables = {'fc/bias': 'wrong'}
      tf2_only_variables = {'own/bias': 'wrong'}

      def dead(self, inputs, training):
        pass

      def make_tf2_layer(self):
        return tf.keras.layers.Dense(3, name='own')

    self.assert_first_failure(Case, STAGE, 'fc/bias has an effect: ', 'own/bias has an effect: ')

  def test_a_name_that_does_not_exist(self):
    class Case(OnlyTf1):
      tf1_only_variables = {'deaf/kernel': 'wrong'}

    stage = inventory_of(Case)
    self.assertIs(stage.status, tf2verify.Status.ERROR)
    self.assertIn("Maybe you meant 'dead/kernel'", stage.to_text())

  def test_averages_of_what_is_left_out(self):
    class Case(DeclaredHead):
      def make_tf1_train_op(self, loss):
        trained = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        average = tf.train.ExponentialMovingAverage(0.9)
        with tf.control_dependencies([trained]):
          return average.apply(v1.trainable_variables())

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.SGD(0.1)

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        if not hasattr(layer, 'average'):
          layer.average = tf.train.ExponentialMovingAverage(0.9)
          layer.average.apply(layer.trainable_variables)
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        variables = layer.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        layer.average.apply(variables)
        return loss

    self.assert_passes(Case)


class TrainingOnlyTest(LadderTestCase):
  def test_moving_averages_that_only_inference_reads(self):
    class Port(tf.keras.layers.Layer):
      def build(self, shape):
        self.gamma = self.add_weight('gamma', shape[-1:], initializer='ones')
        self.beta = self.add_weight('beta', shape[-1:], initializer='zeros')

      def call(self, inputs):
        mean, variance = tf.nn.moments(inputs, [0])
        return tf.nn.batch_normalization(inputs, mean, variance, self.beta, self.gamma, 1e-3)

    class Case(Trained):
      training_modes = (True,)

      def build_tf1_graph(self, inputs, training):
        return v1.layers.batch_normalization(inputs, training=training, name='norm')

      def make_tf2_layer(self):
        return Port(name='norm')

    self.assert_first_failure(Case, STAGE, 'variable norm/moving_mean: presence differs')


class RecordedTest(LadderTestCase):
  """A reference of which nothing is here but what was recorded."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = tempfile.mkdtemp()
    cls.addClassCleanup(shutil.rmtree, folder)
    cls.path = recorded_small.record(
      folder,
      with_dead_head,
      inputs=tf2verify.normal_inputs((5, 8)),
      loss=lambda outputs, labels: tf.reduce_mean(outputs**2),
      optimizer=lambda: v1.train.AdamOptimizer(0.01),
    )

  def case(self, **members):
    def layer(_):
      return tf.keras.layers.Dense(6, name='fc', use_bias='bias' not in members['only'])

    return type(
      'Case',
      (Trained,),
      {
        'tf1_recording': self.path,
        'tf1_only_variables': members['only'],
        'make_tf2_layer': layer,
        **{name: getattr(tf2verify.EquivalenceCase, name) for name in OF_REFERENCE},
      },
    )

  def test_declared_passes_every_stage(self):
    case = self.case(only={'dead/*': 'an old head'})
    text = self.assert_passes(case, WHOLE_LADDER).to_text()
    self.assertIn('bias (tf2: fc/bias) is (1, 6) in tf1 and (6) in the port', text)
    self.assertIn('left out by the port', text)

  def test_undeclared(self):
    stage = inventory_of(self.case(only={}))
    self.assertIs(stage.status, INCONCLUSIVE)
    self.assertIn("tf1_only_variables = {'dead/*'", stage.to_text())

  def test_declared_but_read(self):
    self.assert_first_failure(
      self.case(only={'dead/*': 'an old head', 'bias': 'wrong'}),
      STAGE,
      'bias has an effect: add (AddV2) reads it on the way to the output [inference graph], at',
      'in with_dead_head: return',
    )


def with_dead_head(inputs, training):
  v1.layers.dense(inputs, 2, name='dead')
  kernel = v1.get_variable('kernel', [8, 6])
  bias = v1.get_variable('bias', [1, 6], initializer=v1.zeros_initializer())
  return tf.matmul(inputs, kernel) + bias


class CountingPort(tf.keras.layers.Layer):
  def __init__(self):
    super().__init__(name='port')
    self.fc = tf.keras.layers.Dense(3, name='fc')
    self.calls = tf.Variable(0, trainable=False, dtype=tf.int64, name='calls')

  def call(self, inputs):
    self.calls.assign_add(1)
    return self.fc(inputs)


class OnlyTf2(Trained, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='fc')

  def make_tf2_layer(self):
    return CountingPort()


class LeftOutOfTf1Test(LadderTestCase):
  def test_declared_counter_passes_every_stage(self):
    class Case(OnlyTf2):
      tf2_only_variables = {'calls': 'counts calls'}

    text = self.assert_passes(Case, WHOLE_LADDER).to_text()
    self.assertIn('as tf2_only_variables says', text)

  def test_undeclared_counter(self):
    class Case(OnlyTf2):
      pass

    stage = inventory_of(Case)
    self.assertIs(stage.status, INCONCLUSIVE)
    self.assertIn("tf2_only_variables = {'calls': 'no output", stage.to_text())

  def test_declared_but_read(self):
    class Port(CountingPort):
      def call(self, inputs):
        return super().call(inputs) + tf.cast(self.calls, tf.float32)

    class Case(OnlyTf2):
      tf2_only_variables = {'calls': 'wrong'}

      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(Case, STAGE, 'calls has an effect: ', '(Cast) reads it', '[port, ')


class RowBias(Trained, abc.ABC):
  """A bias (1, 6) of TF1, which is (6,) in the port, and a kernel of 1x1 convolution."""

  def build_tf1_graph(self, inputs, training):
    normal = v1.random_normal_initializer(stddev=0.3)
    kernel = v1.get_variable('kernel', [1, 1, 8, 6], initializer=normal)
    bias = v1.get_variable('bias', [1, 6], initializer=v1.zeros_initializer())
    return tf.nn.conv2d(inputs[:, None, None], kernel, 1, 'VALID')[:, 0, 0] + bias

  def make_tf2_layer(self):
    return tf.keras.layers.Dense(6, kernel_initializer=v1.random_normal_initializer(stddev=0.3))


class LayoutTest(LadderTestCase):
  def test_axes_of_length_one_pass_every_stage(self):
    class Case(RowBias):
      modes_to_run = ('tf.function', 'keras functional model')

    text = self.assert_passes(Case, WHOLE_LADDER).to_text()
    self.assertIn('bias (tf2: dense/bias) is (1, 6) in tf1 and (6) in the port', text)
    self.assertIn('kernel (tf2: dense/kernel) is (1, 1, 8, 6) in tf1 and (8, 6)', text)

  def test_a_wrong_step_is_found_in_them(self):
    class Case(RowBias):
      def make_tf2_optimizer(self):
        return tf.keras.optimizers.legacy.Adam(0.01, beta_2=0.9, epsilon=1e-8)

    self.assert_first_failure(Case, 'training_steps', 'slot', 'second moment of bias', 'beta_2')

  def test_a_lost_gradient_is_found_in_them(self):
    class Port(tf.keras.layers.Dense):
      def call(self, inputs):
        return inputs @ self.kernel + tf.stop_gradient(self.bias)

    class Case(RowBias):
      def make_tf2_layer(self):
        return Port(6, kernel_initializer=v1.random_normal_initializer(stddev=0.3), name='dense')

    self.assert_first_failure(Case, 'gradients', 'gradient bias (tf2: dense/bias)')

  def test_under_the_shim(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs * v1.get_variable('scale', [1, 3], initializer=v1.ones_initializer())

      def port(self, inputs, training):
        return inputs * v1.get_variable('scale', [3], initializer=v1.ones_initializer())

    self.assert_passes(Case)

  def test_other_shapes_still_fail(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs @ v1.get_variable('kernel', [3, 4])

      def port(self, inputs, training):
        return inputs @ tf.reshape(v1.get_variable('kernel', [12]), [3, 4])

    self.assert_first_failure(Case, STAGE, 'variable kernel: shape differs')

  def test_a_checkpoint_of_tf1_is_loaded_by_the_port_itself(self):
    class Case(RowBias):
      def load_tf1_checkpoint(self, layer, path, optimizer):
        reader = tf.train.load_checkpoint(path)
        for variable, key in zip(layer.variables, ('kernel', 'bias'), strict=True):
          variable.assign(np.reshape(reader.get_tensor(key), variable.shape))
          for slot, name in (('m', 'Adam'), ('v', 'Adam_1')):
            value = np.reshape(reader.get_tensor(f'{key}/{name}'), variable.shape)
            optimizer.get_slot(variable, slot).assign(value)
        optimizer.iterations.assign(2)

    self.assert_passes(Case, 'checkpoint')


class Stacked(Trained, abc.ABC):
  """Three dense layers of one shape."""

  names = ('a', 'b', 'c')

  def build_tf1_graph(self, inputs, training):
    for name in 'abc':
      inputs = v1.layers.dense(inputs, 8, name=name)
    return inputs

  def make_tf2_layer(self):
    stack = [tf.keras.layers.Dense(8, name=name) for name in self.names]

    class Convnet(tf.keras.Model):
      def __init__(self):
        super().__init__()
        self.stack = stack

      def call(self, inputs):
        for layer in self.stack:
          inputs = layer(inputs)
        return inputs

    return Convnet()


class InferredNamesTest(LadderTestCase):
  def test_one_prefix_is_used_and_said(self):
    class Case(Stacked):
      pass

    text = self.assert_passes(Case).to_text()
    self.assertIn("every name of the port is that of tf1 with 'convnet/' in front", text)
    self.assertIn("def variable_names(self, name):\n    return 'convnet/' + name", text)

  def test_exchanged_layers_are_found(self):
    class Case(Stacked):
      names = ('b', 'a', 'c')

    self.assert_first_failure(Case, 'zero_randomness', 'output (the output)')

  def test_equal_shapes_under_other_names_are_paired_by_what_they_do(self):
    class Case(Stacked):
      names = ('x', 'y', 'z')

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertIn('what they do, since its names do not fit', verdict.to_text())

  def test_declared_names_are_not_replaced(self):
    class Case(Stacked):
      variable_names = {}

    self.assert_first_failure(Case, STAGE, 'has the prefix "convnet/"')

  def test_under_the_shim_names_stay_exact(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        with v1.variable_scope('port'):
          return self.model(inputs, training)

    self.assert_first_failure(Case, STAGE, 'has the prefix "port/"')

  def test_beside_a_head_that_nothing_reads(self):
    class Case(OnlyTf1):
      def make_tf2_layer(self):
        return tf.keras.Sequential([tf.keras.layers.Dense(3, name='logits')])

    text = inventory_of(Case).to_text()
    self.assertIn('INCONCLUSIVE', text)
    self.assertIn("'logits/' + name.removeprefix('fc/')", text)
    self.assertIn("tf1_only_variables = {'dead/*'", text)


if __name__ == '__main__':
  absltest.main()
