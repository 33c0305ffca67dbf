"""A GAN whose discriminator is applied twice, with one set of variables, against its port."""

import tf2verify
from examples.gan import model, port


class GanCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return model.gan(inputs['noise'], inputs['real_images'], is_training=training)

  def make_tf2_layer(self):
    return port.Gan()

  def make_inputs(self):
    return {
      'noise': tf2verify.normal_inputs((4, 20)),
      'real_images': tf2verify.normal_inputs((4, 16, 16, 1), seed=1),
    }


if __name__ == '__main__':
  tf2verify.main()
