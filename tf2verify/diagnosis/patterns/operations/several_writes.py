"""Writes of one variable in one call: of what each is made, and by which line."""

import math
from collections.abc import Set

from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import CONSTANT, VARIABLE, OpGraph, TensorKey

# What only prepares the values of which an average is taken.
_PREPARING = frozenset(
  ('Cast', 'Identity', 'Reshape', 'Square', 'SquaredDifference', 'StopGradient', 'Sub', 'Transpose')
)


def lines_of_writes(graph: OpGraph, variable: str) -> list[SourceLine]:
  """Returns the user's lines that write a variable in a call, in order; () where one is unknown."""
  lines = [graph.ops[_made(graph, target)].source for target in _targets(graph, variable)]
  known = [line for line in lines if line is not None]
  return known if len(known) == len(lines) else []


def are_of_same_values(graph: OpGraph, variable: str) -> bool | None:
  """Returns whether all writes of a variable average the same values.

  None where these are not seen.
  """
  targets = _targets(graph, variable)
  # What a write starts from is what the one before it has made.
  made = {key for target in targets for key in graph.ops[target].inputs}
  averaged = [_averaged(graph, target, made) for target in targets]
  if len(averaged) < 2 or not all(averaged):
    return None
  return bool(set.intersection(*averaged))


def _targets(graph: OpGraph, variable: str) -> list[int]:
  """Returns the positions of what a call leaves a variable with, write by write."""
  targets, found = graph.targets(), []
  name, number = f'update of {variable}', 1
  while name in targets:
    found.append(targets[name])
    number += 1
    name = f'update of {variable} ({number})'
  return found


def _made(graph: OpGraph, target: int) -> int:
  return graph.ops[target].inputs[0][0] if graph.ops[target].inputs else target


def _averaged(graph: OpGraph, target: int, made: Set[TensorKey]) -> set[TensorKey]:
  """Returns the nearest tensors behind a write that have more elements than the variable."""
  size = _size(graph, graph.ops[target].inputs[0]) if graph.ops[target].inputs else None
  if size is None:
    return set()
  found: set[TensorKey] = set()
  pending = list(graph.ops[target].inputs)
  seen = set(made) - set(pending)
  while pending:
    key = pending.pop()
    if key in seen or graph.ops[key[0]].op_type in (VARIABLE, CONSTANT):
      continue
    seen.add(key)
    if (_size(graph, key) or 0) > size:
      found.add(_prepared(graph, key, size))
    else:
      pending += graph.ops[key[0]].inputs
  return found


def _prepared(graph: OpGraph, key: TensorKey, size: int) -> TensorKey:
  """Returns the tensor that is squared, centred or reshaped to what is averaged."""
  while graph.ops[key[0]].op_type in _PREPARING:
    larger = [one for one in graph.ops[key[0]].inputs if (_size(graph, one) or 0) > size]
    if len(larger) != 1:
      break
    key = larger[0]
  return key


def _size(graph: OpGraph, key: TensorKey) -> int | None:
  shape = graph.ops[key[0]].outputs[key[1]][1] if graph.ops[key[0]].outputs else None
  if shape is None:
    return None
  return math.prod(1 if one is None else one for one in shape)
