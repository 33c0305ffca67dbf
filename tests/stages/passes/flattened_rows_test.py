"""Tests of kernels behind tensors that the port flattens in another order than TF1."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import WHOLE_LADDER, LadderTestCase
from tf2verify.commands.variable_map import derived_of

v1 = tf.compat.v1
layers = keras.layers
STAGE = 'zero_randomness'


class Images(tf2verify.EquivalenceCase, abc.ABC):
  """TF1 flattens channels first."""

  variable_map = 'derive'
  size = (8, 4, 3)
  tf1_order = (0, 3, 1, 2)
  port_order = (1, 2, 3)
  activation = 'relu'
  normalizes = False

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.conv2d(inputs, 4, 3, padding='same', activation=tf.nn.relu, name='conv')
    net = v1.layers.max_pooling2d(net, 2, 2)
    net = v1.layers.flatten(tf.transpose(net, self.tf1_order))
    if self.normalizes:
      net = v1.layers.batch_normalization(net, training=training, momentum=0.9, name='norm')
    net = v1.layers.dense(net, 5, tf.nn.relu, name='first')
    return v1.layers.dense(net, 5, name='second')

  def make_tf2_layer(self):
    norm = layers.BatchNormalization(momentum=0.9, name='n')
    return keras.Sequential(
      [
        layers.Conv2D(4, 3, padding='same', activation=self.activation, name='c'),
        layers.MaxPooling2D(2),
        *([] if self.port_order == (1, 2, 3) else [layers.Permute(self.port_order)]),
        layers.Flatten(),
        *([norm] if self.normalizes else []),
        layers.Dense(5, activation='relu', name='a'),
        layers.Dense(5, name='b'),
      ],
      name='port',
    )

  def make_inputs(self):
    return tf2verify.normal_inputs((6, *self.size))

  def make_labels(self):
    return np.arange(6, dtype=np.int32) % 5

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(
      tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs)
    )

  def tf2_loss(self, outputs, labels):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, outputs)

  def make_tf1_optimizer(self):
    return v1.train.MomentumOptimizer(0.1, 0.9)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1, 0.9)


class Windows(Images, abc.ABC):
  """A convolution as large as the image in TF1, a Dense in the port."""

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.conv2d(inputs, 4, 3, padding='same', activation=tf.nn.relu, name='conv')
    net = v1.layers.max_pooling2d(net, 2, 2)
    net = tf.squeeze(v1.layers.conv2d(net, 5, (4, 2), activation=tf.nn.relu, name='first'), [1, 2])
    return v1.layers.dense(net, 5, name='second')


class Words(Images, abc.ABC):
  """[channels, words] in TF1, [words, channels] in the port."""

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('table', [9, 4])
    net = tf.transpose(tf.nn.embedding_lookup(table, inputs), [0, 2, 1])
    return v1.layers.dense(tf.reshape(net, [-1, 4 * 7]), 5, name='first')

  def make_tf2_layer(self):
    return keras.Sequential([layers.Embedding(9, 4), layers.Flatten(), layers.Dense(5, name='a')])

  def make_inputs(self):
    return (np.arange(42).reshape(6, 7) % 9).astype(np.int32)


class Products(Images, abc.ABC):
  """A product of TF1 yields channels first at once, so that only the sizes tell the axes."""

  def build_tf1_graph(self, inputs, training):
    kernel = v1.get_variable('kernel', [3, 4])
    net = tf.nn.relu(tf.einsum('bhwi,io->bohw', inputs, kernel))
    return v1.layers.dense(tf.reshape(net, [-1, 8 * 4 * 4]), 5, name='first')

  def make_tf2_layer(self):
    first = layers.Dense(4, use_bias=False, activation='relu')
    return keras.Sequential([first, layers.Flatten(), layers.Dense(5, name='a')])


class Frames(Images, abc.ABC):
  """Layers that are applied to each of several frames, whose shapes might be those of a cell."""

  def build_tf1_graph(self, inputs, training):
    found = []
    for frame in tf.unstack(inputs, 3, 1):
      with v1.variable_scope('frame', reuse=bool(found)):
        net = v1.layers.conv2d(frame, 4, 3, padding='same', activation=tf.nn.relu, name='conv')
        net = v1.layers.flatten(tf.transpose(net, [0, 3, 1, 2]))
        found.append(v1.layers.dense(net, 16, tf.nn.relu, name='first'))
    return v1.layers.dense(tf.stack(found, 1), 5, name='second')

  def make_tf2_layer(self):
    frame = keras.Sequential(
      [
        layers.Conv2D(4, 3, padding='same', activation='relu', name='c'),
        layers.Flatten(),
        layers.Dense(16, activation='relu', name='a'),
      ],
      name='frame',
    )
    return keras.Sequential([layers.TimeDistributed(frame), layers.Dense(5, name='b')])

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3, 5, 4, 3))


def derived(case, **hooks):
  return derived_of(type('Case', (case,), {'__module__': __name__, **hooks}), lambda _: None)


class FlattenedRowsTest(absltest.TestCase):
  def check(self, case, layout, rows, **hooks):
    found = derived(case, **hooks)
    self.assertTrue(found.outputs_agree, found.doubts)
    entries = {entry.tf1[0]: entry for entry in found.variable_map.entries}
    self.assertEqual(entries['first/kernel'].layout, layout)
    (doubt,) = found.doubts
    self.assertIn(f'rows in the order of {rows[1]}, where tf1 has {rows[0]}', doubt)
    return entries, doubt

  def test_channels_first(self):
    self.check(Images, '(c h w) o -> (h w c) o', ('(c h w)', '(h w c)'))

  def test_axes_of_one_size(self):
    self.check(Images, '(c h w) o -> (h w c) o', ('(c h w)', '(h w c)'), size=(8, 8, 3))

  def test_width_before_height(self):
    orders = {'tf1_order': (0, 1, 2, 3), 'port_order': (2, 1, 3)}
    self.check(Images, '(h w c) o -> (w h c) o', ('(h w c)', '(w h c)'), **orders)

  def test_vectors_of_a_norm_behind_it(self):
    entries, doubt = self.check(
      Images, '(c h w) o -> (h w c) o', ('(c h w)', '(h w c)'), normalizes=True
    )
    self.assertEqual(entries['norm/gamma'].layout, '(c h w) -> (h w c)')
    self.assertIn('and 4 more entries', doubt)

  def test_a_convolution_as_large_as_the_image(self):
    self.check(Windows, 'h w c o -> (c h w) o', ('(h w c)', '(c h w)'), port_order=(3, 1, 2))

  def test_words(self):
    self.check(Words, '(b a) o -> (a b) o', ('(b a)', '(a b)'))

  def test_sizes_alone(self):
    self.check(Products, '(a b c) o -> (b c a) o', ('(a b c)', '(b c a)'))

  def test_layers_that_are_applied_to_frames(self):
    found = derived(Frames)
    self.assertTrue(found.outputs_agree, found.doubts)
    layouts = {entry.tf1[0]: entry.layout for entry in found.variable_map.entries}
    self.assertEqual(layouts['frame/first/kernel'], '(c h w) o -> (h w c) o')

  def test_nothing_is_said_where_both_sides_flatten_in_one_order(self):
    for order in ({'tf1_order': (0, 1, 2, 3)}, {'port_order': (3, 1, 2)}):
      found = derived(Images, size=(8, 8, 3), **order)
      self.assertTrue(found.outputs_agree)
      self.assertEqual(found.doubts, ())
      self.assertTrue(all(not entry.layout for entry in found.variable_map.entries))

  def test_the_graph_tells_the_order_beside_a_mistake(self):
    found = derived(Images, activation='elu')
    self.assertFalse(found.outputs_agree)
    layouts = [entry.layout for entry in found.variable_map.entries if entry.layout]
    self.assertEqual(layouts, ['(c h w) o -> (h w c) o'])

  def test_axes_in_another_order_that_is_no_flattening(self):
    """The rows of both sides have one order, and the port turns the image before its kernel."""

    def turned(self):
      port = Images.make_tf2_layer(self)
      return keras.Sequential([layers.Permute((2, 1, 3)), *port.layers])

    found = derived(Images, size=(8, 8, 3), tf1_order=(0, 1, 2, 3), make_tf2_layer=turned)
    self.assertFalse(found.outputs_agree)
    self.assertTrue(all(not entry.layout for entry in found.variable_map.entries))


class LadderTest(LadderTestCase):
  def test_right(self):
    class Case(Images):
      normalizes = True

    verdict = self.assert_passes(Case, WHOLE_LADDER)
    self.assertIn('rows in the order of (h w c), where tf1 has (c h w)', verdict.to_text())

  def test_rows_that_are_not_moved(self):
    class Case(Images):
      variable_map = tf2verify.VariableMap(
        tuple(
          tf2verify.MapEntry((f'{tf1}/{kind}',), (f'{tf2}/{kind}',))
          for tf1, tf2 in (('conv', 'port/c'), ('first', 'port/a'), ('second', 'port/b'))
          for kind in ('kernel', 'bias')
        )
      )

    self.assert_first_failure(Case, STAGE)

  def test_another_activation(self):
    class Case(Images):
      activation = 'elu'

    self.assert_first_failure(Case, STAGE, 'tf1 applies relu where the port applies elu')


if __name__ == '__main__':
  absltest.main()
