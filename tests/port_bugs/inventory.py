"""Variables that only one side has, or that differ: B10 to B16, B19."""

import abc

import tensorflow as tf
import tf_slim as slim

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
layers = tf.keras.layers
_STAGE = 'variable_inventory'
_TRAINABLE = v1.GraphKeys.TRAINABLE_VARIABLES


class SlimConvolution(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    return slim.conv2d(
      inputs,
      2,
      3,
      normalizer_fn=slim.batch_norm,
      normalizer_params={'is_training': training},
      scope='conv',
    )

  def variable_names(self, name):
    return name.replace('conv/BatchNorm', 'norm').replace('weights', 'kernel')

  def keras_port(self, **arguments):
    return tf.keras.Sequential(
      [
        layers.Conv2D(2, 3, padding='same', name='conv', **arguments),
        layers.BatchNormalization(momentum=0.999, scale=False, name='norm'),
        layers.ReLU(),
      ]
    )


class BiasBesideBatchNorm(SlimConvolution):
  def make_tf2_layer(self):
    return self.keras_port()


class NoBias(SlimConvolution):
  def make_tf2_layer(self):
    return self.keras_port(use_bias=False, kernel_initializer=v1.glorot_uniform_initializer())


class SlimNorm(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    return slim.batch_norm(inputs, is_training=training, scope='norm')


class ExtraGamma(SlimNorm):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.BatchNormalization(momentum=0.999, name='norm')])


class WithoutGamma(SlimNorm):
  def make_tf2_layer(self):
    norm = layers.BatchNormalization(momentum=0.999, scale=False, name='norm')
    return tf.keras.Sequential([norm])


class LostGamma(tiny_models.Normalized):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.BatchNormalization(scale=False, name='norm')])


class WithGamma(tiny_models.Normalized):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.BatchNormalization(name='norm')])


class TwoDense(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    return v1.layers.dense(v1.layers.dense(inputs, 4, tf.nn.relu), 4)

  def keras_port(self, *names):
    return tf.keras.Sequential(
      [layers.Dense(4, 'relu', name=names[0]), layers.Dense(4, name=names[1])]
    )


class SecondInstance(TwoDense):
  variable_names = {}  # else a map is derived, and names do not matter

  def make_tf2_layer(self):
    self.keras_port(None, None)  # built for its summary, say
    return self.keras_port(None, None)


class NamedInstance(TwoDense):
  def make_tf2_layer(self):
    self.keras_port(None, None)
    return self.keras_port('dense', 'dense_1')


# slim's and the shim's order of a batch norm's variables is not that of Keras.
_TF1_ORDER = ('norm/beta', 'norm/gamma', 'norm/moving_mean', 'norm/moving_variance')
_KERAS_ORDER = ('norm/gamma', 'norm/beta', 'norm/moving_mean', 'norm/moving_variance')


class PairedByPosition(WithGamma):
  variable_names = dict(zip(_TF1_ORDER, _KERAS_ORDER, strict=True))


class PairedByName(WithGamma):
  pass


class FrozenEmbedding(tiny_models.Embedded, abc.ABC):
  def model(self, inputs, training):
    return self.looked_up(inputs, trainable=False)

  def looked_up(self, inputs, trainable):
    table = v1.get_variable('embedding', [5, 4], trainable=trainable)
    return v1.layers.dense(tf.nn.embedding_lookup(table, inputs), 2, name='fc')


class TrainedEmbedding(FrozenEmbedding):
  def port(self, inputs, training):
    return self.looked_up(inputs, trainable=True)


class StillFrozenEmbedding(FrozenEmbedding):
  pass


class InventedFreeze(tiny_models.Affine):
  def make_tf2_layer(self):
    layer = super().make_tf2_layer()
    layer.trainable = False
    return layer


class NothingFrozen(tiny_models.Affine):
  pass


class MovingAveragesTrainable(tiny_models.OneImageModel):
  def model(self, inputs, training):
    return slim.batch_norm(
      inputs, is_training=training, variables_collections=[_TRAINABLE], scope='norm'
    )

  def port(self, inputs, training):
    return slim.batch_norm(inputs, is_training=training, scope='norm')


class DoublePrecision(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='fc')

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3)).astype('float64')


class NarrowedByKeras(DoublePrecision):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.Dense(3, name='fc')])


class KeptDouble(DoublePrecision):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.Dense(3, dtype='float64', name='fc')])


class Attention(tiny_models.OneModel, abc.ABC):
  """Additive attention as in TF1's seq2seq: projected memory and query, and a score vector."""

  def model(self, inputs, training):
    memory, query = inputs['memory'], inputs['query']
    keys = v1.layers.dense(memory, 3, use_bias=False, name='memory_layer')
    queries = v1.layers.dense(query, 3, use_bias=False, name='query_layer')
    vector = v1.get_variable('attention_v', [3])
    scores = tf.reduce_sum(vector * tf.tanh(keys + queries[:, None]), 2)
    return tf.reduce_sum(tf.nn.softmax(scores)[:, :, None] * memory, 1)

  def make_inputs(self):
    return {
      'memory': tf2verify.normal_inputs((2, 4, 3)),
      'query': tf2verify.normal_inputs((2, 3), seed=1),
    }


