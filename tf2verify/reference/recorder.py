"""One recording while it is made."""

import contextlib
import hashlib
import sys
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from .arrays import Array, array_digest
from .assignment import Values
from .builder_call import with_training
from .building import build_graph
from .built_graph import BuiltGraph
from .fill_values import CONSTANT_VALUES, DISTINCT_VALUES, constant_values
from .held_array import HeldArray
from .inputs import varied_inputs
from .messages import say, training_name
from .noise_codes import noise_codes
from .options import Options
from .perturbation import Perturber, fraction_bits
from .randomness import CONSTANT, NUM_RANDOM_OPS
from .repeats import spread_of, which_repeat
from .run import Key
from .sequences import size_of
from .sessions import Sessions
from .source_lines import SourceLines
from .writer import Writer

LARGE_MODEL = 10 * 2**20  # elements of all variables; of a larger model less is stored:
_FEWEST_NOISE_RUNS = 4
_FEWEST_LONG_RUNS = 2  # where one takes more than 5 seconds
_NOISE_SHARE = 0.25  # of the time that all else takes
_NOISE_SECONDS = 5.0  # or this, if it is more

# Runs the model, moved or not, and yields what it gives; see `Run.evaluate`.
Evaluate = Callable[[Optional[Perturber]], Iterable[Tuple[Key, Optional[Array]]]]


def _is_output(key: Key) -> bool:
  return key[0] == 'output'


