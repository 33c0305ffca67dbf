"""Names of operations in the rounds of loops.

Where a loop of a graph is replaced by its rounds, an operation of its body is there once a
round: `rnn/while/round_0/gru_cell/mul`, `rnn/while/round_1/gru_cell/mul`.
"""

import re
from collections.abc import Sequence

WORD = 'round_'
PART = 'part_'
_OF_ONE = re.compile(rf'(/{PART}\d+|, output \d+)$')
_ROUND = re.compile(rf'/{WORD}(\d+)/')


def prefix(loop: str, number: int) -> str:
  """Returns what the names of the operations of one round of a loop start with.

  Args:
    loop: the loop's name.
    number: of the round, from 0 on.
  """
  return f'{loop}/{WORD}{number}/'


def numbers_of(name: str) -> tuple[int, ...]:
  """Returns in which round of each loop around it an operation is, the outermost loop first."""
  return tuple(int(number) for number in _ROUND.findall(name))


def outermost_loop(name: str) -> str | None:
  """Returns the loop that an operation is in; None for one that is in no round of any."""
  found = _ROUND.search(name)
  return None if found is None else name[: found.start()]


def without(name: str) -> str:
  """Returns a name that an operation, or a tensor, has in all rounds."""
  return _ROUND.sub('/', name)


def part(split: str, number: int) -> str:
  """Returns the name of what yields one output of an operation that splits a tensor."""
  return f'{split}/{PART}{number}'


def whole(name: str) -> str:
  """Returns the name of an operation, given that of one of its outputs."""
  return _OF_ONE.sub('', name)


def elsewhere(name: str, inside: str, numbers: Sequence[int]) -> str:
  """Returns what an operation, or a tensor, is called in other rounds of some loops.

  Args:
    name: its name, which stays as it is outside of them.
    inside: name of an operation in these loops.
    numbers: the rounds, as `numbers_of` an operation like that one there.
  """
  known = [inside[: found.start()] for found in _ROUND.finditer(inside)]
  moved, last = '', 0
  for depth, found in enumerate(_ROUND.finditer(name)):
    if depth >= len(known) or without(name[: found.start()]) != without(known[depth]):
      break
    moved += f'{name[last : found.start()]}/{WORD}{numbers[depth]}/'
    last = found.end()
  return moved + name[last:]
