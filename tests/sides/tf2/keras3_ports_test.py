"""Ports of Keras 3: a right one passes, and what is wrong in one is found where it is."""

import abc
import os
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tf2verify.reference.variables import variable_name
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.tensorflow_internals import keras3

v1 = tf.compat.v1
Status = tf2verify.Status


class Net(tf2verify.EquivalenceCase, abc.ABC):
  """A convolution, batch norm, dropout and a dense layer."""

  def build_tf1_graph(self, inputs, training):
    found = v1.layers.conv2d(inputs, 4, 3, padding='same', name='conv')
    found = v1.layers.batch_normalization(found, training=training, fused=False, name='norm')
    found = v1.layers.dropout(tf.nn.relu(found), 0.4, training=training)
    return v1.layers.dense(v1.layers.flatten(found), 3, name='out')

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5, 5, 2))


class Rows(tf2verify.EquivalenceCase, abc.ABC):
  """An embedding, whose gradient is one of IndexedSlices, and a layer norm."""

  def build_tf1_graph(self, inputs, training):
    with v1.variable_scope('rows'):
      init = v1.random_uniform_initializer(-0.05, 0.05)
      table = v1.get_variable('embeddings', [5, 4], initializer=init)
    found = tf.nn.embedding_lookup(table, inputs)
    with v1.variable_scope('norm'):
      gamma = v1.get_variable('gamma', [4], initializer=v1.ones_initializer())
      beta = v1.get_variable('beta', [4], initializer=v1.zeros_initializer())
    mean, variance = tf.nn.moments(found, [-1], keepdims=True)
    return tf.nn.batch_normalization(found, mean, variance, beta, gamma, 1e-3)

  def make_inputs(self):
    return np.array([[3, 0, 3], [2, 1, 1]], np.int32)


class Noisy(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 2, name='dense') + 1e-3 * tf.random.normal((2,))

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 4))


def case_of(make, base=Net):
  return type('Case', (base,), {'make_tf2_layer': lambda self: make()})


def layers(rate=0.4, epsilon=1e-3):
  return [
    keras.layers.Conv2D(4, 3, padding='same', name='conv'),
    keras.layers.BatchNormalization(epsilon=epsilon, name='norm'),
    keras.layers.ReLU(),
    keras.layers.Dropout(rate),
    keras.layers.Flatten(),
    keras.layers.Dense(3, name='out'),
  ]


def functional():
  inputs = outputs = keras.Input((5, 5, 2))
  for layer in layers():
    outputs = layer(outputs)
  return keras.Model(inputs, outputs)


class Subclassed(keras.Model):
  def __init__(self, **settings):
    super().__init__()
    self.own = layers(**settings)

  def call(self, inputs, training=False):
    for layer in self.own:
      # Not all of them have a training mode.
      inputs = layer(inputs, training=training)
    return inputs


def rows():
  return keras.Sequential(
    [keras.layers.Embedding(5, 4, name='rows'), keras.layers.LayerNormalization(name='norm')]
  )


class MakesLayers(Subclassed):
  def call(self, inputs, training=False):
    outputs = super().call(inputs, training=training)
    return keras.layers.Dense(3, name='made')(outputs)


class Shim(keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return v1.layers.dense(v1.layers.flatten(inputs), 3, name='out')


class Metered(keras.Model):
  """Has a metric and a seed generator, whose states are variables of Keras 3, but no weights."""

  def __init__(self):
    super().__init__()
    self.dense = keras.layers.Dense(2, name='dense')
    self.seeds = keras.random.SeedGenerator(3)
    self.mean = keras.metrics.Mean()

  def call(self, inputs, training=False):
    outputs = self.dense(inputs)
    self.mean.update_state(outputs)
    return outputs + 1e-3 * keras.random.normal((2,), seed=self.seeds)


class Classifier(tf2verify.EquivalenceCase, abc.ABC):
  """A dense layer, and Adam."""

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='out')

  def make_tf2_layer(self):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name='out')])

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 4))

  def make_labels(self):
    return np.array([2, 0], np.int32)

  def tf1_loss(self, outputs, labels):
    return v1.losses.sparse_softmax_cross_entropy(labels, outputs)

  def tf2_loss(self, outputs, labels):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, outputs)

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(1e-2, epsilon=1e-7)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(1e-2)


class Forgetful(keras.layers.Dense):
  def load_own_variables(self, store):
    del store  # nothing is read


