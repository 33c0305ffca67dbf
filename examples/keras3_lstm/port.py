"""The tagger in Keras 3."""

from typing import Any

import keras

FEATURES, UNITS, TAGS = 6, (8, 5), 3


def _lstm(inputs: int, units: int, name: str) -> Any:
  """Returns a layer whose kernels start as the one kernel of a `BasicLSTMCell`: Glorot, uniform."""
  limit = (6 / (inputs + units + 4 * units)) ** 0.5
  return keras.layers.LSTM(
    units,
    return_sequences=True,
    kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
    recurrent_initializer=keras.initializers.RandomUniform(-limit, limit),
    name=name,
  )


def tagger() -> Any:
  """Returns the model."""
  features = keras.Input((None, FEATURES))
  net = features
  for number, (inputs, units) in enumerate(zip((FEATURES, *UNITS[:-1]), UNITS, strict=True), 1):
    net = _lstm(inputs, units, f'lstm{number}')(net)
  return keras.Model(features, keras.layers.Dense(TAGS, name='tags')(net), name='tagger')
