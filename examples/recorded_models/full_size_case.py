"""Inception-ResNet-v2 as recorded under TensorFlow 1.15 by `make record`."""

import tf2verify
from examples.inception_resnet_v2 import port


class RecordedInceptionResnetV2Case(tf2verify.EquivalenceCase):
  stages = tf2verify.all_stages_except(
    execution_modes='of the port alone: examples/inception_resnet_v2',
    determinism='of the port alone: examples/inception_resnet_v2',
  )
  tf1_recording = '../../build/recordings/inception_resnet_v2'

  def make_tf2_layer(self):
    return port.InceptionResnetV2(1000)


if __name__ == '__main__':
  tf2verify.main()
