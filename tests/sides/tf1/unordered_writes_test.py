import tensorflow as tf
from absl.testing import absltest

from tests.stages import tiny_models
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1 import build as tf1_build
from tf2verify.sides.tf1.unordered_writes import unordered_writes

v1 = tf.compat.v1


class UnorderedWritesTest(absltest.TestCase):
  def writes(self, model, use_resource):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        model(v1.get_variable('total', [], use_resource=use_resource, trainable=False))
        return inputs

    case = Case()
    built = tf1_build.build_graph(case, case.make_inputs(), True, randomness.NUM_RANDOM_OPS)
    return unordered_writes(built, 'total')

  def test_two_in_no_order(self):
    def model(total):
      for number in (1.0, 2.0):
        v1.add_to_collection('update_ops', v1.assign_add(total, number).op)

    for use_resource in (False, True):
      with self.subTest(use_resource):
        found = self.writes(model, use_resource)
        self.assertLen(found, 2)
        self.assertIn('Assign', found[0][0])
        self.assertIn('v1.assign_add(total, number)', found[0][1].code)

  def test_in_order(self):
    def model(total):
      with tf.control_dependencies([v1.assign_add(total, 1.0)]):
        v1.add_to_collection('update_ops', v1.assign_add(total, 2.0).op)

    for use_resource in (False, True):
      with self.subTest(use_resource):
        self.assertEmpty(self.writes(model, use_resource))

  def test_one_that_does_not_run(self):
    def model(total):
      v1.add_to_collection('update_ops', v1.assign_add(total, 1.0).op)
      v1.assign_add(total, 2.0)

    self.assertEmpty(self.writes(model, use_resource=True))


if __name__ == '__main__':
  absltest.main()
