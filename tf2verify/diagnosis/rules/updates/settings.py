"""Which setting, start or rule makes the port's step out of TF1's.

The rule of each side is computed again from its recorded gradients and slots. Then what
the two have not in common is put into TF1's, in the smallest number, until that gives
the port's step in every element.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence, VariableStep
from tf2verify.diagnosis.formulas.forms import Found, forms
from tf2verify.diagnosis.formulas.update_rules import Form, Stepped, UpdateInputs
from tf2verify.diagnosis.rules.updates import update_texts
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.training import TrainingRun
from tf2verify.records.wording import listed

_Array = np.ndarray[Any, Any]

# What can be exchanged beside settings.
START, RULE, DECAY = 'start', 'rule', 'decay'
_MOST_EXCHANGED = 3
_CLOSE = 1e-5
# What rounding of the variables leaves in a learning rate that is fitted to their updates.
_CLOSE_FITTED = 1e-3
# A decay that is fitted to fewer elements than these explains any step of theirs.
_LEAST_FITTED = 4
_EXPLAINS = (About.UPDATE, About.SHADOWS)


def optimizer_epsilon(evidence: TrainingEvidence) -> Cause | None:
  """Another epsilon, which alone makes the port's steps out of those of TF1."""
  found = update_rule(evidence)
  return found if found is not None and found.change is not None else None


def beyond_epsilon(evidence: TrainingEvidence) -> Cause | None:
  """What else the two optimizers have not in common."""
  found = update_rule(evidence)
  return found if found is not None and found.change is None else None


def update_rule(evidence: TrainingEvidence) -> Cause | None:
  """Names what the two optimizers have not in common, where that alone makes the difference."""
  pairs = [p for p in evidence.moves if p.tf1.gradient is not None and p.tf2.gradient is not None]
  if max(len(run.optimizers) for run in (evidence.tf1, evidence.tf2)) < 2:
    return _of_one(evidence, pairs, 0, 0)
  for one, other in itertools.product(*(_numbers(run) for run in (evidence.tf1, evidence.tf2))):
    group = [
      pair
      for pair in pairs
      if _owner(evidence, pair, 'tf1') == one and _owner(evidence, pair, 'tf2') == other
    ]
    found = _of_one(evidence, group, one, other)
    if found is not None:
      names = [pair.name for pair in group]
      text = f'in the step of {listed(names)}, {found.text}'
      # Which of several optimizers of TF1 it would have to change is not known.
      return dataclasses.replace(found, text=text, variables=tuple(names), change=None)
  return None


def _numbers(run: TrainingRun) -> range:
  return range(len(run.optimizers))


def _owner(evidence: TrainingEvidence, pair: StepPair, side: str) -> int | None:
  """Returns which of a side's optimizers reproduces the step of a variable, slots and all."""
  move = pair.of(side)
  numbers = _numbers(evidence.tf1 if side == 'tf1' else evidence.tf2)
  # A weight decay that is fitted to one variable explains too much: last of all.
  for decays in ((False,), (False, True)):
    for number in numbers:
      found = found_form(evidence, [pair], side, number, decays)
      if found is not None and _gives_slots(found, move, evidence.number):
        return number
  return None


def _gives_slots(found: Found, move: VariableStep, number: int) -> bool:
  slots = stepped(found.form, move, move.slots, number).slots
  return all(_close_arrays(slots[r], move.slots_after[r]) for r in slots if r in move.slots_after)


def _of_one(
  evidence: TrainingEvidence, pairs: Sequence[StepPair], one: int, other: int
) -> Cause | None:
  """Compares one optimizer of each side, on the variables that both step."""
  # Where some gradients are clipped differently, the others tell of the rule.
  same = [pair for pair in pairs if pair.has_same_gradient]
  if len(same) < len(pairs) and sum(pair.tf1.start.size for pair in same) < _LEAST_FITTED:
    return None
  is_part, pairs = len(same) < len(pairs), same
  of_slots = not any(pair.differs_clearly for pair in pairs)
  if of_slots and not any(map(_unlike_after, pairs)):
    return None
  tf1, tf2 = found_form(evidence, pairs, 'tf1', one), found_form(evidence, pairs, 'tf2', other)
  if tf1 is None or tf2 is None:
    return None
  explains = _explains_slots if of_slots else _explains
  if all(explains(pair, tf1, (), evidence.number) for pair in pairs):
    return None  # too little to tell one reason from another
  unlike = list(_unlike(tf1, tf2, pairs))
  for count in range(1, _MOST_EXCHANGED + 1):
    for exchanged in itertools.combinations(unlike, count):
      hybrid = _hybrid(tf1, tf2, exchanged)
      if all(explains(pair, hybrid, exchanged, evidence.number) for pair in pairs):
        # The learning rate of the first optimizers is compared by itself.
        names = [name for name in exchanged if one or other or name != 'learning_rate']
        said = update_texts.text(names, tf1, tf2, evidence, pairs)
        of = tuple(pair.name for pair in pairs) if evidence.left_out or is_part else ()
        if is_part and said:
          said = f'at {listed(of)}, whose gradients agree: {said}'
        change = _epsilon_change(names, tf1, tf2)
        return Cause(said, explains=_EXPLAINS, variables=of, change=change) if said else None
  return None


