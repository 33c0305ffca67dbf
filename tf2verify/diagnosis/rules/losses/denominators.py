"""One sum, divided by two numbers."""

import itertools
from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.losses import LossOfOutput
from tf2verify.diagnosis.formulas.losses import (
  DENOMINATORS,
  Denominator,
  Evaluated,
  Weights,
  possible_weights,
  recognized,
)
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import Cause

# Of a ratio that is the same for several examples.
_SAME = 1e-3
# By which tf.compat.v1.losses divides unless it is given another reduction.
_OF_TF1 = 'nonzero'
_PLAIN = ('batch', 'one', 'terms')
# With a term for each example, their number is the batch size.
_PER_EXAMPLE = {'terms': 'batch'}
_WITHOUT_ZERO = (
  '; tf.compat.v1.losses divides by the weights that are not zero, unless it is given a reduction: '
  'give an example with a weight of zero (loss_examples) to see which number it is'
)


def loss_denominator(evidence: LossOfOutput) -> Cause | None:
  """The same sum over other numbers: the ratio on every example is that of the numbers."""
  ratios = []
  for one, other in zip(evidence.tf1, evidence.tf2, strict=True):
    sums = float(np.sum(one.value, dtype=np.float64)), float(np.sum(other.value, dtype=np.float64))
    if all(np.isfinite(sums)) and all(abs(total) > 1e-6 for total in sums):
      ratios.append((one, sums[1] / sums[0]))
  if not ratios or all(np.isclose(ratio, 1.0, _SAME) for _, ratio in ratios):
    return None
  # Labels that count classes are hardly weights.
  weights = sorted(
    possible_weights(ratios[0][0], evidence.path),
    key=lambda one: one.values.dtype.kind != 'f',
  )
  for terms in ('rows', 'elements'):
    for weighted in (None, *weights):
      pairs = [
        (mine, its)
        for mine, its in itertools.permutations(DENOMINATORS, 2)
        if all(_explains(mine, its, terms, weighted, evidence.path, *pair) for pair in ratios)
      ]
      if weighted is not None and not weighted.label:
        pairs = _sure(pairs, weighted, evidence)
      if not pairs:
        continue
      mine, its = _likeliest(pairs, weighted)
      text = _denominator_text((mine, its), pairs, ratios, weighted) + _per_example(evidence)
      own = mine.name, its.name
      others = '' if weighted is not None else _others(own, terms, ratios, evidence.path)
      if others:
        return Cause(text + others)
      if weighted is not None and not weighted.label:
        return Cause(text)
      label = '' if weighted is None else weighted.label
      words = mine.name, its.name, terms, evidence.path, label
      return Cause(text, change=Change(Changed.DENOMINATOR, words=words))
  return None


def _others(
  named: tuple[str, str], whose: str, ratios: Sequence[tuple[Evaluated, float]], path: str
) -> str:
  """Returns which other numbers have the same ratio; '' for none.

  With as many classes as examples, the number of terms is to the batch size what that is to 1.
  """
  plain = [one for one in DENOMINATORS if one.name in _PLAIN]
  shapes = [one.example.outputs[path].shape for one, _ in ratios]
  has_one = all(np.prod(shape[1:]) == 1 for shape in shapes)  # term for each example

  def called(names: Sequence[str], terms: str) -> tuple[str, ...]:
    is_batch = has_one or terms == 'rows'
    return tuple(_PER_EXAMPLE.get(name, name) if is_batch else name for name in names)

  found = {
    called([one.name for one in both], terms)
    for terms in ('rows', 'elements')
    for both in itertools.permutations(plain, 2)
    if all(_explains(*both, terms, None, path, *pair) for pair in ratios)
  }
  texts = {one.name: one.text for one in plain}
  said = [
    f'by {texts[a]} in tf1 and by {texts[b]} in tf2'
    for a, b in sorted(found - {called(named, whose)})
  ]
  return f'; or, since their ratio is the same here, {" or ".join(said)}' if said else ''


