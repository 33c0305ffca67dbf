"""Losses that go by two formulas, or by one with labels that are smoothed differently."""

from collections.abc import Sequence

from tf2verify.diagnosis.evidence.losses import LossOfOutput
from tf2verify.diagnosis.formulas import losses as formulas
from tf2verify.diagnosis.formulas.losses import Evaluated, Recognized
from tf2verify.numerics.extreme_outputs import is_probability
from tf2verify.records.diagnosis import Cause

# Of a share that is the same for several examples.
_SAME = 1e-3

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
    'tf1 is 1 - sum(a·b), which assumes that its vectors are normalized; tf2 is -cos of vectors '
    'that it normalizes itself (tf.keras.losses.CosineSimilarity): on normalized vectors, an '
    'offset of exactly 1; on others, a different loss'
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


def loss_formula(evidence: LossOfOutput) -> Cause | None:
  """Names the formula of each side, and the smoothing that each formula needs."""
  one = formulas.recognized(evidence.tf1, evidence.path)
  other = formulas.recognized(evidence.tf2, evidence.path)
  if one is None or other is None:
    return None
  smoothed = abs(one.smoothing - other.smoothing) > _SAME
  divided = _reductions_text(one, other)
  if one.name == other.name:
    classes = evidence.tf1[0].example.outputs[evidence.path].shape[-1:] or (1,)
    return Cause(_smoothing_text(one, other, classes[0]) + divided) if smoothed else None
  text = _formula_text(one.name, other.name, evidence.tf1, evidence.path)
  return Cause((f'{text}; and {_smoothings(one, other)}' if smoothed else text) + divided)


def _reductions_text(one: Recognized, other: Recognized) -> str:
  """Returns by what each side divides, where no one reduction gives both losses; '' elsewhere."""
  if not one.reductions or not other.reductions or set(one.reductions) & set(other.reductions):
    return ''
  if any(sum(bool(weights) for weights, _ in side.reductions) > 1 for side in (one, other)):
    return ''  # by which of several numbers is not known
  texts = {known.name: known.text for known in formulas.DENOMINATORS}
  (weights, mine), (its_weights, its) = one.reductions[0], other.reductions[0]
  if weights != its_weights:
    weighted = [w or 'nothing' for w in (weights, its_weights)]
    return f'; and tf1 weights its terms by {weighted[0]}, tf2 by {weighted[1]}'
  which = f' ({weights})' if weights else ''
  return f'; and the sum is divided by {texts[mine]} in tf1 and by {texts[its]} in tf2{which}'


def _formula_text(one: str, other: str, tf1: Sequence[Evaluated], path: str) -> str:
  if (one, other) in _TEXTS:
    return _TEXTS[one, other]
  if one in _ON_LOGITS and other in _AS_PROBABILITIES:
    if not is_probability(tf1[0].example.outputs[path]):
      return (
        f'tf2 treats logits as probabilities (its loss is the {other}), but the outputs are not '
        'probabilities (not in [0, 1], or their rows do not sum to 1): pass from_logits=True'
      )
    return (
      f'tf1 treats the outputs as logits ({one}), although the model yields probabilities, and tf2 '
      f'as probabilities ({other}): pass from_logits=True'
    )
  if one in _AS_PROBABILITIES and other in _ON_LOGITS:
    return (
      f'tf1 treats the outputs as probabilities ({one}), and tf2 as logits ({other}), to which it '
      'applies its own sigmoid or softmax: pass from_logits=False'
    )
  text = f'tf1 computes the {one}, tf2 the {other}'
  if one in _AS_PROBABILITIES and other in _AS_PROBABILITIES:
    return f'only saturated elements differ, by the placement of the epsilon: {text}'
  return text


def _smoothing_text(tf1: Recognized, tf2: Recognized, classes: int) -> str:
  """Returns what to say of one formula of labels that are smoothed differently."""
  term = {
    formulas.FUSED_SOFTMAX: 's·(z_y - mean z)',
    formulas.FUSED_SIGMOID: 's·z·(y - 1/2)',
  }.get(tf1.name)
  share = abs(tf1.smoothing - tf2.smoothing)
  text = f'{_smoothings(tf1, tf2)} ({_smoothing_fix(tf1, tf2, classes)})'
  if not term:
    return text
  return f'the difference equals the smoothing term {term} with s = {share:.3g}: {text}'


def _smoothings(tf1: Recognized, tf2: Recognized) -> str:
  if tf2.smoothing > tf1.smoothing:
    sides = (('tf2', tf2.smoothing), ('tf1', tf1.smoothing))
  else:
    sides = (('tf1', tf1.smoothing), ('tf2', tf2.smoothing))
  (side, more), (other, less) = sides
  rest = f'{other} by {less:.3g}' if less else f'{other} does not'
  return f'{side} smooths its labels by {more:.3g}, {rest}'


def _smoothing_fix(tf1: Recognized, tf2: Recognized, classes: int) -> str:
  """Returns how to smooth as tf1 does: whether the port does so by an argument is not known."""
  share = f'{tf1.smoothing:.3g}'
  keras = 'BinaryCrossentropy' if tf2.name in _OF_ELEMENTS else 'CategoricalCrossentropy'
  if not tf1.smoothing:
    return (
      'leave it out in the port: the argument label_smoothing, or what it computes of the labels'
    )
  if not tf2.smoothing:
    if tf2.name in _OF_ELEMENTS:
      return f'give label_smoothing={share} to {keras}'
    return (
      f'give label_smoothing={share} and one-hot labels to {keras}: '
      'SparseCategoricalCrossentropy has no such argument'
    )
  if tf2.name in _OF_ELEMENTS:
    by_hand = f'(1 - {share})·y + {share}/2'
  else:
    by_hand = f'(1 - {share})·y + {share}/{classes} with all {classes} classes'
    if abs(tf2.smoothing * (classes - 1) / classes - tf1.smoothing) <= _SAME:
      by_hand += f': spread over the {classes - 1} others alone, {share} is {tf2.smoothing:.3g}'
  return (
    f'if the port has the argument label_smoothing of {keras}, give it {share}; if it smooths the '
    f'labels itself, tf1 has {by_hand}'
  )
