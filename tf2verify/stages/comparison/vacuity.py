"""What a stage that passed did not see."""

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from tf2verify.numerics.telling import Blank
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.stage import CaseUnderTest

_SHOWN = 3
# Fewer elements are at the extremes by chance.
_FEWEST = 16
_SATURATED = 0.9
# Of functions that can be saturated.
_LIMITS = (-1.0, 0.0, 1.0)

# What follows the noun of a quantity: `gradient of the total loss`.
_AFTER_NOUN = re.compile(r' (?=(?:of|from|after|by) )')
# What a tensor of which nothing can be told is, and what can be done about it.
_BLANKS = {
  Blank.EMPTY: (
    'without elements on both sides, so nothing of it was compared',
    'give inputs for which it has elements',
  ),
  Blank.NAN: (
    'NaN on both sides, without a finite number other than 0, so nothing of it was compared',
    'the values that variables are given for this check make it NaN: override fill_values with '
    'values in the domain of each variable, or give different inputs',
  ),
  Blank.NON_FINITE: (
    'without a finite number other than 0 on both sides, so twice as much would also pass',
    'give inputs, or fill_values, for which the model yields numbers',
  ),
  Blank.ZERO: (
    'zero everywhere on both sides, so any multiple would also pass',
    'use other inputs, or override fill_values',
  ),
  Blank.TOLERANCE: (
    'within the tolerance of zero, so zeros, or twice as much, would also pass',
    'use larger inputs or a smaller tolerance',
  ),
  Blank.SAME: (
    'the same in all elements and runs, so a port that always yields this value would also pass',
    'give inputs for which it varies, or also return what it is computed from',
  ),
}
# Of a variable that is equal bit by bit, a zero tells as much as any number.
_STORED = ('initial value', 'state after the call')
# What a training step leaves as it was needs no mention besides its gradient.
_QUIET = ('slot', 'update', 'state', 'shadow')
# Numbers that were not computed, or are no numbers.
_NO_NUMBERS = (Blank.NAN, Blank.NON_FINITE)
# They are known before anything is computed.
_AUXILIARY = ('learning rate', 'global step')


@dataclasses.dataclass
class _Seen:
  """One quantity of one name, over the runs of a stage."""

  runs: dict[str, Blank | None] = dataclasses.field(default_factory=dict)
  constants: set[object] = dataclasses.field(default_factory=set)

  @property
  def blank(self) -> Blank | None:
    """Why no run tells anything; None where one does."""
    found = list(self.runs.values())
    if None in found or len(self.constants) > 1:
      return None
    return found[0]


