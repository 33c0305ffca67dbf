"""Stacked `BasicLSTMCell`s against `keras.layers.LSTM`, through a map of the gates."""

import tf2verify
from examples.keras3_lstm import model, port


class Keras3LstmCase(tf2verify.EquivalenceCase):
  variable_map = 'port.map'

  def build_tf1_graph(self, inputs, training):
    return model.tagger(inputs)

  def make_tf2_layer(self):
    return port.tagger()

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 4, model.FEATURES))


if __name__ == '__main__':
  tf2verify.main()
