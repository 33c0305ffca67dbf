"""Variables that one side lacks, and that change nothing as long as they are not trained.

A norm without its gamma computes what one with a gamma of 1 does, and a layer without its bias what
one with zeros does. No stage sets such a variable, so that the rest of the port can be compared.
"""

import contextlib
from collections.abc import Collection

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import Inventory, RunSpec
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest, by_name

_STEPS = 'global_step'
_PASSING = frozenset(('Identity', 'Reshape', 'ExpandDims', 'Cast', 'BroadcastTo', 'Squeeze'))
_PRODUCTS = frozenset(('Mul',))
_SUMS = frozenset(('Add', 'AddV2', 'BiasAdd', 'BiasAddV1', 'Sub'))
# Numbers of the inputs.
_NORM, _SCALE, _OFFSET, _DIVISOR = 'FusedBatchNorm', 1, 2, 1


def lacks_only_neutral(case: CaseUnderTest) -> bool:
  """Returns whether all variables that have no counterpart are neutral, on one side alone.

  They keep their initial values in all stages then. Where both sides have some, they may be one
  variable of two names.
  """
  alignment = case.alignment()
  tf1, tf2 = case.tf1.inventory(), case.tf2.inventory()
  steps = {one.name for one in tf1.variables if _STEPS in one.collections}
  only_tf1 = set(alignment.only_tf1) - steps
  only_tf2 = set(alignment.only_tf2)
  are_told_apart = not (alignment.duplicates_tf1 or alignment.duplicates_tf2 or tf2.untracked)
  if not are_told_apart or bool(only_tf1) == bool(only_tf2):
    return False
  if not (_are_trained(tf1, only_tf1) and _are_trained(tf2, only_tf2)):
    return False
  case.neutral.update(only_tf1 or only_tf2)
  names = {one: one for one, _ in alignment.pairs}
  run = RunSpec(case.inputs, False not in case.declaration.training_modes, case_fill(case), names)
  make = case.tf1.inspectable if only_tf1 else case.inspectable_port
  is_neutral = False
  with contextlib.suppress(Tf2VerifyError, NotTraceable), contextlib.closing(make(run)) as found:
    is_neutral = _are_neutral(found, case.neutral)
  if not is_neutral:
    case.neutral.clear()
  return is_neutral


def _are_trained(inventory: Inventory, names: Collection[str]) -> bool:
  """Returns whether variables are trainable: moving averages are written in training."""
  known = by_name(inventory)
  return all(known[name].trainable for name in names)


def _are_neutral(run: GraphRun, names: Collection[str]) -> bool:
  graph, consumers = run.op_graph, run.op_graph.consumers()
  places = {op.name: n for n, op in enumerate(graph.ops) if op.op_type == VARIABLE}
  for name in names:
    if name not in places:
      continue  # nothing reads it
    (value,) = run.fetch([graph.ops[places[name]].tensors[0]])
    is_one = bool(np.all(value == 1))
    if not is_one and np.any(value != 0):
      return False
    pending = [places[name]]
    while pending:
      for reader, slot in consumers[pending.pop()]:
        if graph.ops[reader].op_type in _PASSING and slot == 0:
          pending.append(reader)
        elif not _keeps(graph, reader, slot, is_one):
          return False
  return True


def _keeps(graph: OpGraph, reader: int, slot: int, is_one: bool) -> bool:
  """Returns whether an operation passes its other input on where one is 1, or 0."""
  op_type = graph.ops[reader].op_type
  if op_type.startswith(_NORM):
    return slot == (_SCALE if is_one else _OFFSET)
  if is_one:
    return op_type in _PRODUCTS or (op_type in ('Div', 'RealDiv') and slot == _DIVISOR)
  return op_type in _SUMS
