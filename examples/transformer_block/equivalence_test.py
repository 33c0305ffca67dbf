"""A transformer block in raw `get_variable` against its port, a `tf.Module`."""

import numpy as np

import tf2verify
from examples.transformer_block import model, port


class TransformerBlockCase(tf2verify.EquivalenceCase):
  config = model.Config()

  def build_tf1_graph(self, inputs, training):
    return model.transformer_block(
      inputs['token_ids'], inputs['lengths'], self.config, is_training=training
    )

  def make_tf2_layer(self):
    return port.TransformerBlock(self.config)

  def make_inputs(self):
    token_ids = np.random.RandomState(0).randint(0, self.config.vocabulary, size=(3, 12))
    return {'token_ids': token_ids.astype(np.int32), 'lengths': np.array([12, 7, 3], np.int32)}


if __name__ == '__main__':
  tf2verify.main()
