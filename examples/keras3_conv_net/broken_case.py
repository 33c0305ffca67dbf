"""The same model with the batch norm of Keras 3 as it is: its moving variance is another one."""

import keras

from examples.keras3_conv_net import equivalence_test, port


class BiasedVarianceCase(equivalence_test.Keras3ConvNetCase):
  def make_tf2_layer(self):
    return port.classifier(keras.layers.BatchNormalization)
