"""Inception-ResNet-v2 in tf.contrib.slim, after arXiv:1602.07261, figures 3, 7 and 15 to 19.

Names and order of the variables are those of the public checkpoints.
"""

import tensorflow as tf

slim = tf.contrib.slim

# The convolutions of every branch: filters, size, name.
BLOCK35 = (
  ((32, 1, 'Conv2d_1x1'),),
  ((32, 1, 'Conv2d_0a_1x1'), (32, 3, 'Conv2d_0b_3x3')),
  ((32, 1, 'Conv2d_0a_1x1'), (48, 3, 'Conv2d_0b_3x3'), (64, 3, 'Conv2d_0c_3x3')),
)
BLOCK17 = (
  ((192, 1, 'Conv2d_1x1'),),
  ((128, 1, 'Conv2d_0a_1x1'), (160, [1, 7], 'Conv2d_0b_1x7'), (192, [7, 1], 'Conv2d_0c_7x1')),
)
BLOCK8 = (
  ((192, 1, 'Conv2d_1x1'),),
  ((192, 1, 'Conv2d_0a_1x1'), (224, [1, 3], 'Conv2d_0b_1x3'), (256, [3, 1], 'Conv2d_0c_3x1')),
)
MIXED_5B = (
  ((96, 1, 'Conv2d_1x1'),),
  ((48, 1, 'Conv2d_0a_1x1'), (64, 5, 'Conv2d_0b_5x5')),
  ((64, 1, 'Conv2d_0a_1x1'), (96, 3, 'Conv2d_0b_3x3'), (96, 3, 'Conv2d_0c_3x3')),
)
# The last convolution of every branch of a reduction has stride 2.
MIXED_6A = (
  ((384, 3, 'Conv2d_1a_3x3'),),
  ((256, 1, 'Conv2d_0a_1x1'), (256, 3, 'Conv2d_0b_3x3'), (384, 3, 'Conv2d_1a_3x3')),
)
MIXED_7A = (
  ((256, 1, 'Conv2d_0a_1x1'), (384, 3, 'Conv2d_1a_3x3')),
  ((256, 1, 'Conv2d_0a_1x1'), (288, 3, 'Conv2d_1a_3x3')),
  ((256, 1, 'Conv2d_0a_1x1'), (288, 3, 'Conv2d_0b_3x3'), (320, 3, 'Conv2d_1a_3x3')),
)


def branch(net, convolutions):
  for filters, size, name in convolutions:
    net = slim.conv2d(net, filters, size, scope=name)
  return net


def branches(net, convolutions):
  outputs = []
  for index, one in enumerate(convolutions):
    with tf.variable_scope('Branch_%d' % index):
      outputs.append(branch(net, one))
  return outputs


def residual_block(net, convolutions, scale, activation_fn, scope, default_name):
  with tf.variable_scope(scope, default_name, [net]):
    mixed = tf.concat(axis=3, values=branches(net, convolutions))
    up = slim.conv2d(
      mixed, net.get_shape()[3], 1, normalizer_fn=None, activation_fn=None, scope='Conv2d_1x1'
    )
    net += scale * up
    return activation_fn(net) if activation_fn else net


def block35(net, scale=1.0, activation_fn=tf.nn.relu, scope=None):
  return residual_block(net, BLOCK35, scale, activation_fn, scope, 'Block35')


def block17(net, scale=1.0, activation_fn=tf.nn.relu, scope=None):
  return residual_block(net, BLOCK17, scale, activation_fn, scope, 'Block17')


def block8(net, scale=1.0, activation_fn=tf.nn.relu, scope=None):
  return residual_block(net, BLOCK8, scale, activation_fn, scope, 'Block8')


def stem(net):
  net = slim.conv2d(net, 32, 3, stride=2, padding='VALID', scope='Conv2d_1a_3x3')
  net = slim.conv2d(net, 32, 3, padding='VALID', scope='Conv2d_2a_3x3')
  net = slim.conv2d(net, 64, 3, scope='Conv2d_2b_3x3')
  net = slim.max_pool2d(net, 3, stride=2, padding='VALID', scope='MaxPool_3a_3x3')
  net = slim.conv2d(net, 80, 1, padding='VALID', scope='Conv2d_3b_1x1')
  net = slim.conv2d(net, 192, 3, padding='VALID', scope='Conv2d_4a_3x3')
  return slim.max_pool2d(net, 3, stride=2, padding='VALID', scope='MaxPool_5a_3x3')


