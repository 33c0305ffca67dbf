import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.sides.graphs.variables.effects import effects
from tf2verify.sides.tf1.graphs.build import build_graph
from tf2verify.sides.tf1.graphs.effects import program_of

v1 = tf.compat.v1
ONES = np.ones((2, 3), np.float32)


class Declaration:
  """As much of a case as building a graph needs."""

  def __init__(self, builder):
    self.build_tf1_graph = builder


def found(builder, candidates, training=True, resources=True):
  def build(inputs, training):
    with v1.variable_scope('', use_resource=resources):
      return builder(inputs, training)

  built = build_graph(Declaration(build), ONES, training, 'constant')
  return effects(program_of(built), candidates)


@parameterized.parameters(True, False)
class EffectsTest(parameterized.TestCase):
  def test_a_layer_that_nothing_reads(self, resources):
    def build(inputs, training):
      net = v1.layers.dense(inputs, 2, name='dead')
      v1.layers.batch_normalization(net, training=training, name='dead/bn')
      return inputs * v1.get_variable('live', (3,))

    parts = ('kernel', 'bias', 'bn/gamma', 'bn/beta', 'bn/moving_mean', 'bn/moving_variance')
    names = {f'dead/{part}' for part in parts} | {'live'}
    self.assertEqual(set(found(build, names, resources=resources)), {'live'})

  def test_says_what_reads_it(self, resources):
    def build(inputs, training):
      scale = v1.get_variable('scale', (3,))
      return {'logits': tf.nn.relu(inputs * scale)}

    (effect,) = found(build, ['scale'], resources=resources).values()
    self.assertEqual(effect.op_type, 'Mul')
    self.assertEqual(effect.reaches, "output ['logits']")
    self.assertIn('inputs * scale', effect.source.code)
    self.assertIn('reads it on the way to', str(effect))

  def test_a_regularization_loss_reads_it(self, resources):
    def build(inputs, training):
      v1.get_variable('decayed', (3,), regularizer=tf.nn.l2_loss)
      return inputs

    (effect,) = found(build, ['decayed'], resources=resources).values()
    self.assertEqual(effect.reaches, 'a regularization loss')

  def test_what_is_written_to_a_variable_of_the_port_counts(self, resources):
    def build(inputs, training):
      mean = v1.get_variable('mean', (3,), trainable=False)
      rate = v1.get_variable('rate', (), trainable=False)
      update = v1.assign_sub(mean, rate * (mean - tf.reduce_mean(inputs, 0)))
      v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
      return inputs

    (effect,) = found(build, ['rate'], resources=resources).values()
    self.assertEqual(effect.reaches, 'the value of mean')
    # Where the port leaves out the average as well, nothing is left that counts.
    self.assertEmpty(found(build, ['rate', 'mean'], resources=resources))

  def test_an_initial_value_counts(self, resources):
    def build(inputs, training):
      first = v1.get_variable('first', (3,))
      return inputs * v1.get_variable('second', initializer=first * 2)

    self.assertIn('first', found(build, ['first'], resources=resources))

  def test_a_shape_is_no_value(self, resources):
    def build(inputs, training):
      first = v1.get_variable('first', (3,))
      return inputs + tf.zeros_like(first) + tf.cast(tf.shape(first)[0], tf.float32)

    self.assertEmpty(found(build, ['first'], resources=resources))

  def test_loops_and_branches(self, resources):
    def build(inputs, training):
      in_loop, in_branch = v1.get_variable('in_loop', (3,)), v1.get_variable('in_branch', (3,))
      picks = v1.get_variable('picks', ())
      _, net = tf.while_loop(lambda n, _: n < 2, lambda n, net: (n + 1, net * in_loop), (0, inputs))
      return v1.cond(picks > 0, lambda: net * in_branch, lambda: net)

    names = {'in_loop', 'in_branch', 'picks'}
    self.assertEqual(set(found(build, names, resources=resources)), names)

  def test_a_loop_that_writes_a_variable_of_the_port(self, resources):
    if not resources:
      self.skipTest('TensorFlow writes no reference inside a loop')

    def build(inputs, training):
      state = v1.get_variable('state', (), trainable=False)
      step = v1.get_variable('step', ())
      (count,) = tf.while_loop(
        lambda n: n < 2, lambda n: (n + tf.cast(v1.assign_add(state, step) > 9, tf.int32),), (0,)
      )
      return inputs, count

    self.assertIn('step', found(build, ['step'], resources=resources))

  def test_an_assertion_that_is_run(self, resources):
    def build(inputs, training):
      checked = v1.get_variable('checked', ())
      v1.get_variable('unchecked', ())
      with tf.control_dependencies([v1.Assert(checked > -9, [checked])]):
        return tf.identity(inputs)

    self.assertEqual(set(found(build, ['checked', 'unchecked'], resources=resources)), {'checked'})

  def test_read_in_training_alone(self, resources):
    def build(inputs, training):
      noise = v1.get_variable('noise', (3,))
      return inputs + noise if training else inputs

    self.assertEmpty(found(build, ['noise'], training=False, resources=resources))
    self.assertIn('noise', found(build, ['noise'], resources=resources))


if __name__ == '__main__':
  absltest.main()
