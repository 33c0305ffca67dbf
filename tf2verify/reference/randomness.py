"""Seeds of everything that draws while a graph is built."""

import contextlib
import random
import sys
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from .private_tensorflow import random_seed, v1
from .scratch_graph import is_scratch_graph
from .sequences import pairs

SEED = 42
CONSTANT = 'constant'
NUM_RANDOM_OPS = 'num_random_ops'


class _OpSeeds:
  """Stands in for TensorFlow's `get_seed`: (42, 0) for every op, or (42, n) for the n-th."""

  def __init__(self, mode: str) -> None:
    self.count = 0
    self._counting = mode == NUM_RANDOM_OPS

  def __call__(self, op_seed: Optional[int] = None) -> Tuple[int, int]:
    if is_scratch_graph(v1.get_default_graph()):
      return SEED, 0
    number = self.count
    if self._counting:
      self.count += 1
    return SEED, number


class _KerasSeeds(random.Random):
  """Keras' source of initializer seeds under TensorFlow 2: counted, and constant where asked."""

  def __init__(self, mode: str) -> None:
    super().__init__(SEED)
    self.draws = 0
    self._constant = mode == CONSTANT

  def randint(self, a: int, b: int) -> int:
    """Returns the next seed."""
    self.draws += 1
    return SEED if self._constant else super().randint(a, b)


class Seeding:
  """What a seeded scope has drawn: seeds of ops, and seeds by Keras."""

  def __init__(self, mode: str) -> None:
    self.ops = _OpSeeds(mode)
    self.keras = _KerasSeeds(mode)


@contextlib.contextmanager
def seeded(seeding: Seeding) -> Iterator[None]:
  """Owns every source of randomness of a build until exit."""
  generators: List[Any] = []
  for name in ('tf_keras.src.backend', 'tensorflow.python.keras.backend', 'keras.backend'):
    backend: Any = sys.modules.get(name)
    if hasattr(backend, '_SEED_GENERATOR'):
      generators.append(backend._SEED_GENERATOR)
  python, numpy, get_seed = random.getstate(), np.random.get_state(), random_seed.get_seed
  before = [getattr(generator, 'generator', None) for generator in generators]
  random.seed(SEED)
  np.random.seed(SEED)
  random_seed.get_seed = seeding.ops
  for generator in generators:
    generator.generator = seeding.keras
  try:
    yield
  finally:
    random_seed.get_seed = get_seed
    random.setstate(python)
    np.random.set_state(numpy)
    for generator, state in pairs(generators, before):
      generator.generator = state
      if state is None:
        del generator.generator
