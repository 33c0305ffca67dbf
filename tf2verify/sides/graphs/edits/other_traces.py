"""Edits of one trace of the port, by the names that its operations have in another one.

The first step of an optimizer makes its slots, in a scope of its name, so that what it computes has
the scope `adam_1` there and `adam` in all further steps.
"""

import dataclasses
import re
from collections.abc import Callable, Collection
from typing import Any

from tf2verify.sides.graphs.edits.repairs import GivenValue, Repair, Transplant
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput

_SCOPE = re.compile(r'(.*?)(?:_\d+)?/')
_MOST_NUMBERS = 3


def named_as(repair: Repair, known: Collection[str]) -> Repair:
  """Returns an edit with the names of operations in another trace.

  What has no name there keeps its own.

  Args:
    repair: the edit.
    known: the names of all operations of the other trace.
  """
  rename = renaming(known)
  return dataclasses.replace(
    repair,
    changes=tuple(dataclasses.replace(c, op=rename(c.op)) for c in repair.changes),
    transplants=tuple(_moved(moved, rename) for moved in repair.transplants),
    values=tuple(GivenValue(v.tf1, rename(v.tf2), v.as_tf2) for v in repair.values),
    passing=tuple(map(rename, repair.passing)),
    inputs=tuple(
      OtherInput(rename(i.op), i.slot, rename(i.tensor), tuple(_node(n, rename) for n in i.inner))
      for i in repair.inputs
    ),
    exchanged=tuple((rename(one), rename(other)) for one, other in repair.exchanged),
  )


def renaming(known: Collection[str]) -> Callable[[str], str]:
  """Returns what gives the name in another trace for one of an operation, or of a tensor of it."""

  def rename(name: str) -> str:
    control, tensor = name.startswith('^'), name.lstrip('^')
    op, mark, number = tensor.partition(':')
    found = op if op in known else next((n for n in _others(op) if n in known), op)
    return ('^' if control else '') + found + mark + number

  return rename


def _others(name: str) -> list[str]:
  """Returns what an operation may be called whose outermost scope has another number."""
  match = _SCOPE.match(name)
  if match is None:
    return []
  rest = name[match.end() :]
  numbers = ('', *(f'_{n}' for n in range(1, _MOST_NUMBERS)))
  return [f'{match[1]}{number}/{rest}' for number in numbers]


def _moved(moved: Transplant, rename: Callable[[str], str]) -> Transplant:
  inner = tuple(_node(node, rename) for node in moved.inner)
  end = _node(moved.end, rename)
  end.name = rename(end.name)
  return dataclasses.replace(moved, inner=inner, end=end)


def _node(node: Any, rename: Callable[[str], str]) -> Any:
  copied = type(node)()
  copied.CopyFrom(node)
  for slot, read in enumerate(node.input):
    copied.input[slot] = rename(read)
  return copied