@dataclasses.dataclass(frozen=True, eq=False)
class Unlike:
  """Two optimizers, the only ones of their sides, as they have taken a step."""

  tf1: Found
  tf2: Found
  pairs: Sequence[StepPair]  # whose gradients agree
  names: Sequence[str]  # of what they have not in common

  def explained_by(self, names: Sequence[str], number: int) -> bool:
    """Returns whether the port's step is that of TF1 with some settings of the port."""
    hybrid = _hybrid(self.tf1, self.tf2, names)
    return all(_explains(pair, hybrid, names, number) for pair in self.pairs)


def unlike(evidence: TrainingEvidence) -> Unlike | None:
  """Returns what the optimizers have not in common; None where their rules are not known."""
  if max(len(run.optimizers) for run in (evidence.tf1, evidence.tf2)) > 1:
    return None
  pairs = [p for p in evidence.moves if p.tf1.gradient is not None and p.tf2.gradient is not None]
  same = [pair for pair in pairs if pair.has_same_gradient]
  tf1, tf2 = (found_form(evidence, same, side, 0) for side in ('tf1', 'tf2'))
  if not same or tf1 is None or tf2 is None:
    return None
  return Unlike(tf1, tf2, same, list(_unlike(tf1, tf2, same)))


def _epsilon_change(names: Sequence[str], tf1: Found, tf2: Found) -> Change | None:
  if list(names) != ['epsilon']:
    return None
  one, other = tf1.form.setting('epsilon'), tf2.form.setting('epsilon')
  return Change(Changed.OPTIMIZER_EPSILON, one, other)


def found_form(
  evidence: TrainingEvidence,
  pairs: Sequence[StepPair],
  side: str,
  number: int,
  with_decay: Sequence[bool] = (False, True),
) -> Found | None:
  """Returns what reproduces a side's step; None where nothing does."""
  run, step = (
    (evidence.tf1, evidence.steps[0]) if side == 'tf1' else (evidence.tf2, evidence.steps[1])
  )
  if number >= len(run.optimizers):
    return None
  record = run.optimizers[number]
  # That of the step is the first optimizer's.
  moves = [(pair, pair.of(side)) for pair in pairs]
  for form in forms(record, None if number else step.learning_rate):
    is_fitted = form.has_no_rate and sum(m.update.size for _, m in moves) >= _LEAST_FITTED
    fitted = _with_rate(form, [move for _, move in moves], evidence.number) if is_fitted else form
    for decays in with_decay:
      if decays and _elements(pairs, side) < _LEAST_FITTED:
        continue
      decay = _decay(fitted, pairs, side, evidence.number) if decays else 0.0
      found = Found(record, fitted, decay, is_fitted)
      if all(p.explains(_own_step(found, m, evidence.number), m.update) for p, m in moves):
        return found
  return None


def _with_rate(form: Form, moves: Sequence[VariableStep], number: int) -> Form:
  """Returns the form with the learning rate that fits the steps best.

  That of a schedule, or of a second optimizer, is in no record. What the rules return is a constant
  and a multiple of it, but for FTRL, whose steps then do not fit.
  """
  left = size = 0.0
  for move in moves:
    constant, with_one = (
      _step(form.replaced(learning_rate=rate), move, move.slots, number) for rate in (0.0, 1.0)
    )
    left += float(np.sum((move.update - constant) * (with_one - constant)))
    size += float(np.sum((with_one - constant) ** 2))
  rate = left / size if size and np.isfinite(left) else 0.0
  return form.replaced(learning_rate=rate)


