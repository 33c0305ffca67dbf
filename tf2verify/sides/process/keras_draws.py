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
# Frames between an op and the initializer that draws by it.
_DEEPEST = 12
_OF_SEEDS = ('seed', 'alg', 'rng_alg', 'name')


class _Reused:
  """What initializers of Keras 3 have drawn: one without a seed draws the same numbers again.

  Two variables that are made by one such object start alike, which TF1 has no counterpart of.
  """

  def __init__(self) -> None:
    # By the object, the op and what it is given; the object itself, so that no other has its id.
    self._drawn: dict[tuple[int, str], tuple[Any, Any]] = {}

  def numbers(self, kind: str, draw: Callable[[], Any]) -> Any:
    """Returns what the initializer that is being called draws.

    Args:
      kind: the op, with its arguments.
      draw: draws by an op of its own.
    """
    initializer = _unseeded_initializer()
    if initializer is None:
      return draw()
    key = id(initializer), kind
    if key in self._drawn and _is_at_hand(self._drawn[key][1]):
      return tf.identity(self._drawn[key][1])
    self._drawn[key] = initializer, draw()
    return self._drawn[key][1]


def _unseeded_initializer() -> Any:
  """Returns the initializer of Keras 3 that draws, if nobody gave it a seed; None without."""
  keras = keras3.loaded()
  frame = sys._getframe(3) if keras is not None else None
  for _ in range(_DEEPEST):
    if frame is None:
      break
    one = frame.f_locals.get('self')
    if keras is not None and isinstance(one, keras.initializers.Initializer):
      return one if one.get_config().get('seed', 0) is None else None
    frame = frame.f_back
  return None


def _is_at_hand(numbers: Any) -> bool:
  """Returns whether a tensor can be read where the next op is made."""
  is_symbolic = tf.is_symbolic_tensor(numbers)
  if tf.executing_eagerly():
    return not is_symbolic
  return is_symbolic and numbers.graph is tf.compat.v1.get_default_graph()


def _redirected(
  known: Callable[..., Any],
  stateful: Callable[..., Any],
  packages: tuple[str, ...],
  reused: _Reused,
) -> Callable[..., Any]:
  signature = inspect.signature(known)

  def draw(*arguments: Any, **keywords: Any) -> Any:
    if _caller() not in packages:
      return known(*arguments, **keywords)
    given = signature.bind(*arguments, **keywords).arguments
    wanted = {name: value for name, value in given.items() if name not in _OF_SEEDS}
    kind = f'{stateful.__name__} {wanted}'
    return reused.numbers(kind, lambda: stateful(**wanted))

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
  reused = _Reused()
  with contextlib.ExitStack() as stack:
    if (keras := keras3.loaded()) is not None:
      generator = keras.random.SeedGenerator
      stack.enter_context(mock.patch.object(generator, 'next', _constant_seeds(seed)))
    for home in _HOMES:
      for name, other in _RANDOM:
        redirected = _redirected(getattr(home.random, name), other, packages, reused)
        stack.enter_context(mock.patch.object(home.random, name, redirected))
      known = getattr(home.nn.experimental, _DROPOUT)
      redirected = _redirected(known, tf.nn.dropout, packages, reused)
      stack.enter_context(mock.patch.object(home.nn.experimental, _DROPOUT, redirected))
    yield
