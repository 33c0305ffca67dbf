"""The tagger under the shim, with the recurrence, the layers and the losses written anew."""

import tensorflow as tf

VOCABULARY, EMBEDDING, UNITS, ATTENTION, HIDDEN, TAGS, INTENTS = 13, 5, 4, 6, 5, 4, 3

variable = tf.compat.v1.get_variable
scope = tf.compat.v1.variable_scope


def normal(stddev):
  return tf.compat.v1.random_normal_initializer(stddev=stddev)


def decay(weights):
  return 0.003 * tf.reduce_sum(tf.square(weights)) / 2.0


def linear(x, units, name, bias=True, init=None, regularizer=None):
  """A dense layer with the variables of tf.layers."""
  with scope(name):
    kernel = variable('kernel', [x.shape[-1], units], initializer=init, regularizer=regularizer)
    y = tf.einsum('...d,du->...u', x, kernel)
    if bias:
      y += variable('bias', [units], initializer=tf.compat.v1.zeros_initializer())
    return y


def lstm(x, lengths, name):
  """Peephole LSTM: outputs are zero behind the end, the state stays as it is there."""
  with scope(name):
    kernel = variable('kernel', [x.shape[-1] + UNITS, 4 * UNITS], initializer=normal(0.01))
    bias = variable('bias', [4 * UNITS], initializer=tf.compat.v1.zeros_initializer())
    to_f, to_i, to_o = (
      variable(f'w_{gate}_diag', [UNITS], initializer=normal(0.01)) for gate in 'fio'
    )
  c = h = tf.zeros([tf.shape(x)[0], UNITS])
  outputs = []
  for t, word in enumerate(tf.unstack(x, axis=1)):
    gates = tf.matmul(tf.concat([word, h], axis=1), kernel) + bias
    i, j, f, o = tf.split(gates, 4, axis=1)
    keep = tf.sigmoid(f + 1.0 + to_f * c)
    new_c = keep * c + tf.sigmoid(i + to_i * c) * tf.tanh(j)
    new_h = tf.sigmoid(o + to_o * new_c) * tf.tanh(new_c)
    alive = (t < lengths)[:, tf.newaxis]
    outputs.append(tf.where(alive, new_h, tf.zeros_like(new_h)))
    c = tf.where(alive, new_c, c)
    h = tf.where(alive, new_h, h)
  return tf.stack(outputs, axis=1), h


def flip(x, lengths):
  return tf.reverse_sequence(x, lengths, seq_axis=1)


def attend(memory, lengths):
  with scope('attention'):
    queries = linear(memory, ATTENTION, 'query', bias=False, init=normal(0.001))
    keys = linear(memory, ATTENTION, 'key', bias=False, init=normal(0.001))
    v = variable('v', [ATTENTION], initializer=tf.compat.v1.zeros_initializer())
  hidden = tf.tanh(queries[:, :, tf.newaxis] + keys[:, tf.newaxis])
  energies = tf.einsum('bqka,a->bqk', hidden, v)
  there = tf.sequence_mask(lengths, tf.shape(memory)[1])[:, tf.newaxis]
  energies = tf.where(there, energies, -1e9)
  alignments = tf.nn.softmax(energies, axis=-1)
  return alignments @ memory, alignments


class Tagger(tf.keras.layers.Layer):
  """Tags per word, an intent per sentence."""

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs, training=False):
    ids, lengths = inputs['ids'], inputs['lengths']
    with scope('tagger'):
      table = variable('embeddings', [VOCABULARY, EMBEDDING], initializer=normal(0.01))
      words = tf.gather(table, ids)
      if training:
        words = tf.nn.dropout(words, rate=0.2, noise_shape=[tf.shape(ids)[0], 1, EMBEDDING])
      with scope('bidirectional_rnn'):
        forward, last_fw = lstm(words, lengths, 'fw/lstm_cell')
        backward, last_bw = lstm(flip(words, lengths), lengths, 'bw/lstm_cell')
      memory = tf.concat([forward, flip(backward, lengths)], axis=-1)
      context, alignments = attend(memory, lengths)
      both = tf.concat([memory, context], axis=-1)
      net = linear(both, 2 * HIDDEN, 'maxout', init=normal(0.01), regularizer=decay)
      net = tf.maximum(net[..., 0::2], net[..., 1::2])
      if training:
        net = tf.nn.dropout(net, rate=0.5)
      tags = linear(net, TAGS, 'tags', regularizer=decay)
      sentence = tf.stop_gradient(tf.concat([last_fw, last_bw], axis=-1))
      intent = linear(sentence, INTENTS, 'intent')
    return {'tags': tags, 'intent': intent, 'alignments': alignments}


def loss(outputs, labels):
  each = tf.keras.losses.sparse_categorical_crossentropy(
    labels['tags'], outputs['tags'], from_logits=True
  )
  mask = tf.sequence_mask(labels['lengths'], tf.shape(each)[1], dtype=tf.float32)
  tags = tf.reduce_sum(each * mask) / tf.reduce_sum(mask)
  intent = tf.keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
  return tags + 0.5 * intent(tf.one_hot(labels['intent'], INTENTS), outputs['intent'])


def make_optimizer():
  rate = tf.keras.optimizers.schedules.ExponentialDecay(1.0, 2, 0.5, staircase=True)
  return tf.keras.optimizers.Adadelta(rate, rho=0.95, epsilon=1e-6)


def train_step(layer, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    total = loss(layer(inputs, training=True), labels) + tf.add_n(layer.losses)
  gradients = tape.gradient(total, layer.trainable_variables)
  gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
  optimizer.apply_gradients(zip(gradients, layer.trainable_variables))
  return total
