"""Labels that those of the case are not like: of other examples than the rest, or zero.

Labels are often related: whoever buys has clicked. Where a port reads one for the other, or leaves
out a factor, all examples that keep the relation agree. And a weight of an example that is never
zero does not show which side counts those that are.
"""

from collections.abc import Callable, Iterator

import numpy as np

from tf2verify.records.loss_values import LossExample
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


def blind_spots(
  model: LossExample,
  run: Callable[[LossExample], object],
  differs: Callable[[LossResult], bool],
) -> list[str]:
  """Returns what is said where losses that agree differ with other labels.

  Args:
    model: the outputs and labels of the case.
    run: gives a `LossResult`, or what says that there is none.
    differs: tells whether both losses of a result differ.
  """
  said = []
  for examples, text in ((rearranged(model), _RELATED), (with_zeros(model), _ZEROS)):
    found = [one for one in map(run, examples) if isinstance(one, LossResult)]
    results = [one for one in found if np.isfinite(one.tf1.value).all() and differs(one)]
    if results:
      first = results[0]
      values = [f'{float(summed(of.value)):.6g}' for of in (first.tf1, first.tf2)]
      others = f', and with {len(results) - 1} more' if len(results) > 1 else ''
      shown = f'{first.example.name} (tf1 {values[0]}, tf2 {values[1]}){others}'
      said.append(text.format(shown))
  return said
