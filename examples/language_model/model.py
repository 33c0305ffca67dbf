"""A recurrent language model with `dynamic_rnn`, after Zaremba, Sutskever, Vinyals:
"Recurrent Neural Network Regularization", arXiv:1409.2329 (dropout between, not in, the cells).
"""

import dataclasses
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Config:
  """The sizes of the model; `cell` is 'lstm' or 'gru'."""

  cell: str
  vocabulary: int = 40
  width: int = 24
  layers: int = 2
  dropout_rate: float = 0.25


def _cell(config: Config) -> Any:
  cell_types = {'lstm': v1.nn.rnn_cell.LSTMCell, 'gru': v1.nn.rnn_cell.GRUCell}
  cells = [cell_types[config.cell](config.width) for _ in range(config.layers)]
  return v1.nn.rnn_cell.MultiRNNCell(cells)


def language_model(
  token_ids: tf.Tensor, lengths: tf.Tensor, config: Config, is_training: bool
) -> dict[str, Any]:
  """Predicts the next token at every position.

  Args:
    token_ids: `[batch, length]` int32.
    lengths: `[batch]` int32, the number of tokens before the padding.
    config: the sizes.
    is_training: whether dropout is used.

  Returns:
    'probabilities', `[batch, length, vocabulary]` float32, and 'final_state', the
    state of every cell after the last token of each row.
  """
  with v1.variable_scope('language_model'):
    embedding = v1.get_variable(
      'embedding',
      [config.vocabulary, config.width],
      initializer=v1.random_uniform_initializer(-0.1, 0.1),
    )
    net = tf.nn.embedding_lookup(embedding, token_ids)
    if is_training:
      net = v1.nn.dropout(net, rate=config.dropout_rate)
    net, final_state = v1.nn.dynamic_rnn(
      _cell(config), net, sequence_length=lengths, dtype=tf.float32
    )
    if is_training:
      net = v1.nn.dropout(net, rate=config.dropout_rate)
    kernel = v1.get_variable('softmax_kernel', [config.width, config.vocabulary])
    bias = v1.get_variable('softmax_bias', [config.vocabulary], initializer=v1.zeros_initializer())
    logits = tf.tensordot(net, kernel, axes=1) + bias
    return {'probabilities': tf.nn.softmax(logits), 'final_state': final_state}
