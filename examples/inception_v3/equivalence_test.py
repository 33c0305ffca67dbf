"""Inception v3 of TF-Slim, a quarter of its filters, against its port."""

import tf2verify
from examples.inception_v3 import model, port


class InceptionV3Case(tf2verify.EquivalenceCase):
  stages = tf2verify.all_stages_except(
    execution_modes='of the port alone: examples/resnet_v2 has the same layers',
    determinism='each side alone: examples/resnet_v2 has the same layers',
  )

  def build_tf1_graph(self, inputs, training):
    return model.inception_v3(inputs, 10, is_training=training, depth_multiplier=0.25)

  def make_tf2_layer(self):
    return port.InceptionV3(10, depth_multiplier=0.25)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 107, 107, 3))


if __name__ == '__main__':
  tf2verify.main()
