"""Random numbers that a reference draws inside a loop.

A random operation in the body of a loop has one seed for all steps, and the steps may draw in any
order: no run of TensorFlow 1 repeats them, and no seed aligns them with the port. Fixed numbers
take their place, on both sides: along the last axis they are spread over the distribution, and
each step and example has the same. A dropout so keeps some units and drops others, in the port as
in the loop, whatever the axes before the last are.
"""

import contextlib
import contextvars
import dataclasses
import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import RandomDraw, SourceLine
from tf2verify.reference.scratch_graph import is_scratch_graph
from tf2verify.tensorflow_internals import graphs, random_ops

# A type of operation, and the size of the last axis of what it draws.
LoopDraw = tuple[str, int]
LoopDraws = frozenset[LoopDraw]
NONE: LoopDraws = frozenset()

# The fractional parts of the multiples of the golden ratio are spread evenly however many there
# are (Weyl's theorem).
_GOLDEN = (5**0.5 - 1) / 2
_NORMAL = statistics.NormalDist()
# `TruncatedNormal` draws within two standard deviations.
_BOUND = 2.0


def of(draws: Iterable[RandomDraw]) -> LoopDraws:
  """Returns what draws would be known by inside a loop; one without a last axis by nothing."""
  return frozenset((d.op_type, d.shape[-1]) for d in draws if d.shape and d.shape[-1])


_KNOWN: contextvars.ContextVar[LoopDraws] = contextvars.ContextVar(
  'tf2verify_loop_draws', default=NONE
)


@contextlib.contextmanager
def known(draws: LoopDraws) -> Iterator[None]:
  """Has draws like these answered by fixed numbers in every seeded scope until exit."""
  token = _KNOWN.set(draws)
  try:
    yield
  finally:
    _KNOWN.reset(token)


def numbers(kind: str, size: int) -> np.ndarray:
  """Returns the fixed numbers of a type of operation, `[size]` float64."""
  parts = np.arange(1, size + 1) * _GOLDEN % 1.0
  if kind == 'RandomUniform':
    return parts
  low = _NORMAL.cdf(-_BOUND) if kind == 'TruncatedNormal' else 0.0
  return np.array([_NORMAL.inv_cdf(low + (1.0 - 2.0 * low) * part) for part in parts])


@dataclasses.dataclass
class Answers:
  """What a scope answers draws with."""

  draws: LoopDraws  # those that are answered; a reference's build finds more
  finds: bool  # whether a draw inside a loop is one of them from then on
  uncount: Callable[[], None]  # takes back the seed that an answered draw was given
  line: Callable[[], SourceLine | None] = lambda: None  # gives the user's line, if it is wanted
  answered: list[RandomDraw] = dataclasses.field(default_factory=list)  # in order
  _variables: int = 0  # being made: their initial values are drawn

  @contextlib.contextmanager
  def answering(self) -> Iterator[None]:
    """Answers draws until exit."""
    if not (self.draws or self.finds):
      yield
      return
    with random_ops.answered(self._answer), tf.variable_creator_scope(self._on_variable):
      yield

  def _on_variable(self, next_creator: Any, **arguments: Any) -> Any:
    self._variables += 1
    try:
      return next_creator(**arguments)
    finally:
      self._variables -= 1

  def _answer(self, kind: str, shape: Any, dtype: Any) -> tf.Tensor | None:
    if self._variables:
      return None
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    if graph is not None and is_scratch_graph(graph):
      return None
    sizes = random_ops.known_shape(shape)
    if not sizes or not sizes[-1]:
      return None
    in_loop = graph is not None and graphs.is_in_loop(graph)
    if self.finds and in_loop:
      self.draws |= {(kind, sizes[-1])}
    if (kind, sizes[-1]) not in self.draws:
      return None
    self.uncount()
    self.answered.append(RandomDraw(kind, sizes, None, self.line(), in_loop))
    return tf.broadcast_to(tf.constant(numbers(kind, sizes[-1]), dtype), shape)


def answers(finds: bool, uncount: Callable[[], None]) -> Answers:
  """Returns what a seeded scope answers draws with.

  Args:
    finds: whether draws inside a loop are found; else those are answered that are known.
    uncount: takes back the seed that an answered draw was given.
  """
  return Answers(_KNOWN.get(), finds, uncount)
