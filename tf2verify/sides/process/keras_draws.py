"""Random ops of Keras, with seeds that the tool gives.

Keras 3, and initializers of tf-keras, draw by stateless ops from seeds of their own. Here the
stateful op of the same distribution takes the place of each: it has the seeds of the scope that
it is made in, as an op of a TF1 graph has. A stateless op that a user's own code calls has the
seed that is written there, and keeps it.
"""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from tf2verify.tensorflow_internals import keras3

KERAS_3 = 'keras'
KERAS_2 = 'tf_keras'
# tf-keras calls them by `tensorflow.compat.v2`, Keras 3 by `tensorflow`.
_HOMES = (tf, tf.compat.v2)
_RANDOM: tuple[tuple[str, Callable[..., Any]], ...] = (
  ('stateless_uniform', tf.random.uniform),
  ('stateless_normal', tf.random.normal),
  ('stateless_truncated_normal', tf.random.truncated_normal),
  ('stateless_categorical', tf.random.categorical),
)
_BETWEEN = ('tensorflow', __name__.partition('.')[0])
_DROPOUT = 'stateless_dropout'
# What says how a stateless op draws; a stateful one has no such arguments, or no use for them.
_OF_SEEDS = ('seed', 'alg', 'rng_alg', 'name')


def _redirected(
  known: Callable[..., Any], stateful: Callable[..., Any], packages: tuple[str, ...]
) -> Callable[..., Any]:
  signature = inspect.signature(known)

  def draw(*arguments: Any, **keywords: Any) -> Any:
    if _caller() not in packages:
      return known(*arguments, **keywords)
    given = signature.bind(*arguments, **keywords).arguments
    return stateful(**{name: value for name, value in given.items() if name not in _OF_SEEDS})

  # For a scope within a scope.
  draw.__signature__ = signature  # type: ignore[attr-defined]
  return draw


def _caller() -> str:
  """Returns the package that a stateless op is called from."""
  frame = sys._getframe(2)
  while True:
    package = str(frame.f_globals.get('__name__', '')).partition('.')[0]
    # AutoGraph calls what it has converted; a scope within a scope calls the outer one.
    if package not in _BETWEEN or frame.f_back is None:
      return package
    frame = frame.f_back


def _constant_seeds(seed: int) -> Callable[..., Any]:
  """Returns what gives the same seeds at every draw, and leaves the generator's state alone.

  A state that advances is written in every call, by a variable that is not a weight.
  """

  def following(generator: Any, ordered: bool = True) -> Any:
    del ordered
    return generator.backend.convert_to_tensor([seed, 0], dtype=generator.state.dtype)

  return following


@contextlib.contextmanager
def stateful(packages: tuple[str, ...], seed: int) -> Iterator[None]:
  """Has these packages draw by stateful ops until exit.

  Args:
    packages: `KERAS_3`, `KERAS_2`.
    seed: of what is drawn anyway by a stateless op, of Keras 3 (gamma, binomial).
  """
  with contextlib.ExitStack() as stack:
    if (keras := keras3.loaded()) is not None:
      generator = keras.random.SeedGenerator
      stack.enter_context(mock.patch.object(generator, 'next', _constant_seeds(seed)))
    for home in _HOMES:
      for name, other in _RANDOM:
        redirected = _redirected(getattr(home.random, name), other, packages)
        stack.enter_context(mock.patch.object(home.random, name, redirected))
      known = getattr(home.nn.experimental, _DROPOUT)
      redirected = _redirected(known, tf.nn.dropout, packages)
      stack.enter_context(mock.patch.object(home.nn.experimental, _DROPOUT, redirected))
    yield
