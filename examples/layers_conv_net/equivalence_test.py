"""A `tf.layers` network with batch norm and dropout against its port."""

import tf2verify
from examples.layers_conv_net import model, port


class LayersConvNetCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return model.conv_net(inputs, 10, is_training=training)

  def make_tf2_layer(self):
    return port.ConvNet(10)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 28, 28, 1))


if __name__ == '__main__':
  tf2verify.main()
