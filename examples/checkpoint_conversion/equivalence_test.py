"""A classifier and its TF1 checkpoint against a port with other names."""

import tempfile

import tf2verify
from examples.checkpoint_conversion import model, port


class BarsCase(tf2verify.EquivalenceCase):
  variable_names = port.TF2_NAMES

  def build_tf1_graph(self, inputs, training):
    return model.classifier(inputs, is_training=training)

  def make_tf2_layer(self):
    return port.Bars()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 8, 8, 1))

  def tf1_checkpoint(self):
    self.folder = tempfile.TemporaryDirectory()  # there as long as the case
    return model.train(self.folder.name)


if __name__ == '__main__':
  tf2verify.main()
