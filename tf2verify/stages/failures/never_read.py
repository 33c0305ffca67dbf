"""Variables that the port never reads, and tf1 does: another layer was called in their place."""

import dataclasses

from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.records.wording import listed
from tf2verify.relation.layouts.variable_layouts import Layouts
from tf2verify.relation.operations.variables_read import variables_read
from tf2verify.stages.stage import CaseUnderTest


@dataclasses.dataclass(frozen=True)
class NeverRead:
  """What the port does not read."""

  cause: Cause
  is_layer: bool  # whether these are several variables of one layer


def never_read_cause(case: CaseUnderTest, tf1: OpGraph, port: OpGraph) -> NeverRead | None:
  """Returns that outputs of tf1 depend on variables that the port does not read; None for none.

  Args:
    case: one whose outputs differ.
    tf1: the graph of the run in which they do.
    port: likewise; its variables have the names of tf1.
  """
  read, there = variables_read(tf1), variables_read(port)
  layouts = case.pairing.presentation()
  pairs = [
    (one, other)
    for one, other in case.alignment().pairs
    if one in read and one not in there and _is_whole(layouts, one, other)
  ]
  if not pairs:
    return None
  scopes: dict[str, list[str]] = {}
  for one, other in dict.fromkeys(_scopes(*pair) for pair in pairs):
    scopes.setdefault(other, []).append(one)
  names = listed([f'{other} ({", ".join(ones)} of tf1)' for other, ones in scopes.items()], most=5)
  cause = Cause(
    f'the port never reads {names}, on which outputs of tf1 depend'
    f'{_line(tf1, {one for one, _ in pairs})}: the layer is not called, or a different one is '
    'called in its place',
    rule='never_read',
  )
  return NeverRead(cause, len(scopes) < len(pairs))


def _is_whole(layouts: Layouts, one: str, other: str) -> bool:
  """Returns whether a variable is one on both sides; others have their own names in the graph."""
  is_alone = layouts.own_names(other) == (other,) and not layouts.lies_otherwise(other)
  return is_alone and not layouts.relayouts({other: one})


def _line(graph: OpGraph, names: set[str]) -> str:
  """Returns where a graph reads the first of some variables, as an addition to a text."""
  for op in graph.ops:
    variables = (graph.ops[n] for n, _ in op.inputs)
    if op.source is not None and any(v.op_type == VARIABLE and v.name in names for v in variables):
      return f' at {op.source.short}'
  return ''


def _scopes(one: str, other: str) -> tuple[str, str]:
  """Returns the scopes of two variables, or their names if one of them has none."""
  first, second = one.rpartition('/')[0], other.rpartition('/')[0]
  return (first, second) if first and second else (one, other)