class Keras3PortsTest(LadderTestCase):
  def test_right_ports_pass(self):
    for make, base in (
      (lambda: keras.Sequential(layers()), Net),
      (functional, Net),
      (Subclassed, Net),
      (rows, Rows),
      (Metered, Noisy),
    ):
      with self.subTest(str(make)):
        verdict = self.assert_passes(case_of(make, base), 'gradients')
        spots = [spot for stage in verdict.stages for spot in stage.blind_spots]
        self.assertFalse([spot for spot in spots if 'Keras 2' in spot], spots)

  def test_starts_and_draws_as_tf1_does(self):
    # Not judged as distributions, which is the way out for draws of other numbers.
    text = self.assert_passes(case_of(Subclassed), 'seeded_constant').to_text()
    self.assertNotIn('distribution', text)
    self.assertIn('states of seed generators, which are not weights: not compared', text)

  def test_wrong_ports_fail_where_they_are_wrong(self):
    wrong = case_of(lambda: Subclassed(epsilon=1e-5))
    self.assert_first_failure(wrong, 'zero_randomness', 'epsilon', '0.001', '1e-05')
    self.assert_first_failure(case_of(lambda: Subclassed(rate=0.5)), 'seeded_constant', '0.4')
    self.assert_first_failure(case_of(MakesLayers), 'no_new_variables', 'created it', 'made')

  def test_training_and_own_files(self):
    class Right(Classifier):
      def tf2_train_step(self, layer, inputs, labels, optimizer):
        if not layer.compiled:
          loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
          layer.compile(optimizer, loss=loss)
        return layer.train_on_batch(inputs, labels, return_dict=True)

    verdict = self.assert_passes(Right, 'checkpoint')
    training, checkpoint = verdict.stages[7:9]
    self.assertIn('keras.optimizers.Adam (tf2)', training.to_text())
    self.assertFalse([spot for spot in training.blind_spots if 'keeps' in spot])
    self.assertEmpty(checkpoint.blind_spots)

  def test_wrong_training_and_files(self):
    class Rate(Classifier):
      def make_tf2_optimizer(self):
        return keras.optimizers.Adam()

    class Sum(Classifier):
      def tf2_loss(self, outputs, labels):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction='sum')
        return loss(labels, outputs)

    words = "0.1 of TF1's at every step", '0.001 is the default of keras.optimizers.Adam'
    self.assert_first_failure(Rate, 'training_steps', *words)
    self.assert_first_failure(Sum, 'loss', 'divided by the batch size in tf1')
    files = case_of(lambda: keras.Sequential([keras.Input((4,)), Forgetful(3, name='out')]), Noisy)
    files.build_tf1_graph = Classifier.build_tf1_graph
    self.assert_first_failure(files, 'checkpoint', "the port's .weights.h5 file", '.keras file')

  def test_layers_in_a_list_are_restored_by_the_files_of_keras_alone(self):
    class Blocks(keras.layers.Layer):
      def __init__(self, dense=keras.layers.Dense):
        super().__init__()
        self.blocks = [dense(3, name='out')]  # in a dictionary, Keras 3.12 forgets it

      def call(self, inputs):
        return self.blocks[0](inputs)

    class Saving(Classifier):
      make_tf2_layer = Blocks

      def save_tf2_checkpoint(self, layer, path):
        return tf.train.Checkpoint(model=layer).write(path)

    right = type('Right', (Classifier,), {'make_tf2_layer': lambda self: Blocks()})
    (spot,) = self.assert_passes(right, 'checkpoint').stages[8].blind_spots
    self.assertIn('does not hold 2 of 2 variables', spot)
    self.assertIn('layers in a list, dictionary or set for it. The .weights.h5 file restores', spot)
    words = (
      '0 of 2 variables restored: tf.train.Checkpoint does not track',
      'list, dictionary or set of Blocks',
    )
    self.assert_first_failure(Saving, 'checkpoint', *words)
    wrong = type('Wrong', (Classifier,), {'make_tf2_layer': lambda self: Blocks(Forgetful)})
    self.assert_first_failure(wrong, 'checkpoint', "the port's .weights.h5 file", '0 of 2')

  def test_a_shim_decorator_is_refused_with_the_fix(self):
    verdict = tf2verify.verify(case_of(lambda: keras.Sequential([Shim()])), ['no_new_variables'])
    self.assertIs(verdict.status, Status.ERROR)
    self.assertIn('Shim.call is decorated with track_tf1_style_variables', verdict.to_text())
    self.assertIn('remove the decorator', verdict.to_text())

  def test_another_backend_is_refused_with_the_fix(self):
    with mock.patch.object(keras.backend, 'backend', return_value='jax'):
      verdict = tf2verify.verify(case_of(rows, Rows), ['no_new_variables'])
    self.assertIs(verdict.status, Status.ERROR)
    self.assertIn('whose backend is jax', verdict.to_text())
    self.assertIn('KERAS_BACKEND=tensorflow', verdict.to_text())

  def test_names_are_paths(self):
    model = Subclassed()
    with OpRecorder().recording('call'):
      model(tf.ones([1, 5, 5, 2]))
    names = [variable_name(variable) for variable in layer_parts.variables_of(model)]
    self.assertEqual(names, [variable.path for variable in model.weights])
    self.assertIn('/conv/kernel', names[0])

  def test_states_of_seeds_and_metrics_are_no_weights(self):
    model = Metered()
    model(tf.ones([1, 4]))
    self.assertLen(layer_parts.variables_of(model), 2)
    self.assertLen(layer_parts.states_beside(model), 3)
    (seed,) = layer_parts.seed_states(model)
    self.assertEndsWith(seed, 'seed_generator_state')

  def test_settings_and_names_are_put_back(self):
    def turning():
      keras.config.set_epsilon(1e-2)
      return functional()

    before = keras.config.epsilon(), keras3.read_names(), dict(os.environ)
    tf2verify.verify(case_of(turning), ['no_new_variables'])
    self.assertEqual((keras.config.epsilon(), keras3.read_names(), dict(os.environ)), before)


if __name__ == '__main__':
  absltest.main()
