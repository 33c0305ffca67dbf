"""Whether a reference that takes longer inputs computes anything of what was added."""

import dataclasses
from typing import Any

import numpy as np

from tf2verify.errors import BuilderError, LayerError, UserCodeError
from tf2verify.records.observation import Observation
from tf2verify.reference import nests
from tf2verify.reference.nests import leaves_by_path
from tf2verify.sides.hooks import other_sizes
from tf2verify.sides.hooks.other_sizes import Axis, OtherSize
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import PreparedRuns
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest

_REFUSALS = (UserCodeError, BuilderError, LayerError)


@dataclasses.dataclass(frozen=True, eq=False)
class LongerRun:
  """A run of the reference at a size."""

  size: OtherSize
  run: RunSpec
  again: PreparedRuns  # repeats it

  def reads_what_is_longer(self, case: CaseUnderTest, own: RunSpec) -> bool:
    """Returns whether the reference's outputs depend on every length that has grown.

    A model that takes some columns of its input by number takes a wider one as well, and
    nobody means to give it one. One that resizes its input may leave out the last ones, and depends
    on the length.

    Args:
      case: both sides.
      own: the run at the case's own size.
    """
    if not self.size.lengths:
      return True
    (before,) = self.again([self.run])
    (small,) = case.tf1.prepare_filled([own])()
    batch = {len(x) for x in leaves_by_path(own.inputs).values() if x.ndim}
    if _has_grown(small, before, batch):
      return True
    unread = [axes for axes in self.size.lengths if not self._reads_end(case, before, axes)]
    if not unread or len(unread) < len(self.size.lengths):
      return not unread
    first = dataclasses.replace(own, inputs=self._without_what_is_longer(own))
    (small,) = case.tf1.prepare_filled([first])()
    return outputs_differ(case, small, _first_examples(before, small))

  def adds_examples(self, case: CaseUnderTest, own: RunSpec) -> bool:
    """Returns whether the reference takes what is longer for further examples.

    `tf.reshape(net, [-1, 96])` accepts larger images, and makes several rows of each.
    """
    inputs = [leaves_by_path(run.inputs).values() for run in (own, self.run)]
    batches = [{next(iter(leaf.shape), 0) for leaf in leaves} for leaves in inputs]
    if not self.size.lengths or any(len(known) != 1 for known in batches):
      return False
    (old,), (new,) = batches
    (large,), (small,) = self.again([self.run]), case.tf1.prepare_filled([own])()
    return any(
      x.value is not None
      and y.value is not None
      and np.shape(x.value)[:1] == (old,)
      and np.shape(y.value)[:1] not in ((new,), ())
      and np.shape(x.value)[1:] == np.shape(y.value)[1:]
      for x, y in zip(small.outputs, large.outputs, strict=False)
    )

  def _without_what_is_longer(self, own: RunSpec) -> Any:
    shapes = {path: leaf.shape for path, leaf in leaves_by_path(own.inputs).items()}
    return nests.map_leaves(
      lambda path, leaf: leaf[tuple(slice(size) for size in shapes[path])], self.size.inputs
    )

  def _reads_end(self, case: CaseUnderTest, before: Observation, axes: frozenset[Axis]) -> bool:
    inputs = other_sizes.with_other_ends(self.size.inputs, axes)
    try:
      (after,) = self.again([dataclasses.replace(self.run, inputs=inputs)])
    except _REFUSALS:
      return True
    return outputs_differ(case, before, after)


def outputs_differ(case: CaseUnderTest, one: Observation, other: Observation) -> bool:
  """Returns whether the outputs of two runs differ beyond the tolerance of a case."""
  scratch = Comparison()
  scratch.outputs(one, other, case.tolerance)
  return bool(scratch.differences)


def _first_examples(longer: Observation, own: Observation) -> Observation:
  """Returns outputs without what one more example adds to them."""
  outputs = []
  for record, known in zip(longer.outputs, own.outputs, strict=True):
    value = record.value
    if value is not None and known.value is not None:
      value = value[tuple(slice(size) for size in known.value.shape)]
    outputs.append(dataclasses.replace(record, value=value))
  return dataclasses.replace(longer, outputs=tuple(outputs))


def _has_grown(one: Observation, other: Observation, batch: set[int]) -> bool:
  """Returns whether outputs have other shapes, beyond one more example in them."""
  if one.structure != other.structure:
    return True
  for x, y in zip(one.outputs, other.outputs, strict=True):
    old, new = (() if z.value is None else np.shape(z.value) for z in (x, y))
    if len(old) != len(new):
      return True
    grown = [(m, n) for m, n in zip(old, new, strict=True) if m != n]
    if len(grown) > 1 or any(m not in batch or n != m + 1 for m, n in grown):
      return True
  return False
