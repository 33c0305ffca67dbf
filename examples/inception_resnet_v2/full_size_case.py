"""Inception-ResNet-v2 as published: 299 x 299 pixels, 1000 classes, 59 million parameters."""

import tf2verify
from examples.inception_resnet_v2 import equivalence_test


class InceptionResnetV2FullSizeCase(equivalence_test.InceptionResnetV2Case):
  stages = tf2verify.all_stages_except()
  image_shape = (1, 299, 299, 3)
  num_classes = 1000


if __name__ == '__main__':
  tf2verify.main()
