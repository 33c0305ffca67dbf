"""One of several machines: the protocol of Bazel and absl."""

import os
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tf2verify.errors import UsageError

_Item = TypeVar('_Item')


class Shard:
  """Which part of the cases this machine runs; whole cases.

  Attributes:
    index: from 0.
    total: how many machines.
  """

  def __init__(self, index: int = 0, total: int = 1) -> None:
    self.index = index
    self.total = total

  @classmethod
  def from_environment(cls, environment: Mapping[str, str]) -> 'Shard':
    """Returns what TEST_TOTAL_SHARDS and TEST_SHARD_INDEX say.

    Touches the file that TEST_SHARD_STATUS_FILE names.

    Raises:
      UsageError: the index is none.
    """
    total = environment.get('TEST_TOTAL_SHARDS')
    if total is None:
      return cls()
    status = environment.get('TEST_SHARD_STATUS_FILE')
    if status:
      with open(status, 'w', encoding='utf-8'):
        pass  # its being there tells Bazel that the program shards
    index = environment.get('TEST_SHARD_INDEX', '')
    if not total.isdecimal() or not index.isdecimal() or int(index) >= int(total):
      raise UsageError(
        f'TEST_TOTAL_SHARDS={total} and TEST_SHARD_INDEX={index}: the index must be a number from '
        '0 to the total minus 1'
      )
    return cls(int(index), int(total))

  def __str__(self) -> str:
    return f'{self.index + 1}/{self.total}' if self.total > 1 else ''

  def part_of(self, items: Sequence[_Item]) -> list[_Item]:
    """Returns this machine's part of what all of them see in the same order."""
    return list(items[self.index :: self.total])


def missing_shards(shards: Sequence[str]) -> list[str]:
  """Returns what is needed besides some shards to make a whole: `['2/4']`."""
  totals = {text.partition('/')[2] for text in shards if text}
  return [
    f'{index}/{total}'
    for total in sorted(totals)
    for index in range(1, int(total) + 1)
    if f'{index}/{total}' not in shards
  ]


VARIABLES = ('TEST_TOTAL_SHARDS', 'TEST_SHARD_INDEX', 'TEST_SHARD_STATUS_FILE')


def hide_from_jobs() -> None:
  """Takes the variables away, which tests that a case starts would follow as well."""
  for name in VARIABLES:
    os.environ.pop(name, None)
