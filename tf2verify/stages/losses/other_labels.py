"""Labels that those of the case are not like: of other examples than the rest, or zero.

Labels are often related: whoever buys has clicked. Where a port reads one for the other, or leaves
out a factor, all examples that keep the relation agree. And a weight of an example that is never
zero does not show which side counts those that are. What is added to a sum of weights, for that not
to be zero, shows where they are small.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.diagnose import diagnose
from tf2verify.records.difference import Difference
from tf2verify.records.loss_values import LossExample, LossValue
from tf2verify.sides.tf1.reference import ReferenceLoss
from tf2verify.sides.tf2.loss_function import Tf2LossFunction
from tf2verify.stages.losses.results import LossResult, summed

_MOST = 4
_RELATED = (
  'the losses agree on labels that are related as those of make_labels are, and differ with '
  '{}: one side does not read a label that the other one reads, or relies on how labels are '
  'related; give labels for which it matters'
)
_ZEROS = (
  'the losses agree on labels that are never zero, as those of make_labels, and differ with {}: '
  'one side leaves out or counts differently what is zero (by default tf.compat.v1.losses divide '
  'by the number of weights that are not zero); give labels with zeros if they can be zero'
)
_SMALL = (
  'the losses agree on labels as those of make_labels, and differ with {}: where one side divides '
  'by a sum of labels, the other one adds another number to it (an epsilon), or keeps it above '
  'another bound; make the port the same as tf1, or ignore this if labels are never as small'
)
_EMPTY = (
  'the losses agree on labels as those of make_labels, and differ with {}: as a mask, or as '
  'weights, these are empty, and one side guards against that (divide_no_nan, a bound, a where); '
  'make the port the same as tf1, or ignore this if labels never are'
)
# Of weights; the first shows an epsilon best.
_FACTORS = (1e-3, 1e-6, 1e-9)
# By how much a loss changes that is divided by the sum of its weights, if these are halved.
_SAME = 1e-3


@dataclasses.dataclass(frozen=True)
class Compared:
  """How losses are compared.

  Attributes:
    run: gives a `LossResult`, or what says that there is none.
    differences: of a result, where the port gives a value.
    functions: the reference's loss, and the port's.
  """

  run: Callable[[LossExample], object]
  differences: Callable[[LossResult, LossValue], Sequence[Difference]]
  functions: tuple[ReferenceLoss, Tf2LossFunction]

  def differs(self, result: LossResult) -> bool:
    """Returns whether the losses differ, where that of tf1 is finite."""
    is_finite = bool(np.isfinite(result.tf1.value).all())
    return is_finite and bool(self.differences(result, result.tf2))

  def where(self, result: LossResult) -> str:
    """Returns the lines at which the losses part first, as an addition to a text."""
    example, known = result.example, self.differences(result, result.tf2)
    with contextlib.ExitStack() as opened:
      try:
        one, other = (
          opened.enter_context(contextlib.closing(function.inspectable(example)))
          for function in self.functions
        )
        told = diagnose('loss', example.name, known, (), (one, other))
        end = self.functions[1].program(example).source
      except Exception:  # noqa: BLE001 - lines are an addition
        return ''
    if not told.sources:
      return ''
    first = told.sources[0]
    return dataclasses.replace(first, tf2_source=first.tf2_source or end).to_lines()


def rearranged(model: LossExample) -> Iterator[LossExample]:
  """Yields the model's outputs with one label moved on by an example, of a few labels.

  Args:
    model: the outputs and labels of the case. A single label is related to no other one.
  """
  sizes = {label.shape[:1] for label in model.labels.values() if label.ndim}
  if len(model.labels) < 2 or len(sizes) != 1:
    return
  for path, label in list(model.labels.items())[:_MOST]:
    moved = np.roll(label, 1, 0) if label.ndim else label
    if not np.array_equal(moved, label):
      name = f'labels{path} of other examples'
      yield LossExample(name, model.outputs, {**model.labels, path: moved})


def with_zeros(model: LossExample) -> Iterator[LossExample]:
  """Yields the model's outputs with zeros in one label that has none, in every other example."""
  for path, label in list(model.labels.items())[:_MOST]:
    if label.dtype.kind == 'f' and label.ndim and len(label) > 1 and np.all(label):
      zeros = label.copy()
      zeros[::2] = 0
      name = f'zeros in labels{path}' if path else 'zeros in the labels'
      yield LossExample(name, model.outputs, {**model.labels, path: zeros})


def empty(model: LossExample) -> Iterator[LossExample]:
  """Yields the model's outputs with zeros, or False, for all of one label: an empty mask."""
  for path, label in list(model.labels.items())[:_MOST]:
    if label.dtype.kind in 'fbiu' and label.any():
      name = f'zeros for all of labels{path}' if path else 'zeros for all labels'
      yield LossExample(name, model.outputs, {**model.labels, path: np.zeros_like(label)})


def small(model: LossExample, run: Callable[[LossExample], object]) -> Iterator[LossExample]:
  """Yields the model's outputs with small labels, of those by whose sum both losses are divided.

  Of these alone: others may be flags, which are not 1e-6.

  Args:
    model: the outputs and labels of the case.
    run: as in `Compared`.
  """
  own = run(model)
  for path, label in list(model.labels.items())[:_MOST]:
    if label.dtype.kind != 'f' or not label.any():
      continue
    name = f'labels{path}' if path else 'the labels'
    for factor in (0.5, *_FACTORS):
      changed = np.asarray(label * factor, label.dtype)
      labels = {**model.labels, path: changed}
      example = LossExample(f'{name} times {factor:g}', model.outputs, labels)
      if factor != 0.5:
        yield example
      elif not _is_same(own, run(example)):
        break


def _is_same(one: object, other: object) -> bool:
  """Returns whether both losses are about the same in two results."""
  if not isinstance(one, LossResult) or not isinstance(other, LossResult):
    return False
  return all(
    np.allclose(summed(getattr(one, side).value), summed(getattr(other, side).value), _SAME, 0)
    for side in ('tf1', 'tf2')
  )


def blind_spots(model: LossExample, compared: Compared) -> list[str]:
  """Returns what is said where losses that agree differ with other labels.

  Args:
    model: the outputs and labels of the case.
    compared: how they are compared.
  """
  said = []
  kinds = (
    (rearranged(model), _RELATED),
    (with_zeros(model), _ZEROS),
    (empty(model), _EMPTY),
    (small(model, compared.run), _SMALL),
  )
  for examples, text in kinds:
    found = [one for one in map(compared.run, examples) if isinstance(one, LossResult)]
    results = [one for one in found if compared.differs(one)]
    if results:
      first = results[0]
      values = [f'{float(summed(of.value)):.6g}' for of in (first.tf1, first.tf2)]
      others = f', and with {len(results) - 1} more' if len(results) > 1 else ''
      where = compared.where(first)
      shown = f'{first.example.name} (tf1 {values[0]}, tf2 {values[1]}){others}{where}'
      said.append(text.format(shown))
  return said