class Telling:
  """Which of the tensors that a stage compared tell anything of the port, in some run.

  Attributes:
    judged_by: the quantities without which the stage tells nothing, whatever else it
      compares; empty for all.
    needs_numbers: quantities, and whose ('' for all of one), of which NaN and infinities alone
      make the stage tell nothing, whatever else it compares.
    told_elsewhere: what has a note of another origin.
    nan_origin: where NaN begins, and what to do about it; '' where that is not known.
  """

  def __init__(self) -> None:
    self._seen: dict[tuple[str, str], _Seen] = {}
    self.judged_by: Collection[str] = ()
    self.needs_numbers: Collection[tuple[str, str]] = ()
    self.nan_origin = ''
    self.told_elsewhere: Collection[tuple[str, Blank]] = ()

  def add(self, key: TensorKey, blank: Blank | None, constant: str = '') -> None:
    """Adds a pair of a run, or what is known of it now.

    Args:
      key: which tensor of which run.
      blank: why it tells nothing; None where it does.
      constant: what all elements are, for `SAME`.
    """
    if key.quantity in _STORED and blank not in (Blank.TOLERANCE, Blank.DEGENERATE):
      blank = None
    seen = self._seen.setdefault((key.quantity, key.subject), _Seen())
    seen.runs[key.run] = blank
    if blank is Blank.SAME:
      seen.constants.add(constant)

  def __copy__(self) -> 'Telling':
    """Returns one that has seen the same, and goes on by itself."""
    other = Telling()
    other.judged_by, other.told_elsewhere = self.judged_by, self.told_elsewhere
    other.needs_numbers, other.nan_origin = self.needs_numbers, self.nan_origin
    other.merge(self)
    return other

  def merge(self, other: 'Telling') -> None:
    """Adds what another one has seen."""
    for key, seen in other._seen.items():
      known = self._seen.setdefault(key, _Seen())
      known.runs.update(seen.runs)
      known.constants |= seen.constants

  def notes(self) -> list[str]:
    """Returns one note for each quantity and way of telling nothing."""
    names: dict[tuple[str, Blank], list[str]] = {}
    for (quantity, name), seen in self._seen.items():
      quiet = quantity in _QUIET and seen.blank is not Blank.TOLERANCE
      told = quiet or (quantity, seen.blank) in self.told_elsewhere
      if seen.blank in _BLANKS and not told:
        names.setdefault((quantity, seen.blank), []).append(name)
    notes = [
      listed(found, quantity, _BLANKS[blank][0]) for (quantity, blank), found in names.items()
    ]
    if self.nan_origin and any(blank is Blank.NAN for _, blank in names):
      notes.append(self.nan_origin)
    return notes

  def degenerate(self) -> list[str]:
    """Returns what is inconclusive since rounding alone changes it as much; [] for nothing."""
    found = [
      f'{quantity} {name}'
      for (quantity, name), seen in self._seen.items()
      if Blank.DEGENERATE in seen.runs.values()
    ]
    text = 'inconclusive, since rounding alone changes 1 % of the size or more'
    return [listed(found, 'tensor', text)] if found else []

  @property
  def holds_nan(self) -> bool:
    """Whether some tensor is NaN in every run, apart from zeros."""
    return any(seen.blank is Blank.NAN for seen in self._seen.values())

  def tells_nothing_of(self, quantity: str) -> bool:
    """Returns whether a quantity was compared, and none of its tensors tells anything."""
    found = [seen.blank for (other, _), seen in self._seen.items() if other == quantity]
    return bool(found) and None not in found

  def reason(self) -> str:
    """Returns why nothing that was compared tells anything; '' where something does."""
    wanted = [
      seen.blank
      for (quantity, name), seen in self._seen.items()
      if (quantity in self.judged_by if self.judged_by else not _is_auxiliary(quantity, name))
    ]
    found = [blank for blank in Blank if blank in wanted]
    if None in wanted or not found:
      return self._without_numbers()
    if Blank.DEGENERATE in found:
      return 'every tensor is as small as its rounding noise or the tolerance; see the notes'
    if found == [Blank.TOLERANCE]:
      return (
        'every tensor is within the tolerance of zero on both sides, so zeros, or twice as much, '
        'would also pass; use larger inputs or a smaller tolerance'
      )
    return self._with_remedies(self.notes() or [_UNTOLD], found)

  def _without_numbers(self) -> str:
    """Returns which of the quantities that need numbers have none; '' where they have."""
    texts, worst = [], set()
    for quantity, name in self.needs_numbers:
      found = [
        seen.blank
        for (other, subject), seen in self._seen.items()
        if other == quantity and name in ('', subject)
      ]
      if None not in found and any(blank in found for blank in _NO_NUMBERS):
        whose = f'{quantity} {name}' if name else f'every {quantity}'
        what = 'NaN' if set(found) == {Blank.NAN} else 'NaN, infinite or zero'
        texts.append(f'{whose} is {what} on both sides in every run, so nothing of it was compared')
        worst |= {blank for blank in _NO_NUMBERS if blank in found}
    if texts and self.nan_origin and Blank.NAN in worst:
      texts.append(self.nan_origin)
    return self._with_remedies(texts, [blank for blank in _NO_NUMBERS if blank in worst])

  def _with_remedies(self, texts: Sequence[str], blanks: Iterable[Blank]) -> str:
    remedies = [
      _BLANKS[blank][1]
      for blank in blanks
      if blank in _BLANKS and not (blank is Blank.NAN and self.nan_origin)
    ]
    return '; '.join([*texts, *remedies])


def _is_auxiliary(quantity: str, name: str) -> bool:
  """Returns whether an optimizer has it whatever the model computes: a rate, a beta power."""
  return quantity in _AUXILIARY or (quantity == 'slot' and ' of ' not in name)


_UNTOLD = 'every tensor is zero everywhere on both sides, so any multiple would also pass'


