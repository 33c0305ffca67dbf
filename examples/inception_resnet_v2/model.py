"""Inception-ResNet-v2 in TF-Slim, written from the paper.

Szegedy, Ioffe, Vanhoucke, Alemi: "Inception-v4, Inception-ResNet and the Impact
of Residual Connections on Learning", arXiv:1602.07261, figures 3, 7 and 15 to 19.
Names and order of the variables are those of the public TF1 checkpoints, so
that seeded initial values are the ones TensorFlow's migration guide reports.

The same function is the TF1 reference (called in a graph) and the forward pass
of the TF2 port (called in a layer): that is what a port looks like on its first
day, before anything is rewritten.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import tf_slim as slim

v1 = tf.compat.v1

# One convolution of a branch: (filters, kernel size, name).
_Convolution = tuple[int, Any, str]
_Branches = Sequence[Sequence[_Convolution]]

_BLOCK35: _Branches = (
  ((32, 1, 'Conv2d_1x1'),),
  ((32, 1, 'Conv2d_0a_1x1'), (32, 3, 'Conv2d_0b_3x3')),
  ((32, 1, 'Conv2d_0a_1x1'), (48, 3, 'Conv2d_0b_3x3'), (64, 3, 'Conv2d_0c_3x3')),
)
_BLOCK17: _Branches = (
  ((192, 1, 'Conv2d_1x1'),),
  ((128, 1, 'Conv2d_0a_1x1'), (160, (1, 7), 'Conv2d_0b_1x7'), (192, (7, 1), 'Conv2d_0c_7x1')),
)
_BLOCK8: _Branches = (
  ((192, 1, 'Conv2d_1x1'),),
  ((192, 1, 'Conv2d_0a_1x1'), (224, (1, 3), 'Conv2d_0b_1x3'), (256, (3, 1), 'Conv2d_0c_3x1')),
)
# The last convolution of every branch of a reduction has stride 2.
_MIXED_5B: _Branches = (
  ((96, 1, 'Conv2d_1x1'),),
  ((48, 1, 'Conv2d_0a_1x1'), (64, 5, 'Conv2d_0b_5x5')),
  ((64, 1, 'Conv2d_0a_1x1'), (96, 3, 'Conv2d_0b_3x3'), (96, 3, 'Conv2d_0c_3x3')),
)
_REDUCTION_6A: _Branches = (
  ((384, 3, 'Conv2d_1a_3x3'),),
  ((256, 1, 'Conv2d_0a_1x1'), (256, 3, 'Conv2d_0b_3x3'), (384, 3, 'Conv2d_1a_3x3')),
)
_REDUCTION_7A: _Branches = (
  ((256, 1, 'Conv2d_0a_1x1'), (384, 3, 'Conv2d_1a_3x3')),
  ((256, 1, 'Conv2d_0a_1x1'), (288, 3, 'Conv2d_1a_3x3')),
  ((256, 1, 'Conv2d_0a_1x1'), (288, 3, 'Conv2d_0b_3x3'), (320, 3, 'Conv2d_1a_3x3')),
)


def _branch(net: tf.Tensor, convolutions: Sequence[_Convolution]) -> tf.Tensor:
  for filters, size, name in convolutions:
    net = slim.conv2d(net, filters, size, scope=name)
  return net


def _residual_block(
  net: tf.Tensor,
  branches: _Branches,
  scale: float,
  activation_fn: Callable[[tf.Tensor], tf.Tensor] | None,
  scope: str | None,
  default_scope: str,
) -> tf.Tensor:
  """Adds the scaled sum of the branches to the shortcut (figures 16, 17, 19)."""
  with v1.variable_scope(scope, default_scope, [net]):
    outputs = []
    for index, convolutions in enumerate(branches):
      with v1.variable_scope(f'Branch_{index}'):
        outputs.append(_branch(net, convolutions))
    residual = slim.conv2d(
      tf.concat(outputs, axis=3),
      net.shape[3],
      1,
      normalizer_fn=None,
      activation_fn=None,
      scope='Conv2d_1x1',
    )
    net += scale * residual
    return activation_fn(net) if activation_fn else net


def block35(net: tf.Tensor, scale: float, scope: str | None = None) -> tf.Tensor:
  """Inception-ResNet-A on the 35 x 35 grid."""
  return _residual_block(net, _BLOCK35, scale, tf.nn.relu, scope, 'Block35')


def block17(net: tf.Tensor, scale: float, scope: str | None = None) -> tf.Tensor:
  """Inception-ResNet-B on the 17 x 17 grid."""
  return _residual_block(net, _BLOCK17, scale, tf.nn.relu, scope, 'Block17')


def block8(
  net: tf.Tensor,
  scale: float = 1.0,
  activation_fn: Callable[[tf.Tensor], tf.Tensor] | None = tf.nn.relu,
  scope: str | None = None,
) -> tf.Tensor:
  """Inception-ResNet-C on the 8 x 8 grid."""
  return _residual_block(net, _BLOCK8, scale, activation_fn, scope, 'Block8')


def stem(net: tf.Tensor) -> tf.Tensor:
  """The layers before the first block, down to the 35 x 35 grid."""
  net = slim.conv2d(net, 32, 3, stride=2, padding='VALID', scope='Conv2d_1a_3x3')
  net = slim.conv2d(net, 32, 3, padding='VALID', scope='Conv2d_2a_3x3')
  net = slim.conv2d(net, 64, 3, scope='Conv2d_2b_3x3')
  net = slim.max_pool2d(net, 3, stride=2, padding='VALID', scope='MaxPool_3a_3x3')
  net = slim.conv2d(net, 80, 1, padding='VALID', scope='Conv2d_3b_1x1')
  net = slim.conv2d(net, 192, 3, padding='VALID', scope='Conv2d_4a_3x3')
  return slim.max_pool2d(net, 3, stride=2, padding='VALID', scope='MaxPool_5a_3x3')


def _mixed_5b(net: tf.Tensor) -> tf.Tensor:
  with v1.variable_scope('Mixed_5b'):
    outputs = []
    for index, convolutions in enumerate(_MIXED_5B):
      with v1.variable_scope(f'Branch_{index}'):
        outputs.append(_branch(net, convolutions))
    with v1.variable_scope(f'Branch_{len(_MIXED_5B)}'):
      pooled = slim.avg_pool2d(net, 3, scope='AvgPool_0a_3x3')
      outputs.append(slim.conv2d(pooled, 64, 1, scope='Conv2d_0b_1x1'))
    return tf.concat(outputs, axis=3)


def _reduction(net: tf.Tensor, branches: _Branches, scope: str) -> tf.Tensor:
  """Halves the grid: each branch ends in stride 2, beside a max pooling."""
  with v1.variable_scope(scope):
    outputs = []
    for index, convolutions in enumerate(branches):
      with v1.variable_scope(f'Branch_{index}'):
        filters, size, name = convolutions[-1]
        inner = _branch(net, convolutions[:-1])
        outputs.append(slim.conv2d(inner, filters, size, stride=2, padding='VALID', scope=name))
    with v1.variable_scope(f'Branch_{len(branches)}'):
      outputs.append(slim.max_pool2d(net, 3, stride=2, padding='VALID', scope='MaxPool_1a_3x3'))
    return tf.concat(outputs, axis=3)


def _auxiliary_logits(net: tf.Tensor, num_classes: int) -> tf.Tensor:
  with v1.variable_scope('AuxLogits'):
    net = slim.avg_pool2d(net, 5, stride=3, padding='VALID', scope='Conv2d_1a_3x3')
    net = slim.conv2d(net, 128, 1, scope='Conv2d_1b_1x1')
    grid = [int(size) for size in net.shape[1:3]]
    net = slim.conv2d(net, 768, grid, padding='VALID', scope='Conv2d_2a_5x5')
    return slim.fully_connected(slim.flatten(net), num_classes, activation_fn=None, scope='Logits')


def inception_resnet_v2_arg_scope(
  weight_decay: float = 4e-5,
  batch_norm_decay: float = 0.9997,
  batch_norm_epsilon: float = 1e-3,
  batch_norm_scale: bool = True,
) -> Any:
  """Returns the arg scope of the model: L2 on weights and biases, batch norm after conv2d."""
  regularizer = slim.l2_regularizer(weight_decay)
  with (
    slim.arg_scope(
      [slim.conv2d, slim.fully_connected],
      weights_regularizer=regularizer,
      biases_regularizer=regularizer,
    ),
    slim.arg_scope(
      [slim.conv2d],
      activation_fn=tf.nn.relu,
      normalizer_fn=slim.batch_norm,
      normalizer_params={
        'decay': batch_norm_decay,
        'epsilon': batch_norm_epsilon,
        'scale': batch_norm_scale,
        'updates_collections': v1.GraphKeys.UPDATE_OPS,
        'fused': None,
      },
    ) as scope,
  ):
    return scope


def inception_resnet_v2(
  inputs: tf.Tensor,
  num_classes: int,
  is_training: bool,
  stem_fn: Callable[[tf.Tensor], tf.Tensor] = stem,
  scope: Any = None,
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
  """Builds the network under its own arg scope, or another one.

  Args:
    inputs: images, `[batch, height, width, 3]` float32, at least 107 pixels
      high and wide: the auxiliary head pools 5 x 5 windows of what is a
      17 x 17 grid at 299 pixels, and a 5 x 5 grid at 107.
    num_classes: the number of classes.
    is_training: whether batch statistics and dropout (keep 0.8) are used.
    stem_fn: the layers before the first block.
    scope: of `inception_resnet_v2_arg_scope`; None for that of its defaults.

  Returns:
    The logits, `[batch, num_classes]`, and the end points by name.
  """
  end_points: dict[str, tf.Tensor] = {}
  with (
    slim.arg_scope(inception_resnet_v2_arg_scope() if scope is None else scope),
    v1.variable_scope('InceptionResnetV2'),
    slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    slim.arg_scope([slim.conv2d, slim.max_pool2d, slim.avg_pool2d], stride=1, padding='SAME'),
  ):
    net = _mixed_5b(stem_fn(inputs))
    net = slim.repeat(net, 10, block35, scale=0.17)
    net = _reduction(net, _REDUCTION_6A, 'Mixed_6a')
    end_points['PreAuxLogits'] = net
    pre_auxiliary = slim.repeat(net, 20, block17, scale=0.10)
    net = _reduction(pre_auxiliary, _REDUCTION_7A, 'Mixed_7a')
    net = slim.repeat(net, 9, block8, scale=0.20)
    net = block8(net, activation_fn=None)
    net = slim.conv2d(net, 1536, 1, scope='Conv2d_7b_1x1')
    end_points['Conv2d_7b_1x1'] = net
    end_points['AuxLogits'] = _auxiliary_logits(pre_auxiliary, num_classes)
    with v1.variable_scope('Logits'):
      net = slim.flatten(tf.reduce_mean(net, [1, 2], keepdims=True))
      net = slim.dropout(net, keep_prob=0.8, scope='Dropout')
      logits = slim.fully_connected(net, num_classes, activation_fn=None, scope='Logits')
    end_points['Logits'] = logits
    end_points['Predictions'] = tf.nn.softmax(logits, name='Predictions')
  return logits, end_points


def served(inputs: tf.Tensor, num_classes: int) -> tf.Tensor:
  """Builds the network as it is served, and returns the logits, `[batch, num_classes]`.

  Without gammas, as in the public checkpoints, and without regularization.

  Args:
    inputs: as of `inception_resnet_v2`.
    num_classes: the number of classes.
  """
  scope = inception_resnet_v2_arg_scope(weight_decay=0.0, batch_norm_scale=False)
  logits, _ = inception_resnet_v2(inputs, num_classes, is_training=False, scope=scope)
  return logits
