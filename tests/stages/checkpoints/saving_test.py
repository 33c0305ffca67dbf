import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.checkpoints.checkpoint_test import STAGE, checkpoint_of
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1


class Hiding(tf.keras.layers.Layer):
  """Lists a variable that no attribute leads to."""

  def __init__(self):
    super().__init__()
    self.kernel = tf.Variable(tf.ones([3, 3]), name='kernel')
    bias = tf.Variable(tf.zeros([3]), name='bias')
    self._bias = lambda: bias

  @property
  def variables(self):
    return [self.kernel, self._bias()]

  @property
  def trainable_variables(self):
    return self.variables

  def call(self, inputs):
    return inputs @ self.kernel + self._bias()


class Overwriting(tf.keras.layers.Layer):
  """Assigns to a variable in `build`, after it was made."""

  def build(self, _):
    self.kernel = self.add_weight('kernel', [3, 3], initializer='ones')
    self.kernel.assign(2.0 * tf.ones([3, 3]))

  def call(self, inputs):
    return inputs @ self.kernel


class Doubled(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    return inputs @ v1.get_variable('kernel', [3, 3], initializer=v1.constant_initializer(2.0))


class OwnCheckpointTest(LadderTestCase):
  def test_keras_model(self):
    class Case(Doubled):
      variable_names = {'kernel': 'dense/kernel'}

      def make_tf2_layer(self):
        kernel = v1.constant_initializer(2.0)
        layer = tf.keras.layers.Dense(3, use_bias=False, kernel_initializer=kernel, name='dense')
        return tf.keras.Sequential([layer])

    self.assert_passes(Case, STAGE)

  def test_module_with_hooks(self):
    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return tiny_models.ShimModule(self.port)

      def save_tf2_checkpoint(self, layer, path):
        return tf.train.Checkpoint(net=layer).save(path)

      def load_tf2_checkpoint(self, layer, path):
        tf.train.Checkpoint(net=layer).restore(path).assert_consumed()

    self.assert_passes(Case, STAGE)

  def test_variable_that_no_attribute_leads_to(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        kernel = v1.get_variable('kernel', [3, 3], initializer=v1.ones_initializer())
        return inputs @ kernel + tiny_models.bias()

      def make_tf2_layer(self):
        return Hiding()

    self.assert_first_failure(
      Case,
      STAGE,
      "value restored from the port's checkpoint bias: presence differs",
      '1 of 2 variables restored: bias is not reachable from an attribute of Hiding',
    )

  def test_another_attribute(self):
    class Case(tiny_models.Affine):
      def save_tf2_checkpoint(self, layer, path):
        return tf.train.Checkpoint(net=layer).write(path)

    text = self.assert_first_failure(Case, STAGE, '0 of 2 variables restored', 'has no entry')
    self.assertRegex(text, r'object path model/\S+/bias has no entry in the file; net/\S+/bias is')

  def test_loader_that_does_nothing(self):
    class Case(tiny_models.Affine):
      def load_tf2_checkpoint(self, layer, path):
        pass

    self.assert_first_failure(Case, STAGE, 'load_tf2_checkpoint calls no tf.train.Checkpoint')

  def test_loader_of_another_layer(self):
    class Case(tiny_models.Affine):
      def load_tf2_checkpoint(self, layer, path):
        other = self.make_tf2_layer()
        other(self.make_inputs())
        tf.train.Checkpoint(model=other).read(path)

    self.assert_first_failure(Case, STAGE, 'the layer that was given is not reachable')

  def test_loader_that_adds_something(self):
    class Case(tiny_models.Affine):
      def load_tf2_checkpoint(self, layer, path):
        tf.train.Checkpoint(model=layer).read(path)
        layer.variables[0].assign_add(0.01 * tf.ones_like(layer.variables[0]))

    self.assert_first_failure(Case, STAGE, '1 of 6 tensors differ', '(must be equal)')

  def test_saver_that_returns_nothing(self):
    class Case(tiny_models.Affine):
      def save_tf2_checkpoint(self, layer, path):
        tf.train.Checkpoint(model=layer).write(path)

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertIn('save_tf2_checkpoint returned None; return the prefix', found.to_text())

  def test_restored_before_its_first_call(self):
    class Case(Doubled):
      variable_names = {'kernel': 'overwriting/kernel'}

      def make_tf2_layer(self):
        return Overwriting()

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual(found.compared.blind_spots, 1)
    self.assertIn('and nothing warns: overwriting/kernel', found.to_text())


class SavedModelTest(LadderTestCase):
  def test_table(self):
    class Tabled(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        words = tf.lookup.KeyValueTensorInitializer(['a', 'b'], [0, 1])
        self.table = tf.lookup.StaticHashTable(words, 2)
        self.kernel = tf.Variable(tf.ones([3, 4]), name='embedding')

      def call(self, inputs):
        return tf.gather(self.kernel, self.table.lookup(inputs))

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        words = tf.lookup.KeyValueTensorInitializer(['a', 'b'], [0, 1])
        ids = tf.lookup.StaticHashTable(words, 2).lookup(inputs)
        return tf.gather(
          v1.get_variable('embedding', [3, 4], initializer=v1.ones_initializer()), ids
        )

      def make_tf2_layer(self):
        return Tabled()

      def make_inputs(self):
        return tf.constant(['a', 'b', 'c']).numpy().astype('S1')

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual(found.compared.blind_spots, 0, found.to_text())

  def test_nests(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = tf.matmul(inputs['a'], tiny_models.kernel())
        sparse = tf.sparse.from_dense(tf.nn.relu(net))
        return {'net': (net, None), 'sparse': sparse, 'ids': inputs['b'][0]}

      def make_inputs(self):
        ids = tf2verify.normal_inputs((2,)).astype('int32')
        return {'a': tf2verify.normal_inputs((4, 3)), 'b': [ids]}

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual(found.compared.blind_spots, 0, found.to_text())

  def test_port_that_cannot_be_traced(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return tf.constant(inputs.numpy()) @ tiny_models.kernel() + tiny_models.bias()

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual(found.compared.blind_spots, 1)
    self.assertIn('no SavedModel was compared: ', found.to_text())
    self.assertIn("has no attribute 'numpy'", found.to_text())

  def test_port_that_draws(self):
    class Case(tiny_models.Dropped):
      training_modes = (True,)

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('draws random numbers', found.to_text())

  def test_port_whose_variables_alone_are_drawn(self):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        return inputs @ v1.get_variable('kernel', initializer=v1.random_normal([3, 3]))

      def make_tf2_layer(self):
        return tf.keras.layers.Dense(
          3, use_bias=False, kernel_initializer='random_normal', name='layer'
        )

      def variable_names(self, name):
        return f'layer/{name}'

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual(found.compared.blind_spots, 0, found.to_text())

  def test_function_that_computes_something_else(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        net = self.model(inputs, training)
        return net if tf.executing_eagerly() else 2.0 * net

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('checked by execution_modes', found.to_text())


if __name__ == '__main__':
  absltest.main()
