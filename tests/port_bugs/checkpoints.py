"""Checkpoints that load silently wrong: B78 to B85."""

import abc
import os
import tempfile

import tensorflow as tf

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_STAGE = 'checkpoint'
_SHADOW = '/ExponentialMovingAverage'


def key_of(variable):
  return variable.name.removesuffix(':0')


def load_by_key(layer, path, key=key_of):
  """Gives every variable of a layer the value of its key."""
  checkpoint = tf.train.load_checkpoint(path)
  for variable in layer.variables:
    variable.assign(checkpoint.get_tensor(key(variable)))


class Scaled(tiny_models.OneModel, abc.ABC):
  """A matrix product, scaled: `c1/weights` and `c1/BatchNorm/gamma`."""

  gamma = 'c1/BatchNorm/gamma'

  def model(self, inputs, training):
    ones = v1.ones_initializer()
    with v1.variable_scope('c1'):
      net = inputs @ v1.get_variable('weights', [3, 3], initializer=ones)
      with v1.variable_scope('BatchNorm'):
        return net * v1.get_variable('gamma', [3], initializer=ones)

  def make_tf2_layer(self):
    return ScaledModule(self.gamma)


class ScaledModule(tf.Module):
  def __init__(self, gamma):
    super().__init__()
    self.weights = tf.Variable(tf.ones([3, 3]), name='c1/weights')
    self.gamma = tf.Variable(tf.ones([3]), name=gamma)

  def __call__(self, inputs):
    return inputs @ self.weights * self.gamma


class Misspelt(Scaled, abc.ABC):
  gamma = 'c1/BatchNorm/gama'
  variable_names = {'c1/BatchNorm/gamma': 'c1/BatchNorm/gama'}


class RestoredByMisspeltName(Misspelt):
  def load_tf1_checkpoint(self, layer, path):
    tf.train.Checkpoint(variables=list(layer.variables)).restore(path)


class RestoredByMappedName(Misspelt):
  def load_tf1_checkpoint(self, layer, path):
    load_by_key(layer, path, lambda variable: key_of(variable).replace('gama', 'gamma'))


class Frozen(tiny_models.OneModel, abc.ABC):
  """Weights, and a mean that is not trained."""

  def model(self, inputs, training):
    mean = v1.get_variable('mean', [3], initializer=v1.zeros_initializer(), trainable=False)
    return (inputs - mean) @ tiny_models.kernel()


class RestoredTrainables(Frozen):
  def load_tf1_checkpoint(self, layer, path):
    tf.train.Checkpoint(variables=layer.trainable_variables).restore(path).assert_consumed()


class RestoredAll(Frozen):
  def load_tf1_checkpoint(self, layer, path):
    tf.train.Checkpoint(variables=layer.variables).restore(path).assert_consumed()


class Dense(tf.keras.Model):
  def __init__(self):
    super().__init__(name='net')
    self.head = tf.keras.layers.Dense(
      3, kernel_initializer=v1.glorot_uniform_initializer(), name='head'
    )

  def call(self, inputs):
    return self.head(inputs)


class KerasModel(tiny_models.Affine, abc.ABC):
  variable_names = {'kernel': 'net/head/kernel', 'bias': 'net/head/bias'}

  def make_tf2_layer(self):
    return Dense()


class RestoredAsModel(KerasModel):
  def load_tf1_checkpoint(self, layer, path):
    tf.train.Checkpoint(model=layer).restore(path)


class RestoredByTf2verify(KerasModel):
  pass


class RenamedAttribute(KerasModel):
  """Loads with today's code what was saved when the attribute was called `net`."""

  def save_tf2_checkpoint(self, layer, path):
    return tf.train.Checkpoint(net=layer).write(path)

  def load_tf2_checkpoint(self, layer, path):
    tf.train.Checkpoint(model=layer).read(path)


class SameAttribute(RenamedAttribute):
  def load_tf2_checkpoint(self, layer, path):
    tf.train.Checkpoint(net=layer).read(path).assert_existing_objects_matched()


class Continued(tiny_models.Affine, abc.ABC):
  """A checkpoint after five steps of Adam, with averaged weights."""

  def tf1_checkpoint(self):
    self.folder = tempfile.TemporaryDirectory()  # there as long as the case
    with tf.Graph().as_default(), v1.Session() as session:
      loss = tf.reduce_sum(self.model(tf.constant(self.make_inputs()), training=True) ** 2)
      step = v1.train.AdamOptimizer(0.01).minimize(loss, v1.train.get_or_create_global_step())
      with tf.control_dependencies([step]):
        step = tf.train.ExponentialMovingAverage(0.5).apply(v1.trainable_variables())
      session.run(v1.global_variables_initializer())
      for _ in range(5):
        session.run(step)
      return v1.train.Saver().save(session, os.path.join(self.folder.name, 'model'))


class ContinuedTraining(Continued, abc.ABC):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.legacy.Adam(0.01, epsilon=1e-8)


class FreshOptimizer(ContinuedTraining):
  def load_tf1_checkpoint(self, layer, path, optimizer=None):
    load_by_key(layer, path)


