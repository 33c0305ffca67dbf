"""The port's variable for a count of steps that the model itself reads."""

from collections.abc import Collection, Mapping

from tf2verify.records.observation import VariableRecord
from tf2verify.relation.left_out import names_declared
from tf2verify.sides.side import Declaration, Inventory
from tf2verify.sides.tf1.reference import ReferenceGraph

# Why the two are one, in a derived map.
REASON = 'both count the steps, and the model reads them'


def step_counter(
  declaration: Declaration,
  tf1: ReferenceGraph,
  others: Inventory,
  left: tuple[Collection[str], Collection[str]],
) -> Mapping[str, str]:
  """Returns the pair of tf1's global step and the port's only counter, if the model reads it.

  A temperature that falls with the steps, say, makes the global step a part of the model. A port
  has a variable of its own for it, with another name.

  Args:
    declaration: the case. What it leaves to one side stays there.
    tf1: the reference.
    others: the port's variables.
    left: the variables of both sides that have no partner.

  Returns:
    From its tf1 name to its tf2 name; empty without such a pair.
  """
  ones = tf1.inventory().variables
  steps = [v.name for v in ones if v.name in left[0] and 'global_step' in v.collections]
  own = [variable.name for variable in others.variables]
  kept = names_declared(declaration.tf2_only_variables, own)
  counters = [
    variable.name
    for variable in others.variables
    if variable.name in left[1] and variable.name not in kept and is_counter(variable)
  ]
  if len(steps) != 1 or len(counters) != 1:
    return {}
  if names_declared(declaration.tf1_only_variables, steps) or not tf1.effects_of(steps):
    return {}
  return {steps[0]: counters[0]}


def is_counter(variable: VariableRecord) -> bool:
  """Returns whether a variable may count: one integer that is not trained."""
  is_integer = variable.dtype.startswith(('int', 'uint'))
  return variable.shape == () and is_integer and not variable.trainable
