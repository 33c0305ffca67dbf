"""Ways to trace the user's code, as Python runs it or rewritten, and which of them has worked."""

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.reference import nests
from tf2verify.sides.graphs.lines.made_layers import MadeLayers
from tf2verify.sides.graphs.numbers_read import Evaluates, NumbersRead
from tf2verify.sides.graphs.reading import Target
from tf2verify.sides.tf2.traces.tracing import NotTraceable, Traced
from tf2verify.tensorflow_internals import autograph, conversions, graphs, keras3

v1 = tf.compat.v1


@contextlib.contextmanager
def _functions_inlined() -> Iterator[None]:
  """Makes a `tf.function` inside of the port run as plain Python."""
  before = tf.config.functions_run_eagerly()
  tf.config.run_functions_eagerly(True)
  try:
    with _scopes_put_back():
      yield
  finally:
    tf.config.run_functions_eagerly(before)


@contextlib.contextmanager
def _scopes_put_back() -> Iterator[None]:
  """Puts back the name scopes of Keras, which it leaves open where one cannot be entered."""
  scopes = keras3.read_open_scopes()
  try:
    yield
  finally:
    keras3.write_open_scopes(scopes)


# What TensorFlow says of a scope that is not within another one.
_NO_ROOT = 'is not a valid root scope name'
# What it says of `int(x)`, `if x`, `x.numpy()` and `np.asarray(x)`, of tensors and of variables.
_ASKS_FOR_NUMBERS = re.compile(r'[Ss]ymbolic|numpy\(\)')

# Traces a computation.
_Way = Callable[['_Computation'], Traced]


class Habit:
  """The way in which code was traced, so that it is traced again without what does not work."""

  def __init__(self) -> None:
    self._way: _Way | None = None
    self._read: frozenset[SourceLine | None] = frozenset()

  def trace(self, computation: '_Computation') -> Traced | None:
    """Returns a trace in that way; None where it has none, or another one may be better there."""
    if self._way is None:
      return None
    try:
      traced = self._way(computation)
    except Exception:  # noqa: BLE001 - the user's code may raise anything
      return None
    # Who reads none of these numbers may need no number at all.
    return traced if self._read <= _lines_that_read(traced) else None

  def adopt(self, way: '_Way', traced: Traced) -> None:
    """Remembers the way in which something was traced."""
    self._way, self._read = way, _lines_that_read(traced)


def _lines_that_read(traced: Traced) -> frozenset[SourceLine | None]:
  return frozenset(number.line for number in traced.numbers_read)


def trace(
  compute: Callable[[Any], Mapping[str, Any]],
  inputs: Any,
  layers: MadeLayers | None = None,
  evaluate: Evaluates | None = None,
  habit: Habit | None = None,
) -> Traced:
  """Traces a computation on placeholders.

  Args:
    compute: takes placeholders in the structure of `inputs` and returns tensors, or
      `IndexedSlices`, by what they are; runs the user's code.
    inputs: a nest of arrays.
    layers: where layers were constructed, for the lines of their operations; None without any.
    evaluate: returns numbers that Python reads; None where only those are read that follow from
      shapes.
    habit: of earlier traces of the same code, which is tried first; None for none.

  Raises:
    NotTraceable: the user's code does not run on symbolic tensors.
  """
  computation = _Computation(compute, inputs, layers, evaluate)
  habit = habit or Habit()
  return habit.trace(computation) or _traced_first(computation, habit)


def _traced_first(computation: '_Computation', habit: Habit) -> Traced:
  """Traces a computation in the first way that works, see `trace`."""
  try:
    return computation.plainly()
  except Exception as error:  # noqa: BLE001 - the user's code may raise anything
    first = error
  ways: list[_Way] = [_Computation.rewritten]
  if _NO_ROOT in str(first) or _ASKS_FOR_NUMBERS.search(str(first)):
    ways.insert(0, _Computation.by_shapes)
  if computation.evaluate is not None:
    ways.append(_Computation.with_numbers)
  last: Exception = first
  for way in ways:
    try:
      traced = way(computation)
    except Exception as error:  # noqa: BLE001 - likewise
      last = error
      continue
    # What is rewritten may fail for variables that the first step makes, and not later.
    if way is not _Computation.with_numbers or _ASKS_FOR_NUMBERS.search(str(last)):
      habit.adopt(way, traced)
    return traced
  summary = ' '.join(str(first).split())[:200]
  raise NotTraceable(f'{type(first).__name__}: {summary}') from first


