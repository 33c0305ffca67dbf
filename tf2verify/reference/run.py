"""A run of a graph, and perturbed ones."""

from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from .arrays import Array
from .assignment import Values, assign
from .built_graph import BuiltGraph
from .gradients import dense_gradient
from .nests import leaves_by_path, map_leaves
from .perturbation import Perturber
from .private_tensorflow import v1
from .sequences import pairs
from .sessions import Sessions, fetch, open_session

Key = Tuple[str, str]  # a quantity ('gradient') and a name or path


def moved_inputs(inputs: Any, perturber: Optional[Perturber]) -> Any:
  """Returns the nest with every input moved; the nest itself without a perturber."""
  return inputs if perturber is None else map_leaves(perturber.input, inputs)


def feeds_of(built: BuiltGraph, inputs: Any) -> Dict[str, Array]:
  """Returns the arrays of a nest by the names of the placeholders that take them."""
  leaves = leaves_by_path(inputs)
  return {name: leaves[path] for path, name in built.placeholders}


def total_of(losses: Sequence[Array]) -> Optional[Array]:
  """Returns the sum of losses as `tf.add_n` adds them up, in this order; None without any."""
  if not losses:
    return None
  if len({(loss.dtype, loss.shape) for loss in losses}) > 1:
    return np.asarray(sum(float(loss.sum()) for loss in losses))
  graph = tf.Graph()
  with graph.as_default():
    terms = [v1.placeholder(tf.as_dtype(loss.dtype), loss.shape) for loss in losses]
    total = tf.reduce_sum(tf.add_n(terms))
  with open_session(graph) as session:
    return np.asarray(session.run(total, dict(pairs(terms, losses))))


def fetch_targets(
  session: Any,
  built: BuiltGraph,
  feeds: Dict[str, Array],
  gradients: bool = False,
  others: Sequence[str] = (),
) -> Tuple[Dict[Key, Optional[Array]], Dict[str, Array]]:
  """Runs outputs, losses, update ops and gradients together, as one training step would.

  Returns:
    The targets, and the tensors of the names in `others`.
  """
  names = [name for _, name in built.outputs if name is not None]
  names += [name for _, name in built.regularization_losses]
  wanted = built.gradients if gradients else []
  for entry in wanted:
    names += [name for name in (entry['values'], entry['indices']) if name is not None]
  names += others
  found = fetch(session, names + built.update_ops, feeds)[: len(names)]
  values = {name: np.asarray(value) for name, value in pairs(names, found)}
  targets: Dict[Key, Optional[Array]] = {}
  for path, name in built.outputs:
    targets['output', path] = None if name is None else values[name]
  losses = [values[name] for _, name in built.regularization_losses]
  for number, loss in enumerate(losses):
    targets['regularization loss', str(number)] = loss
  targets['regularization total', ''] = total_of(losses[::-1])
  for entry in wanted:
    gradient = None
    if entry['values'] is not None:
      rows = None if entry['indices'] is None else values[entry['indices']]
      gradient = dense_gradient(entry, values[entry['values']], rows)
    targets['gradient', entry['variable']] = gradient
  return targets, {name: values[name] for name in others}


class Run:
  """A run of a graph from given or its own initial values, and again from moved ones.

  Only the first evaluation needs a fresh session, where all random ops start anew: later
  ones start from the initial values of that, and are fed what it drew. Where something
  draws without the recorder's seeds, or cannot be fed, every evaluation has its own.
  """

  def __init__(
    self,
    built: BuiltGraph,
    graph: Any,
    inputs: Any,
    values: Optional[Values],
    sessions: 'Sessions',
    gradients: bool = False,
  ) -> None:
    """Takes what to run.

    Args:
      built: what is known of the graph.
      graph: the same, or one of the same names.
      inputs: the nest of arrays to feed.
      values: of the variables; None for their own, seeded initial values, which are
        told, then, as well as their values after the run.
      sessions: gives sessions.
      gradients: whether gradients are wanted.
    """
    self._built = built
    self._graph = graph
    self._inputs = inputs
    self._values = values
    self._sessions = sessions
    self._gradients = gradients
    self._drawn: Dict[str, Array] = {}
    self._changing = [v for v in built.owned() if values is None and v.may_change()]
    draws = built.draws_used(gradients) if built.draws_repeat else None
    self._draws = draws or []
    self._always_fresh = draws is None
    self._start: Optional[Values] = None

  def evaluate(self, perturber: Optional[Perturber]) -> Iterator[Tuple[Key, Optional[Array]]]:
    """Yields quantity and name of what the run gives, and the array, which a later run may change.

    Args:
      perturber: moves variables and inputs; without one it runs in a fresh session, as it was.
    """
    built = self._built
    first = self._start is None
    draws = self._values is None or built.draws_in_computation
    fresh = self._always_fresh or (first and draws)
    session = self._sessions.open(self._graph, built.table_initializers, fresh)
    if self._values is None and (first or (fresh and perturber is None)):
      yield from self._initial_values(session)
    else:
      self._start = self._start or self._values
      assign(session, built.variables, self._start or {}, perturber)
    feeds = feeds_of(built, moved_inputs(self._inputs, perturber))
    feeds.update(self._drawn)
    wanted = self._draws if first else []
    targets, drawn = fetch_targets(session, built, feeds, self._gradients, wanted)
    self._drawn.update(drawn)
    for key, value in targets.items():
      yield key, value
    after = fetch(session, [variable.read for variable in self._changing])
    for variable, value in pairs(self._changing, after):
      yield ('state after', variable.name), value

  def _initial_values(self, session: Any) -> Iterator[Tuple[Key, Array]]:
    variables = self._built.variables
    fetch(session, [variable.initializer for variable in variables])
    found = fetch(session, [variable.read for variable in variables])
    for variable, value in pairs(variables, found):
      if not variable.local:
        yield ('initial value', variable.name), value
    self._start = {v.name: np.array(value) for v, value in pairs(variables, found)}

  def tensors(self, names: Sequence[str]) -> Iterator[Tuple[str, Array]]:
    """Yields tensors of the run by name."""
    built = self._built
    session = self._sessions.open(self._graph, built.table_initializers, fresh=False)
    assign(session, built.variables, self._start or {})
    feeds = feeds_of(built, self._inputs)
    feeds.update(self._drawn)
    for start in range(0, len(names), 256):  # at once they would need gigabytes
      part = names[start : start + 256]
      for name, value in pairs(part, fetch(session, part, feeds)):
        yield name, np.asarray(value)
