"""How an initial value is drawn, by the operations of the graph that makes it."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.distributions import distribution_behind, sample
from tf2verify.records.distribution import Distribution, Family
from tf2verify.reference.graph_ops import ops_behind
from tf2verify.reference.random_draws import draws_in_functions
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.graphs.graph_defs.sessions import open_session

# What stands for the op types of an initializer that no graph can be made of.
CODE = 'Python code'
# Elements that a distribution is read from, at least.
_FEWEST = 64
# Random ops that draw from a distribution without parameters of its own.
_FAMILIES = {
  'RandomUniform': Family.UNIFORM,
  'StatelessRandomUniform': Family.UNIFORM,
  'StatelessRandomUniformV2': Family.UNIFORM,
  'StatefulUniform': Family.UNIFORM,
  'RandomStandardNormal': Family.NORMAL,
  'StatelessRandomNormal': Family.NORMAL,
  'StatelessRandomNormalV2': Family.NORMAL,
  'StatefulStandardNormal': Family.NORMAL,
  'StatefulStandardNormalV2': Family.NORMAL,
  'TruncatedNormal': Family.TRUNCATED_NORMAL,
  'StatelessTruncatedNormal': Family.TRUNCATED_NORMAL,
  'StatelessTruncatedNormalV2': Family.TRUNCATED_NORMAL,
  'StatefulTruncatedNormal': Family.TRUNCATED_NORMAL,
}


def family_of(op_type: str) -> Family | None:
  """Returns what a random op draws from; None where its inputs say more of that."""
  return _FAMILIES.get(op_type)


@dataclasses.dataclass(frozen=True, eq=False)
class InitialDraw:
  """How a side draws the initial value of a variable.

  Attributes:
    op_types: of the random ops behind it, in order; empty for a value that is none of
      chance, `CODE` for one whose ops are not known.
    draws: family and number of elements of each of these; None for one that draws from
      anything else.
    distribution: what every element is drawn from; None where the ops do not tell.
    repeat: draws it anew, a number of times: where the family of an op is known, from the
      numbers of `sample`. None where it cannot be drawn again.
    of: the variables that are drawn so, where these are parts of what is shown as one; '' else.
  """

  op_types: tuple[str, ...] = ()
  draws: tuple[tuple[Family, int] | None, ...] = ()
  distribution: Distribution | None = None
  repeat: Callable[[int], list[np.ndarray]] | None = None
  of: str = ''

  @property
  def is_known_by_draws(self) -> bool:
    """Whether all the numbers that `repeat` starts from are those of `sample`."""
    return self.repeat is not None and bool(self.draws) and None not in self.draws


# Makes a session ready.
Prepare = Callable[[Any], None]


@dataclasses.dataclass(frozen=True, eq=False)
class _Value:
  """A tensor that a variable starts with, and what is behind it."""

  graph: tf.Graph
  tensor: tf.Tensor
  outputs: tuple[tf.Tensor, ...]
  feeds: Mapping[Any, Any]
  prepare: Prepare

  def run(self, session: Any, given: Mapping[Any, Any]) -> np.ndarray:
    return np.array(session.run(self.tensor.name, {**self.feeds, **given}))


def draw_behind(
  graph: tf.Graph, value: str, feeds: Mapping[Any, Any], prepare: Prepare
) -> InitialDraw:
  """Returns how a tensor of a graph is drawn.

  Args:
    graph: the graph.
    value: the tensor's name.
    feeds: what the graph has to be fed.
    prepare: makes a session ready: initializes the variables that the tensor reads.
  """
  tensor = graph.get_tensor_by_name(value)
  ops = [
    op for op in _ops_behind(tensor) if is_random_op(op.type) or draws_in_functions(graph, [op])
  ]
  if not ops:
    return InitialDraw()
  kinds = tuple(op.type for op in ops)
  outputs = tuple(op.outputs[0] for op in ops if is_random_op(op.type))
  known = _Value(graph, tensor, outputs, feeds, prepare)
  if len(outputs) < len(ops):  # some are within a function
    unknown = [None] * len(outputs)
    repeat = functools.partial(_repeated, known, unknown, [()] * len(outputs))
    return InitialDraw(kinds, (None,) * len(ops), None, repeat)
  families = [family_of(kind) for kind in kinds]
  with open_session(graph) as session:
    prepare(session)
    shapes = [
      np.shape(drawn) for drawn in session.run([output.name for output in outputs], dict(feeds))
    ]
  draws = tuple(
    None if family is None else (family, math.prod(shape))
    for family, shape in zip(families, shapes, strict=True)
  )
  distribution = None
  repeat = functools.partial(_repeated, known, families, shapes)
  if len(ops) == 1 and families[0] is not None:
    distribution = _distribution(families[0], shapes[0], repeat)
  return InitialDraw(kinds, draws, distribution, repeat)


def _distribution(
  family: Family, shape: tuple[int, ...], repeat: Callable[[int], list[np.ndarray]]
) -> Distribution | None:
  size = math.prod(shape)
  if not size:
    return None
  values = repeat(-(-_FEWEST // size))
  if any(value.size != size for value in values):
    return None
  drawn = [sample(family, shape, 0, seed).ravel() for seed in range(len(values))]
  return distribution_behind(
    family, np.concatenate(drawn), np.concatenate([value.ravel() for value in values])
  )


def _repeated(
  value: _Value, families: Sequence[Family | None], shapes: Sequence[tuple[int, ...]], times: int
) -> list[np.ndarray]:
  found = []
  with open_session(value.graph) as session:
    value.prepare(session)
    for seed in range(times):
      given = {
        output.name: sample(family, shape, number, seed).astype(output.dtype.as_numpy_dtype)
        for number, (output, family, shape) in enumerate(
          zip(value.outputs, families, shapes, strict=True)
        )
        if family is not None
      }
      found.append(value.run(session, given))
  return found


def _ops_behind(tensor: tf.Tensor) -> list[tf.Operation]:
  """Returns the ops that a tensor is computed from, in the order in which they were made."""
  names = ops_behind([tensor])
  return [op for op in tensor.graph.get_operations() if op.name in names]


@dataclasses.dataclass(frozen=True, eq=False)
class TracedValue:
  """A value that a function makes, traced as a graph."""

  graph: tf.Graph  # the graph
  name: str  # of the tensor
  # Tensors of eager mode, by the names of the placeholders in their place.
  captures: Mapping[str, Any]

  @classmethod
  def of(cls, make_value: Callable[[], Any]) -> 'TracedValue':
    """Traces a function; raises what that raises on symbolic tensors."""
    graph = tf.__internal__.FuncGraph('initial_value')
    with warnings.catch_warnings(), graph.as_default():
      warnings.simplefilter('ignore')  # Keras: an initializer without a seed is called again
      tensor = tf.convert_to_tensor(make_value())
      if tensor.graph is not graph:  # made outside of any function
        tensor = tf.identity(tensor)
    return cls(graph, tensor.name, {inner.name: outer for outer, inner in graph.captures})

  def draw(self) -> InitialDraw | None:
    """Returns how it is drawn; None where that needs a variable, which no session has."""
    if any(outer.dtype in (tf.resource, tf.variant) for outer in self.captures.values()):
      return None
    feeds = {name: np.asarray(outer) for name, outer in self.captures.items()}
    return draw_behind(self.graph, self.name, feeds, lambda _: None)
