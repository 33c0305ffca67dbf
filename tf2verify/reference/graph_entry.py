"""A graph's entry of the manifest."""

from typing import Any, Dict

import numpy as np

from .built_graph import BuiltGraph
from .recorder import Recorder


def graph_entry(recorder: Recorder, built: BuiltGraph, constant: Any = None) -> Dict[str, Any]:
  """Returns the manifest's entry for a graph.

  Args:
    recorder: stores the graph.
    built: the graph.
    constant: the graph of constant mode where it is not the same with `seed2` at 0.
  """

  def stored(graph: Any) -> str:
    data = graph.as_graph_def().SerializeToString(deterministic=True)
    return recorder.writer.add(np.frombuffer(data, np.uint8))

  lines = [recorder.sources.of_op(op) for op in built.graph.get_operations()]
  used = sorted(
    {n for n in lines if n >= 0}
    | {v.source for v in built.variables if v.source >= 0}
    | {d['source'] for d in built.random_draws if d['source'] is not None}
  )
  number = {line: n for n, line in enumerate(used)}
  number[-1] = -1

  def renumbered(entry: Dict[str, Any]) -> Dict[str, Any]:
    source = entry['source']
    return dict(entry, source=None if source is None else number[source])

  return {
    'training': built.training,
    'graph_def': stored(built.graph),
    'constant_graph_def': None if constant is None else stored(constant),
    'sources': [recorder.sources.table[line] for line in used],
    'op_sources': recorder.writer.add(np.array([number[n] for n in lines], np.int32)),
    'placeholders': [list(pair) for pair in built.placeholders],
    'structure': built.structure,
    'outputs': [list(pair) for pair in built.outputs],
    'variables': [renumbered(variable.manifest()) for variable in built.variables],
    'regularization_losses': [list(pair) for pair in built.regularization_losses],
    'update_ops': built.update_ops,
    'table_initializers': built.table_initializers,
    'random_draws': [renumbered(draw) for draw in built.random_draws],
    'seed_obstacle': built.seed_obstacle,
    'operation_seeds': built.operation_seeds,
    'gradients': built.gradients,
  }
