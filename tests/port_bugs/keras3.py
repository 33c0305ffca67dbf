"""Ports of Keras 3: a right and a wrong one of each model, climbed as far as they have to."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf_keras
import tf_slim as slim

import tf2verify
from tests.port_bugs.port_bug import PortBug

v1 = tf.compat.v1
_ZERO, _SEED, _LOSS, _OPT = 'zero_randomness', 'seeded_constant', 'loss', 'training_steps'
_ROWS, _IMAGES = (4, 3), (2, 6, 6, 3)
# Pairs whose report does not name the mistake.
UNNAMED: tuple[str, ...] = ()


def chain(*layers: Any, shape: tuple[int, ...] = _ROWS) -> Callable[[], Any]:
  """Returns what makes a functional model, of layers that are made anew each time."""

  def make() -> Any:
    outputs = inputs = keras.Input((None, None, shape[-1]) if len(shape) == 4 else shape[1:])
    for layer in layers:
      outputs = layer()(outputs)
    return keras.Model(inputs, outputs)

  return make


def _case(name: str, hooks: dict[str, Any]) -> Any:
  return type(name, (tf2verify.EquivalenceCase,), {'__module__': __name__, **hooks})


def _hook(value: Any) -> Any:
  return lambda self, *arguments: value(*arguments)


def pair(
  identifier: str,
  title: str,
  texts: tuple[str, str],
  stage: str,
  words: tuple[str, ...],
  causes: tuple[str, ...],
  wrong: dict[str, Any],
  shape: tuple[int, ...] = _ROWS,
  **right: Any,
) -> PortBug:
  """Returns a pair, whose wrong port has other hooks than the right one.

  Args:
    identifier: as in `PortBug`.
    title: likewise.
    texts: what TF1 does, and the mistake.
    stage: as in `PortBug`.
    words: likewise.
    causes: likewise.
    wrong: hooks, without `self`.
    shape: of the inputs.
    **right: likewise.
  """
  hooks = {'make_inputs': lambda: tf2verify.normal_inputs(shape), **right}
  hooks = {name: value for name, value in hooks.items() if value is not None}
  both = [
    _case(f'{side}{identifier}', {name: _hook(value) for name, value in known.items()})
    for side, known in (('Wrong', {**hooks, **wrong}), ('Right', hooks))
  ]
  return PortBug(identifier, title, *texts, stage, *both, words, causes=causes)


def _dense(units: int = 3, name: str = 'fc', **arguments: Any) -> Callable[[], Any]:
  return lambda: keras.layers.Dense(units, name=name, **arguments)


def _of(layer: Any, /, *values: Any, **arguments: Any) -> Callable[[], Any]:
  return lambda: layer(*values, **arguments)


def _layer(kind: str, /, *values: Any, **arguments: Any) -> Callable[[], Any]:
  return lambda: getattr(keras.layers, kind)(*values, **arguments)


def _model_of_dense(end: Any = None) -> Any:
  return lambda inputs, training: v1.layers.dense(inputs, 3, end, name='fc')


def _forward(identifier, title, texts, words, causes, model, right, wrong, **more):
  stage = more.pop('stage', _ZERO)
  return pair(
    identifier,
    title,
    texts,
    stage,
    words,
    causes,
    {'make_tf2_layer': wrong},
    build_tf1_graph=model,
    make_tf2_layer=right,
    **more,
  )


def _trained(identifier, title, texts, words, wrong, tf1, right, **more):
  """An affine map, trained towards labels of its own size."""

  scale = more.pop('scale', 1.0)

  def loss(outputs, labels):
    return scale * tf.reduce_mean(tf.square(outputs - labels))

  hooks = {
    'build_tf1_graph': _model_of_dense(),
    'make_tf2_layer': chain(_dense()),
    'make_labels': lambda: tf2verify.normal_inputs(_ROWS, seed=7),
    'tf1_loss': loss,
    'tf2_loss': loss,
    'make_tf1_optimizer': tf1,
    'make_tf2_optimizer': right,
  }
  return pair(
    identifier, title, texts, _OPT, words, (), {'make_tf2_optimizer': wrong}, **hooks | more
  )


class _CountsExamples(keras.layers.BatchNormalization):
  """Makes the variance unbiased as if a channel had one value of each example."""

  def call(self, inputs, training=None, mask=None):
    if not training:
      return super().call(inputs, training=False, mask=mask)
    mean, variance = keras.ops.moments(inputs, [0, 1, 2])
    examples = keras.ops.cast(keras.ops.shape(inputs)[0], variance.dtype)
    for kept, value in (
      (self.moving_mean, mean),
      (self.moving_variance, variance * examples / (examples - 1)),
    ):
      kept.assign(self.momentum * kept + (1 - self.momentum) * value)
    scale = self.gamma * keras.ops.rsqrt(variance + self.epsilon)
    return (inputs - mean) * scale + self.beta


class _AssignsAgain(keras.layers.BatchNormalization):
  """Assigns the unbiased variance after Keras has averaged the biased one."""

  def call(self, inputs, training=None, mask=None):
    outputs = super().call(inputs, training=training, mask=mask)
    if training:
      _, variance = keras.ops.moments(inputs, [0, 1, 2])
      unbiased = variance * 72 / 71
      self.moving_variance.assign(
        self.momentum * self.moving_variance + (1 - self.momentum) * unbiased
      )
    return outputs


class LastState(keras.layers.Layer):
  """The last state of an LSTM, with or without a mask of the lengths."""

  def __init__(self, masked):
    super().__init__(name='net')
    self.masked = masked
    self.rnn = keras.layers.LSTM(3, name='rnn')

  def call(self, inputs):
    mask = tf.sequence_mask(inputs['lengths'], tf.shape(inputs['steps'])[1])
    return self.rnn(inputs['steps'], mask=mask if self.masked else None)


def _last_state(steps, lengths):
  cell = tf_keras.layers.LSTMCell(3, name='cell')
  return v1.nn.dynamic_rnn(cell, steps, lengths, dtype=tf.float32)[1][0]


def _ragged():
  return {'steps': tf2verify.normal_inputs((2, 4, 3)), 'lengths': np.array([4, 2], np.int32)}


class Attention(keras.layers.Layer):
  """The mean of steps, weighted by a softmax over scores, with or without a mask of the lengths."""

  def __init__(self, masked, number=-1e9):
    super().__init__(name='net')
    self.masked, self.number = masked, number
    self.score = keras.layers.Dense(1, use_bias=False, name='score')

  def call(self, inputs):
    scores = self.score(inputs['steps'])[:, :, 0]
    mask = tf.sequence_mask(inputs['lengths'], tf.shape(scores)[1])
    scores = keras.ops.where(mask, scores, self.number) if self.masked else scores
    return keras.ops.einsum('bt,bti->bi', keras.ops.softmax(scores), inputs['steps'])


def _attention(steps, lengths):
  scores = v1.layers.dense(steps, 1, use_bias=False, name='score')[:, :, 0]
  if lengths is not None:
    mask = tf.sequence_mask(lengths, tf.shape(steps)[1], dtype=tf.float32)
    scores = scores * mask + (1.0 - mask) * -1e9
  return tf.reduce_sum(steps * tf.expand_dims(tf.nn.softmax(scores), -1), 1)


class _Dense(keras.optimizers.Adam):
  """Adds up the gradients of a row that is looked up twice."""

  def apply(self, grads, trainable_variables=None):
    return super().apply([tf.convert_to_tensor(g) for g in grads], trainable_variables)


def _embedding():
  start = keras.initializers.RandomUniform(0.0, 1.0)
  return keras.layers.Embedding(9, 5, start, name='table')


def _looked_up(inputs, training):
  table = v1.get_variable('table/embeddings', [9, 5], initializer=v1.random_uniform_initializer())
  return v1.layers.dense(tf.nn.embedding_lookup(table, inputs), 3, name='fc')


def _lost(identifier, title, texts, words, tf1_loss, right, wrong, labels=None):
  given = labels or (lambda: np.array([0, 2, 1, 2], np.int32))
  return pair(
    identifier,
    title,
    texts,
    _LOSS,
    words,
    (),
    {'tf2_loss': wrong},
    build_tf1_graph=_model_of_dense(),
    make_tf2_layer=chain(_dense()),
    make_labels=given,
    tf1_loss=tf1_loss,
    tf2_loss=right,
  )


def _penalized(loss, outputs):
  return loss + 0.1 * tf.reduce_mean(tf.square(outputs))


def _norm(**arguments):
  return lambda inputs, training: v1.layers.batch_normalization(
    inputs, training=training, name='norm', **arguments
  )


def _layer_norm(inputs, training):
  gamma = v1.get_variable('norm/gamma', [3], initializer=v1.ones_initializer())
  beta = v1.get_variable('norm/beta', [3], initializer=v1.zeros_initializer())
  mean, variance = tf.nn.moments(inputs, [-1], keepdims=True)
  return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


def _bert_gelu(net):
  return net * 0.5 * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (net + 0.044715 * tf.pow(net, 3))))


def _channels_first(inputs, training):
  net = v1.layers.conv2d(inputs, 2, 3, name='conv')
  return v1.layers.dense(v1.layers.flatten(tf.transpose(net, [0, 3, 1, 2])), 3, name='fc')


def _strided(inputs, training):
  padded = tf.pad(inputs, [[0, 0], [1, 1], [1, 1], [0, 0]])
  return v1.layers.conv2d(padded, 2, 3, 2, name='conv')


def _decayed(inputs, training):
  return v1.layers.dense(inputs, 3, kernel_regularizer=slim.l2_regularizer(0.1), name='fc')


def _dropped(inputs, training, **arguments):
  net = v1.layers.dense(inputs, 8, name='fc')
  return v1.layers.dropout(net, 0.4, training=training, **arguments)


def _drawn(inputs, training):
  start = v1.truncated_normal_initializer(stddev=0.1)
  return v1.layers.dense(inputs, 32, kernel_initializer=start, name='fc')


class DropoutForgotten(keras.layers.Layer):
  """Does not take `training`."""

  def __init__(self, passes):
    super().__init__(name='net')
    self.passes = passes
    self.fc = keras.layers.Dense(8, name='fc')
    self.drop = keras.layers.Dropout(0.4)

  def call(self, inputs, training=False):
    return self.drop(self.fc(inputs), training=training and self.passes)


def _sparse(**arguments):
  return lambda outputs, labels: keras.losses.SparseCategoricalCrossentropy(**arguments)(
    labels, outputs
  )


def _cross_entropy(outputs, labels):
  return v1.losses.sparse_softmax_cross_entropy(labels, outputs)


def _weighted_labels():
  return {
    'classes': np.array([0, 2, 1, 2], np.int32),
    'weights': np.array([1, 0, 2, 0.5], np.float32),
  }


def _weighted(outputs, labels):
  return v1.losses.sparse_softmax_cross_entropy(labels['classes'], outputs, labels['weights'])


def _weighted_keras(outputs, labels):
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  return loss(labels['classes'], outputs, labels['weights'])


def _weighted_right(outputs, labels):
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction='sum')
  present = tf.cast(tf.math.count_nonzero(labels['weights']), tf.float32)
  return tf.math.divide_no_nan(loss(labels['classes'], outputs, labels['weights']), present)


def _each(outputs, labels):
  return tf.nn.sparse_softmax_cross_entropy_with_logits(labels['classes'], outputs)


def _one_hot():
  return np.eye(3, dtype=np.float32)[[0, 2, 1, 2]]


def _smoothed(outputs, labels):
  return v1.losses.softmax_cross_entropy(labels, outputs, label_smoothing=0.1)


def _categorical(**arguments):
  return lambda outputs, labels: keras.losses.CategoricalCrossentropy(
    from_logits=True, **arguments
  )(labels, outputs)


def _clipped(loss):
  optimizer = v1.train.GradientDescentOptimizer(0.1)
  gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
  clipped, _ = tf.clip_by_global_norm(gradients, 0.5)
  return optimizer.apply_gradients(zip(clipped, variables, strict=True))


def _averaged(loss):
  step = v1.train.get_or_create_global_step()
  trained = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
  average = tf.train.ExponentialMovingAverage(0.9)
  with tf.control_dependencies([trained]):
    return average.apply(v1.trainable_variables())


def _decay_rate(staircase):
  return v1.train.exponential_decay(
    0.1, v1.train.get_or_create_global_step(), 2, 0.5, staircase=staircase
  )


def _schedule(staircase):
  return keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5, staircase=staircase)


_optimizers = keras.optimizers

PORT_BUGS = (
  _forward(
    'K01',
    'slope of a leaky relu',
    ('`tf.nn.leaky_relu`: 0.2', '`LeakyReLU()`: 0.3'),
    ('slope', '0.2', '0.3'),
    ('leaky_relu_slope',),
    _model_of_dense(tf.nn.leaky_relu),
    chain(_dense(), _layer('LeakyReLU', negative_slope=0.2)),
    chain(_dense(), _layer('LeakyReLU')),
  ),
  _forward(
    'K02',
    'epsilon of batch norm',
    ('`epsilon=1e-5`', '`BatchNormalization()`: 0.001'),
    ('epsilon', '1e-05', '0.001'),
    ('normalization_epsilon',),
    _norm(epsilon=1e-5),
    chain(_layer('BatchNormalization', name='norm', epsilon=1e-5), shape=_IMAGES),
    chain(_layer('BatchNormalization', name='norm'), shape=_IMAGES),
    shape=_IMAGES,
  ),
  _forward(
    'K03',
    'epsilon of layer norm',
    ('1e-12', '`LayerNormalization()`: 0.001'),
    ('epsilon', '1e-12', '0.001'),
    ('normalization_epsilon',),
    _layer_norm,
    chain(_layer('LayerNormalization', name='norm', epsilon=1e-12)),
    chain(_layer('LayerNormalization', name='norm')),
  ),
  _forward(
    'K04',
    'hard sigmoid',
    ('0.2 x + 0.5, clipped', "`activation='hard_sigmoid'`: relu6(x + 3) / 6"),
    ('hard', '0.2'),
    ('hard_sigmoid_slope',),
    _model_of_dense(lambda net: tf.clip_by_value(0.2 * net + 0.5, 0.0, 1.0)),
    chain(_dense(activation=lambda net: tf.clip_by_value(0.2 * net + 0.5, 0.0, 1.0))),
    chain(_dense(activation='hard_sigmoid')),
  ),
  _forward(
    'K05',
    'gelu',
    ('by tanh, as in BERT', "`activation='gelu'` is by erf"),
    ('gelu', 'approximate=True'),
    ('gelu_formula',),
    _model_of_dense(_bert_gelu),
    chain(_dense(activation=lambda net: keras.activations.gelu(net, approximate=True))),
    chain(_dense(activation='gelu')),
  ),
  _forward(
    'K06',
    'padding of a strided convolution',
    ('pads by 1, then VALID', "`padding='same'`"),
    ('pad',),
    ('fixed_padding',),
    _strided,
    chain(_layer('ZeroPadding2D', 1), _layer('Conv2D', 2, 3, 2, name='conv'), shape=_IMAGES),
    chain(_layer('Conv2D', 2, 3, 2, padding='same', name='conv'), shape=_IMAGES),
    shape=_IMAGES,
  ),
  _forward(
    'K07',
    'order of a flatten',
    ('channels first', '`Flatten()` of channels last'),
    ('flatten',),
    ('flatten_order',),
    _channels_first,
    lambda: keras.Sequential(
      [
        keras.Input(_IMAGES[1:]),
        keras.layers.Conv2D(2, 3, name='conv'),
        keras.layers.Permute((3, 1, 2)),
        keras.layers.Flatten(),
        keras.layers.Dense(3, name='fc'),
      ]
    ),
    lambda: keras.Sequential(
      [
        keras.Input(_IMAGES[1:]),
        keras.layers.Conv2D(2, 3, name='conv'),
        keras.layers.Flatten(),
        keras.layers.Dense(3, name='fc'),
      ]
    ),
    shape=_IMAGES,
    other_sizes=tuple,
  ),
  _forward(
    'K08',
    'factor of weight decay',
    ('`slim.l2_regularizer(0.1)`: half of it', '`L2(0.1)`'),
    ('weight decay', '2 times'),
    ('weight_decay_factor',),
    _decayed,
    chain(_dense(kernel_regularizer=keras.regularizers.L2(0.05))),
    chain(_dense(kernel_regularizer=keras.regularizers.L2(0.1))),
  ),
  _forward(
    'K09',
    'size of a window',
    ('`slim.max_pool2d`: stride 2', '`MaxPooling2D(3)`: stride 3'),
    ('strides',),
    ('strides',),
    lambda inputs, training: slim.max_pool2d(v1.layers.conv2d(inputs, 2, 1, name='conv'), 3),
    chain(_layer('Conv2D', 2, 1, name='conv'), _layer('MaxPooling2D', 3, 2), shape=_IMAGES),
    chain(_layer('Conv2D', 2, 1, name='conv'), _layer('MaxPooling2D', 3), shape=_IMAGES),
    shape=_IMAGES,
  ),
  _forward(
    'K10',
    'enlarged images',
    ('bilinear', '`UpSampling2D()`: nearest'),
    ('resize',),
    ('experiment',),
    lambda inputs, training: tf.image.resize(v1.layers.conv2d(inputs, 2, 1, name='conv'), [12, 12]),
    chain(
      _layer('Conv2D', 2, 1, name='conv'),
      _layer('UpSampling2D', 2, interpolation='bilinear'),
      shape=_IMAGES,
    ),
    chain(_layer('Conv2D', 2, 1, name='conv'), _layer('UpSampling2D', 2), shape=_IMAGES),
    shape=_IMAGES,
    other_sizes=tuple,
  ),
  _forward(
    'K11',
    'softmax in the model',
    ('logits', "`activation='softmax'`"),
    ('Softmax',),
    ('activation',),
    _model_of_dense(),
    chain(_dense()),
    chain(_dense(activation='softmax')),
  ),
  _forward(
    'K12',
    'momentum of batch norm',
    ('`slim.batch_norm`: 0.999', '`BatchNormalization()`: 0.99'),
    ('momentum', '0.999', '0.99'),
    ('moving_average_momentum',),
    lambda inputs, training: v1.layers.batch_normalization(
      inputs, momentum=0.999, training=training, fused=False, name='norm'
    ),
    chain(_layer('BatchNormalization', name='norm', momentum=0.999), shape=_IMAGES),
    chain(_layer('BatchNormalization', name='norm'), shape=_IMAGES),
    shape=_IMAGES,
    stage=_SEED,
  ),
  _forward(
    'K13',
    'biased moving variance',
    ('the unbiased one, fused', '`BatchNormalization`: (N-1)/N of it'),
    ('moving_variance', '(N-1)/N'),
    ('biased_variance',),
    _norm(),
    lambda: _unbiased(),
    chain(_layer('BatchNormalization', name='norm'), shape=_IMAGES),
    shape=_IMAGES,
    stage=_SEED,
  ),
  _forward(
    'K14',
    'training is not handed on',
    ('dropout in training', '`call` does not pass `training`'),
    ('dropout',),
    ('dropout_presence',),
    _dropped,
    lambda: DropoutForgotten(True),
    lambda: DropoutForgotten(False),
    stage=_SEED,
  ),
  _forward(
    'K15',
    'scale of an initializer',
    ('stddev 0.1', '`TruncatedNormal()`: 0.05'),
    ('0.1', '0.05'),
    ('initializer_scale',),
    _drawn,
    chain(_dense(32, kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.1))),
    chain(_dense(32, kernel_initializer='truncated_normal')),
    stage=_SEED,
  ),
  _forward(
    'K16',
    'rate of dropout',
    ('keep_prob=0.6', '`Dropout(0.6)`'),
    ('0.4', '0.6'),
    ('dropout_rate',),
    _dropped,
    chain(_dense(8), _layer('Dropout', 0.4)),
    chain(_dense(8), _layer('Dropout', 0.6)),
    stage=_SEED,
  ),
  _forward(
    'K17',
    'noise shape of dropout',
    ('`noise_shape=[4, 1]`: whole rows', '`Dropout(0.4)`'),
    ('noise_shape',),
    ('noise_shape',),
    lambda inputs, training: _dropped(inputs, training, noise_shape=[4, 1]),
    chain(_dense(8), _layer('Dropout', 0.4, noise_shape=(4, 1))),
    chain(_dense(8), _layer('Dropout', 0.4)),
    stage=_SEED,
    other_sizes=tuple,
  ),
  _lost(
    'K18',
    'loss of logits',
    ('softmax cross entropy of logits', '`SparseCategoricalCrossentropy()` takes probabilities'),
    ('from_logits',),
    _cross_entropy,
    _sparse(from_logits=True),
    _sparse(),
  ),
  _lost(
    'K19',
    'reduction of a loss',
    ('the mean of the batch', "`reduction='sum'`"),
    ('divided',),
    _cross_entropy,
    _sparse(from_logits=True),
    _sparse(from_logits=True, reduction='sum'),
  ),
  _lost(
    'K20',
    'weights of a loss',
    ('divides by the number of weights that are not zero', 'divides by the batch size'),
    ('weights that are not zero', 'batch size'),
    _weighted,
    _weighted_right,
    _weighted_keras,
    _weighted_labels,
  ),
  _lost(
    'K21',
    'label smoothing',
    ('`label_smoothing=0.1`', 'without'),
    ('smoothing', '0.1'),
    _smoothed,
    _categorical(label_smoothing=0.1),
    _categorical(),
    _one_hot,
  ),
  _trained(
    'K22',
    'clipping',
    ('`clip_by_global_norm`', '`clipnorm` clips each gradient alone'),
    ('global_clipnorm',),
    lambda: _optimizers.SGD(0.1, clipnorm=0.5),
    None,
    lambda: _optimizers.SGD(0.1, global_clipnorm=0.5),
    scale=10.0,
    make_tf1_train_op=_clipped,
  ),
  _trained(
    'K23',
    'start of RMSProp',
    ('the accumulator starts at 1', '`RMSprop`: at 0'),
    ('starts at',),
    lambda: _optimizers.RMSprop(0.01, epsilon=1e-10),
    lambda: v1.train.RMSPropOptimizer(0.01),
    lambda: v1.train.RMSPropOptimizer(0.01),
  ),
  _trained(
    'K24',
    'default learning rate',
    ('0.01', '`Adam()`: 0.001'),
    ('learning rate', '0.001'),
    lambda: _optimizers.Adam(epsilon=1e-8),
    lambda: v1.train.AdamOptimizer(0.01),
    lambda: _optimizers.Adam(0.01, epsilon=1e-8),
  ),
  _trained(
    'K25',
    'epsilon of Adam',
    ('1e-8', '`Adam`: 1e-7'),
    ('epsilon', '1e-08', '1e-07'),
    lambda: _optimizers.Adam(0.01),
    lambda: v1.train.AdamOptimizer(0.01),
    lambda: _optimizers.Adam(0.01, epsilon=1e-8),
    scale=1e-6,
  ),
  _trained(
    'K26',
    'beta_1 of Adam',
    ('0.5, as for GANs', '`Adam`: 0.9'),
    ('beta', '0.5', '0.9'),
    lambda: _optimizers.Adam(0.01, epsilon=1e-8),
    lambda: v1.train.AdamOptimizer(0.01, 0.5),
    lambda: _optimizers.Adam(0.01, beta_1=0.5, epsilon=1e-8),
  ),
  _trained(
    'K27',
    'Nesterov momentum',
    ('`use_nesterov=True`', '`SGD(momentum=0.9)`'),
    ('nesterov',),
    lambda: _optimizers.SGD(0.1, 0.9),
    lambda: v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    lambda: _optimizers.SGD(0.1, 0.9, nesterov=True),
  ),
  _trained(
    'K28',
    'weight decay that TF1 has not',
    ('none', '`weight_decay=0.1`'),
    ('weight_decay',),
    lambda: _optimizers.SGD(0.1, weight_decay=0.1),
    lambda: v1.train.GradientDescentOptimizer(0.1),
    lambda: _optimizers.SGD(0.1),
  ),
  _trained(
    'K29',
    'staircase of a schedule',
    ('`staircase=True`', 'a smooth decay'),
    ('staircase',),
    lambda: _optimizers.SGD(_schedule(False)),
    lambda: v1.train.GradientDescentOptimizer(_decay_rate(True)),
    lambda: _optimizers.SGD(_schedule(True)),
  ),
  _trained(
    'K30',
    'rows that were looked up twice',
    ('adds the gradients of a row up, and squares the sum', '`Adam` squares each by itself'),
    ('squares each row', 'convert_to_tensor'),
    lambda: _optimizers.Adam(0.01, epsilon=1e-8),
    lambda: v1.train.AdamOptimizer(0.01),
    lambda: _Dense(0.01, epsilon=1e-8),
    build_tf1_graph=_looked_up,
    make_tf2_layer=chain(_embedding, _dense(), shape=(4, 7)),
    make_inputs=lambda: np.arange(28, dtype=np.int32).reshape(4, 7) ** 2 % 9,
    make_labels=lambda: tf2verify.normal_inputs((4, 7, 3), seed=7),
    other_sizes=tuple,
  ),
  _forward(
    'K31',
    'values of a channel, counted',
    ('N/(N-1), N of batch, height and width', 'a layer of its own counts the batch alone'),
    ('moving_variance', '2/1', '72/71'),
    ('variance_count',),
    _norm(),
    lambda: _unbiased(),
    chain(_of(_CountsExamples, name='norm'), shape=_IMAGES),
    shape=_IMAGES,
    stage=_SEED,
  ),
  _forward(
    'K32',
    'forgotten mask of an RNN',
    ('`dynamic_rnn(sequence_length=)` keeps the last state', '`LSTM(3)` without a mask'),
    ('proven', "tf1 stops at the length of each example (the input ['lengths']", 'mask='),
    ('forgotten_mask',),
    lambda inputs, training: _last_state(inputs['steps'], inputs['lengths']),
    lambda: LastState(True),
    lambda: LastState(False),
    make_inputs=_ragged,
  ),
  _forward(
    'K33',
    'mask that TF1 has not',
    ('`dynamic_rnn` without lengths', '`LSTM(3)` with a mask'),
    ('proven', "the port stops at the length of each example (the input ['lengths']"),
    ('needless_mask',),
    lambda inputs, training: _last_state(inputs['steps'], None),
    lambda: LastState(False),
    lambda: LastState(True),
    make_inputs=_ragged,
  ),
  _forward(
    'K34',
    'moving variance that is written twice',
    ('one update a call', '`super().call()` updates, and the layer assigns once more'),
    ('moving_variance', 'from the same values', 'keras3.py'),
    ('update_count',),
    _norm(),
    lambda: _unbiased(),
    chain(_of(_AssignsAgain, name='norm'), shape=_IMAGES),
    shape=_IMAGES,
    stage=_SEED,
  ),
  dataclasses.replace(
    _lost(
      'K35',
      'weights in a column',
      ('a loss times a weight for each example', 'losses (n,) times weights (n, 1): (n, n)'),
      ('shapes (4,) and (4, 1) makes (4, 4)',),
      lambda outputs, labels: tf.reduce_mean(_each(outputs, labels) * labels['weights']),
      lambda outputs, labels: tf.reduce_mean(_each(outputs, labels) * labels['weights']),
      lambda outputs, labels: tf.reduce_mean(
        _each(outputs, labels) * labels['weights'][:, tf.newaxis]
      ),
      _weighted_labels,
    ),
    causes=('outer_broadcast',),
  ),
  dataclasses.replace(
    _lost(
      'K36',
      'logits for probabilities, beside a penalty',
      ('`sigmoid_cross_entropy_with_logits`', '`BinaryCrossentropy()`'),
      ('from_logits=True',),
      lambda outputs, labels: _penalized(
        tf.reduce_mean(
          tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=outputs[:, 0])
        ),
        outputs,
      ),
      lambda outputs, labels: _penalized(
        keras.losses.BinaryCrossentropy(from_logits=True)(labels, outputs[:, 0]), outputs
      ),
      lambda outputs, labels: _penalized(
        keras.losses.BinaryCrossentropy()(labels, outputs[:, 0]), outputs
      ),
      lambda: np.array([0.0, 1.0, 1.0, 0.0], np.float32),
    ),
    causes=('clipped_logits',),
  ),
  _forward(
    'K37',
    'forgotten mask of a softmax',
    ('adds -1e9 past the length of each example', 'a softmax over all steps'),
    ('tf1 masks the logits of', "the input ['lengths']", 'not masked'),
    ('forgotten_softmax_mask',),
    lambda inputs, training: _attention(inputs['steps'], inputs['lengths']),
    lambda: Attention(True),
    lambda: Attention(False),
    make_inputs=_ragged,
  ),
  _forward(
    'K37b',
    'mask of a softmax with another number',
    ('adds -1e9 past the length of each example', 'chooses 0 there'),
    ('with -1e+09', 'with 0: both have the mask', 'give the port -1e+09'),
    ('softmax_mask_value',),
    lambda inputs, training: _attention(inputs['steps'], inputs['lengths']),
    lambda: Attention(True),
    lambda: Attention(True, 0.0),
    make_inputs=_ragged,
  ),
  _forward(
    'K38',
    'mask of a softmax that TF1 has not',
    ('a softmax over all steps', 'masks what is past the length of each example'),
    ('the port masks the logits of', "the input ['lengths']"),
    ('needless_softmax_mask',),
    lambda inputs, training: _attention(inputs['steps'], None),
    lambda: Attention(False),
    lambda: Attention(True),
    make_inputs=_ragged,
  ),
  _forward(
    'K39',
    'dropout of another tensor',
    ('drops elements of what is pooled', '`Dropout` before `AveragePooling2D`'),
    ('at a different position', 'of shape (2, 6, 6, 3)', 'of shape (2, 3, 3, 3)'),
    ('dropout_position',),
    lambda inputs, training: v1.layers.dropout(
      v1.layers.average_pooling2d(inputs, 2, 2), 0.4, training=training
    ),
    chain(_layer('AveragePooling2D', 2), _layer('Dropout', 0.4), shape=_IMAGES),
    chain(_layer('Dropout', 0.4), _layer('AveragePooling2D', 2), shape=_IMAGES),
    shape=_IMAGES,
    stage=_SEED,
    other_sizes=tuple,
  ),
)


def _unbiased():
  from examples.keras3_conv_net.port import UnbiasedBatchNormalization

  return chain(_of(UnbiasedBatchNormalization, name='norm'), shape=_IMAGES)()
