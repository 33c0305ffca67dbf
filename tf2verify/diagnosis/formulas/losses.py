"""Losses recomputed in numpy, to see by which formula a side goes.

Nothing is guessed from names: a formula is a side's own if it gives that side's loss on
every example.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.formulas import ctc
from tf2verify.numerics.extreme_outputs import target_of, weight_paths
from tf2verify.numerics.output_relations import log_softmax, sigmoid, softmax
from tf2verify.records.loss_values import LossExample

_Array = np.ndarray[Any, Any]

# Keras' epsilon (tf_keras.backend.epsilon), and that of tf.compat.v1.losses.log_loss.
EPSILON = 1e-7
# Float32 logarithms of what was clipped to within an ULP of 1 differ in the fifth digit.
_RTOL, _ATOL = 2e-4, 2e-5
# A share of labels that is smoothed.
LEAST_SMOOTHING, MOST_SMOOTHING = 1e-3, 0.6
# Smoothing is looked for in examples of no more elements than this: there are many ways to try.
_MOST_SMOOTHED = 2**16

FUSED_SOFTMAX = 'softmax cross-entropy of the outputs as logits'
CLIPPED_SOFTMAX = 'logarithm of the clipped softmax of the outputs'
CLIPPED_ROWS = 'logarithm of the clipped outputs, taken as probabilities'
LOG_ROWS = 'logarithm of the outputs, taken as probabilities'
LOG_SOFTMAX_ROWS = 'logarithm of the softmax of the outputs'
FUSED_SIGMOID = 'sigmoid cross-entropy of the outputs as logits'
CLIPPED_SIGMOID = 'logarithm of the clipped sigmoid of the outputs'
CLIPPED_BINARY = 'logarithms of p and 1 - p, clipped and with an epsilon added'
SHIFTED_BINARY = 'log(p + 1e-7) and log(1 - p + 1e-7)'
LOG_BINARY = 'logarithms of p and 1 - p as they are'
DOT = '1 - sum(a·b)'
NEGATIVE_COSINE = '-cos of normalized vectors'
NEGATIVE_DOT = '-sum(a·b)'
COSINE = '1 - cos of normalized vectors'
BLANK_LAST = 'CTC with the last class as blank'
BLANK_FIRST = 'CTC with the first class as blank'

_Formula = Callable[[_Array, _Array], _Array]


def _clip(p: _Array) -> _Array:
  epsilon = p.dtype.type(EPSILON)
  found: _Array = np.clip(p, epsilon, p.dtype.type(1) - epsilon)
  return found


def _rows(p: _Array, y: _Array) -> _Array:
  found: _Array = -np.sum(np.where(y == 0, 0, y * np.log(p)), -1)
  return found


def _plain_rows(p: _Array, y: _Array) -> _Array:
  found: _Array = -np.sum(y * np.log(p), -1)  # NaN where 0 is multiplied by -inf
  return found


def _clipped_rows(p: _Array, y: _Array) -> _Array:
  return _rows(_clip(p / np.sum(p, -1, keepdims=True)), y)


def _clipped_rows_of_sparse(p: _Array, y: _Array) -> _Array:
  return _rows(softmax(np.log(_clip(p))), y)


def _binary(p: _Array, y: _Array, epsilon: float) -> _Array:
  shift, one = p.dtype.type(epsilon), p.dtype.type(1)
  found: _Array = -(y * np.log(p + shift) + (one - y) * np.log(one - p + shift))
  return found


def _fused_sigmoid(z: _Array, y: _Array) -> _Array:
  found: _Array = np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))
  return found


def _unit(a: _Array) -> _Array:
  found: _Array = a / np.sqrt(np.maximum(np.sum(a * a, -1, keepdims=True), 1e-12))
  return found


# Of rows with a target per class. What comes first is named where several fit.
_CATEGORICAL: tuple[tuple[str, _Formula], ...] = (
  (FUSED_SOFTMAX, lambda z, y: -np.sum(y * log_softmax(z), -1)),
  (CLIPPED_SOFTMAX, lambda z, y: _clipped_rows(softmax(z), y)),
  (CLIPPED_SOFTMAX, lambda z, y: _clipped_rows_of_sparse(softmax(z), y)),
  (CLIPPED_ROWS, _clipped_rows),
  (CLIPPED_ROWS, _clipped_rows_of_sparse),
  (LOG_SOFTMAX_ROWS, lambda z, y: _rows(softmax(z), y)),
  (LOG_SOFTMAX_ROWS, lambda z, y: _plain_rows(softmax(z), y)),
  (LOG_ROWS, _rows),
  (LOG_ROWS, _plain_rows),
)
# Element by element.
_BINARY: tuple[tuple[str, _Formula], ...] = (
  (FUSED_SIGMOID, _fused_sigmoid),
  (CLIPPED_SIGMOID, lambda z, y: _binary(_clip(sigmoid(z)), y, EPSILON)),
  (CLIPPED_BINARY, lambda p, y: _binary(_clip(p), y, EPSILON)),
  (SHIFTED_BINARY, lambda p, y: _binary(p, y, EPSILON)),
  (LOG_BINARY, lambda p, y: _binary(p, y, 0.0)),
)
# Of vectors, with labels of any size.
_VECTORS: tuple[tuple[str, _Formula], ...] = (
  (DOT, lambda a, b: 1 - np.sum(a * b, -1)),
  (NEGATIVE_DOT, lambda a, b: -np.sum(a * b, -1)),
  (NEGATIVE_COSINE, lambda a, b: -np.sum(_unit(a) * _unit(b), -1)),
  (COSINE, lambda a, b: 1 - np.sum(_unit(a) * _unit(b), -1)),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
  """What may weight the terms of a loss."""

  text: str  # what it is called in reports: `labels['weights']`
  values: _Array
  label: str = ''  # path of the label that it is; '' for what a loss computes


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluated:
  """An example, and what one side's loss gave for it."""

  example: LossExample  # outputs and labels
  value: _Array  # the loss
  # What tf1 multiplies by that is made of labels and constants: weights of classes, say.
  computed: tuple[Weights, ...] = ()


