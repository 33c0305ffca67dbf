"""Operations of tf1 put into the port's graph, between others."""

from collections.abc import Mapping, Sequence
from typing import Any

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import OpGraph, TensorKey
from tf2verify.sides.graphs.edits.wiring import OF_TF1, Wiring
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput


def read_through(
  nodes: Mapping[str, Any],
  graphs: tuple[OpGraph, OpGraph],
  region: tuple[Sequence[int], int],
  readers: Sequence[tuple[str, int]],
  given: Mapping[TensorKey, TensorKey],
  layouts: Mapping[TensorKey, Relayout],
  partners: Sequence[int | None],
) -> tuple[OtherInput, ...]:
  """Returns what has operations of the port read what operations of tf1 make of its tensors.

  Args:
    nodes: the NodeDefs of tf1, by name.
    graphs: of tf1, and of the port.
    region: positions of the operations of tf1, the last one apart.
    readers: names of the port's operations that are to read it, and numbers of their inputs.
    given: the port's tensor for each tensor of tf1 that enters.
    layouts: how the port holds tensors of tf1.
    partners: positions of the port's operations by those of tf1: what enters and is not among
      `given` is made in the port as tf1 makes it, from there on.

  Raises:
    CannotRepair: one of them has a function, say, or reads what cannot be made of the port's.
  """
  tf1, tf2 = graphs
  inner, end = region
  wiring = Wiring(nodes, tf1, tf2, frozenset(inner), given, layouts, partners)
  made = [wiring.copied(n, OF_TF1 + tf1.ops[n].name) for n in (*inner, end)]
  tensor = f'{made[-1].name}:0'
  return tuple(OtherInput(name, slot, tensor, (*wiring.added, *made)) for name, slot in readers)
