"""What updates do of gradients that are much smaller, or greater, than those of the steps taken.

An epsilon beside the root, or another bound, shows only where what it is added to is small. The
update of both sides is computed again from scaled gradients, with slots to match.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.records.op_graph import VARIABLE, OpGraph, TensorKey
from tf2verify.records.wording import listed, number_text
from tf2verify.sides.graphs.rewriting.without_state import WrittenOtherwise
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import (
  StepGraph,
  applied_target,
  gradient_target,
  step_run,
  update_target,
)
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.training.graphs.step_proof import RelatedStep

_FACTORS = (1e-3, 1e3)
# Of the greatest element of what a step adds to a variable.
_APART, _SAME = 0.01, 1e-3
# In units in the last place of a variable, the rounding of what a step adds to it.
_ULPS = 8.0
_SHOWN = 3
# By which a slot is told apart that has no partner.
_OF_SIDE = ' of tf'

_BEFORE = 'what gradients are multiplied by before a clipping, the clipping, '

_Values = dict[str, np.ndarray]


class _NotGiven(Exception):
  """An update cannot be run with other values; the text says why, for the reader."""


class _NotJudged(Exception):
  """The updates of both sides cannot be compared at other gradients."""


def other_gradients(step: RelatedStep, as_differentiated: bool = False) -> list[str]:
  """Returns what to say of updates that agree, and would not for other gradients.

  Args:
    step: a step that agrees, of which not everything is proven.
    as_differentiated: whether only gradients before clipping are tried, not those after it.
  """
  try:
    if step.graphs.are_left_out:
      return []
    with contextlib.ExitStack() as opened:
      sides = [opened.enter_context(contextlib.closing(_Side(s))) for s in (step.tf1, step.tf2)]
      tf1, tf2 = sides
      # What an optimizer of somebody's own is given is not known. And a clipping that every step
      # reaches hides factors before it, all but where the gradients are small.
      is_known = tf1.trained() and tf2.trained()
      tries = is_known and not as_differentiated
      found = []
      with contextlib.suppress(_NotJudged):
        # Gradients become small in the end; whether they can be large, a clipping decides.
        if small := list(_told(step, tf1, tf2, _FACTORS[:1])) if tries else []:
          return small
        found = list(_told(step, tf1, tf2, _FACTORS[1:])) if tries else []
      tf1.target = tf2.target = gradient_target
      if found and _also_before(step, tf1, tf2):
        return found
      with contextlib.suppress(_NotJudged):
        return list(_told(step, tf1, tf2, _FACTORS[:1] if is_known else _FACTORS))
      return []
  except (NotApplicable, NotTraceable, WrittenOtherwise):
    return []  # of what cannot be run alone nothing is known
  except _NotGiven as reason:
    return [f'the updates at other gradients were not compared: {reason}']
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the stage, and is said
    return [f'the updates at other gradients were not compared: {type(error).__name__}: {error}']


def _also_before(step: RelatedStep, tf1: '_Side', tf2: '_Side') -> bool:
  """Returns whether updates differ at large gradients as differentiated too, as far as is known.

  A clipping may stand in the update of one side, and before that of the other.
  """
  try:
    return any(True for _ in _told(step, tf1, tf2, _FACTORS[1:]))
  except (NotApplicable, NotTraceable, WrittenOtherwise, _NotGiven, _NotJudged):
    return True


def _told(step: RelatedStep, tf1: '_Side', tf2: '_Side', factors: Sequence[float]) -> Iterator[str]:
  names = sorted(tf1.trained() & tf2.trained())
  if not names:
    return
  is_before = tf1.target is gradient_target and tf1.changes_gradients(names)
  ours, theirs = tf1.slots(names), tf2.slots(names)
  idle = tf1.is_idle(names, ours - theirs), tf2.is_idle(names, theirs - ours)
  alone = [
    () if one else own for one, own in zip(idle, (ours - theirs, theirs - ours), strict=True)
  ]
  if any(alone):  # slots that only one side has would not be scaled with the others
    # What TF1 alone has, a momentum say, the steps show.
    if not alone[0] and idle[1] is False and ours & theirs:
      yield _of_state(alone[1])
    return
  ones, others = tf1.gradients(names), tf2.gradients(names)
  layouts, telling = step.tf2.layouts, dict[str, np.ndarray]()
  for name in names:
    port = others[name] if name not in layouts else layouts[name].to_tf1(others[name])
    if _apart(ones[name], port, 0.0) > _SAME:
      # One side adds something to the gradient later, a decay, which is not to be scaled.
      raise _NotJudged
    telling[name] = _are_alike(ones[name], port)
  for factor in (1.0, *factors):
    one, other = tf1.added(names, factor), tf2.added(names, factor)
    for name in names:
      layout = step.tf2.layouts.get(name)
      port = other[name] if layout is None else layout.to_tf1(other[name])
      where = telling[name] if telling[name].shape == one[name].shape == port.shape else ...
      apart = _apart(one[name][where], port[where], tf1.rounding(name))
      if factor == 1.0 and apart > _SAME:
        raise _NotJudged  # computed alone, the updates are not those of the step
      if factor != 1.0 and apart > _APART:
        times, much = number_text(factor), f'{100 * min(apart, 1.0):.2g} %'
        yield (
          'the updates agree at the gradients of these steps, and would not at gradients that are '
          f'{times} times as large, with slots to match: what is added to {name} differs by {much} '
          f'then: compare {_BEFORE if is_before else ""}an epsilon, and what it is added to, or a '
          'bound'
        )
        return


def _of_state(slots: Collection[str]) -> str:
  """Returns what to say of slots that the port alone has, and that its updates follow from."""
  names = sorted(name.rpartition(_OF_SIDE)[0] or name for name in slots)
  return (
    f'what the updates of the port add follows from {listed(names, _SHOWN)}, which TF1 has nothing '
    'for: these steps agree, and others may not, as with AMSGrad once second moments fall; make '
    'the update that of TF1'
  )


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
  """The operations of an update, from the gradient on."""

  entering: frozenset[TensorKey]
  ends: Mapping[str, str]  # by variable, the tensor of its value after the step


class _Side:
  """A step of one side.

  Attributes:
    target: returns the name of a variable's gradient, as an update is given it.
  """

  def __init__(self, step: StepGraph) -> None:
    self._run: GraphRun = step_run(step)
    self._values = {one.name: one.value for one in step.variables.values()}
    self.target: Callable[[str], str] = applied_target

  @property
  def _graph(self) -> OpGraph:
    return self._run.op_graph

  def close(self) -> None:
    """Lets go of its session."""
    self._run.close()

  def trained(self) -> set[str]:
    """Returns the variables with a dense gradient that is given to an update."""
    targets = self._graph.targets()
    return {
      name
      for name in self._values
      if all(
        len(self._graph.ops[targets[target]].inputs) == 1 if target in targets else False
        for target in (self.target(name), update_target(name))
      )
    }

  def changes_gradients(self, names: list[str]) -> bool:
    """Returns whether an update is given something else than the gradient, as after a clipping."""
    targets = self._graph.targets()
    ends = [targets[one] for name in names if (one := applied_target(name)) in targets]
    given = {key for end in ends for key in self._graph.ops[end].inputs}
    return bool(given - self._gradients())

  def slots(self, names: list[str]) -> frozenset[str]:
    """Returns the state of more than one number that the updates of some variables read."""
    part = self._part(names)
    read = {self._graph.ops[n].name for n, _ in part.entering if self._is_variable(n)}
    return frozenset(one for one in read - set(names) if self._values[one].size > 1)

  def gradients(self, names: list[str]) -> _Values:
    """Returns the gradients of variables."""
    values = self._run.refetched([self._tensor(self._gradient(name)) for name in names], {})
    if values is None:
      raise NotApplicable('the gradients cannot be had')
    return dict(zip(names, values, strict=True))

  def is_idle(self, names: list[str], slots: Collection[str]) -> bool | None:
    """Returns whether updates are the same whatever some slots hold: a momentum of none.

    None where that cannot be tried.
    """
    if not slots:
      return True
    part, (keys, given) = self._part(names), self._entering(names)
    own = {self._tensor(key) for key in keys if self._graph.ops[key[0]].name in slots}
    other = {name: value + 1 if name in own else value for name, value in given.items()}
    ends = [part.ends[name] for name in names]
    found = self._run.recompute([(ends, given), (ends, other)])
    if found[0] is None or found[1] is None:
      return None
    pairs = list(zip(found[0], found[1], strict=True))
    if all(np.array_equal(*pair) for pair in pairs):
      return True
    # Sums in another order are no effect.
    return None if all(np.allclose(*pair, rtol=1e-5, atol=1e-7) for pair in pairs) else False

  def added(self, names: list[str], factor: float) -> _Values:
    """Returns what a step adds to variables where gradients are scaled, and slots with them."""
    part, (keys, given) = self._part(names), self._entering(names)
    gradients, slots = self._gradients(), self.slots(names)
    for key, tensor in ((key, self._tensor(key)) for key in keys):
      if tensor not in given:
        continue
      if key in gradients:
        given[tensor] = _scaled(given[tensor], factor)
      elif self._graph.ops[key[0]].name in slots:
        # What holds squares is not negative.
        is_square = bool(np.all(given[tensor] >= 0))
        given[tensor] = _scaled(given[tensor], factor**2 if is_square else factor)
    (found,) = self._run.recompute([([part.ends[name] for name in names], given)])
    if found is None:
      raise NotApplicable('the updates cannot be run alone')
    return {
      name: np.asarray(after, np.float64) - self._values[name]
      for name, after in zip(names, found, strict=True)
    }

  def _entering(self, names: list[str]) -> tuple[list[TensorKey], _Values]:
    """Returns what updates read, and its values by tensor, but for what is read by its handle."""
    keys = sorted(self._part(names).entering)
    tensors = [self._tensor(key) for key in keys]
    values = self._run.refetched(tensors, {})
    if values is None:
      raise NotApplicable('what the updates read cannot be had')
    given = dict(zip(tensors, values, strict=True))
    handles = {tensor for tensor, value in given.items() if value.dtype.kind not in 'fiub'}
    for key, tensor in zip(keys, tensors, strict=True):
      # A variable that a loop reads as well is there by its handle, and has its value by itself.
      if tensor in handles and self._is_variable(key[0]) and self._graph.ops[key[0]].name in names:
        del given[tensor]
        handles.discard(tensor)
    if handles:
      raise _NotGiven(
        'one of them reads what cannot be given other values, such as a table that is updated row '
        'by row'
      )
    return keys, given

  def rounding(self, name: str) -> float:
    """Returns how far the rounding of a variable may move what is added to it."""
    value = self._values[name]
    eps = np.finfo(value.dtype).eps if value.dtype.kind == 'f' else 0.0
    return _ULPS * float(eps * np.max(np.abs(value), initial=0.0))

  def _part(self, names: list[str]) -> _Part:
    graph, targets = self._graph, self._graph.targets()
    gradients = self._gradients()
    ends = [targets[update_target(name)] for name in names]
    # The gradient of an offset is a factor of others: what leads to a gradient is no update.
    own = [producer for producer, _ in gradients]
    behind = graph.ancestors(ends) - graph.ancestors(own)
    inside: set[int] = set()
    # Nor are tables with gradients of rows slots: the model reads them, by their handles.
    variables = (op.name for op in graph.ops if op.op_type == VARIABLE and op.name not in names)
    slots = {name for name in variables if self.target(name) not in targets}
    for position, op in enumerate(graph.ops):
      starts = op.op_type != VARIABLE and any(
        key in gradients or graph.ops[key[0]].name in slots for key in op.inputs
      )
      if position in behind and (starts or any(n in inside for n, _ in op.inputs)):
        inside.add(position)
    entering = {key for n in inside for key in graph.ops[n].inputs if key[0] not in inside}
    after = {
      name: self._tensor(graph.ops[end].inputs[0]) for name, end in zip(names, ends, strict=True)
    }
    return _Part(frozenset(entering), after)

  def _gradients(self) -> set[TensorKey]:
    """Returns the gradients of all variables, a norm of which may enter; of rows their values."""
    targets = self._graph.targets()
    ends = [targets[one] for name in self._values if (one := self.target(name)) in targets]
    return {self._graph.ops[end].inputs[0] for end in ends if self._graph.ops[end].inputs}

  def _gradient(self, name: str) -> TensorKey:
    return self._graph.ops[self._graph.targets()[self.target(name)]].inputs[0]

  def _is_variable(self, position: int) -> bool:
    return self._graph.ops[position].op_type == VARIABLE

  def _tensor(self, key: TensorKey) -> str:
    return self._graph.ops[key[0]].tensors[key[1]]


def _scaled(value: np.ndarray, factor: float) -> np.ndarray:
  return np.asarray(value * factor).astype(value.dtype)


def _are_alike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
  """Returns where two gradients are alike, each element by itself.

  What is rounding would be scaled up as well, above what hides it: an epsilon.
  """
  if one.shape != other.shape:
    return np.ones(one.shape, bool)
  alike: np.ndarray = np.abs(one - other) <= _SAME * np.abs(one)
  return alike


def _apart(one: np.ndarray, other: np.ndarray, rounding: float) -> float:
  """Returns how far two arrays are apart, as a part of the greatest element of the first."""
  if one.shape != other.shape:
    return 0.0
  size = float(np.max(np.abs(one), initial=0.0))
  with np.errstate(all='ignore'):
    found = float(np.max(np.abs(one - other), initial=0.0))
  if not np.isfinite(found) or not size:
    return 0.0
  return max(found - rounding, 0.0) / size