# By which weights, as reports call them, and which denominator; '' without weights.
Reduction = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Recognized:
  """By what a side's loss goes."""

  name: str  # of the formula
  smoothing: float = 0.0  # the share of the labels that is spread over all classes
  # How its terms may be reduced, the likeliest first; () for a loss of each example.
  reductions: tuple[Reduction, ...] = dataclasses.field(default=(), compare=False)


@dataclasses.dataclass(frozen=True)
class Denominator:
  """What a sum over an example is divided by."""

  name: str  # as in `sides.tf1.graphs.changed_reference`
  text: str  # for a hint
  # Its value, given the terms' shape and the weights (None without).
  of: Callable[[tuple[int, ...], _Array | None], float]


def _product(shape: tuple[int, ...]) -> float:
  return float(np.prod(shape)) if shape else 1.0


DENOMINATORS = (
  Denominator('batch', 'the batch size', lambda shape, _: float(shape[0]) if shape else 1.0),
  Denominator('one', 'nothing (a sum)', lambda shape, _: 1.0),
  Denominator('terms', 'the number of terms', lambda shape, _: _product(shape)),
  Denominator(
    'nonzero',
    'the number of weights that are not zero',
    lambda shape, w: _product(shape) if w is None else float(np.count_nonzero(_spread(w, shape))),
  ),
  Denominator(
    'weights',
    'the sum of the weights',
    lambda shape, w: _product(shape) if w is None else float(_spread(w, shape).sum()),
  ),
)


def _spread(weights: _Array, shape: tuple[int, ...]) -> _Array:
  """Returns weights of the terms: those of the examples, for every step."""
  wide = weights.astype(np.float64)
  if wide.size == _product(shape):
    return wide.reshape(shape)
  while wide.ndim > 1 and wide.shape[-1] == 1:
    wide = wide[..., 0]
  wide = wide.reshape(wide.shape + (1,) * (len(shape) - wide.ndim))
  return np.broadcast_to(wide, shape)


def formula_of(evaluated: Sequence[Evaluated], path: str) -> str:
  """Returns by which formula of an output a side's loss goes; '' where none is known.

  Args:
    evaluated: the side's loss on every example that it could be run on.
    path: the output.
  """
  for name in _names(evaluated[0].example, path):
    if all(_gives(name, one, path) for one in evaluated):
      return name
  return ''


def recognized(evaluated: Sequence[Evaluated], path: str) -> Recognized | None:
  """Returns by which formula a side's loss goes, of labels as they are or of smoothed ones.

  Args:
    evaluated: the side's loss on every example that it could be run on.
    path: the output.

  Returns:
    The formula, and the share of smoothing to four digits; None where none is known.
  """
  name = formula_of(evaluated, path)
  if name:
    return Recognized(name, reductions=_reductions(name, evaluated, path, 0.0))
  first = evaluated[0]
  if first.example.outputs[path].size > _MOST_SMOOTHED:
    return None
  for name in _names(first.example, path):
    for share in dict.fromkeys(_shares(name, first, path)):
      if all(_gives(name, one, path, share) for one in evaluated):
        return Recognized(name, share, _reductions(name, evaluated, path, share))
  return None


def _reductions(
  name: str, evaluated: Sequence[Evaluated], path: str, smoothing: float
) -> tuple[Reduction, ...]:
  """Returns the reductions that give a side's loss on every example."""
  found: dict[Reduction, int] = {}
  for one in evaluated:
    with np.errstate(all='ignore'):
      known = _all_reduced(name, one, path, smoothing)
      fits = dict.fromkeys(key for key, made in known if key and _agree(made, one.value))
    for key in fits:
      found[key] = found.get(key, 0) + 1
  fitting = [key for key, count in found.items() if count == len(evaluated)]
  # A term for each example: their number is the batch size.
  return tuple(key for key in fitting if key[1] != 'terms' or (key[0], 'batch') not in fitting)


