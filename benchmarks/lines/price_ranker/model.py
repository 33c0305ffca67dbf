"""A tower that scores offers and guesses their prices, with a loss of four terms and an update rule
of its own: TF1 code in the style of its time.

An offer with the grade -1 is padding.
"""

import tensorflow.compat.v1 as tf


def network(inputs, training):
  """Returns scores and the logarithms of prices with their spread."""
  del training
  with tf.variable_scope('price_ranker'):
    net = tf.layers.dense(
      inputs,
      12,
      activation=tf.nn.relu,
      name='hidden',
      kernel_regularizer=lambda w: 0.01 * tf.nn.l2_loss(w),
    )
    net = tf.layers.dense(net, 8, activation=tf.nn.tanh, name='code')
    scores = tf.squeeze(tf.layers.dense(net, 1, name='score'), -1)
    price = tf.layers.dense(net, 2, name='price')
    return {'scores': scores, 'mean': price[..., 0], 'log_scale': price[..., 1]}


def pairwise(scores, grades):
  valid = tf.to_float(grades >= 0)
  margin = 0.2
  gap = tf.expand_dims(scores, 2) - tf.expand_dims(scores, 1)
  better = tf.to_float(tf.expand_dims(grades, 2) > tf.expand_dims(grades, 1))
  better *= tf.expand_dims(valid, 2) * tf.expand_dims(valid, 1)
  hinge = tf.maximum(0.0, margin - gap)
  return tf.reduce_sum(better * hinge) / tf.maximum(tf.reduce_sum(better), 1.0)


def listwise(scores, grades):
  valid = grades >= 0
  logits = tf.where(valid, scores / 0.7, -1e9 * tf.ones_like(scores))
  gains = tf.where(valid, tf.pow(2.0, tf.to_float(grades)) - 1.0, tf.zeros_like(scores))
  target = gains / (tf.reduce_sum(gains, axis=1, keepdims=True) + 1e-6)
  each = -tf.reduce_sum(target * tf.nn.log_softmax(logits), axis=1)
  return tf.reduce_mean(each)


def price_term(mean, log_scale, price, grades):
  valid = tf.to_float(grades >= 0)
  error = tf.log1p(price) - mean
  scale = tf.nn.softplus(log_scale) + 1e-3
  absolute = tf.abs(error) / scale
  huber = tf.where(absolute < 1.5, 0.5 * tf.square(absolute), 1.5 * absolute - 1.125)
  each = huber + tf.log(scale)
  return tf.reduce_sum(valid * each) / tf.reduce_sum(valid)


def spread(scores):
  centered = scores - tf.reduce_mean(scores, axis=1, keepdims=True)
  return tf.reduce_mean(tf.nn.relu(1.0 - tf.sqrt(tf.reduce_mean(tf.square(centered), 1) + 1e-4)))


def loss(outputs, labels):
  total = pairwise(outputs['scores'], labels['grades'])
  total += 0.5 * listwise(outputs['scores'], labels['grades'])
  total += 0.3 * price_term(
    outputs['mean'], outputs['log_scale'], labels['price'], labels['grades']
  )
  return total + 0.05 * spread(outputs['scores'])


def slot(variable, name):
  return tf.get_variable(
    variable.op.name + '/' + name,
    variable.shape,
    trainable=False,
    initializer=tf.zeros_initializer(),
  )


def decayed_adam(gradients, variables, rate):
  """Adam with weight decay and a step that is scaled by norms, as LAMB does it."""
  updates = []
  for gradient, variable in zip(gradients, variables):
    m, v = slot(variable, 'adam_m'), slot(variable, 'adam_v')
    next_m = 0.9 * m + 0.1 * gradient
    next_v = 0.98 * v + 0.02 * tf.square(gradient)
    step = next_m / (tf.sqrt(next_v) + 1e-3)
    if 'bias' not in variable.op.name:
      step += 0.02 * variable
    norm, size = tf.norm(variable), tf.norm(step)
    trust = tf.where(norm > 0, tf.where(size > 0, norm / size, 1.0), 1.0)
    updates += [variable.assign_sub(rate * trust * step), m.assign(next_m), v.assign(next_v)]
  return tf.group(*updates)


def train_op(total_loss):
  """Sums the gradients of two steps, applies their mean, and averages the weights."""
  variables = tf.trainable_variables()
  count = tf.train.get_or_create_global_step()
  gradients = tf.gradients(total_loss, variables)
  gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
  sums = [slot(variable, 'sum') for variable in variables]
  every = tf.to_float(tf.equal(count % 2, 1))  # 1 in each second step
  totals = [total + gradient for total, gradient in zip(sums, gradients)]
  means = [total / 2.0 for total in totals]
  rate = 0.02 * every / (1.0 + 0.1 * tf.to_float(count))
  heads = [n for n, v in enumerate(variables) if 'price' in v.op.name.split('/')[1]]
  others = [n for n in range(len(variables)) if n not in heads]
  adam = decayed_adam([means[n] for n in others], [variables[n] for n in others], rate)
  momentum = tf.train.MomentumOptimizer(0.5 * rate, 0.8)
  heads_op = momentum.apply_gradients([(means[n], variables[n]) for n in heads])
  with tf.control_dependencies([adam, heads_op]):
    averages = [
      tf.get_variable(v.op.name + '/average', initializer=v.initial_value, trainable=False)
      for v in variables
    ]
    averaged = [a.assign(0.95 * a + 0.05 * v) for a, v in zip(averages, variables)]
    kept = [s.assign(total * (1.0 - every)) for s, total in zip(sums, totals)]
  with tf.control_dependencies(averaged + kept):
    return tf.assign_add(count, 1)
