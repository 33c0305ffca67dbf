"""What a hook that builds a graph must not do to the process."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from unittest import mock

import tensorflow as tf
import tf_keras

from tf2verify.errors import BuilderError
from tf2verify.tensorflow_internals import eager, graphs, sessions

v1 = tf.compat.v1


def _refusing(text: str) -> Callable[..., NoReturn]:
  def refuse(*_: Any, **__: Any) -> NoReturn:
    raise BuilderError(text)

  return refuse


def _refuse_session(hook: str) -> Callable[..., NoReturn]:
  def refuse(session: Any, *_: Any, **__: Any) -> NoReturn:
    sessions.mark_as_closed(session)
    raise BuilderError(
      f'{hook} opened a session: tf2verify runs the graph itself, in fresh sessions with '
      'controlled variable values. Return the output tensors and leave sessions, initializers and '
      'savers out'
    )

  return refuse


@contextlib.contextmanager
def fenced(hook: str) -> Iterator[None]:
  """Refuses what a hook that builds a graph must not do to the process."""
  mode = eager.default_execution_mode()
  disabling = _refusing(
    f'{hook} turned eager execution off (disable_v2_behavior() or disable_eager_execution()): the '
    'tf2 side runs in the same process and could not run any more. tf2verify builds the graph '
    'inside a tf.Graph, where TF1 semantics hold anyway: remove the call'
  )
  resetting = _refusing(
    f'{hook} called reset_default_graph(), as clear_session() does: tf2verify gives every '
    'call a fresh graph, which already contains the inputs; remove the call'
  )
  with (
    mock.patch.object(graphs.HOME_OF_SWITCHES, 'disable_eager_execution', disabling),
    mock.patch.object(v1, 'disable_eager_execution', disabling),
    mock.patch.object(v1, 'disable_v2_behavior', disabling),
    mock.patch.object(graphs.HOME_OF_SWITCHES, 'reset_default_graph', resetting),
    mock.patch.object(v1, 'reset_default_graph', resetting),
    mock.patch.object(tf.keras.backend, 'clear_session', resetting),
    mock.patch.object(tf_keras.backend, 'clear_session', resetting),
    mock.patch.object(sessions.BaseSession, '__init__', _refuse_session(hook)),
  ):
    yield
  if eager.default_execution_mode() != mode:
    # By a name bound before the fence: `from tensorflow.compat.v1 import disable_eager_execution`.
    disabling()
