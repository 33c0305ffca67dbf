"""Why two losses differ, verified by computing them again in numpy."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tf2verify.numerics import loss_formulas as formulas
from tf2verify.numerics.extreme_outputs import is_probability, target_of
from tf2verify.numerics.loss_formulas import (
  DENOMINATORS,
  LEAST_SMOOTHING,
  MOST_SMOOTHING,
  Evaluated,
  Recognized,
  possible_weights,
)
from tf2verify.numerics.unread_weights import unread_weights
from tf2verify.records.loss_values import LossExample

_Array = np.ndarray[Any, Any]
# Of a ratio or a share that is the same for several examples.
_SAME = 1e-3
# Examples larger than this are not computed again.
_MOST_ELEMENTS = 2**20

_SATURATES = (
  'saturates at 16.118 (= -log 1e-7), where its gradient is zero: it takes the logarithm of '
  'probabilities that are clipped to [1e-7, 1 - 1e-7]'
)
_OF_PORT = (
  f'the loss of tf2 {_SATURATES} (from_logits=False on a softmax); give it the logits, with '
  'from_logits=True'
)
_OF_TF1 = (
  f'the loss of tf1 {_SATURATES}, that of tf2 does not: compute it from clipped probabilities in '
  'the port, too'
)
_TEXTS = {
  (formulas.FUSED_SOFTMAX, formulas.CLIPPED_SOFTMAX): _OF_PORT,
  (formulas.CLIPPED_SOFTMAX, formulas.FUSED_SOFTMAX): _OF_TF1,
  (formulas.FUSED_SIGMOID, formulas.CLIPPED_SIGMOID): _OF_PORT,
  (formulas.CLIPPED_SIGMOID, formulas.FUSED_SIGMOID): _OF_TF1,
  (formulas.BLANK_LAST, formulas.BLANK_FIRST): (
    'the losses match with blank_index=-1: tf.compat.v1.nn.ctc_loss takes the last class as blank, '
    'tf.nn.ctc_loss the first one unless blank_index is given'
  ),
  (formulas.DOT, formulas.NEGATIVE_COSINE): (
    'tf1 is 1 - sum(a·b), which takes its vectors as normalized; tf2 is -cos of vectors that it '
    'normalizes itself (tf.keras.losses.CosineSimilarity): on normalized vectors, an offset of '
    'exactly 1; on others, another loss'
  ),
}
_AS_PROBABILITIES = (
  formulas.CLIPPED_ROWS,
  formulas.CLIPPED_BINARY,
  formulas.LOG_ROWS,
  formulas.LOG_BINARY,
  formulas.SHIFTED_BINARY,
)
_OF_ELEMENTS = (
  formulas.FUSED_SIGMOID,
  formulas.CLIPPED_SIGMOID,
  formulas.CLIPPED_BINARY,
  formulas.SHIFTED_BINARY,
  formulas.LOG_BINARY,
)
_ON_LOGITS = (formulas.FUSED_SOFTMAX, formulas.FUSED_SIGMOID)


def cause(tf1: Sequence[Evaluated], tf2: Sequence[Evaluated], paths: Sequence[str]) -> str:
  """Returns why the losses differ, if that can be shown; '' elsewhere.

  Args:
    tf1: the reference's loss, example by example.
    tf2: the port's, of the same examples.
    paths: the outputs that the losses read, without those that follow from others.
  """
  kept = [
    pair
    for pair in zip(tf1, tf2, strict=True)
    if all(pair[0].example.outputs[path].size <= _MOST_ELEMENTS for path in paths)
  ]
  # Where a batch size is written into one side, the batch of another size fits nothing.
  of_one_batch = [pair for pair in kept if not pair[0].example.other_batch]
  return _cause(kept, paths) or (_cause(of_one_batch, paths) if of_one_batch != kept else '')


def _cause(pairs: Sequence[tuple[Evaluated, Evaluated]], paths: Sequence[str]) -> str:
  if not pairs:
    return ''
  ones, others = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
  for path in paths:
    found = (
      _other_formula(ones, others, path)
      or _smoothing(ones, others, path)
      or _other_denominator(ones, others, path)
    )
    if found:
      return found
  return (
    unread_weights(ones, others, paths)
    or _zero_by_zero(ones, others)
    or _fixed_size(ones, others, paths)
    or _offset(ones, others)
  )


def _other_formula(tf1: Sequence[Evaluated], tf2: Sequence[Evaluated], path: str) -> str:
  one, other = formulas.recognized(tf1, path), formulas.recognized(tf2, path)
  if one is None or other is None:
    return ''
  smoothed = abs(one.smoothing - other.smoothing) > _SAME
  if one.name == other.name:
    return _smoothing_text(one, other) if smoothed else ''
  text = _formula_text(one.name, other.name, tf1, path)
  return f'{text}; and {_smoothings(one, other)}' if smoothed else text


def _formula_text(one: str, other: str, tf1: Sequence[Evaluated], path: str) -> str:
  if (one, other) in _TEXTS:
    return _TEXTS[one, other]
  if one in _ON_LOGITS and other in _AS_PROBABILITIES:
    if not is_probability(tf1[0].example.outputs[path]):
      return (
        f'tf2 takes logits for probabilities (its loss is the {other}), but the outputs are none '
        '(not in [0, 1], or their rows do not sum to 1): from_logits=True'
      )
    return (
      f'tf1 takes the outputs for logits ({one}), although the model yields probabilities, tf2 '
      f'for probabilities ({other}): from_logits=True'
    )
  if one in _AS_PROBABILITIES and other in _ON_LOGITS:
    return (
      f'tf1 takes the outputs for probabilities ({one}), tf2 for logits ({other}), and applies a '
      'sigmoid or softmax of its own to them: from_logits=False'
    )
  text = f'tf1 computes the {one}, tf2 the {other}'
  if one in _AS_PROBABILITIES and other in _AS_PROBABILITIES:
    return f'only saturated elements differ, by the placement of the epsilon: {text}'
  return text


def _smoothing_text(tf1: Recognized, tf2: Recognized) -> str:
  """Returns what to say of one formula of labels that are smoothed otherwise."""
  term = {
    formulas.FUSED_SOFTMAX: 's·(z_y - mean z)',
    formulas.FUSED_SIGMOID: 's·z·(y - 1/2)',
  }.get(tf1.name)
  share = abs(tf1.smoothing - tf2.smoothing)
  text = f'{_smoothings(tf1, tf2)} ({_smoothing_fix(tf1, tf2)})'
  if not term:
    return text
  return f'the difference equals the smoothing term {term} with s = {share:.3g}: {text}'


def _smoothings(tf1: Recognized, tf2: Recognized) -> str:
  if tf2.smoothing > tf1.smoothing:
    sides = (('tf2', tf2.smoothing), ('tf1', tf1.smoothing))
  else:
    sides = (('tf1', tf1.smoothing), ('tf2', tf2.smoothing))
  (side, more), (other, less) = sides
  return f'label_smoothing={more:.3g} in {side}, {f"{less:.3g}" if less else "none"} in {other}'


def _smoothing_fix(tf1: Recognized, tf2: Recognized) -> str:
  if tf2.name in _OF_ELEMENTS:
    return f'give label_smoothing={tf1.smoothing:.3g} to BinaryCrossentropy'
  if tf2.smoothing:
    return f'give label_smoothing={tf1.smoothing:.3g} to CategoricalCrossentropy'
  return (
    f'give label_smoothing={tf1.smoothing:.3g} and one-hot labels to CategoricalCrossentropy: '
    'SparseCategoricalCrossentropy has no such argument'
  )


def _smoothing(tf1: Sequence[Evaluated], tf2: Sequence[Evaluated], path: str) -> str:
  """A loss of smoothed labels less one of plain ones is linear in the logits."""
  shares: dict[str, list[float]] = {}
  for one, other in zip(tf1, tf2, strict=True):
    difference = one.value.astype(np.float64) - other.value if _alike(one, other) else None
    if difference is None or not np.isfinite(difference).all():
      continue
    for name, term in _smoothing_terms(one, path):
      scale = float(np.abs(term).max(initial=0.0))
      if term.shape == difference.shape and scale > 1e-3:
        share = float((difference * term).sum() / (term * term).sum())
        fits = bool(np.allclose(difference, share * term, 1e-3, 1e-5 * max(scale, 1.0)))
        shares.setdefault(name, []).append(share if fits else float('nan'))
  for found in shares.values():
    share = float(np.mean(found))
    close = max(abs(one - share) for one in found) <= _SAME
    if close and len(found) > 1 and LEAST_SMOOTHING < abs(share) < MOST_SMOOTHING:
      sides = ('tf1', 'tf2') if share > 0 else ('tf2', 'tf1')
      return (
        f'the difference equals the smoothing term s·(z_y - mean z) with s = {abs(share):.3g}: '
        f'label_smoothing is greater by {abs(share):.3g} in {sides[0]} than in {sides[1]}'
      )
  return ''


def _alike(one: Evaluated, other: Evaluated) -> bool:
  return bool(one.value.shape == other.value.shape)


def _smoothing_terms(one: Evaluated, path: str) -> Iterator[tuple[str, _Array]]:
  output = one.example.outputs[path].astype(np.float64)
  for label in one.example.labels.values():
    y = target_of(output, label)
    if y is None:
      continue
    rows = {'of elements': output * (y - 0.5)}
    if output.ndim and output.shape[-1] > 1:
      rows['of rows'] = np.sum(output * y, -1) - np.mean(output, -1)
    for name, terms in rows.items():
      yield f'each {name}', terms
      yield f'mean {name}', np.asarray(terms.mean())
      yield f'sum {name}', np.asarray(terms.sum())


def _other_denominator(tf1: Sequence[Evaluated], tf2: Sequence[Evaluated], path: str) -> str:
  """The same sum over other numbers: the ratio on every example is that of the numbers."""
  ratios = []
  for one, other in zip(tf1, tf2, strict=True):
    sums = float(np.sum(one.value, dtype=np.float64)), float(np.sum(other.value, dtype=np.float64))
    if all(np.isfinite(sums)) and all(abs(total) > 1e-6 for total in sums):
      ratios.append((one.example, sums[1] / sums[0]))
  if not ratios:
    return ''
  if all(np.isclose(ratio, 1.0, _SAME) for _, ratio in ratios):
    return ''
  example = ratios[0][0]
  # Labels that count classes are hardly weights.
  weights = sorted(
    possible_weights(example, path), key=lambda name: example.labels[name].dtype.kind != 'f'
  )
  for terms in ('rows', 'elements'):
    for weighted in (None, *weights):
      for number, mine in enumerate(DENOMINATORS):
        for its in (*DENOMINATORS[:number], *DENOMINATORS[number + 1 :]):
          if all(_explains(mine, its, terms, weighted, path, *pair) for pair in ratios):
            return _denominator_text(mine, its, ratios, weighted)
  return ''


def _explains(
  mine: formulas.Denominator,
  its: formulas.Denominator,
  terms: str,
  weighted: str | None,
  path: str,
  example: LossExample,
  ratio: float,
) -> bool:
  output = example.outputs[path]
  shape = output.shape[:-1] if terms == 'rows' else output.shape
  weights = None if weighted is None else example.labels[weighted]
  try:
    expected = mine.of(shape, weights) / its.of(shape, weights)
  except (ValueError, ZeroDivisionError):
    return False
  return bool(np.isclose(expected, ratio, _SAME))


def _denominator_text(
  mine: formulas.Denominator,
  its: formulas.Denominator,
  ratios: Sequence[tuple[LossExample, float]],
  weighted: str | None,
) -> str:
  example, ratio = next(pair for pair in ratios if not np.isclose(pair[1], 1.0, _SAME))
  which = f' (labels{weighted})' if weighted else ''
  return (
    f'the same sum is divided by {mine.text} in tf1 and by {its.text} in tf2{which}: tf2 is '
    f'{ratio:.6g} times tf1 on {example.name}, and as many times as that says on the others'
  )


def _zero_by_zero(tf1: Sequence[Evaluated], tf2: Sequence[Evaluated]) -> str:
  """One side is NaN where the other is 0, and both are the same elsewhere."""
  example, texts = '', set()
  for one, other in zip(tf1, tf2, strict=True):
    sums = float(np.sum(one.value)), float(np.sum(other.value))
    if all(map(np.isnan, sums)) or np.isclose(sums[0], sums[1], _SAME, 1e-6):
      continue
    if sums[0] == 0 and np.isnan(sums[1]):
      texts.add('tf2 is NaN where tf1 is 0: it divides 0 by 0: take tf.math.divide_no_nan')
    elif sums[1] == 0 and np.isnan(sums[0]):
      texts.add('tf1 is NaN where tf2 is 0: it divides 0 by 0, which the port mends')
    else:
      return ''
    example = example or one.example.name
  return f'{texts.pop()} ({example})' if len(texts) == 1 else ''


def _fixed_size(tf1: Sequence[Evaluated], tf2: Sequence[Evaluated], paths: Sequence[str]) -> str:
  """The port divides by a number that is the batch size of the case only."""
  size = tf1[0].example.outputs[paths[0]].shape[:1] if paths else ()
  shown = False
  for one, other in zip(tf1, tf2, strict=True):
    sums = float(np.sum(one.value)), float(np.sum(other.value))
    alone = one.example.outputs[paths[0]].shape[:1] if paths else ()
    expected = alone[0] / size[0] if alone and size else 1.0
    if np.isfinite(sums[0]) != np.isfinite(sums[1]):
      return ''
    if all(np.isfinite(sums)):
      if not np.isclose(sums[1], expected * sums[0], _SAME, 1e-6):
        return ''
      # Batches of the same size tell nothing.
      shown = shown or (expected != 1.0 and abs(sums[0]) > 1e-6)
  return f'tf2_loss divides by a batch size of {size[0]}, whatever the batch is' if shown else ''


def _offset(tf1: Sequence[Evaluated], tf2: Sequence[Evaluated]) -> str:
  offsets = []
  for one, other in zip(tf1, tf2, strict=True):
    if not _alike(one, other):
      return ''
    offsets += (other.value.astype(np.float64) - one.value).reshape(-1).tolist()
  finite = [offset for offset in offsets if np.isfinite(offset)]
  if len(finite) < 2 or np.ptp(finite) > 1e-4 or abs(finite[0]) < 1e-3:
    return ''
  return f'tf2 is tf1 {finite[0]:+.6g} on every example: a constant was added on one side'
