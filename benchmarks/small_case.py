"""The case of the three-layer model."""

import tf2verify
from benchmarks import small_model


class SmallCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return small_model.small_model(inputs, 10, training)

  def make_tf2_layer(self):
    return small_model.SmallModel(10)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 16, 16, 3))
