"""Inception-ResNet-v2 of the examples, with the auxiliary head left out, against Keras 3."""

from examples.inception_resnet_v2.native_case import NativeInceptionResnetV2Case


class InceptionResnetV2Case(NativeInceptionResnetV2Case):
  """As in the example."""
