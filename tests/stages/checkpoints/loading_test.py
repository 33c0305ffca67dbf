import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.checkpoints.checkpoint_test import STAGE, checkpoint_of
from tests.stages.first_failure import LadderTestCase


def named(layer):
  return {variable.name.removesuffix(':0'): variable for variable in layer.variables}


class OwnLoaderTest(LadderTestCase):
  """The case loads TF1 checkpoints by code of its own."""

  def test_by_key(self):
    class Case(tiny_models.Affine):
      def load_tf1_checkpoint(self, layer, path):
        for name, variable in named(layer).items():
          variable.assign(tf.train.load_checkpoint(path).get_tensor(name))

    self.assert_passes(Case, STAGE)

  def test_by_object_where_names_agree(self):
    class Case(tiny_models.Affine):
      def load_tf1_checkpoint(self, layer, path):
        tf.train.Checkpoint(model=layer).restore(path)

    self.assert_passes(Case, STAGE)

  def test_an_error_of_the_loader(self):
    class Case(tiny_models.Affine):
      def load_tf1_checkpoint(self, layer, path):
        tf.train.load_checkpoint(path).get_tensor('weights')

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertIn('ERROR on the tf2 side: load_tf1_checkpoint raised', found.to_text())
    self.assertIn("get_tensor('weights')", found.to_text())


if __name__ == '__main__':
  absltest.main()