class RestoredOptimizer(ContinuedTraining):
  def load_tf1_checkpoint(self, layer, path, optimizer=None):
    load_by_key(layer, path)
    checkpoint = tf.train.load_checkpoint(path)
    optimizer.iterations.assign(checkpoint.get_tensor('global_step'))
    for variable in layer.trainable_variables:
      for slot, key in (('m', 'Adam'), ('v', 'Adam_1')):
        value = checkpoint.get_tensor(f'{key_of(variable)}/{key}')
        optimizer.get_slot(variable, slot).assign(value)


class Averaged(Continued, abc.ABC):
  evaluate_with_ema = True


class RawWeights(Averaged):
  def load_tf1_checkpoint(self, layer, path):
    load_by_key(layer, path)


class AveragedWeights(Averaged):
  def load_tf1_checkpoint(self, layer, path):
    load_by_key(layer, path, lambda variable: key_of(variable) + _SHADOW)


class Transposed(tiny_models.Affine):
  def load_tf1_checkpoint(self, layer, path):
    for variable in layer.variables:
      variable.assign(tf.transpose(tf.train.load_checkpoint(path).get_tensor(key_of(variable))))


class NotTransposed(tiny_models.Affine):
  def load_tf1_checkpoint(self, layer, path):
    load_by_key(layer, path)


class TakenFromUnbuilt(KerasModel):
  """Restores a new model, and takes its weights: it has none yet."""

  def load_tf2_checkpoint(self, layer, path):
    restored = Dense()
    tf.train.Checkpoint(model=restored).read(path)
    self.take(layer, restored)

  def take(self, layer, restored):
    for variable, other in zip(
      layer.trainable_variables, tf.Module.trainable_variables.fget(restored), strict=False
    ):
      variable.assign(other)


class TakenFromBuilt(TakenFromUnbuilt):
  def take(self, layer, restored):
    restored(tf2verify.normal_inputs((1, 3)))
    super().take(layer, restored)


PORT_BUGS = (
  PortBug(
    identifier='B78',
    title='misspelled name',
    tf1='`Saver` looks every variable up by its name',
    mistake='`Checkpoint(variables=...).restore` of a variable called `gama`: it keeps its value',
    stage=_STAGE,
    wrong=RestoredByMisspeltName,
    right=RestoredByMappedName,
    words=('c1/BatchNorm/gama is not a key', 'there it is c1/BatchNorm/gamma', 'not restored'),
  ),
  PortBug(
    identifier='B79',
    title='keys left unread',
    tf1='`Saver` restores every variable',
    mistake='only the trainable variables are restored; `assert_consumed()` passes',
    stage=_STAGE,
    wrong=RestoredTrainables,
    right=RestoredAll,
    words=('1 of 2 variables restored', 'unread: mean', 'assert_consumed()'),
  ),
  PortBug(
    identifier='B80',
    title='Keras model and TF1 file',
    tf1='`Saver.restore`',
    mistake='`Checkpoint(model=model).restore(tf1_checkpoint)` restores nothing, silently',
    stage=_STAGE,
    wrong=RestoredAsModel,
    right=RestoredByTf2verify,
    words=(
      '0 of 2 variables restored',
      'net/head/kernel is not a key',
      'skips what it does not find',
    ),
  ),
  PortBug(
    identifier='B81',
    title='object path changed',
    tf1='names survive a rewrite of the code',
    mistake='an attribute has been renamed since the checkpoint was saved',
    stage=_STAGE,
    wrong=RenamedAttribute,
    right=SameAttribute,
    words=(
      'object path model/head/kernel has no entry',
      'net/head/kernel is unused',
      'assert_existing_objects_matched',
    ),
  ),
  PortBug(
    identifier='B82',
    title='optimizer starts again',
    tf1='`beta1_power`, `w/Adam` and `global_step` are in the checkpoint',
    mistake='training continues with a fresh optimizer',
    stage=_STAGE,
    wrong=FreshOptimizer,
    right=RestoredOptimizer,
    words=('beta1_power 0.5314 = 0.9^6', 't: TF1 5, TF2 0', 'bias correction'),
  ),
  PortBug(
    identifier='B83',
    title='raw weights for averaged ones',
    tf1='evaluation restores `w/ExponentialMovingAverage`',
    mistake='evaluation loads `w`',
    stage=_STAGE,
    wrong=RawWeights,
    right=AveragedWeights,
    words=('equals `', 'TF1 evaluates with the EMA shadow variable', 'ExponentialMovingAverage'),
  ),
  PortBug(
    identifier='B84',
    title='transposed kernel',
    tf1='`[in, out]`',
    mistake='a square kernel is transposed in the conversion: no shape shows it',
    stage=_STAGE,
    wrong=Transposed,
    right=NotTransposed,
    words=('kernel', 'matches after a transpose'),
  ),
  PortBug(
    identifier='B85',
    title='restored before it is built',
    tf1='a graph has all its variables at once',
    mistake='a model is restored, and its weights are read before its first call: there are none',
    stage=_STAGE,
    wrong=TakenFromUnbuilt,
    right=TakenFromBuilt,
    words=('0 of 2 variables restored', 'was not built', 'first call'),
  ),
)
