"""What differs after a step, with other values of one side in the place of its own."""

from collections.abc import Collection, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import written, written_variable
from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun, compared
from tf2verify.diagnosis.divergence.tensors.variable_views import variable_views
from tf2verify.numerics.agreement import Agreement
from tf2verify.records.op_graph import VARIABLE, OpGraph

_UPDATE = 'update of '
# Of the greatest element, and of the difference before.
_ROUNDING = 1e-4
_LEFT = 0.02
# Of the elements of a target, where a stage judges the others afterwards.
_MOST_ELEMENTS = 0.75
# Of the greatest element; and how near a factor is to one that stands in code, of few digits.
_LITTLE, _CLOSE, _DIGITS = 0.05, 1e-3, 3


def shared_targets(tf1: OpGraph, tf2: OpGraph, names: Collection[str]) -> list[str]:
  """Returns the targets that both sides have: what several variables hold on one is left out."""
  shared = tf1.targets().keys() & tf2.targets().keys()
  return [name for name in names if name in shared]


def written_tensors(graph: OpGraph, names: Collection[str]) -> list[str]:
  """Returns what targets are given, by name; nothing where a side lacks one."""
  targets = graph.targets()
  if not all(name in targets for name in names):
    return []
  return [graph.tensor(graph.ops[targets[name]].inputs[0]) for name in names]


class StepEnds:
  """The targets of a step, or a call, that differ; what both sides yield is fetched once."""

  def __init__(self, tf1: InspectableRun, tf2: InspectableRun, failing: Collection[str]) -> None:
    """Fetches.

    Args:
      tf1: the tf1 side's run.
      tf2: the port's.
      failing: names of the targets that differ.
    """
    self.names = list(failing)
    runs = tf1, tf2
    tensors = [written_tensors(run.op_graph, self.names) for run in runs]
    self.are_known = all(tensors)
    if not self.are_known:
      return
    self._graphs = tf1.op_graph, tf2.op_graph
    self._ends = [graph.targets() for graph in self._graphs]
    self._views = variable_views(tf1.op_graph, tf2.layouts)
    self._leaves = [_values_before(run, self.names) for run in runs]
    values = [run.fetch(known) for run, known in zip(runs, tensors, strict=True)]
    self._made = [
      [self._after(side, name, value) for name, value in zip(self.names, values[side], strict=True)]
      for side in (0, 1)
    ]

  def left(
    self, side: int, new: Sequence[np.ndarray], names: Sequence[str] | None = None
  ) -> float | None:
    """Returns what is left of the differences where one side yields other values.

    Args:
      side: 0 if these are values of tf1, 1 for those of the port.
      new: what is written; see `written_tensors`.
      names: of which targets these are; None for all.

    Returns:
      A part of tf1's greatest element; None where more than rounding is left of any.
    """
    greatest, differed = 0.0, False
    for name, value in zip(self.names if names is None else names, new, strict=True):
      n = self.names.index(name)
      both = [made[n] for made in self._made]
      was = self._apart(name, both)
      both[side] = self._after(side, name, value)
      now = self._apart(name, both)
      if not _is_explained(was, now):
        return None
      greatest, differed = max(greatest, now.relative), differed or not was.is_rounding
    return greatest if differed else None

  def are_near(
    self, side: int, new: Sequence[np.ndarray], names: Sequence[str] | None = None
  ) -> bool:
    """Returns whether little is left of the differences of most elements, with other values.

    For what a stage judges afterwards: where gradients nearly vanish, Adam makes much of rounding.

    Args:
      side: 0 if these are values of tf1, 1 for those of the port.
      new: what is written; see `written_tensors`.
      names: of which targets these are; None for all.
    """
    differed = False
    for name, value in zip(self.names if names is None else names, new, strict=True):
      n = self.names.index(name)
      before = [made[n] for made in self._made]
      after = before.copy()
      after[side] = self._after(side, name, value)
      was, now = self._apart(name, before), self._apart(name, after)
      if not _is_explained(was, now) and (was.is_rounding or not self._mostly(name, before, after)):
        return False
      differed = differed or not was.is_rounding
    return differed

  def _mostly(self, name: str, before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> bool:
    """Returns whether most elements of a target are much nearer than they were."""
    view = self._views.get((self._ends[0][name], 0))
    found = []
    for one, other in (before, after):
      one = one if view is None else view.to_tf2(one)
      if one.shape != other.shape or one.dtype.kind != 'f':
        return False
      apart = np.abs(one.astype(np.float64) - other)
      found.append(float(np.quantile(apart, _MOST_ELEMENTS)) if apart.size else 0.0)
    return found[1] <= _LEFT * found[0]

  def factor(self, doubled: Sequence[tuple[int, np.ndarray]]) -> float | None:
    """Returns what something of the port would have to be multiplied by, for most elements.

    Args:
      doubled: what is written where it is twice as large, with the number of the target.

    Returns:
      A number as it may stand in code; None where there is none, or 1.
    """
    found = []
    for n, value in doubled:
      name = self.names[n]
      view = self._views.get((self._ends[0][name], 0))
      one, other = self._made[0][n], self._made[1][n]
      one = one if view is None else view.to_tf2(one)
      new = self._after(1, name, value)
      if not one.shape == other.shape == new.shape:
        return None
      part, missing = (np.ravel(a).astype(np.float64) - np.ravel(other) for a in (new, one))
      where = np.abs(part) > _LITTLE * np.max(np.abs(part), initial=0.0)
      found.append(missing[where] / part[where])
    all_of_them = np.concatenate(found) if found else np.zeros(0)
    more = float(np.median(all_of_them)) if all_of_them.size else 0.0
    near = float(f'{1.0 + more:.{_DIGITS}g}')
    is_near = np.isfinite(more) and abs(near - 1.0 - more) <= _CLOSE * abs(near)
    return near if is_near and abs(more) > _CLOSE and near else None

  def _apart(self, name: str, both: Sequence[np.ndarray]) -> Agreement:
    position = self._ends[0][name]
    op, view = self._graphs[0].ops[position], self._views.get((position, 0))
    found, _ = compared(both[0], both[1], op, view)
    return found

  def _after(self, side: int, name: str, value: np.ndarray) -> np.ndarray:
    """Returns a target with what an update makes of the variable, where a side may add to it."""
    op = self._graphs[side].ops[self._ends[side][name]]
    variable = written_variable(op)
    known = self._leaves[side]
    return written(op, known[variable], value) if variable in known else value


def _values_before(run: InspectableRun, names: Sequence[str]) -> dict[str, np.ndarray]:
  """Returns the values of variables before their update, by name."""
  updates = (name.removeprefix(_UPDATE) for name in names if name.startswith(_UPDATE))
  variables = {name.partition(' (')[0] for name in updates}
  leaves = {op.name: op.tensors[0] for op in run.op_graph.ops if op.op_type == VARIABLE}
  found = {name: leaves[name] for name in sorted(variables) if name in leaves}
  return dict(zip(found, run.fetch([*found.values()]), strict=True))


def _is_explained(was: Agreement, now: Agreement) -> bool:
  """Returns whether rounding is left: of gradients that cancel out, more than that of a sum."""
  is_small = now.relative <= _ROUNDING
  return now.is_rounding or (is_small and (was.is_rounding or now.absolute <= _LEFT * was.absolute))