class KerasAttention(layers.Layer):
  def __init__(self):
    super().__init__()
    self.attention = layers.AdditiveAttention(name='attention')

  def call(self, inputs):
    memory, query = inputs['memory'], inputs['query']
    return self.attention([query[:, None], memory])[:, 0]


class WithoutProjections(Attention):
  variable_names = {'attention_v': 'keras_attention/attention/scale'}

  def make_tf2_layer(self):
    return KerasAttention()


class WithProjections(Attention):
  def port(self, inputs, training):
    memory, query = inputs['memory'], inputs['query']
    keys = v1.layers.dense(memory, 3, use_bias=False, name='memory_layer')
    queries = v1.layers.dense(query, 3, use_bias=False, name='query_layer')
    scores = tf.einsum(
      'btd,d->bt', tf.tanh(keys + queries[:, None]), v1.get_variable('attention_v', [3])
    )
    return tf.einsum('bt,btd->bd', tf.nn.softmax(scores), memory)


PORT_BUGS = (
  PortBug(
    identifier='B10',
    title='bias in addition to batch norm',
    tf1='`slim.conv2d(normalizer_fn=slim.batch_norm)` makes no biases',
    mistake='`Conv2D` keeps its bias, before `BatchNormalization`',
    stage=_STAGE,
    wrong=BiasBesideBatchNorm,
    right=NoBias,
    words=('conv/bias', 'conv/BatchNorm', 'normalizer_fn', 'use_bias=False'),
  ),
  PortBug(
    identifier='B11',
    title='batch norm gains a gamma',
    tf1='`slim.batch_norm` has no gamma: its default is `scale=False`',
    mistake='`BatchNormalization()`: the default of Keras is `scale=True`',
    stage=_STAGE,
    wrong=ExtraGamma,
    right=WithoutGamma,
    words=('norm/gamma', 'slim.batch_norm', 'scale=False'),
  ),
  PortBug(
    identifier='B11',
    title='batch norm loses its gamma',
    tf1='`tf.layers.batch_normalization` has a gamma: its default is `scale=True`',
    mistake='`BatchNormalization(scale=False)`, taken over from a slim model',
    stage=_STAGE,
    wrong=LostGamma,
    right=WithGamma,
    words=('norm/gamma', 'scale=True'),
  ),
  PortBug(
    identifier='B12',
    title='names with a running counter',
    tf1='`dense`, `dense_1`: names are counted per graph',
    mistake='another instance was made before: Keras keeps counting, `dense_2`, `dense_3`',
    stage=_STAGE,
    wrong=SecondInstance,
    right=NamedInstance,
    words=('dense_2/kernel', 'Keras counts', 'name='),
  ),
  PortBug(
    identifier='B13',
    title='pairs by position',
    tf1='batch norm lists beta, gamma (slim, the shim: by name)',
    mistake='`zip(tf1_variables, layer.variables)`: Keras lists gamma, beta',
    stage=_STAGE,
    wrong=PairedByPosition,
    right=PairedByName,
    words=('norm/beta', 'norm/gamma', 'by position'),
  ),
  PortBug(
    identifier='B14',
    title='frozen variable is trained',
    tf1='`get_variable(trainable=False)`',
    mistake='the flag is lost, and the optimizer would train the embedding',
    stage=_STAGE,
    wrong=TrainedEmbedding,
    right=StillFrozenEmbedding,
    words=('embedding is frozen in tf1', 'trained in tf2', 'trainable=False'),
  ),
  PortBug(
    identifier='B14',
    title='trained layer is frozen',
    tf1='all variables are trained',
    mistake='`layer.trainable = False` was left behind; the flags of the variables stay True',
    stage=_STAGE,
    wrong=InventedFreeze,
    right=NothingFrozen,
    words=(
      'kernel',
      'not in layer.trainable_variables, although its own flag is trainable=True',
      'layer.trainable=False',
    ),
  ),
  PortBug(
    identifier='B15',
    title='moving averages in TRAINABLE_VARIABLES',
    tf1='`variables_collections=[TRAINABLE_VARIABLES]` on batch norm adds its moving averages',
    mistake='none: the port leaves them out, which is right, and is not blamed',
    stage=_STAGE,
    wrong=MovingAveragesTrainable,
    right=MovingAveragesTrainable,
    words=('norm/moving_mean', 'variables_collections', 'quirk of the reference'),
    status=tf2verify.Status.PASSED,
  ),
  PortBug(
    identifier='B16',
    title='float64 becomes float32',
    tf1='`tf.layers.dense` on float64 inputs makes float64 variables',
    mistake='Keras casts inputs and variables to float32',
    stage=_STAGE,
    wrong=NarrowedByKeras,
    right=KeptDouble,
    words=('fc/kernel', 'float64', 'float32', "dtype='float64'"),
  ),
  PortBug(
    identifier='B19',
    title='attention without its projections',
    tf1='`BahdanauAttention` owns memory_layer, query_layer and attention_v',
    mistake='`AdditiveAttention` of Keras has only `scale`',
    stage=_STAGE,
    wrong=WithoutProjections,
    right=WithProjections,
    words=('memory_layer/kernel', 'query_layer/kernel', 'projections'),
  ),
)