def _likeliest(
  pairs: Sequence[tuple[Denominator, Denominator]], weighted: Weights | None
) -> tuple[Denominator, Denominator]:
  """Returns the numbers that are named first where several are the same on all examples.

  Of weights without a zero, the number of those that are not zero is that of all: it is what
  `tf.compat.v1.losses` divides by.
  """
  if weighted is None:
    return pairs[0]
  return next((pair for pair in pairs if pair[0].name == _OF_TF1), pairs[0])


def _sure(
  pairs: list[tuple[Denominator, Denominator]], weights: Weights, evidence: LossOfOutput
) -> list[tuple[Denominator, Denominator]]:
  """Returns what may be said of weights that a loss computes, the same on all examples.

  Two pairs of numbers may have one ratio there: the losses themselves tell them apart, where their
  formula is known.
  """
  known = [recognized(side, evidence.path) for side in (evidence.tf1, evidence.tf2)]
  if all(one is not None and one.reductions for one in known):
    fits = [{n for w, n in one.reductions if w == weights.text} for one in known if one is not None]
    pairs = [(mine, its) for mine, its in pairs if mine.name in fits[0] and its.name in fits[1]]
  # With a term for each example, their number is the batch size.
  names = [(mine.name, its.name) for mine, its in pairs]
  pairs = [
    pair
    for pair, both in zip(pairs, names, strict=True)
    if 'terms' not in both or tuple(n.replace('terms', 'batch') for n in both) not in names
  ]
  return pairs if len(pairs) == 1 else []


def _per_example(evidence: LossOfOutput) -> str:
  """Returns what to do where one side returns a number for each example; '' elsewhere."""
  shapes = [np.shape(one.value) for one in (evidence.tf1[0], evidence.tf2[0])]
  if bool(shapes[0]) == bool(shapes[1]):
    return ''
  hook, shape = ('tf1_loss', shapes[0]) if shapes[0] else ('tf2_loss', shapes[1])
  return (
    f'; {hook} returns a value for each example, shape {shape}, of which training would minimize '
    'the sum: return the one number that production minimizes, such as tf.reduce_mean of it'
  )


def _explains(
  mine: Denominator,
  its: Denominator,
  terms: str,
  weighted: Weights | None,
  path: str,
  one: Evaluated,
  ratio: float,
) -> bool:
  output = one.example.outputs[path]
  shape = output.shape[:-1] if terms == 'rows' else output.shape
  known = possible_weights(one, path) if weighted is not None else []
  weights = next((w.values for w in known if weighted and w.text == weighted.text), None)
  if weighted is not None and weights is None:
    return False
  try:
    expected = mine.of(shape, weights) / its.of(shape, weights)
  except (ValueError, ZeroDivisionError):
    return False
  return bool(np.isclose(expected, ratio, _SAME))


def _denominator_text(
  named: tuple[Denominator, Denominator],
  pairs: Sequence[tuple[Denominator, Denominator]],
  ratios: Sequence[tuple[Evaluated, float]],
  weighted: Weights | None,
) -> str:
  one, ratio = next(pair for pair in ratios if not np.isclose(pair[1], 1.0, _SAME))
  which = f' ({weighted.text})' if weighted else ''
  mine, its = named
  tf1, tf2 = mine.text, its.text
  if weighted is not None:
    tf1 = _with_same(mine, [a for a, b in pairs if b is its])
    tf2 = _with_same(its, [b for a, b in pairs if a is mine])
  of_tf1 = mine.name == _OF_TF1 and tf1 != mine.text
  return (
    f'the same sum is divided by {tf1} in tf1 and by {tf2} in tf2{which}: tf2 is '
    f'{ratio:.6g} times tf1 on {one.example.name}, and by the corresponding factor on the others'
    + (_WITHOUT_ZERO if of_tf1 else '')
  )


def _with_same(named: Denominator, fitting: Sequence[Denominator]) -> str:
  """Returns a number with what is the same on all examples: which of them it is, is not known."""
  has_batch = any(one.name == 'batch' for one in fitting)
  # With a term for each example, their number is the batch size.
  told = [one for one in fitting if not (has_batch and one.name == 'terms')]
  same = [one.text for one in told if one is not named]
  return f'{named.text} (or {", or ".join(same)}, the same on all examples)' if same else named.text