def mixed_5b(net):
  with tf.variable_scope('Mixed_5b'):
    outputs = branches(net, MIXED_5B)
    with tf.variable_scope('Branch_3'):
      pool = slim.avg_pool2d(net, 3, stride=1, padding='SAME', scope='AvgPool_0a_3x3')
      outputs.append(slim.conv2d(pool, 64, 1, scope='Conv2d_0b_1x1'))
    return tf.concat(axis=3, values=outputs)


def reduction(net, convolutions, scope):
  with tf.variable_scope(scope):
    outputs = []
    for index, one in enumerate(convolutions):
      with tf.variable_scope('Branch_%d' % index):
        filters, size, name = one[-1]
        outputs.append(
          slim.conv2d(branch(net, one[:-1]), filters, size, stride=2, padding='VALID', scope=name)
        )
    with tf.variable_scope('Branch_%d' % len(convolutions)):
      outputs.append(slim.max_pool2d(net, 3, stride=2, padding='VALID', scope='MaxPool_1a_3x3'))
    return tf.concat(axis=3, values=outputs)


def auxiliary_logits(net, num_classes):
  with tf.variable_scope('AuxLogits'):
    aux = slim.avg_pool2d(net, 5, stride=3, padding='VALID', scope='Conv2d_1a_3x3')
    aux = slim.conv2d(aux, 128, 1, scope='Conv2d_1b_1x1')
    aux = slim.conv2d(
      aux, 768, aux.get_shape()[1:3].as_list(), padding='VALID', scope='Conv2d_2a_5x5'
    )
    return slim.fully_connected(slim.flatten(aux), num_classes, activation_fn=None, scope='Logits')


def inception_resnet_v2_arg_scope(
  weight_decay=0.00004, batch_norm_decay=0.9997, batch_norm_epsilon=0.001
):
  regularizer = slim.l2_regularizer(weight_decay)
  with slim.arg_scope(
    [slim.conv2d, slim.fully_connected],
    weights_regularizer=regularizer,
    biases_regularizer=regularizer,
  ):
    batch_norm_params = {
      'decay': batch_norm_decay,
      'epsilon': batch_norm_epsilon,
      'scale': True,
      'fused': None,
    }
    with slim.arg_scope(
      [slim.conv2d],
      activation_fn=tf.nn.relu,
      normalizer_fn=slim.batch_norm,
      normalizer_params=batch_norm_params,
    ) as scope:
      return scope


def inception_resnet_v2(inputs, num_classes, is_training=True, dropout_keep_prob=0.8):
  """Returns the logits, and the end points by name."""
  end_points = {}
  with tf.variable_scope('InceptionResnetV2', 'InceptionResnetV2', [inputs]):
    with slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training):
      with slim.arg_scope(
        [slim.conv2d, slim.max_pool2d, slim.avg_pool2d], stride=1, padding='SAME'
      ):
        net = mixed_5b(stem(inputs))
        net = slim.repeat(net, 10, block35, scale=0.17)
        net = reduction(net, MIXED_6A, 'Mixed_6a')
        end_points['PreAuxLogits'] = net
        pre_auxiliary = slim.repeat(net, 20, block17, scale=0.10)
        net = reduction(pre_auxiliary, MIXED_7A, 'Mixed_7a')
        net = slim.repeat(net, 9, block8, scale=0.20)
        net = block8(net, activation_fn=None)
        net = slim.conv2d(net, 1536, 1, scope='Conv2d_7b_1x1')
        end_points['Conv2d_7b_1x1'] = net
        end_points['AuxLogits'] = auxiliary_logits(pre_auxiliary, num_classes)
        with tf.variable_scope('Logits'):
          net = slim.flatten(tf.reduce_mean(net, [1, 2], keep_dims=True))
          net = slim.dropout(net, dropout_keep_prob, scope='Dropout')
          logits = slim.fully_connected(net, num_classes, activation_fn=None, scope='Logits')
        end_points['Logits'] = logits
        end_points['Predictions'] = tf.nn.softmax(logits, name='Predictions')
  return logits, end_points


def build(inputs, is_training):
  """The network of 1000 classes, under its arg scope."""
  with slim.arg_scope(inception_resnet_v2_arg_scope()):
    return inception_resnet_v2(inputs, 1000, is_training=is_training)
