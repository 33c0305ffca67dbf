"""A graph, and what is known of it."""

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from .graph_ops import ops_behind
from .source_lines import SourceLines
from .variables import GraphVariable


class BuiltGraph:
  """A graph, and what is known of it by name; the fields are those of the manifest."""

  def __init__(self, graph: Any, training: bool, sources: SourceLines) -> None:
    self.graph = graph
    self.training = training
    self.sources = sources
    self.placeholders: List[Tuple[str, str]] = []
    self.output_nest: Any = None
    self.structure = ''
    self.outputs: List[Tuple[str, Optional[str]]] = []
    self.variables: List[GraphVariable] = []
    self.objects: Dict[str, Any] = {}
    self.regularization_losses: List[Tuple[List[str], str]] = []
    self.update_ops: List[str] = []
    self.table_initializers: List[str] = []
    self.random_draws: List[Dict[str, Any]] = []
    self.seed_obstacle = ''
    self.draws_repeat = False
    self.operation_seeds = 0
    self.gradients: List[Dict[str, Any]] = []

  @property
  def draws_in_computation(self) -> bool:
    """Whether a random op serves anything but a variable's initial value."""
    return any(draw['variable'] is None for draw in self.random_draws)

  def targets(self) -> List[str]:
    """Returns the names of outputs, regularization losses and update ops."""
    names = [name for _, name in self.outputs if name is not None]
    names += [name for _, name in self.regularization_losses]
    return names + self.update_ops

  def draws_used(self, gradients: bool) -> Optional[List[str]]:
    """Returns the random tensors behind what is computed; None where they cannot be fed."""
    names = [name for _, name in self.outputs if name is not None]
    names += [name for _, name in self.regularization_losses]
    names += [g['values'] for g in self.gradients if gradients and g['values'] is not None]
    for name in self.update_ops:
      names += [tensor.name for tensor in self.graph.get_operation_by_name(name).inputs]
    return draws_behind(self.graph, self.random_draws, names)

  def owned(self) -> List[GraphVariable]:
    """Returns the model's variables, without a metric's counters."""
    return [variable for variable in self.variables if not variable.local]


def draws_behind(
  graph: Any, random_draws: Sequence[Dict[str, Any]], names: Iterable[str]
) -> Optional[List[str]]:
  """Returns the random tensors behind tensors; None where they cannot be fed."""
  draws = [draw for draw in random_draws if draw['variable'] is None]
  if any(draw['in_loop'] or draw['shape'] == [None] for draw in draws):  # or in a function
    return None
  behind = ops_behind(graph.get_tensor_by_name(name) for name in names)
  found = [behind[draw['op_name']].outputs[0] for draw in draws if draw['op_name'] in behind]
  inside = any(not graph.is_fetchable(tensor) for tensor in found)  # of a `tf.cond`
  return None if inside else [tensor.name for tensor in found]
