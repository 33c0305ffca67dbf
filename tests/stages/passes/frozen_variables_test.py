"""Variables of TRAINABLE_VARIABLES that no train op of tf1 trains, frozen in the port or not."""

import abc
import json
import os
import tempfile

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.recordings import hand_made
from tests.sides import recorded_cases
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
_INVENTORY, _STEPS = 'variable_inventory', 'training_steps'
_NOTE = 'all 2 variables of target are frozen in the port, and in TRAINABLE_VARIABLES of tf1'
_UNKNOWN = 'all 2 variables of target are trainable in tf1 but frozen in the port'
_TRAINED = 'trained by the train op of tf1 but frozen in the port'


def _network(inputs, name, trainable=True):
  with v1.variable_scope(name):
    kernel = v1.get_variable('kernel', [3, 3], trainable=trainable)
    bias = v1.get_variable('bias', [3], initializer=v1.zeros_initializer(), trainable=trainable)
  return tf.matmul(inputs, kernel) + bias


def _pairs(variables, *scopes):
  found = {v.name.split(':')[0]: v for v in variables}
  for part in ('kernel', 'bias'):
    yield tuple(next(v for n, v in found.items() if n.endswith(f'{s}/{part}')) for s in scopes)


class _WithTarget(tf2verify.EquivalenceCase, abc.ABC):
  """A Q network and its target, which only a copy moves; the loss does not stop its gradient."""

  def build_tf1_graph(self, inputs, training):
    return {name: _network(inputs, name) for name in ('online', 'target')}

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs['online'] - labels - 0.9 * outputs['target']))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    optimizer = v1.train.GradientDescentOptimizer(0.25)
    step = optimizer.minimize(loss, var_list=[v for v in variables if 'online' in v.name])
    with tf.control_dependencies([step]):
      copies = [t.assign(0.5 * t + 0.5 * o) for o, t in _pairs(variables, 'online', 'target')]
    return tf.group(*copies)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.25)

  def trained(self, layer):
    return layer.trainable_variables

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    trained = self.trained(layer)
    optimizer.apply_gradients(zip(tape.gradient(loss, trained), trained, strict=True))
    for online, target in _pairs(layer.variables, 'online', 'target'):
      target.assign(0.5 * target + 0.5 * online)
    return loss


class Shim(_WithTarget, abc.ABC):
  def make_tf2_layer(self):
    return tiny_models.ShimLayer(
      lambda inputs, _: {
        'online': _network(inputs, 'online', self.trains('online')),
        'target': _network(inputs, 'target', self.trains('target')),
      }
    )

  def trains(self, name):
    return name == 'online'


class _KerasPort(keras.Model):
  def __init__(self, frozen):
    super().__init__(name='port')
    self.online = keras.layers.Dense(3, name='online')
    self.target = keras.layers.Dense(3, name='target')
    for layer in frozen:
      getattr(self, layer).trainable = False

  def call(self, inputs):
    return {'online': self.online(inputs), 'target': self.target(inputs)}


class Keras(_WithTarget, abc.ABC):
  frozen = ('target',)

  def variable_names(self, name):
    return f'port/{name}'

  def make_tf2_layer(self):
    return _KerasPort(self.frozen)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.25)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    trained = self.trained(layer)
    optimizer.apply_gradients(zip(tape.gradient(loss, trained), trained, strict=True))
    for online, target in zip(layer.online.variables, layer.target.variables, strict=True):
      target.assign(0.5 * target + 0.5 * online)
    return loss


class FrozenTargetTest(LadderTestCase):
  def test_right_ports(self):
    for parent in (Shim, Keras):
      with self.subTest(parent.__name__):
        verdict = self.assert_passes(type('Case', (parent,), {}))
        text = verdict.to_text()
        self.assertIn(_NOTE, text)
        self.assertIn('2 variables trainable', text)
        gradients = next(stage for stage in verdict.stages if stage.stage == 'gradients')
        self.assertEqual(gradients.compared.tensors, 2)
        self.assertIn('2 variables that neither side trains', text)
        pairs = {pair.tf1.name: pair for pair in verdict.stages[1].inventory}
        self.assertFalse(pairs['target/kernel'].tf1.trainable)
        self.assertTrue(pairs['online/kernel'].tf1.trainable)

  def test_the_target_is_not_copied(self):
    class Case(Shim):
      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        trained = layer.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, trained), trained, strict=True))
        return loss

    self.assert_first_failure(Case, _STEPS, 'target/kernel')

  def test_gradients_of_what_both_train_still_count(self):
    class Case(Shim):
      def loss(self, outputs):
        online = outputs['online']
        online = tf.square(online) if tf.executing_eagerly() else online
        return tf.reduce_sum(online) + tf.reduce_sum(outputs['target'])

    self.assert_first_failure(Case, 'gradients', 'gradient online/kernel')

  def test_without_a_train_op_nobody_knows(self):
    class Case(Shim):
      make_tf1_train_op = tf2verify.EquivalenceCase.make_tf1_train_op

    self.assert_first_failure(Case, _INVENTORY, _UNKNOWN)

  def test_a_train_op_that_raises(self):
    class Case(Shim):
      def make_tf1_train_op(self, loss):
        raise ValueError('no such thing')

    self.assert_first_failure(Case, _INVENTORY, _UNKNOWN)


class FrozenOnlineTest(LadderTestCase):
  def test_what_tf1_trains_is_frozen(self):
    class FrozenShim(Shim):
      def trains(self, name):
        return False

    class FrozenKeras(Keras):
      frozen = ('online', 'target')

    for case in (FrozenShim, FrozenKeras):
      with self.subTest(case.__name__):
        text = self.assert_first_failure(case, _INVENTORY, _TRAINED, 'all 2 variables of online')
        self.assertNotIn('variable target/kernel', text)

  def test_trained_along_with_the_rest(self):
    class Case(Shim):
      def make_tf1_train_op(self, loss):
        return v1.train.GradientDescentOptimizer(0.25).minimize(loss)

    text = self.assert_first_failure(Case, _INVENTORY, _TRAINED, 'all 2 variables of target')
    self.assertNotIn('neither side', text)


class TrainableTargetTest(LadderTestCase):
  def test_in_the_list_of_the_ports_optimizer(self):
    class Case(Keras):
      frozen = ()

    text = self.assert_first_failure(Case, _STEPS, 'target/kernel')
    self.assertNotIn('neither side', text)

  def test_left_out_of_it(self):
    class Case(Keras):
      frozen = ()

      def trained(self, layer):
        return layer.online.trainable_variables

    self.assert_passes(Case, _STEPS)


class RecordedTest(LadderTestCase):
  def test_right_port_and_an_earlier_recording(self):
    folder = os.path.join(self.enter_context(tempfile.TemporaryDirectory()), 'recording')
    case = recorded_cases.record(type('Case', (Shim,), {}), folder)
    self.assertIn(_NOTE, self.assert_passes(case, _STEPS).to_text())

    path = os.path.join(folder, 'manifest.json')
    with open(path, encoding='utf-8') as file:
      manifest = json.load(file)
    self.assertEqual(manifest['steps'].pop('trained'), ['online/kernel', 'online/bias'])
    with open(path, 'wb') as file:
      file.write(hand_made.signed(manifest))
    self.assert_first_failure(recorded_cases.replayed(Shim, folder), _INVENTORY, _UNKNOWN)


if __name__ == '__main__':
  absltest.main()
