"""ResNet-50 v2 of TF-Slim against its port."""

import tf2verify
from examples.resnet_v2 import model, port


class ResnetV2Case(tf2verify.EquivalenceCase):
  stages = tf2verify.all_stages_except(
    execution_modes='of the port alone: ShallowResnetV2Case has the same layers',
    determinism='each side alone: ShallowResnetV2Case has the same layers',
  )

  def build_tf1_graph(self, inputs, training):
    return model.resnet_v2_50(inputs, 10, is_training=training)

  def make_tf2_layer(self):
    return port.ResnetV2(10)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 64, 64, 3))


class ShallowResnetV2Case(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return model.shallow_resnet_v2(inputs, 10, is_training=training)

  def make_tf2_layer(self):
    return port.ResnetV2(10, model.shallow_resnet_v2)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 64, 64, 3))


if __name__ == '__main__':
  tf2verify.main()
