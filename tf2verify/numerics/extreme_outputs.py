"""Outputs and labels at which losses that look alike part: saturated, masked, alone."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.numerics.output_relations import Relation, follow, sigmoid, softmax
from tf2verify.records.loss_values import Leaves, LossExample

_Array = np.ndarray[Any, Any]

# exp overflows float32 at 88.7; softmax is 0 or 1 to the last bit from 17 on.
_LOGITS = (50.0, 100.0, 20.0)
# Where no label tells what is right: losses of sequences underflow beyond that.
_LARGE = (20.0, 10.0)
_SATURATED = 'saturated outputs'
_LEAST = 1e-9
_NORMAL = 3.0
_SMALL = 0.3
# The standard deviation of the logarithm of what outputs are multiplied by.
_VARIED = 0.5
_SEED = 0
# Zero among them: a sum of weights and a count of those that are not zero then differ.
_FRACTIONS = (0.25, 0.0, 1.5, 0.5)
_MOST_IGNORED = 3
_WEIGHT_NAME = re.compile('weight|mask', re.IGNORECASE)
_SPARSE = '.dense_shape'


def extreme_examples(
  model: LossExample, read: Sequence[str], related: Sequence[Relation]
) -> Iterator[LossExample]:
  """Yields examples made of the model's outputs and labels.

  Args:
    model: the model's own outputs and labels.
    read: paths of the floating outputs that the losses read, without those that follow
      from another one.
    related: the outputs that follow from others.
  """
  for name, make in _values(model, read).items():
    outputs = dict(model.outputs)
    outputs.update({path: make(path) for path in read})
    outputs = _with_derived(outputs, related, model.outputs)
    yield LossExample(name, outputs, model.labels, finite_only=name == _SATURATED)
  for path in weight_paths(model, read):
    for name, weights in _weights(path, model.labels[path]):
      yield LossExample(name, model.outputs, {**model.labels, path: weights})
  for path, value in _ignored(model, read):
    labels = np.full_like(model.labels[path], value)
    yield LossExample(f'labels{path} all {value}', model.outputs, {**model.labels, path: labels})
  alone = _first(1, model, read, related)
  if alone is not None:
    # A sum over later time steps, say, can be one of nothing for a single one.
    yield dataclasses.replace(alone, larger=_first(2, model, read, related))


def gentle_examples(
  model: LossExample, read: Sequence[str], related: Sequence[Relation]
) -> Iterator[LossExample]:
  """Yields examples for losses that are not a number at outputs which a model may never have.

  Args:
    model: as in `extreme_examples`.
    read: likewise.
    related: likewise.
  """

  def small(output: _Array, numbers: _Array) -> _Array:
    return _as_probabilities(output, _SMALL * numbers)

  def varied(output: _Array, numbers: _Array) -> _Array:
    found = output * np.exp(_VARIED * numbers)  # a standard deviation stays positive
    if sums_to_one(output):
      return np.asarray(found / found.sum(-1, keepdims=True))
    return np.minimum(found, 1.0) if is_probability(output) else found

  for name, make in (('small normal outputs', small), ("the model's outputs, varied", varied)):
    outputs = dict(model.outputs)
    for number, path in enumerate(read):
      output = outputs[path]
      numbers = np.random.RandomState(_SEED + number).standard_normal(output.shape)
      outputs[path] = np.asarray(make(output, numbers)).astype(output.dtype)
    yield LossExample(name, _with_derived(outputs, related, model.outputs), model.labels)


def _values(model: LossExample, read: Sequence[str]) -> Mapping[str, Any]:
  """Returns what to make of the outputs that are read, by name."""
  if not read:
    return {}
  outputs = {path: model.outputs[path] for path in read}
  right, magnitudes = {}, {}
  fits = False
  for path in read:
    target = targets(outputs[path], model)
    magnitudes[path] = _LARGE if target is None else _LOGITS
    fits = fits or target is not None
    target = _nearest(outputs[path]) if target is None else target
    right[path] = 2.0 * target - 1.0

  def normal(path: str) -> _Array:
    # Each output has numbers of its own: a term that compares two of them would be 0 otherwise.
    generator = np.random.RandomState(_SEED + list(read).index(path))
    values = _NORMAL * generator.standard_normal(outputs[path].shape)
    return _as_probabilities(outputs[path], values).astype(outputs[path].dtype)

  def saturated(sign: float, least: float, sizes: Sequence[float] = ()) -> Any:
    def make(path: str) -> _Array:
      output = outputs[path]
      if not is_probability(output):
        scale = _by_row(output, sizes or magnitudes[path])
        return np.asarray(sign * right[path] * scale, output.dtype)
      found = np.where(sign * right[path] > 0, 1.0 - least, least)
      if sums_to_one(output):
        found = _distribution(found, least)
      return found.astype(output.dtype)

    return make

  found = {
    'normal outputs': normal,
    'saturated, right' if fits else 'large outputs': saturated(1.0, _LEAST),
    'saturated, wrong' if fits else 'large outputs, negated': saturated(-1.0, _LEAST),
  }
  if not fits:
    found[_SATURATED] = saturated(1.0, _LEAST, _LOGITS)
  if any(is_probability(output) for output in outputs.values()):
    found['probabilities of 0 and 1, right'] = saturated(1.0, 0.0)
    found['probabilities of 0 and 1, wrong'] = saturated(-1.0, 0.0)
  return found


def is_probability(output: _Array) -> bool:
  """Returns whether all elements are in [0, 1], and not all alike."""
  return bool(output.size and output.min() >= 0 and output.max() <= 1 and np.ptp(output) > 0)


def sums_to_one(output: _Array) -> bool:
  """Returns whether the output is a distribution over its last axis."""
  if not is_probability(output) or output.ndim == 0 or output.shape[-1] < 2:
    return False
  return bool(np.allclose(output.astype(np.float64).sum(-1), 1.0, 1e-4, 1e-4))


def _distribution(peaks: _Array, least: float) -> _Array:
  """Returns rows that sum to 1, with what is not on the peaks shared by the others."""
  high = peaks > 0.5
  count = high.sum(-1, keepdims=True)
  low = np.minimum(least, 1.0) * ~high
  share = (1.0 - low.sum(-1, keepdims=True)) / np.maximum(count, 1)
  found: _Array = np.where(high, share, low)
  return found


def _as_probabilities(output: _Array, values: _Array) -> _Array:
  if sums_to_one(output):
    return softmax(values)
  return sigmoid(values) if is_probability(output) else values


def _by_row(output: _Array, magnitudes: Sequence[float]) -> _Array:
  rows = output.shape[0] if output.ndim else 1
  found: _Array = np.resize(np.asarray(magnitudes), rows)
  return found.reshape((rows,) + (1,) * (output.ndim - 1) if output.ndim else ())


def targets(output: _Array, model: LossExample) -> _Array | None:
  """Returns what the labels want of an output, in [0, 1] and of its shape.

  None where no label fits.
  """
  weights = _named_weights(model.labels)
  for path, label in model.labels.items():
    if path not in weights:
      fitting = target_of(output, label)
      if fitting is not None:
        return fitting
  return None


def _nearest(output: _Array) -> _Array:
  """Returns the target that an output is already nearest to."""
  if output.ndim and output.shape[-1] > 1:
    nearest: _Array = np.eye(output.shape[-1])[np.argmax(output, -1)]
    return nearest
  return (output > np.median(output)).astype(np.float64) if output.size else output


def target_of(output: _Array, label: _Array) -> _Array | None:
  """Returns a label as a target of an output's shape; None where it does not fit."""
  if label.dtype.kind not in 'iufb' or not label.size:
    return None
  if label.size == output.size and label.shape[:1] == output.shape[:1]:
    inside = label.min() >= 0 and label.max() <= 1
    return label.reshape(output.shape).astype(np.float64) if inside else None
  classes = output.shape[-1] if output.ndim else 0
  if classes < 2 or label.dtype.kind not in 'iu' or label.size * classes != output.size:
    return None
  if label.min() < 0 or label.max() >= classes or label.shape[:1] != output.shape[:1]:
    return None
  found: _Array = np.eye(classes)[label.reshape(output.shape[:-1])]
  return found


