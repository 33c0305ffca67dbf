"""The reference's graphs, built here."""

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol, final

import tensorflow as tf

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import RandomDraw, SourceLine
from tf2verify.sides import side
from tf2verify.sides.graphs.lines.user_sources import is_kept, user_source
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1.graphs import build as tf1_build
from tf2verify.sides.tf1.graphs import seed_rewriting
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient


@dataclasses.dataclass(frozen=True)
class GraphKey:
  """Which graph of a reference."""

  mode: str  # the randomness mode that it is built for
  training: bool  # the training mode
  as_keras3: bool  # as in `randomness.seeded`
  inputs: str  # their nest, dtypes and shapes, as text


class Keeper(Protocol):
  """Keeps graphs from one run for the next, on the same machine."""

  def find(
    self, key: GraphKey, with_gradients: bool
  ) -> tuple[BuiltGraph, tuple[GraphGradient, ...] | None] | None:
    """Returns a graph that was kept; None where it is to be built."""

  def building(self) -> contextlib.AbstractContextManager[None]:
    """Returns what is to be entered while a graph is built."""

  def keep(
    self, key: GraphKey, built: BuiltGraph, gradients: tuple[GraphGradient, ...] | None
  ) -> None:
    """Takes a graph that was built, without gradients or with them."""


@final
class LiveGraphs:
  """Builds the graph of each training mode once, and rewrites it for `constant` mode."""

  def __init__(
    self,
    declaration: side.Declaration,
    inputs: Any,
    progress: side.Progress,
    port_is_of_keras3: Callable[[], bool],
    keeper: Keeper | None = None,
  ) -> None:
    """Takes what to build.

    Args:
      declaration: the case.
      inputs: the checked nest of arrays.
      progress: called with one line of text before every build.
      port_is_of_keras3: returns whether initializers are to draw as those of Keras 3.
      keeper: has graphs of an earlier run; None where each is built.
    """
    self._port_is_of_keras3 = port_is_of_keras3
    self._keeper = keeper
    self._declaration = declaration
    self._inputs = inputs
    self._progress = progress
    self._graphs: dict[GraphKey, BuiltGraph] = {}
    self._gradients: weakref.WeakKeyDictionary[tf.Graph, tuple[GraphGradient, ...]] = (
      weakref.WeakKeyDictionary()
    )

  def built(self, training: bool, mode: str = randomness.NUM_RANDOM_OPS) -> BuiltGraph:
    """Returns the graph of a training mode, built for a randomness mode."""
    key = self._key(mode, training)
    if key not in self._graphs:
      found = self._keeper.find(key, with_gradients=False) if self._keeper else None
      self._graphs[key] = self._build(key) if found is None else found[0]
    return self._graphs[key]

  def fixed_draws(self) -> tuple[RandomDraw, ...]:
    """Returns what fixed numbers stand for in the graphs that are built."""
    found = (draw for built in self._graphs.values() for draw in built.fixed_draws)
    return tuple({(draw, draw.source): draw for draw in found}.values())

  def _key(self, mode: str, training: bool) -> GraphKey:
    return GraphKey(mode, training, self._port_is_of_keras3(), repr(_described(self._inputs)))

  def _build(self, key: GraphKey) -> BuiltGraph:
    again = ' again, for constant mode' if key.mode == randomness.CONSTANT else ''
    self._progress(f'building the TF1 graph{again}, {side.training_name(key.training)}')
    with self._keeper.building() if self._keeper else contextlib.nullcontext():
      built = tf1_build.build_graph(
        self._declaration, self._inputs, key.training, key.mode, key.as_keras3
      )
    if self._keeper:
      self._keeper.keep(key, built, None)
    return built

  def built_for(self, mode: str, training: bool) -> BuiltGraph:
    """Returns the graph for a randomness mode: rewritten where that is valid, else rebuilt."""
    built = self.built(training)
    if mode == randomness.NUM_RANDOM_OPS:
      return built
    if mode in randomness.OF_COMPUTATION:
      return seed_rewriting.computation_seed_graph(built, mode)
    rewritten = seed_rewriting.constant_seed_graph(built)
    return rewritten if isinstance(rewritten, BuiltGraph) else self.built(training, mode)

  def with_gradients(self, training: bool) -> tuple[BuiltGraph, tuple[GraphGradient, ...]]:
    """Returns the graph whose random ops are aligned, with the gradients of the loss added."""
    self._progress(f'adding gradients to the TF1 graph, {side.training_name(training)}')
    built, gradients = self._gradients_of(training, randomness.NUM_RANDOM_OPS)
    if not built.draws_in_computation:
      return built, gradients
    rewritten = seed_rewriting.constant_seed_graph(built)
    if isinstance(rewritten, BuiltGraph):
      return rewritten, gradients
    return self._gradients_of(training, randomness.CONSTANT)

  def _gradients_of(
    self, training: bool, mode: str
  ) -> tuple[BuiltGraph, tuple[GraphGradient, ...]]:
    """Returns a graph with its gradients, which are added if they are not there yet."""
    built, key = self.built(training, mode), self._key(mode, training)
    known = self._gradients.get(built.graph)
    if known is not None:
      return built, known
    if is_kept(built.graph):
      found = self._keeper.find(key, with_gradients=True) if self._keeper else None
      if found is not None and found[1] is not None:
        self._graphs[key], self._gradients[found[0].graph] = found[0], found[1]
        return found[0], found[1]
      # Nothing can be added to it: the tensors that the builder returned are not there.
      built = self._graphs[key] = self._build(key)
    with self._keeper.building() if self._keeper else contextlib.nullcontext():
      gradients = tf1_build.add_gradients(built, self._declaration)
    if gradients is None:
      raise NotApplicable(
        'no output is floating, so the default loss has nothing to sum; override `loss` if there '
        'is something to differentiate'
      )
    self._gradients[built.graph] = gradients
    if self._keeper:
      self._keeper.keep(key, built, gradients)
    return built, gradients

  def source_of(self, op: str, training: bool) -> SourceLine | None:
    """Returns the user's line of an operation of the graph of a training mode, by name."""
    graph = self.built(training).graph  # a rewritten one does not know who made its operations
    try:
      return user_source(graph.get_operation_by_name(op))
    except KeyError:
      return None

  def close(self) -> None:
    """Lets go of them."""
    self._graphs.clear()


def _described(inputs: Any) -> Any:
  """Returns what a builder may see of inputs: the nest, dtypes and shapes."""
  kind = type(inputs).__qualname__
  if isinstance(inputs, Mapping):
    return kind, [(key, _described(value)) for key, value in inputs.items()]
  if isinstance(inputs, (list, tuple)):
    return kind, [_described(value) for value in inputs]
  return kind, str(inputs.dtype), inputs.shape
