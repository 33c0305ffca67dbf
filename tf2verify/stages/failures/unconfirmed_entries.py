"""What is said where both sides part at variables that a derived map pairs, and no numbers do."""

import dataclasses

from tf2verify.records.diagnosis import Diagnosis, GraphAspect
from tf2verify.records.op_graph import INPUT, VARIABLE, OpGraph
from tf2verify.records.wording import listed
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.operations.variable_uses import MAIN_OPS
from tf2verify.stages.variables.map_found import DerivedMap

# What a wrong map looks like as well: gates in another order, a constant that is added to a bias.
_OF_A_MAP = frozenset(
  (GraphAspect.WIRING, GraphAspect.ORDER, GraphAspect.MISSING, GraphAspect.EXTRA)
)
# No other map makes the port agree where an operation of it does: it takes numbers as they are.
_OF_NO_MAP = frozenset((GraphAspect.MISSING, GraphAspect.EXTRA))


def with_map_note(derived: DerivedMap | None, tf1: OpGraph, diagnosis: Diagnosis) -> Diagnosis:
  """Returns a diagnosis that says if the map may be wrong instead of the port.

  Only where the first divergence is none of an operation, an attribute or a constant, and no
  operation is proven to be missing or in excess there.

  Args:
    derived: the map; None where none was derived.
    tf1: the graph of the reference that was looked into.
    diagnosis: of a stage that failed.
  """
  if derived is None or derived.outputs_agree or not diagnosis.sources:
    return diagnosis
  first = diagnosis.sources[0]
  aspects = {one.aspect for one in first.differences}
  is_proven = any(cause.is_proven for cause in diagnosis.causes)
  if aspects - _OF_A_MAP or (is_proven and aspects and aspects <= _OF_NO_MAP):
    return diagnosis
  near = _variables_before(tf1, first.tf1_op)
  doubtful = [
    str(entry)
    for entry in derived.variable_map.entries
    if near & set(entry.tf1) and derived.confirmed.isdisjoint(entry.tf1)
  ]
  if not doubtful:
    return diagnosis
  note = (
    f'the derived variable map may be wrong instead of the port: no numbers confirm '
    f'{listed(doubtful, most=5)}; `python -m tf2verify map` shows the layouts, and variable_map '
    'declares others'
  )
  return dataclasses.replace(diagnosis, notes=(*diagnosis.notes, note))


def _variables_before(graph: OpGraph, name: str) -> set[str]:
  """Returns the variables that an operation is computed from, with no product in between."""
  ends = [n for n, op in enumerate(graph.ops) if op.name == name]
  main = {op.op_type for op in graph.ops if family(op.op_type) in MAIN_OPS}
  before = graph.ancestors(ends, stops=main)
  for position in list(before):
    op = graph.ops[position]
    for producer, _ in op.inputs if op.op_type in main else ():
      behind = graph.ancestors([producer])
      if all(graph.ops[n].op_type != INPUT for n in behind):
        before |= behind
  return {graph.ops[n].name for n in before if graph.ops[n].op_type == VARIABLE}
