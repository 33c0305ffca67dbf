"""Where optimizers and schedules were made, whose operations have no line of the user's."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.reference.updates import overriding
from tf2verify.sides.graphs.lines.source_lines import user_line
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.optimizers.update_recorder import FAMILIES
from tf2verify.tensorflow_internals import keras, keras3

_SCHEDULE: Any = tf.keras.optimizers.schedules.LearningRateSchedule


@dataclasses.dataclass(frozen=True)
class _Span:
  """Operations that an object of a library has made."""

  graph: Any  # in which
  first: int  # the number of operations before
  last: int  # with them
  caller: SourceLine | None  # the user's line that called the object
  made: SourceLine  # the user's line that made it


class MadeLines:
  """Sees where optimizers and schedules are made, and what operations they make in graphs.

  An optimizer of a library has the settings that it was made with: what its update computes
  otherwise is to be fixed there, not where the update is called.
  """

  def __init__(self) -> None:
    self._made: dict[int, tuple[Any, SourceLine]] = {}
    self._spans: list[_Span] = []

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Records until exit."""
    with contextlib.ExitStack() as stack:
      methods = _methods()
      for family in dict.fromkeys(family for family, _ in methods):
        for cls in overriding(family, '__init__'):
          stack.enter_context(mock.patch.object(cls, '__init__', self._init(cls.__init__)))
      for family, method in methods:
        for cls in overriding(family, method):
          known = vars(cls)[method]
          stack.enter_context(mock.patch.object(cls, method, self._watched(known)))
      yield

  def line_of(self, op: tf.Operation) -> SourceLine | None:
    """Returns the line to blame for an operation."""
    own, place = user_source(op), _place(op)
    spans = [s for s in self._spans if s.graph is op.graph and s.first < place <= s.last]
    if not spans:
      return own
    inner = min(spans, key=lambda span: span.last - span.first)
    # An optimizer of the user's has lines of its own.
    return inner.made if own is None or own == inner.caller else own

  def _init(self, known: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(known)
    def init(made: Any, *arguments: Any, **keywords: Any) -> None:
      line = user_line(without=made)
      if line is not None:
        self._made.setdefault(id(made), (made, line))
      known(made, *arguments, **keywords)

    return init

  def _watched(self, known: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(known)
    def method(made: Any, *arguments: Any, **keywords: Any) -> Any:
      graph = tf.compat.v1.get_default_graph()
      first, line = graph.version, self._made.get(id(made))
      if line is None or tf.executing_eagerly():
        return known(made, *arguments, **keywords)
      caller = user_line()
      result = known(made, *arguments, **keywords)
      self._spans.append(_Span(graph, first, graph.version, caller, line[1]))
      return result

    return method


def _methods() -> list[tuple[Any, str]]:
  """Returns the base classes of optimizers and schedules, each with a method that computes."""
  found = [(family, method) for family, method, _ in FAMILIES]
  # Gradients are clipped before what `FAMILIES` names.
  found += [(family, 'apply_gradients') for family in (keras.OPTIMIZER, keras.LEGACY_OPTIMIZER)]
  found.append((_SCHEDULE, '__call__'))
  module = keras3.loaded()
  if module is not None:
    base, _ = keras3.optimizer_base()
    found += [(base, 'apply'), (module.optimizers.schedules.LearningRateSchedule, '__call__')]
  return found


def _place(op: tf.Operation) -> int:
  return int(op._id)
