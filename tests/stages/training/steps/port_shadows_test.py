"""Moving averages of the weights that a port keeps in its own way."""

import abc
from unittest import mock

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.sides.trained_sides import Trained
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'training_steps'
RATE, DECAY = 0.05, 0.9
CLAIM = 'the port keeps none'


class Trainer:
  """Gradient descent, and averages in a list."""

  def __init__(self, decay=DECAY):
    self.optimizer, self.decay = tf.keras.optimizers.SGD(RATE), decay
    self.averages = []

  def order(self, variables):
    return variables

  def apply(self, gradients, variables):
    kept = self.order(list(variables))
    self.averages = self.averages or [tf.Variable(v, trainable=False) for v in kept]
    self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    for average, variable in zip(self.averages, kept, strict=True):
      average.assign(self.decay * average + (1.0 - self.decay) * variable)


class OtherOrder(Trainer):
  def order(self, variables):
    return variables[::-1]


class OtherWord(Trainer):
  """Under a word that means nothing, one after the other in attributes."""

  def apply(self, gradients, variables):
    super().apply(gradients, variables)
    self.first, self.second = self.averages


class OfTensorFlow(tf.Module):
  def __init__(self, decay=DECAY):
    super().__init__()
    self.optimizer = tf.keras.optimizers.SGD(RATE)
    self.step = tf.Variable(100, dtype=tf.int64, trainable=False)
    self.averages = tf.train.ExponentialMovingAverage(decay, num_updates=self.step)

  def apply(self, gradients, variables):
    if not self.averages._averages:
      with tf.control_dependencies(None):
        self.averages.apply(variables)
    self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    self.averages.apply(variables)


class Flat(Trainer):
  """All averages in one vector."""

  def apply(self, gradients, variables):
    def flat():
      return tf.concat([tf.reshape(v, [-1]) for v in variables], 0)

    if not self.averages:
      self.averages = [tf.Variable(flat(), trainable=False)]
    self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    self.averages[0].assign(self.decay * self.averages[0] + (1.0 - self.decay) * flat())


class Forgetful(Trainer):
  """Makes all averages and updates some of them."""

  def __init__(self, resting):
    super().__init__()
    self.resting = resting

  def apply(self, gradients, variables):
    self.averages = self.averages or [tf.Variable(v, trainable=False) for v in variables]
    self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    for average, variable in zip(self.averages, variables, strict=True):
      if variable.name.split(':')[0].split('/')[-1] not in self.resting:
        average.assign(self.decay * average + (1.0 - self.decay) * variable)


class Late(Trainer):
  """Starts the averages at the values that the first update has left."""

  def apply(self, gradients, variables):
    self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    self.averages = self.averages or [tf.Variable(v, trainable=False) for v in variables]
    for average, variable in zip(self.averages, variables, strict=True):
      average.assign(self.decay * average + (1.0 - self.decay) * variable)


class Without(Trainer):
  def apply(self, gradients, variables):
    self.optimizer.apply_gradients(zip(gradients, variables, strict=True))


class Averaged(Trained, abc.ABC):
  def make_tf1_train_op(self, loss):
    applied = v1.train.GradientDescentOptimizer(RATE).minimize(loss)
    with tf.control_dependencies([applied]):
      return tf.train.ExponentialMovingAverage(DECAY).apply(v1.trainable_variables())

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss


def tf1_with_decay_of_nine_tenths(self, loss):
  applied = v1.train.GradientDescentOptimizer(RATE).minimize(loss)
  with tf.control_dependencies([applied]):
    return tf.train.ExponentialMovingAverage(0.9).apply(v1.trainable_variables())


class Transposed(Averaged, abc.ABC):
  """Whose port is native and keeps its kernel transposed, and its averages as well."""

  slot_names = None
  variable_map = 'derive'

  def make_tf2_layer(self):
    class Net(keras.layers.Layer):
      def build(self, shape):
        self.turned = self.add_weight(name='turned', shape=(3, 3))
        self.shift = self.add_weight(name='shift', shape=(3, 1), initializer='zeros')

      def call(self, inputs):
        return tf.matmul(inputs, self.turned, transpose_b=True) + self.shift[:, 0]

    return Net(name='net')


