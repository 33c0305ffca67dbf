"""The ranking model in Keras 3, compiled as production trains it."""

from typing import Any

import keras

ITEMS, USERS, WIDTH, NUMBERS = 12, 9, 4, 3


def optimizer() -> Any:
  """Returns the optimizer; `clipnorm` would clip each gradient alone."""
  rate = keras.optimizers.schedules.ExponentialDecay(0.02, 2, 0.5, staircase=True)
  return keras.optimizers.Adam(rate, epsilon=1e-8, global_clipnorm=0.3)


def loss() -> Any:
  """Returns the mean cross entropy of logits."""
  return keras.losses.BinaryCrossentropy(from_logits=True)


def ranker() -> Any:
  """Returns the model."""
  item, user = (keras.Input((), name=name, dtype='int32') for name in ('item', 'user'))
  numbers = keras.Input((NUMBERS,), name='numbers')
  table = keras.initializers.RandomUniform(-0.05, 0.05)
  embedded = [
    keras.layers.Embedding(ITEMS, WIDTH, embeddings_initializer=table, name='items')(item),
    keras.layers.Embedding(USERS, WIDTH, embeddings_initializer=table, name='users')(user),
  ]
  net = keras.layers.Concatenate()([*embedded, numbers])
  net = keras.layers.Dense(10, 'relu', name='hidden')(net)
  click = keras.layers.Dense(1, name='click')(net)
  return keras.Model({'item': item, 'user': user, 'numbers': numbers}, click, name='ranker')


def train_step(model: Any, features: Any, clicked: Any, optimizer: Any) -> Any:
  """Trains as `fit` does, on one batch; returns its loss."""
  if getattr(model, 'optimizer', None) is not optimizer:
    model.compile(optimizer, loss())
  return model.train_on_batch(features, clicked)
