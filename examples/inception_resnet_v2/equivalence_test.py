"""Inception-ResNet-v2 at reduced size: all 1,114 variables, 107 x 107 pixels, 10 classes."""

import tf2verify
from examples.inception_resnet_v2 import model, port


class InceptionResnetV2Case(tf2verify.EquivalenceCase):
  stages = tf2verify.all_stages_except(
    execution_modes='of the port alone, and takes minutes: full_size_case.py',
    determinism='each side alone, and takes a minute: full_size_case.py',
  )
  image_shape = (2, 107, 107, 3)
  num_classes = 10

  def build_tf1_graph(self, inputs, training):
    return model.inception_resnet_v2(inputs, self.num_classes, is_training=training)

  def make_tf2_layer(self):
    return port.InceptionResnetV2(self.num_classes)

  def make_inputs(self):
    return tf2verify.normal_inputs(self.image_shape)


if __name__ == '__main__':
  tf2verify.main()
