"""The mended scaling layer, which passes; `broken_case.py` holds the one that does not."""

import tf2verify
from examples.broken import model


class FixedScalingCase(tf2verify.EquivalenceCase):
  layer_class = model.FixedScalingLayer

  def build_tf1_graph(self, inputs, training):
    return model.scale_and_shift(inputs)

  def make_tf2_layer(self):
    return self.layer_class()

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 5, 3))


if __name__ == '__main__':
  tf2verify.main()
