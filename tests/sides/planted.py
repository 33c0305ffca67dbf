"""A port traced as one graph, to plant faults into."""

import contextlib

from tf2verify.case import new_ladder
from tf2verify.sides.process import state as process_state
from tf2verify.sides.side import RunSpec
from tf2verify.stages.passes.variable_inventory import VariableInventory
from tf2verify.stages.passes.zero_randomness import CaseFill


@contextlib.contextmanager
def traced(declared, training=False):
  """Yields the traced port of a case, with distinct variable values."""
  ladder = new_ladder(declared, lambda step: None)
  try:
    ladder.stage(VariableInventory)
    with process_state.preserved():
      case = ladder.prepared()
      names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
      yield case.tf2.traced(RunSpec(case.inputs, training, CaseFill(case.declaration), names))
  finally:
    ladder.close()
