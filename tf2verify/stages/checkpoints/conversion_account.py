"""What a conversion leaves out on either side, and why."""

import dataclasses
from collections.abc import Collection

from tf2verify.records.checkpoint import AccountedKey, KeyAccount, KeyKind
from tf2verify.stages.stage import CaseUnderTest

_SHOWN = 3
# Keys that the state of an optimizer may be made of.
_OF_TRAINING = (KeyKind.SLOT, KeyKind.OPTIMIZER, KeyKind.GLOBAL_STEP)


@dataclasses.dataclass(frozen=True)
class Remark:
  """A sentence, and the names that it is about."""

  text: str  # without the names
  names: tuple[str, ...] = ()

  def lines(self, verbose: bool) -> list[str]:
    """Returns it for a terminal; with all names, or with the first of them."""
    if not self.names:
      return [self.text]
    if verbose and len(self.names) > _SHOWN:
      return [f'{self.text}:', *(f'  {name}' for name in self.names)]
    more = len(self.names) - _SHOWN
    shown = ', '.join(self.names[:_SHOWN]) + (f' and {more:,} more' if more > 0 else '')
    return [f'{self.text}: {shown}']


def with_read(account: KeyAccount, names: Collection[str]) -> KeyAccount:
  """Returns an account in which some keys are read."""
  keys = (
    dataclasses.replace(key, read=True) if key.key.name in names else key for key in account.keys
  )
  return dataclasses.replace(account, keys=tuple(keys))


def left_out_keys(
  case: CaseUnderTest, account: KeyAccount, why_no_optimizer: str, settled: bool
) -> list[Remark]:
  """Returns the keys that nothing reads, by the reason for it; not those that nobody knows.

  Args:
    case: the case.
    account: of the keys.
    why_no_optimizer: why no state of an optimizer is converted; '' where some is.
    settled: whether the keys of the optimizer were looked at, where its state is converted: not
      after a refusal that came before.
  """
  unsettled = _OF_TRAINING if not settled and not why_no_optimizer else ()
  changed = {one.key.name for one in account.changed}
  by_text: dict[str, list[str]] = {}
  for kind in KeyKind:
    for key in account.unread(kind):
      if kind is KeyKind.UNKNOWN:
        continue
      if key.key.name in changed:
        text = 'not read, since shape or dtype are not those of the variable'
      elif kind in unsettled:
        text = 'not looked at, since the weights are refused already'
      else:
        text = f'left out, since {_reason(case, account, key, why_no_optimizer)}'
      by_text.setdefault(text, []).append(key.key.name)
  return [Remark(text, tuple(sorted(names))) for text, names in by_text.items()]


def _reason(
  case: CaseUnderTest, account: KeyAccount, key: AccountedKey, why_no_optimizer: str
) -> str:
  if key.kind is KeyKind.MODEL:
    is_read = any(source.variable == key.variable for source in account.sources)
    return f'the moving average {"is" if is_read else "would be"} converted instead'
  if key.kind is KeyKind.SHADOW:
    if case.declaration.evaluate_with_ema:
      return 'the name is not that of the moving average of a variable of the model'
    return 'the weights are converted, not their moving averages (--ema converts these)'
  if key.kind is KeyKind.LEFT_OUT:
    reason = case.pairing.tf1_only.get(key.variable)
    return f'the case leaves it to TF1 ({reason})' if reason else 'the port has no such variable'
  if key.kind is KeyKind.GLOBAL_STEP:
    return 'it counts training steps, and the port has no variable for it'
  if why_no_optimizer:
    return f"it is the optimizer's, and that is not converted: {why_no_optimizer}"
  return "the port's optimizer has nothing of this meaning"


def port_alone(case: CaseUnderTest) -> list[Remark]:
  """Returns the variables of the port that no key gives a value, by the reason for it."""
  by_reason: dict[str, list[str]] = {}
  for name in case.alignment().only_tf2:
    reason = case.pairing.tf2_only.get(name)
    said = f'TF1 does without it ({reason})' if reason else 'it has no partner in TF1'
    by_reason.setdefault(said, []).append(name)
  return [Remark(f'keeps its initial value, since {r}', tuple(n)) for r, n in by_reason.items()]


def tf1_alone(case: CaseUnderTest) -> list[Remark]:
  """Returns the variables of TF1 that no value of the port fills, by the reason for it."""
  by_reason: dict[str, list[str]] = {}
  for name in case.alignment().only_tf1:
    reason = case.pairing.tf1_only.get(name)
    said = f'the case leaves it to TF1 ({reason})' if reason else 'the port has no such variable'
    by_reason.setdefault(said, []).append(name)
  return [
    Remark(f'written with its initial value in TF1, since {r}', tuple(n))
    for r, n in by_reason.items()
  ]
