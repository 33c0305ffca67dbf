"""The same random draws on both sides."""

import contextlib
import contextvars
import dataclasses
import functools
import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

from tf2verify.reference.scratch_graph import is_scratch_graph
from tf2verify.sides.process import answered_draws, keras_draws, loop_draws
from tf2verify.tensorflow_internals import eager, keras, keras3, kernels, random_ops

SEED = 42
CONSTANT = 'constant'
NUM_RANDOM_OPS = 'num_random_ops'
# The same, from initial values that are given: the random ops of initializers do not count.
COMPUTATION = 'num_random_ops of the computation'
# The same, and those of tf1 without an effect do not count either: the port may draw none there.
EFFECTIVE = 'num_random_ops with an effect'
OF_COMPUTATION = (COMPUTATION, EFFECTIVE)

_Tool: Any = tf.compat.v1.keras.utils.DeterministicRandomTestTool


class RandomTool(_Tool):  # type: ignore[misc]
  """`DeterministicRandomTestTool`, and whether user code has moved its `operation_seed`.

  In `constant` mode every random op has the seeds (42, 0), in `num_random_ops`
  mode (42, n) where n counts the random ops made so far.
  """

  def __init__(self, seed: int, mode: str) -> None:
    super().__init__(seed=seed, mode=mode)
    self.moved = False
    self.op_seeds: set[int] = set()  # those that callers gave; the tool's own replace them
    self.given: set[tuple[int, int]] = set()

  @property
  def operation_seed(self) -> int:
    """The seed of the next random op; a port that draws in another, known order may set it."""
    return int(self._operation_seed)

  @operation_seed.setter
  def operation_seed(self, value: int) -> None:
    self.moved = True
    # In `constant` mode all random ops keep the one seed that they have.
    self._operation_seed = 0 if self._mode == CONSTANT else value

  def uncount(self) -> None:
    """Takes back the seed of a random op that is not made after all."""
    if self._mode != CONSTANT:
      self._operation_seed -= 1
      self._observed_seeds.discard(self._operation_seed)

  @contextlib.contextmanager
  def scope(self) -> Iterator[None]:
    """Seeds every random op until exit, but for those that are never run.

    Raises:
      ValueError: by a random op whose seed another one has had, in `num_random_ops` mode.
    """
    if not tf.executing_eagerly():
      tf.random.set_seed(self._seed)
    else:
      kernels.set_seed(self._seed)
      if _draws.unasked or kernels.has_functions_that_draw():
        kernels.forget()
    has_drawn = False

    def get_seed(op_seed: int | None) -> tuple[int, int]:
      nonlocal has_drawn
      if op_seed is not None:
        self.op_seeds.add(int(op_seed))
      is_eager = tf.executing_eagerly()
      if not is_eager and is_scratch_graph(tf.compat.v1.get_default_graph()):
        return self._seed, 0
      # Others have kernels that keep how far they have drawn.
      keeps = not is_eager or not random_ops.is_asked_by_such()
      if is_eager and keeps and not has_drawn:
        # An earlier scope may have drawn by the same seeds.
        kernels.forget()
        has_drawn = _draws.kept = True
      return self._next_seeds(keeps)

    with (
      mock.patch.object(self.seed_implementation, 'get_seed', get_seed),
      random_ops.drawn_first(lambda seeds: seeds in self.given),
    ):
      yield

  def _next_seeds(self, keeps: bool) -> tuple[int, int]:
    """Returns the seeds of the next random op.

    Args:
      keeps: whether its kernel keeps how far it has drawn.
    """
    op_seed = self._operation_seed
    if self._mode == CONSTANT and keeps:
      # Forgets how far the kernel of these seeds has drawn.
      tf.random.set_seed(op_seed)
    elif self._mode == CONSTANT:
      kernels.set_seed(op_seed)
    elif op_seed in self._observed_seeds:
      raise ValueError(
        f'a random op would have the operation seed {op_seed}, which another one has had: '
        '`operation_seed` of tf2verify.random_tool() was set so that two ops have the same; give '
        'every random op a number of its own'
      )
    else:
      self._observed_seeds.add(op_seed)
      self._operation_seed += 1
    self.given.add((self._seed, op_seed))
    return self._seed, op_seed


@dataclasses.dataclass
class _Draws:
  """What the process has seen of draws.

  Attributes:
    unasked: whether an eager op has drawn by seeds that no tool gave, as ops of `tf.raw_ops` do.
    kept: whether one has drawn by seeds of a tool and a kernel that keeps how far.
  """

  unasked: bool = False
  kept: bool = False


_draws = _Draws()


def note_draw(seeds: tuple[int, int]) -> None:
  """Notes the seeds of an eager op that has drawn; where no tool gave them, no kernel is kept."""
  tool = _ACTIVE.get()
  if tool is not None and seeds not in tool.given:
    _draws.unasked = True