def _shares(name: str, one: Evaluated, path: str) -> Iterator[float]:
  """Yields the smoothing with which a formula, linear in its labels, gives the loss."""
  plain, uniform = (_all_reduced(name, one, path, share) for share in (0.0, 1.0))
  with np.errstate(all='ignore'):
    for (_, start), (_, end) in zip(plain, uniform, strict=False):
      slope = end - start
      if start.shape != one.value.shape or not np.any(slope):
        continue
      apart = one.value.astype(np.float64) - start
      share = float((apart * slope).sum() / (slope * slope).sum())
      if LEAST_SMOOTHING < share < MOST_SMOOTHING:
        yield float(f'{share:.4g}')


def _names(example: LossExample, path: str) -> list[str]:
  return list(dict.fromkeys(name for name, _ in _terms(example, path)))


def _gives(name: str, one: Evaluated, path: str, smoothing: float = 0.0) -> bool:
  with np.errstate(all='ignore'):
    found = _all_reduced(name, one, path, smoothing)
    return any(_agree(reduced, one.value) for _, reduced in found)


def _all_reduced(
  name: str, one: Evaluated, path: str, smoothing: float
) -> Iterator[tuple[Reduction | None, _Array]]:
  for known, make in _terms(one.example, path, smoothing):
    if known == name:
      yield from _reduced(make(), one, path)


def _agree(made: _Array, value: _Array) -> bool:
  if made.shape != value.shape:
    return False
  return bool(np.allclose(made, value.astype(np.float64), _RTOL, _ATOL, equal_nan=True))


def _terms(
  example: LossExample, path: str, smoothing: float = 0.0
) -> Iterator[tuple[str, Callable[[], _Array]]]:
  """Yields every formula and what makes its terms: one per row, or per element.

  With smoothing, those that are linear in the labels alone.
  """
  output = example.outputs[path]
  for label in example.labels.values():
    target = target_of(output, label)
    if target is not None:
      y = target.astype(output.dtype)
      if output.ndim and output.shape[-1] > 1 and np.allclose(y.sum(-1), 1, 1e-3):
        rows = _smoothed(y, smoothing, 1 / output.shape[-1])
        yield from ((name, _made(formula, output, rows)) for name, formula in _CATEGORICAL)
      elements = _smoothed(y, smoothing, 0.5)
      yield from ((name, _made(formula, output, elements)) for name, formula in _BINARY)
    fits = label.shape == output.shape and label.dtype.kind == 'f' and output.ndim > 1
    if fits and not smoothing:
      yield from ((name, _made(formula, output, label)) for name, formula in _VECTORS)
  for steps, labels in ctc.interpretations(example, path) if not smoothing else ():
    classes = steps.shape[-1]
    for name, blank in ((BLANK_LAST, classes - 1), (BLANK_FIRST, 0)):
      if all(symbol < classes and symbol != blank for label in labels for symbol in label):
        yield name, functools.partial(ctc.losses, steps, labels, blank)


def _smoothed(y: _Array, share: float, uniform: float) -> _Array:
  found: _Array = y * y.dtype.type(1 - share) + y.dtype.type(share * uniform)
  return found if share else y


def _made(formula: _Formula, output: _Array, y: _Array) -> Callable[[], _Array]:
  def make() -> _Array:
    with np.errstate(all='ignore'):
      return formula(output, y)

  return make


def possible_weights(one: Evaluated, path: str) -> list[Weights]:
  """Returns what may weight an output's terms, the likeliest first.

  Labels that are called so, or look like it; then any label without a negative element; then what
  is computed of labels. It is for formulas that are verified: on several examples, a wrong one
  fits none.
  """
  example = one.example
  known = weight_paths(example, [path])
  rows = example.outputs[path].shape[:1]
  rest = [
    name
    for name, label in example.labels.items()
    if name not in known
    and label.dtype.kind in 'fbiu'
    and label.size
    and label.shape[:1] == rows
    and bool((label >= 0).all())
  ]
  names = [*known, *(name for name in rest if len(example.labels) > 1)]
  labels = [Weights(f'labels{name}', example.labels[name], name) for name in names]
  return [*labels, *one.computed]


def _reduced(terms: _Array, one: Evaluated, path: str) -> Iterator[tuple[Reduction | None, _Array]]:
  """Yields what the terms may have been reduced to, with every weight, and how."""
  terms = terms.astype(np.float64)
  for weights in (None, *possible_weights(one, path)):
    values = None if weights is None else weights.values
    try:
      weighted = terms if values is None else terms * _spread(values, terms.shape)
    except ValueError:  # weights of something else
      continue
    if one.value.shape:
      for axes in range(weighted.ndim - one.value.ndim + 1):
        inner = tuple(range(weighted.ndim - axes, weighted.ndim))
        yield from ((None, weighted.mean(inner)), (None, weighted.sum(inner)))
      continue
    for denominator in DENOMINATORS:
      divisor = denominator.of(terms.shape, values)
      key = '' if weights is None else weights.text, denominator.name
      yield key, np.asarray(weighted.sum() / divisor if divisor else 0.0)
