"""A language model with `dynamic_rnn` against its port: LSTM, and GRU by a subclass."""

import numpy as np

import tf2verify
from examples.language_model import model, port


class LstmLanguageModelCase(tf2verify.EquivalenceCase):
  config = model.Config(cell='lstm')

  def build_tf1_graph(self, inputs, training):
    return model.language_model(inputs['token_ids'], inputs['lengths'], self.config, training)

  def make_tf2_layer(self):
    return port.LanguageModel(self.config)

  def make_inputs(self):
    token_ids = np.random.RandomState(0).randint(0, self.config.vocabulary, size=(3, 9))
    return {'token_ids': token_ids.astype(np.int32), 'lengths': np.array([9, 4, 6], np.int32)}


class GruLanguageModelCase(LstmLanguageModelCase):
  config = model.Config(cell='gru')


if __name__ == '__main__':
  tf2verify.main()