class OfKeras(Averaged, abc.ABC):
  """Whose port is native and keeps its averages by the paths of variables."""

  def make_tf2_layer(self):
    class Net(keras.layers.Layer):
      def build(self, shape):
        self.kernel = self.add_weight(name='kernel', shape=(3, 3))
        self.bias = self.add_weight(name='bias', shape=(3,), initializer='zeros')

      def call(self, inputs):
        return tf.matmul(inputs, self.kernel) + self.bias

    return Net(name='net')

  def variable_names(self, name):
    return f'net/{name}'

  def make_tf2_optimizer(self):
    return {'optimizer': keras.optimizers.SGD(RATE), 'ema': {}}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    variables, averages = layer.trainable_variables, optimizer['ema']
    for variable in variables:
      if variable.path not in averages:
        averages[variable.path] = self.begin(variable)
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    optimizer['optimizer'].apply(tape.gradient(loss, variables), variables)
    for variable in variables:
      average = averages[variable.path]
      averages[variable.path] = self.follow(average, variable)
    return loss

  def begin(self, variable):
    return keras.Variable(variable, trainable=False, name='ema')

  def follow(self, average, variable):
    average.assign(DECAY * average + (1.0 - DECAY) * variable)
    return average


class OfKerasInAList(OfKeras, abc.ABC):
  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(RATE), []

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    optimizer, averages = optimizer
    variables = layer.trainable_variables
    if not averages:
      averages.extend(self.begin(variable) for variable in variables)
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    optimizer.apply(tape.gradient(loss, variables), variables)
    for average, variable in zip(averages, variables, strict=True):
      self.follow(average, variable)
    return loss


class Tensors(OfKeras, abc.ABC):
  def begin(self, variable):
    return tf.convert_to_tensor(variable)

  def follow(self, average, variable):
    return DECAY * average + (1.0 - DECAY) * tf.convert_to_tensor(variable)


class Arrays(OfKeras, abc.ABC):
  """That change in place."""

  def begin(self, variable):
    return variable.numpy()

  def follow(self, average, variable):
    average *= DECAY
    average += (1.0 - DECAY) * variable.numpy()
    return average


class SecondModel(Averaged, abc.ABC):
  word = 'averages'

  def make_tf2_optimizer(self):
    return {'optimizer': tf.keras.optimizers.SGD(RATE)}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    if self.word not in optimizer:
      second = optimizer[self.word] = self.make_tf2_layer()
      second(inputs)
      second.set_weights(layer.get_weights())
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    optimizer['optimizer'].apply_gradients(
      zip(tape.gradient(loss, variables), variables, strict=True)
    )
    for average, variable in zip(optimizer[self.word].weights, layer.weights, strict=True):
      average.assign(DECAY * average + (1.0 - DECAY) * variable)
    return loss


def sharing(variable):
  """Keras takes a `tf.Variable` as the value itself, and copies nothing."""
  return keras.Variable(variable.value, trainable=False, name='ema')


class KerasTrainer(Trainer):
  def __init__(self, decay=DECAY):
    super().__init__(decay)
    self.optimizer = keras.optimizers.SGD(RATE)


def case(make):
  class Case(Averaged):
    def make_tf2_optimizer(self):
      return make()

  return Case


