"""What a conversion leaves out on either side, and why."""

import dataclasses
from collections.abc import Collection

from tf2verify.records.checkpoint import AccountedKey, KeyAccount, KeyKind
from tf2verify.stages.stage import CaseUnderTest

_SHOWN = 3


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


def left_out_keys(case: CaseUnderTest, account: KeyAccount, why_no_optimizer: str) -> list[Remark]:
  """Returns the keys that nothing reads, by the reason for it; not those that nobody knows.

  Args:
    case: the case.
    account: of the keys.
    why_no_optimizer: why no state of an optimizer is converted; '' where some is.
  """
  by_reason: dict[str, list[str]] = {}
  for kind in KeyKind:
    for key in account.unread(kind):
      if kind is not KeyKind.UNKNOWN:
        by_reason.setdefault(_reason(case, key, why_no_optimizer), []).append(key.key.name)
  return [
    Remark(f'left out, since {reason}', tuple(sorted(names))) for reason, names in by_reason.items()
  ]


def _reason(case: CaseUnderTest, key: AccountedKey, why_no_optimizer: str) -> str:
  if key.kind is KeyKind.MODEL:
    return 'the moving average is converted instead'
  if key.kind is KeyKind.SHADOW:
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