def _named_weights(labels: Leaves) -> list[str]:
  return [
    path
    for path, label in labels.items()
    if _WEIGHT_NAME.search(path) and label.dtype.kind in 'fbiu' and label.size
  ]


def weight_paths(model: LossExample, read: Sequence[str]) -> list[str]:
  """Returns the paths of labels that are weights or masks.

  By name; or floats of 0 and 1 alone, one per example or step, beside labels that are
  what the loss compares with.
  """
  found = _named_weights(model.labels)
  rest = {path: label for path, label in model.labels.items() if path not in found}
  shapes = {model.outputs[path].shape[: model.outputs[path].ndim - 1] for path in read}
  for path, label in rest.items():
    others = [other for known, other in rest.items() if known != path]
    fits = any(
      target_of(model.outputs[root], other) is not None for root in read for other in others
    )
    binary = label.dtype.kind in 'fb' and bool(np.isin(label, (0, 1)).all())
    if fits and binary and label.shape and label.shape in shapes:
      found.append(path)
  return found


def _weights(path: str, weights: _Array) -> Iterator[tuple[str, _Array]]:
  yield f'labels{path} all zero', np.zeros_like(weights)
  if weights.ndim and weights.shape[0] > 1:
    without_first = weights.copy()
    without_first[0] = 0
    if without_first.any() and weights[0].any():
      yield f'labels{path} zero for the first example', without_first
  whole = np.isin(weights, (0, 1)).all()
  if weights.dtype.kind == 'f' and ('weight' in path.lower() or not whole):
    fractions = np.resize(np.asarray(_FRACTIONS), weights.shape).astype(weights.dtype)
    yield f'labels{path} fractional', fractions