class OutputWatch:
  """Sees which floating outputs are alike all over in every run of a stage.

  Values tell little of an output whose elements are all the same, or of which nine in
  ten are at its least or greatest value (a dead ReLU, a saturated softmax). An output
  that varies in one of the runs has been seen.

  Attributes:
    all_zero: whether every output of every run is floating, and zero everywhere.
  """

  def __init__(self) -> None:
    self._kinds: dict[str, set[str]] = {}
    self._runs: list[str] = []

  @property
  def all_zero(self) -> bool:
    """See the class."""
    return bool(self._kinds) and all(found == {'zero'} for found in self._kinds.values())

  def add(self, tf1: Observation) -> None:
    """Looks at a run of the reference; that the port agrees is known otherwise."""
    self._runs.append(tf1.run)
    for record in tf1.outputs:
      if record.value is not None:
        self._kinds.setdefault(record.name, set()).add(_kind(record.value))

  def notes(self) -> list[str]:
    """Returns one note per way of telling little."""
    notes = []
    for kind, text in _TEXTS.items():
      names = [name for name, found in self._kinds.items() if found == {kind}]
      if names:
        notes.append(listed(names, 'output', f'{text} [{"; ".join(self._runs)}]'))
    return notes


_TEXTS = {
  'zero': 'zero everywhere, which shows next to nothing of the model',
  'constant': 'the same number everywhere, which shows little of the model',
  'saturated': 'at the minimum or maximum in at least nine of ten elements (saturated)',
}


def _kind(value: np.ndarray) -> str:
  """Returns a key of `_TEXTS`, or '' for an output that varies."""
  if not value.size or value.dtype.kind not in 'fcV':
    return ''
  if not np.any(value):
    return 'zero'
  if value.size == 1 or not np.isfinite(value.reshape(-1)[:1]).all():
    return ''
  if np.all(value == value.reshape(-1)[0]):
    return 'constant'
  if value.size < _FEWEST or value.dtype.kind != 'f':
    return ''
  extreme = (value == np.min(value)) | (value == np.max(value))
  is_saturated = np.count_nonzero(extreme) >= _SATURATED * value.size
  return 'saturated' if is_saturated and not _is_repeated(value) else ''


def _is_repeated(value: np.ndarray) -> bool:
  """Returns whether an output is a few numbers, all different, in each row: a variable, say.

  Two of them are the least and the greatest, and no function is saturated. 0 and 1 may be what a
  softmax or a sigmoid yields.
  """
  for axis in range(value.ndim):
    first = np.take(value, [0], axis)
    if np.array_equal(value, np.broadcast_to(first, value.shape)):
      value = first
  is_few = np.unique(value).size == value.size
  return is_few and not np.isin(value, _LIMITS).all()


def influence_notes(case: CaseUnderTest) -> list[str]:
  """Returns notes on variables and inputs that no compared number depends on."""
  found = case.tf1.without_influence()
  left_out = case.alignment().only_tf1
  variables = [name for name in found.variables if name not in left_out]
  notes = []
  if variables:
    text = 'without influence on any output, regularization loss or update op of tf1'
    notes.append(listed(variables, 'variable', text))
  if found.inputs:
    notes.append(listed(found.inputs, 'input', 'never read on the way to any output of tf1'))
  return notes


def gradient_notes(tf1: Iterable[TensorRecord]) -> list[str]:
  """Returns notes on gradients that are zero everywhere, given that the port agrees."""
  names = [r.name for r in tf1 if r.value is not None and r.value.size and not np.any(r.value)]
  return [listed(names, 'gradient', 'zero everywhere on both sides')] if names else []


def near_zero_note(names: Sequence[str]) -> list[str]:
  """Returns what is inconclusive of tensors that differ by less than the tolerance; [] for none."""
  if not names:
    return []
  shown = ', '.join(names[:_SHOWN]) + (', …' if len(names) > _SHOWN else '')
  noun = 'tensor is' if len(names) == 1 else 'tensors are'
  return [
    f'inconclusive: {len(names):,} {noun} within the tolerance of zero on both sides, but not '
    f'equal there, so zeros would also pass: {shown}'
  ]


def listed(names: Sequence[str], noun: str, text: str) -> str:
  """Returns a note: `output x is zero`, or `5 outputs are zero: a, b, c, …`."""
  if len(names) == 1:
    return f'{noun} {names[0]} is {text}'
  shown = ', '.join(names[:_SHOWN]) + (', …' if len(names) > _SHOWN else '')
  return f'{len(names):,} {_plural(noun)} are {text}: {shown}'


def _plural(noun: str) -> str:
  """Returns the plural of a quantity: `losses`, `gradients of the total loss`."""
  head, *rest = _AFTER_NOUN.split(noun, maxsplit=1)
  ending = 'es' if head.endswith(('s', 'x', 'ch', 'sh')) else 's'
  return ' '.join([head + ending, *rest])
