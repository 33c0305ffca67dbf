"""Outputs of the model that depend on no variable: no step reads a gradient by them."""

from collections.abc import Sequence

from tf2verify.errors import NotApplicable
from tf2verify.records.op_graph import VARIABLE
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.proof.proving import reference_graph
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest


def without_variables(case: CaseUnderTest, paths: Sequence[str]) -> frozenset[str]:
  """Returns the outputs that depend on no variable of the reference: a mask, the inputs themselves.

  A gradient by one of these goes nowhere, and may differ in a right port: that of `sqrt(mask)`.

  Args:
    case: the case.
    paths: of outputs that a loss reads; of one alone it is not asked.
  """
  if len(paths) < 2:
    return frozenset()
  try:
    run = RunSpec(case.inputs, True, case_fill(case), {})
    graph = reference_graph(case.tf1, run, case.alignment().pairs)
  except NotApplicable:
    return frozenset()
  ends = graph.targets()
  known = {path: ends[f'output {path}'] for path in paths if f'output {path}' in ends}
  return frozenset(
    path
    for path, end in known.items()
    if not any(graph.ops[n].op_type == VARIABLE for n in graph.ancestors([end]))
  )