def _ignored(model: LossExample, read: Sequence[str]) -> Iterator[tuple[str, int]]:
  """Yields labels that are ids, and which of their values can be no class: what is ignored.

  Below zero; beyond the classes; and 0 of sequences, where it is the padding. With nothing
  else a mean over what is left is one of nothing.
  """
  weights = weight_paths(model, read)
  for path, label in model.labels.items():
    if path in weights or label.dtype.kind not in 'iu' or label.ndim == 0 or not label.size:
      continue
    ignored = label < 0
    classes = [classes for root in read if (classes := _classes(model.outputs[root], label))]
    if classes:
      ignored |= label >= max(classes)
      if label.ndim > 1 and label.shape[-1] > 1:
        ignored |= label == 0
    values = np.unique(label[ignored])
    if np.unique(label).size > 1:
      yield from ((path, int(value)) for value in values[:_MOST_IGNORED])


def _classes(output: _Array, label: _Array) -> int:
  """Returns of how many classes a label may be the ids; 0 where it cannot be."""
  classes = output.shape[-1] if output.ndim > 1 else 0
  fits = label.size * classes == output.size and label.shape[:1] == output.shape[:1]
  return classes if classes > 1 and fits else 0


def _first(
  count: int, model: LossExample, read: Sequence[str], related: Sequence[Relation]
) -> LossExample | None:
  """Returns the first one or two examples of the batch; None where that cannot be told.

  That takes outputs that are known to be read: of all others, some may be no row for each example.
  """
  if not read:
    return None
  # A single number, the weight of a term say, is one for all examples.
  sizes = {model.outputs[path].shape[:1] for path in read if model.outputs[path].ndim}
  if not sizes:
    return None
  sizes |= {label.shape[:1] for label in model.labels.values() if label.ndim}
  if len(sizes) != 1 or any(path.endswith(_SPARSE) for path in model.labels):
    return None
  (size,) = sizes
  if not size or size[0] <= count:
    return None
  wanted = {*read, *(relation.derived for relation in related)}
  outputs = {
    path: output[:count] if path in wanted and output.shape[:1] == size else output
    for path, output in model.outputs.items()
  }
  labels = {path: label[:count] if label.ndim else label for path, label in model.labels.items()}
  name = 'the first example alone' if count == 1 else 'the first two examples'
  return LossExample(name, outputs, labels, other_batch=True)


def _with_derived(
  outputs: dict[str, _Array], related: Sequence[Relation], before: Leaves
) -> dict[str, _Array]:
  for relation in related:
    if relation.source in outputs:
      source = outputs[relation.source]
      outputs[relation.derived] = follow(relation, source, before[relation.derived])
  return outputs
