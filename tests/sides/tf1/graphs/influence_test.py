import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.tf1.graphs.build import build_graph
from tf2verify.sides.tf1.graphs.influence import without_influence

v1 = tf.compat.v1


class Declaration:
  """As much of a case as building a graph needs."""

  def __init__(self, builder):
    self.build_tf1_graph = builder


def found(builder, inputs, modes=(False, True)):
  case = Declaration(builder)
  return without_influence([build_graph(case, inputs, training, 'constant') for training in modes])


ONES = np.ones((2, 3), np.float32)


class InfluenceTest(absltest.TestCase):
  def test_everything_counts(self):
    def build(inputs, training):
      with v1.variable_scope('net', use_resource=False):
        return v1.layers.batch_normalization(v1.layers.dense(inputs, 2), training=training)

    self.assertEqual(found(build, ONES), without_influence([]))

  def test_variables_and_inputs_left_aside(self):
    def build(inputs, training):
      v1.get_variable('unused', (2,))
      v1.get_variable('unused_resource', (2,), use_resource=True)
      v1.train.get_or_create_global_step()
      v1.get_variable('counter', (), collections=[v1.GraphKeys.LOCAL_VARIABLES])
      return inputs['x'] * v1.get_variable('used', (3,))

    result = found(build, {'x': ONES, 'labels': ONES})
    self.assertEqual(result.variables, ('unused', 'unused_resource'))
    self.assertEqual(result.inputs, ("['labels']",))

  def test_one_training_mode_is_enough(self):
    def build(inputs, training):
      bias = v1.get_variable('bias', (3,))
      return inputs['x'] + bias if training else inputs['x'] + inputs['y']

    inputs = {'x': ONES, 'y': ONES}
    self.assertEqual(found(build, inputs), without_influence([]))
    self.assertEqual(found(build, inputs, (False,)).variables, ('bias',))
    self.assertEqual(found(build, inputs, (True,)).inputs, ("['y']",))

  def test_losses_loops_and_updates_count(self):
    def build(inputs, training):
      decayed = v1.get_variable('decayed', (3,), regularizer=tf.nn.l2_loss)
      in_loop = v1.get_variable('in_loop', (3,), use_resource=True)
      mean = v1.get_variable('mean', (3,), trainable=False)
      update = v1.assign_sub(mean, 0.1 * (mean - tf.reduce_mean(inputs, 0)))
      v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
      _, net = tf.while_loop(lambda n, _: n < 2, lambda n, net: (n + 1, net * in_loop), (0, inputs))
      del decayed
      return net

    self.assertEqual(found(build, ONES), without_influence([]))

  def test_an_input_that_is_no_nest(self):
    result = found(lambda inputs, training: tf.ones(3) * v1.get_variable('used', (3,)), ONES)
    self.assertEqual(result.inputs, ('(the input)',))


if __name__ == '__main__':
  absltest.main()
