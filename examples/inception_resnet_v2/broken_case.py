"""Fails on purpose, at `zero_randomness`: ReLU stands before the batch norm in the port's stem."""

import tf2verify
from examples.inception_resnet_v2 import broken_port, equivalence_test


class RewrittenStemCase(equivalence_test.InceptionResnetV2Case):
  def make_tf2_layer(self):
    return broken_port.InceptionResnetV2(self.num_classes)

  def variable_names(self, name):
    return broken_port.variable_name(name)


if __name__ == '__main__':
  tf2verify.main()
