"""The text encoder in Keras 3."""

from typing import Any

import keras
from keras import ops

WORDS, WIDTH, HEADS, LONGEST = 20, 16, 4, 12


class Encoder(keras.Model):  # type: ignore[misc]
  """The encoder, with layers of Keras 3 and names of its own for them."""

  def __init__(self, **settings: Any) -> None:
    super().__init__(**settings)
    small = keras.initializers.TruncatedNormal
    self.words = keras.layers.Embedding(
      WORDS, WIDTH, embeddings_initializer=small(stddev=0.02), name='words'
    )
    self.places = keras.layers.Embedding(
      LONGEST, WIDTH, embeddings_initializer=small(stddev=0.02), name='places'
    )
    self.query, self.key, self.value = (
      keras.layers.Dense(WIDTH, name=name) for name in ('query', 'key', 'value')
    )
    self.output_projection = keras.layers.Dense(WIDTH, name='output')
    self.norm1, self.norm2 = (
      keras.layers.LayerNormalization(epsilon=1e-6, name=name) for name in ('norm1', 'norm2')
    )
    self.inner = keras.layers.Dense(32, activation='gelu', name='inner')
    self.outer = keras.layers.Dense(WIDTH, name='outer')
    self.drop_shares, self.drop_attended, self.drop_hidden = (
      keras.layers.Dropout(0.1) for _ in range(3)
    )

  def call(self, words: Any, training: bool = False) -> Any:
    """Returns the encoded texts, `[batch, length, 16]`."""
    length = words.shape[1]
    net = self.words(words) + self.places(ops.arange(length))
    mask = ops.cast(ops.not_equal(words, 0), 'float32')
    attended = self.attention(net, mask, training)
    net = self.norm1(net + self.drop_attended(attended, training=training))
    hidden = self.outer(self.inner(net))
    return self.norm2(net + self.drop_hidden(hidden, training=training))

  def attention(self, net: Any, mask: Any, training: bool) -> Any:
    """Returns what each word takes from the others."""
    _, length, _ = net.shape

    def heads(projection: Any) -> Any:
      split = ops.reshape(projection(net), (-1, length, HEADS, WIDTH // HEADS))
      return ops.transpose(split, (0, 2, 1, 3))

    scores = ops.matmul(heads(self.query), ops.transpose(heads(self.key), (0, 1, 3, 2)))
    scores = scores / (WIDTH // HEADS) ** 0.5 + (1.0 - mask[:, None, None, :]) * -1e4
    shares = self.drop_shares(ops.softmax(scores), training=training)
    context = ops.transpose(ops.matmul(shares, heads(self.value)), (0, 2, 1, 3))
    return self.output_projection(ops.reshape(context, (-1, length, WIDTH)))