def _elements(pairs: Sequence[StepPair], side: str) -> int:
  """Returns how many elements of variables a decay of weights would change."""
  return sum(int(np.count_nonzero(pair.of(side).before)) for pair in pairs)


def _own_step(found: Found, move: VariableStep, number: int) -> _Array:
  return _step(found.form, move, move.slots, number) - found.decay * move.before


def _step(form: Form, move: VariableStep, slots: Mapping[str, _Array], number: int) -> _Array:
  return stepped(form, move, slots, number).update


def stepped(form: Form, move: VariableStep, slots: Mapping[str, _Array], number: int) -> Stepped:
  """Returns what a rule makes of a variable and its slots in a step."""
  gradient = move.gradient if move.gradient is not None else np.zeros_like(move.start)
  return form.step(UpdateInputs(move.start, gradient, slots, number))


def _decay(form: Form, pairs: Sequence[StepPair], side: str, number: int) -> float:
  """Returns the share of the weights that the rule lacks, by least squares."""
  left = size = 0.0
  for pair in pairs:
    move = pair.of(side)
    left += float(np.sum((_step(form, move, move.slots, number) - move.update) * move.before))
    size += float(np.sum(move.before**2))
  return left / size if size and np.isfinite(left) else 0.0


def _unlike(tf1: Found, tf2: Found, pairs: Sequence[StepPair]) -> Iterator[str]:
  names = [name for name, _ in tf1.form.settings + tf2.form.settings]
  for name in dict.fromkeys(names):
    is_fitted = name == 'learning_rate' and (tf1.is_fitted or tf2.is_fitted)
    relative = _CLOSE_FITTED if is_fitted else _CLOSE
    if not _close(tf1.form.setting(name), tf2.form.setting(name), relative):
      yield name
  if tf1.form.rule != tf2.form.rule:
    yield RULE
  if update_texts.unlike_slot(tf1, tf2, pairs) is not None:
    yield START
  if abs(tf1.decay - tf2.decay) > _CLOSE * max(abs(tf1.decay), abs(tf2.decay)):
    yield DECAY


def _hybrid(tf1: Found, tf2: Found, exchanged: Sequence[str]) -> Found:
  """Returns TF1's step with the port's in place of what is exchanged."""
  rule = tf2.form.rule if RULE in exchanged else tf1.form.rule
  settings = dict(tf1.form.settings)
  names = {name for name, _ in tf2.form.settings}
  if RULE in exchanged:
    settings = {name: tf2.form.setting(name) for name in names} | settings
  for name in exchanged:
    if name not in (RULE, START, DECAY):
      settings[name] = tf2.form.setting(name)
  decay = tf2.decay if DECAY in exchanged else tf1.decay
  return Found(tf1.record, Form(rule, tuple(settings.items())), decay)


def _explains(pair: StepPair, hybrid: Found, exchanged: Sequence[str], number: int) -> bool:
  found = _hybrid_step(pair, hybrid, exchanged, number)
  return pair.explains(found.update - hybrid.decay * pair.tf1.before, pair.tf2.update)


def _explains_slots(pair: StepPair, hybrid: Found, exchanged: Sequence[str], number: int) -> bool:
  found = _hybrid_step(pair, hybrid, exchanged, number)
  return all(
    role in found.slots and _close_arrays(found.slots[role], pair.tf2.slots_after[role])
    for role in _unlike_after(pair)
  )


def _hybrid_step(pair: StepPair, hybrid: Found, exchanged: Sequence[str], number: int) -> Stepped:
  # What the port has not made yet starts as its rule says.
  slots = dict(pair.tf2.slots)
  if START not in exchanged:
    slots |= pair.tf1.slots
  return stepped(hybrid.form, pair.tf1, slots, number)


def _unlike_after(pair: StepPair) -> list[str]:
  """Returns the roles of the slots that are not the same after the step."""
  one, other = pair.tf1.slots_after, pair.tf2.slots_after
  return [r for r in sorted(one.keys() & other.keys()) if not _close_arrays(one[r], other[r])]


def _close(one: float, other: float, relative: float = _CLOSE) -> bool:
  return abs(one - other) <= relative * max(abs(one), abs(other))


def _close_arrays(one: _Array, other: _Array) -> bool:
  """Returns whether two slots are the same, but for rounding that a difference stands out from."""
  size = float(np.abs(one).max(initial=0.0))
  return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-3, atol=1e-5 * size))