class PortShadowsTest(LadderTestCase):
  def text(self, make, status):
    verdict = tf2verify.verify(case(make), stages=[STAGE])
    self.assertIs(verdict.stages[-1].status, status, verdict.to_text())
    return verdict.to_text()

  def test_right_ports(self):
    for make in (Trainer, OtherOrder, OtherWord, OfTensorFlow):
      with self.subTest(make.__name__):
        text = self.text(make, tf2verify.Status.PASSED)
        self.assertNotIn('only tf2 keeps', text)
        self.assertNotIn('cannot be paired', text)

  def test_another_decay(self):
    for make in (Trainer, OtherOrder, OtherWord, OfTensorFlow):
      with self.subTest(make.__name__):
        text = self.text(lambda m=make: m(0.5), tf2verify.Status.FAILED)
        self.assertIn('shadow kernel', text)
        self.assertIn('pass a decay of 0.9 to', text)
        self.assertNotIn(CLAIM, text)

  def test_what_cannot_be_paired(self):
    text = self.text(Flat, tf2verify.Status.PASSED)
    self.assertIn('cannot be matched: tf2 keeps averages', text)
    self.assertNotIn(CLAIM, text)

  def test_of_variables_in_another_shape(self):
    for names in (None, {'bias/ExponentialMovingAverage': 'averages'}):
      for decay, status in ((DECAY, tf2verify.Status.PASSED), (0.5, tf2verify.Status.FAILED)):
        with self.subTest(f'{names} {decay}'):
          optimizer = lambda _, decay=decay: KerasTrainer(decay)  # noqa: E731
          port = type('Case', (Transposed,), {'make_tf2_optimizer': optimizer, 'slot_names': names})
          verdict = tf2verify.verify(port, stages=[STAGE])
          text = verdict.to_text()
          self.assertIs(verdict.stages[-1].status, status, text)
          self.assertNotIn('shape differs', text)
          self.assertNotIn('only tf2 keeps', text)
          found = {d.tf1_subject for d in verdict.stages[-1].differences if d.quantity == 'shadow'}
          self.assertEqual(found, set() if decay == DECAY else {'kernel', 'bias'}, text)

  def test_none(self):
    text = self.text(Without, tf2verify.Status.FAILED)
    self.assertIn(CLAIM, text)
    self.assertNotIn('first divergence', text)

  def test_some_that_no_step_updates(self):
    for what in (['kernel'], ['bias'], ['kernel', 'bias']):
      with self.subTest(what):
        text = self.text(lambda what=what: Forgetful(what), tf2verify.Status.FAILED)
        names = ', '.join(what)
        self.assertRegex(text, rf'no\s+step\s+of\s+the\s+port\s+updates[\s\S]*{names}, those')
        self.assertNotIn('first divergence', text)
        self.assertNotIn('no known mistake', text)

  def test_of_keras(self):
    copies = {'itself': OfKeras.begin, 'array': lambda _, v: keras.Variable(v.numpy(), name='ema')}
    for base in (OfKeras, OfKerasInAList):
      for name, begin in copies.items():
        with self.subTest(f'{base.__name__}, {name}'):
          verdict = tf2verify.verify(type('Case', (base,), {'begin': begin}), stages=[STAGE])
          self.assertIs(verdict.stages[-1].status, tf2verify.Status.PASSED, verdict.to_text())
          self.assertNotIn('only tf2 keeps', verdict.to_text())

  def test_of_other_kinds(self):
    without_word = type('WithoutWord', (SecondModel,), {'word': 'second'})
    for base in (Tensors, Arrays, SecondModel, without_word):
      with self.subTest(base.__name__):
        verdict = tf2verify.verify(type('Case', (base,), {}), stages=[STAGE])
        self.assertIs(verdict.stages[-1].status, tf2verify.Status.PASSED, verdict.to_text())
        self.assertNotIn('only tf2 keeps', verdict.to_text())

  def test_another_decay_of_other_kinds(self):
    for base in (Tensors, SecondModel):
      with self.subTest(base.__name__), mock.patch(f'{__name__}.DECAY', 0.5):
        case_class = type('Case', (base,), {'make_tf1_train_op': tf1_with_decay_of_nine_tenths})
        verdict = tf2verify.verify(case_class, stages=[STAGE])
        self.assertIs(verdict.stages[-1].status, tf2verify.Status.FAILED, verdict.to_text())
        self.assertIn('shadow kernel', verdict.to_text())
        self.assertNotIn(CLAIM, verdict.to_text())

  def test_not_copied(self):
    """What is kept as averages are the variables themselves: it is not said that none is kept."""
    for base, word in ((OfKeras, ' (ema)'), (OfKerasInAList, '')):
      with self.subTest(base.__name__):
        case_class = type('Case', (base,), {'begin': lambda _, v: sharing(v)})
        verdict = tf2verify.verify(case_class, stages=[STAGE])
        text = verdict.to_text()
        self.assertIs(verdict.stages[-1].status, tf2verify.Status.FAILED, text)
        self.assertNotIn(CLAIM, text)
        self.assertIn(f'keeps in their place{word} are the variables themselves', text)

  def test_another_start_is_no_fault_of_the_formula(self):
    text = self.text(Late, tf2verify.Status.FAILED)
    self.assertIn('shadow kernel [step 1]', text)
    self.assertNotIn('first divergence', text)
    self.assertIn('the port agrees with tf1', text)


if __name__ == '__main__':
  absltest.main()