@dataclasses.dataclass(frozen=True, eq=False)
class _Computation:
  """What is traced, see `trace`."""

  compute: Callable[[Any], Mapping[str, Any]]
  inputs: Any
  layers: MadeLayers | None
  evaluate: Evaluates | None
  scope: str = ''  # around all of it; '' for none

  def plainly(self) -> Traced:
    """Traces it as Python runs it."""
    with _functions_inlined():
      return self._trace()

  def by_shapes(self) -> Traced:
    """Traces it while Python reads numbers that follow from shapes."""
    with _functions_inlined():
      return self._rooted(reads=True)

  def rewritten(self) -> Traced:
    """Traces it with Python's `if` and `for` over tensors, which autograph rewrites."""
    with _scopes_put_back(), autograph.switched():
      return self._rooted()

  def with_numbers(self) -> Traced:
    """Traces it while Python reads any number."""
    with _functions_inlined():
      return self._rooted(reads=True, evaluate=self.evaluate)

  def _rooted(self, reads: bool = False, evaluate: Evaluates | None = None) -> Traced:
    """Traces it, see `trace`, within a scope where its own names cannot be outermost ones.

    That is so where the name of a class of layers or optimizers begins with an underscore.
    """
    try:
      return self._trace(reads, evaluate)
    except Exception as error:  # the user's code may raise anything
      if self.scope or _NO_ROOT not in str(error):
        raise
    return dataclasses.replace(self, scope='port')._trace(reads, evaluate)

  def _trace(self, reads: bool = False, evaluate: Evaluates | None = None) -> Traced:
    """Traces it once.

    Args:
      reads: whether Python may read numbers of it, at least those that follow from shapes.
      evaluate: returns the others; None where these may not be read.
    """
    graph = graphs.FuncGraph('port')
    numbers = NumbersRead(graph, evaluate)
    feeds: dict[str, np.ndarray] = {}
    paths: dict[str, str] = {}

    def placeholder(path: str, leaf: np.ndarray) -> tf.Tensor:
      dtype = tf.string if leaf.dtype.kind in 'SU' else tf.as_dtype(leaf.dtype)
      tensor = v1.placeholder(dtype, leaf.shape, name=f'tf2verify_input/{len(feeds)}')
      feeds[tensor.name] = leaf
      paths[tensor.op.name] = path
      return tensor

    # As eagerly, a read of a variable sees the writes before it.
    nothing = contextlib.nullcontext()
    seen = nothing if self.layers is None else self.layers.of_operations(graph)
    answered = conversions.answered(numbers.value_of) if reads else nothing
    with graph.as_default(), graphs.AutomaticControlDependencies(), seen:
      fed = nests.map_leaves(placeholder, self.inputs)
      numbers.feeds = feeds
      with answered, tf.name_scope(self.scope) if self.scope else contextlib.nullcontext():
        results = self.compute(fed)
      known = ((name, numbers.resolved(result)) for name, result in results.items())
      targets = tuple(_target(graph, name, it) for name, it in known if it is not None)
    writes = tuple(op.name for op in graph.get_operations() if op.type.startswith('Assign'))
    return Traced(graph, feeds, paths, targets, writes, numbers_read=tuple(numbers.of_this_run))


def _target(graph: Any, name: str, result: Any) -> Target:
  parts = (result.values, result.indices) if isinstance(result, tf.IndexedSlices) else (result,)
  return Target(name, tuple(graph.capture(tf.convert_to_tensor(part)).name for part in parts))