class Recorder:
  """One recording while it is made.

  Attributes:
    inputs: the checked nest of arrays.
    varied: the same with constant inputs varied.
    options: what is asked for.
    writer: stores arrays.
    sources: the table of source lines.
  """

  def __init__(
    self, builder: Callable[..., Any], inputs: Any, options: Options, writer: Writer
  ) -> None:
    self.inputs = inputs
    self.varied, self.replaced = varied_inputs(inputs)
    self.options = options
    self.writer = writer
    self.sources = SourceLines()
    self.sessions = Sessions()
    self.runs: List[Dict[str, Any]] = []
    self.intermediates: List[Dict[str, Any]] = []
    self.fills: Dict[str, Dict[str, Any]] = {DISTINCT_VALUES: {}, CONSTANT_VALUES: {}}
    self._filled: Values = {}
    self._builder = with_training(builder)
    self._graphs: Dict[Tuple[str, bool], BuiltGraph] = {}
    self._graph_digest = ''  # of the one that was built before
    self._open_line = ''
    self._started = time.time()
    self._noise_seconds = 0.0

  @contextlib.contextmanager
  def step(self, text: str) -> Iterator[None]:
    """Says what is being done and how long it took."""
    start = time.time()
    if self._open_line:
      sys.stderr.write('\n')
    self._open_line = text
    sys.stderr.write(text + ' ... ')
    sys.stderr.flush()
    done = False
    try:
      yield
      done = True
    finally:
      mine = self._open_line == text
      self._open_line = ''
      seconds = '{:.1f} s'.format(time.time() - start) if done else 'stopped'
      say(seconds if mine else '{}: {}'.format(text, seconds))

  def built(self, training: bool, mode: str = NUM_RANDOM_OPS) -> BuiltGraph:
    """Returns the graph of a training mode, built for a randomness mode."""
    key = (mode, training)
    if key not in self._graphs:
      again = ' again, for constant mode' if mode == CONSTANT else ''
      with self.step('building the graph{}, {}'.format(again, training_name(training))):
        built = build_graph(self._builder, self.inputs, training, mode, self.sources)
      self._graphs[key] = built
      if mode == NUM_RANDOM_OPS:
        self._say_if_same(built)
      if sum(size_of(n or 1 for n in variable.shape) for variable in built.variables) > LARGE_MODEL:
        self.writer.spare()
    return self._graphs[key]

  def _say_if_same(self, built: BuiltGraph) -> None:
    """Says so where the second graph is the same as the first."""
    data = built.graph.as_graph_def().SerializeToString(deterministic=True)
    known = hashlib.sha256(data).hexdigest()
    if known == self._graph_digest:
      say(
        'note: the graphs of inference and training are the same: the model does nothing different '
        'in training (no dropout, no batch statistics), or the builder ignores its argument for it'
      )
    self._graph_digest = known

  def fill_values(self, built: BuiltGraph, description: str) -> Values:
    """Returns the values of a fill for every variable, and notes their digests."""
    constant = description == CONSTANT_VALUES
    known, digests = ({} if constant else self._filled), self.fills[description]
    for variable in built.variables:
      if variable.name not in known:
        value = variable.value_by(constant_values if constant else self.options.fill)
        known[variable.name] = value
        digests[variable.name] = None if value is None else array_digest(value)
    return {variable.name: known[variable.name] for variable in built.variables}

  def measured(
    self,
    text: str,
    evaluate: Evaluate,
    whole: Callable[[Key], bool] = _is_output,
    of_steps: bool = False,
  ) -> Tuple[Dict[Key, Any], int]:
    """Evaluates a run, again, and with moved values.

    Args:
      text: what is run, for the user.
      evaluate: runs it, moved by the perturber if there is one, from the same start each time.
      whole: which arrays are stored whole, however large.
      of_steps: whether it takes training steps, of which less is stored.

    Returns:
      The manifest's entry for every tensor, and how many moved runs there were.
    """

    def held(perturber: Optional[Perturber]) -> Dict[Key, Optional[HeldArray]]:
      return {
        key: None
        if value is None
        else self.writer.hold(value, whole(key), perturber is None, of_steps)
        for key, value in evaluate(perturber)
      }

    with self.step('running the graph, ' + text):
      first = held(None)
    with self.step('  perturbed by rounding'):
      noises, count = self._noises(first, held)
    with self.step('  again'):
      repeating = which_repeat(first, noises, lambda: held(None))
    tensors: Dict[Key, Any] = {}
    for key, one in first.items():
      tensors[key] = None
      if one is not None:
        noise = noises.get(key)
        tensors[key] = {
          'value': self.writer.add(one),
          'noise': None if noise is None else self.writer.add(noise_codes(noise, one.values)),
          'repeats': key in repeating,
        }
    return tensors, count

  def _noises(
    self,
    first: Dict[Key, Optional[HeldArray]],
    held: Callable[[Perturber], Dict[Key, Optional[HeldArray]]],
  ) -> Tuple[Dict[Key, Array], int]:
    """Returns the noise of each floating tensor, and the number of moved runs.

    What is computed in float64 from float32 variables is not rounded to float32: for it
    only float64 is moved.
    """
    computed = {
      key: (one, fraction_bits(one.values.dtype) or 0)
      for key, one in first.items()
      if one is not None and key[0] != 'initial value' and fraction_bits(one.values.dtype)
    }
    noises: Dict[Key, Array] = {}
    counts: List[int] = []
    for finest in sorted({bits for _, bits in computed.values()}):
      count, seconds = 0, 0.0
      while count < self.options.noise_runs and not self._noise_suffices(count, seconds):
        start = time.time()
        moved = held(Perturber(count, finest))
        for key, (one, bits) in computed.items():
          if bits == finest:
            spread = spread_of(one, moved.get(key))
            noises[key] = np.maximum(noises[key], spread) if key in noises else spread
        seconds += time.time() - start
        self._noise_seconds += time.time() - start
        count += 1
      counts.append(count)
    return noises, min(counts or [0])

  def _noise_suffices(self, count: int, seconds: float) -> bool:
    """Returns whether a run has been moved often enough for the time that it has taken."""
    others = time.time() - self._started - self._noise_seconds
    allowed = max(_NOISE_SHARE * others, _NOISE_SECONDS)
    fewest = _FEWEST_LONG_RUNS if seconds > _NOISE_SECONDS * count else _FEWEST_NOISE_RUNS
    return count >= fewest and self._noise_seconds > allowed