def forget_draws() -> None:
  """Has every eager op draw anew, as in a process that has drawn nothing; does so if any has drawn.

  Where none has, kernels are kept: each takes longer to make than to run.
  """
  if _draws.unasked or _draws.kept or kernels.has_functions_that_draw():
    forget_kernels()


def forget_kernels() -> None:
  """Lets go of what eager ops and functions keep for the next call."""
  kernels.forget()
  _draws.unasked = _draws.kept = False


class _KerasSeeds(random.Random):
  """tf-keras' own source of initializer seeds: counted, and constant where the mode is."""

  def __init__(self, seed: int, constant: bool) -> None:
    super().__init__(seed)
    self.drawn: list[int] = []
    self._constant = constant

  def randint(self, a: int, b: int) -> int:
    self.drawn.append(SEED if self._constant else super().randint(a, b))
    return self.drawn[-1]


_ACTIVE: contextvars.ContextVar[RandomTool | None] = contextvars.ContextVar(
  'tf2verify_random_tool', default=None
)


def random_tool() -> RandomTool | None:
  """Returns the tool whose scope is active, for a port that draws in another, known order.

  Such a port sets `operation_seed` before a random op to the number that this op
  has on the TF1 side:

      tool = tf2verify.random_tool()
      if tool is not None:
        tool.operation_seed = 3

  Returns:
    The active `DeterministicRandomTestTool`; None where no seeded run is on.
  """
  return _ACTIVE.get()


class SeededScope:
  """What a seeded scope has seen so far.

  Attributes:
    tool: the active tool.
    answers: what stands for draws inside loops.
  """

  def __init__(
    self, tool: RandomTool, keras_seeds: _KerasSeeds, as_keras3: bool, answers: loop_draws.Answers
  ) -> None:
    self.tool = tool
    self.answers = answers
    self._keras_seeds = keras_seeds
    self._as_keras3 = as_keras3

  @property
  def depends_on_more_than_op_seeds(self) -> str:
    """Why setting every seed anew is not what `constant` mode does; '' if it is."""
    return 'user code sets operation_seed' if self.tool.moved else ''

  @property
  def keras_seeds(self) -> tuple[int, ...]:
    """What tf-keras' source of seeds gave, but for seeds of ops, which the tool replaces."""
    if self._as_keras3:
      return ()
    return tuple(seed for seed in self._keras_seeds.drawn if seed not in self.tool.op_seeds)


def _seeded_generator(seed: int, alg: Any = None) -> Any:
  """Stands in for `tf.random.Generator.from_non_deterministic_state`."""
  return tf.random.Generator.from_seed(seed, alg or 'philox')


@contextlib.contextmanager
def seeded(
  mode: str, seed: int | None = None, as_keras3: bool = False, of_reference: bool = False
) -> Iterator[SeededScope]:
  """Owns every source of randomness until exit.

  TensorFlow's op seeds, tf-keras' seed generator (which the tool alone does not
  reach: a correct `tf.layers` model then differs by 3.8), `tf.random.Generator`s
  without a seed, the stateless ops of Keras 3, Python and numpy. `process_state.preserved`
  puts them back. What a reference draws inside loops is fixed, see `loop_draws`.

  Args:
    mode: `CONSTANT`, `NUM_RANDOM_OPS`, or of `OF_COMPUTATION` where no variable is made inside.
    seed: `SEED` unless given; another one draws other numbers, in `NUM_RANDOM_OPS` mode.
    as_keras3: whether initializers of tf-keras draw as those of Keras 3 do here: for a reference
      whose port is of Keras 3.
    of_reference: whether the graph of a reference is built inside.
  """
  seed = SEED if seed is None else seed
  random.seed(seed)
  np.random.seed(seed)
  keras_seeds = _KerasSeeds(seed, constant=mode == CONSTANT)
  keras.set_seed_generator(keras_seeds)
  # A graph is to have no variable of it.
  keras3.write_seeds(keras3.seeds_of(seed) if tf.executing_eagerly() else None)
  eager.forget_global_generator()  # made anew, by `_seeded_generator`, if asked for
  generator = functools.partial(_seeded_generator, seed)
  tool = RandomTool(seed, NUM_RANDOM_OPS if mode in OF_COMPUTATION else mode)
  packages = (keras_draws.KERAS_3, *((keras_draws.KERAS_2,) if as_keras3 else ()))
  answers = loop_draws.answers(of_reference, tool.uncount)
  token = _ACTIVE.set(tool)
  try:
    with (
      tool.scope(),
      keras_draws.stateful(packages, seed),
      answers.answering(),
      answered_draws.scope(mode != CONSTANT, tool.uncount),
      mock.patch.object(tf.random.Generator, 'from_non_deterministic_state', generator),
    ):
      yield SeededScope(tool, keras_seeds, as_keras3, answers)
  finally:
    _ACTIVE.reset(token)
