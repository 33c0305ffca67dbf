"""Inception-ResNet-v2 in Keras 3: TF1's public checkpoints turned into a model that is served."""

import keras

import tf2verify
from examples.inception_resnet_v2 import model

_TRAINING_ALONE = 'the auxiliary head is trained, and not served'


class NativeInceptionResnetV2Case(tf2verify.EquivalenceCase):
  stages = tf2verify.all_stages_except(
    execution_modes='of the port alone, and takes minutes',
    determinism='each side alone, and takes a minute',
  )
  training_modes = (False,)
  variable_map = 'derive'
  tf1_only_variables = {'InceptionResnetV2/AuxLogits/*': _TRAINING_ALONE}
  image_shape = (1, 299, 299, 3)
  num_classes = 1000

  def build_tf1_graph(self, inputs, training):
    return model.served(inputs, self.num_classes)

  def make_tf2_layer(self):
    return keras.applications.InceptionResNetV2(
      weights=None,
      input_shape=self.image_shape[1:],
      classes=self.num_classes,
      classifier_activation=None,
    )

  def make_inputs(self):
    return tf2verify.normal_inputs(self.image_shape)


if __name__ == '__main__':
  tf2verify.main()
