"""Variables that are created in every call: B01 to B05, and retracing: B89."""

import abc

import tensorflow as tf

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_STAGE = 'no_new_variables'


class VariableInCall(tiny_models.Affine):
  def port(self, inputs, training):
    shift = tf.Variable(tf.zeros([3]), name='bias')
    return tf.matmul(inputs, tiny_models.kernel()) + shift


class OwnedVariable(tiny_models.ShimLayer):
  def build(self, input_shape):
    self.shift = tf.Variable(tf.zeros([3]), name='bias')

  @tiny_models.under_shim
  def call(self, inputs, training=False):
    return tf.matmul(inputs, tiny_models.kernel()) + self.shift


class VariableInBuild(tiny_models.Affine):
  variable_names = {'bias': 'owned_variable/bias'}

  def make_tf2_layer(self):
    return OwnedVariable(self.model)


class UnnamedLayers(tiny_models.OneModel):
  def model(self, inputs, training):
    hidden = v1.layers.dense(inputs, 4, activation=tf.nn.relu)
    return v1.layers.dense(hidden, 2)


class NamedLayers(UnnamedLayers):
  def port(self, inputs, training):
    hidden = v1.layers.dense(inputs, 4, activation=tf.nn.relu, name='dense')
    return v1.layers.dense(hidden, 2, name='dense_1')


class AutoReused(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    with v1.variable_scope('tower', reuse=v1.AUTO_REUSE):
      return inputs * v1.get_variable('scale', [3])


class BareLayer(tiny_models.ShimLayer):
  def call(self, inputs, training=False):
    return self._forward(inputs, training)


class ReuseWithoutShim(AutoReused):
  def make_tf2_layer(self):
    return BareLayer(self.model)


class ReuseUnderShim(AutoReused):
  pass


class OneDense(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='dense')


class LayerInCall(OneDense):
  def port(self, inputs, training):
    return tf.keras.layers.Dense(3)(inputs)


class LayerInInit(OneDense):
  def make_tf2_layer(self):
    return tf.keras.Sequential([tf.keras.layers.Dense(3, name='dense')])


class TracedModule(tf.Module):
  """Makes its variables where it is traced, as a graph does."""

  @tf.function
  def __call__(self, inputs):
    kernel = tf.Variable(tf.ones([3, 3]), name='kernel')
    bias = tf.Variable(tf.zeros([3]), name='bias')
    return tf.matmul(inputs, kernel) + bias


class CreatedWhileTracing(tiny_models.Affine):
  def make_tf2_layer(self):
    return TracedModule()


class PreparedModule(tf.Module):
  def __init__(self):
    super().__init__()
    self.kernel = tf.Variable(v1.glorot_uniform_initializer()([3, 3]), name='kernel')
    self.bias = tf.Variable(tf.zeros([3]), name='bias')

  @tf.function
  def __call__(self, inputs):
    return tf.matmul(inputs, self.kernel) + self.bias


class CreatedBeforeTracing(tiny_models.Affine):
  def make_tf2_layer(self):
    return PreparedModule()


class Retraced(tiny_models.ShimLayer):
  """Hands the number of its calls to a `tf.function`, as a Python int."""

  def __init__(self, forward, step_type):
    super().__init__(forward)
    self._steps = 0
    self._step_type = step_type
    self.scaled = tf.function(self.scaled_by_step)

  def scaled_by_step(self, net, step):
    return net * tf.cast(1 + 0 * step, tf.float32)

  @tiny_models.under_shim
  def call(self, inputs, training=False):
    self._steps += 1
    return self.scaled(self._forward(inputs, training), self._step_type(self._steps))


class PythonNumber(tiny_models.Affine):
  def make_tf2_layer(self):
    return Retraced(self.model, int)


class TensorNumber(tiny_models.Affine):
  def make_tf2_layer(self):
    return Retraced(self.model, tf.constant)


PORT_BUGS = (
  PortBug(
    identifier='B01',
    title='tf.Variable in call',
    tf1='`tf.Variable` in the model function: made once, with the graph',
    mistake='the same line in `call`: made again in every call, and tracked by nothing',
    stage=_STAGE,
    wrong=VariableInCall,
    right=VariableInBuild,
    words=('call 2', 'bias', 'creation.py:', 'tf.Variable is called in call', 'build()'),
  ),
  PortBug(
    identifier='B02',
    title='tf.layers without names',
    tf1='`tf.layers.dense(x, 4)`: `dense` and `dense_1`, once per graph',
    mistake='the same lines under the shim, no scope around them: the names keep counting up',
    stage=_STAGE,
    wrong=UnnamedLayers,
    right=NamedLayers,
    words=('counts up at each call', 'dense_2', 'variable_scope', 'name='),
  ),
  PortBug(
    identifier='B03',
    title='get_variable without the shim',
    tf1='`get_variable` under `reuse=AUTO_REUSE`: one variable in the graph',
    mistake='the same lines run eagerly, without `track_tf1_style_variables`',
    stage=_STAGE,
    wrong=ReuseWithoutShim,
    right=ReuseUnderShim,
    words=('tower/scale', 'no variable store', 'track_tf1_style_variables'),
  ),
  PortBug(
    identifier='B04',
    title='Keras layer made in call',
    tf1='`tf.layers.dense(...)`: a function that makes the layer and calls it',
    mistake='`tf.keras.layers.Dense(3)(x)` in `call`: a new layer in every call',
    stage=_STAGE,
    wrong=LayerInCall,
    right=LayerInInit,
    words=('Dense', 'is built inside call', '__init__', 'get_or_create_layer'),
  ),
  PortBug(
    identifier='B05',
    title='variables made inside a tf.function',
    tf1='variables are made while the graph is built',
    mistake='they are made while a `tf.function` is traced: TensorFlow refuses the second trace',
    stage=_STAGE,
    wrong=CreatedWhileTracing,
    right=CreatedBeforeTracing,
    words=('kernel', 'tried to create it', 'creation.py:', 'tf.function', 'in __init__ or build()'),
  ),
  PortBug(
    identifier='B89',
    title='retracing for every Python number',
    tf1='placeholders: one graph for all values',
    mistake='a Python int as argument of a `tf.function`: every value is traced again',
    stage=_STAGE,
    wrong=PythonNumber,
    right=TensorNumber,
    words=('traced', 'scaled_by_step', 'again', 'Python'),
    status=tf2verify.Status.PASSED,
  ),
)
