"""Small faults, planted into a traced port's graph."""

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.planted_fault import FaultKind
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.tf2.traces.possible_faults import PossibleFault
from tf2verify.sides.tf2.traces.tracing import TracedPort


class CannotPlant(Exception):
  """The graph with the fault is none that can run; the message says why."""


def drawn(faults: Sequence[PossibleFault], seed: int) -> list[PossibleFault]:
  """Returns all of the faults in a random order.

  The kinds take turns, so that the few relus of a model count beside its many variables.

  Args:
    faults: what to draw from.
    seed: of Python's `random.Random`.
  """
  generator = random.Random(seed)
  by_kind = [[one for one in faults if one.fault.kind is kind] for kind in FaultKind]
  for group in by_kind:
    generator.shuffle(group)
  rows = itertools.zip_longest(*by_kind)
  return [one for row in rows for one in row if one is not None]


def plant(port: TracedPort, possible: PossibleFault) -> GraphRun:
  """Returns a run of the port's graph with a fault.

  Raises:
    CannotPlant: TensorFlow refuses the graph, or it computes with shapes that do not
      fit.
  """

  def change(graph_def: Any, constants: dict[str, np.ndarray]) -> None:
    function = _function_at(graph_def, possible.path)
    nodes = graph_def.node if function is None else function.node_def
    body = {node.name: node for node in nodes}
    for name in possible.operations:
      # What was inferred for the graph without the fault.
      body[name].attr.pop('_output_shapes', None)
    possible.edit(body, nodes, constants)
    if function is not None and possible.fault.kind is FaultKind.BYPASS:
      _rename_output(function, possible.operations[0])

  try:
    return port.run(change)
  except (ValueError, TypeError, KeyError, tf.errors.OpError) as error:
    raise CannotPlant(f'{type(error).__name__}: {error}') from error


def fetched(run: GraphRun, tensors: Sequence[str], seconds: int = 0) -> list[np.ndarray]:
  """Returns tensors of a run with a fault.

  Args:
    run: the run.
    tensors: TensorFlow's names.
    seconds: after which it is given up, since a fault may let a loop run for ever; 0
      for never.

  Raises:
    CannotPlant: it cannot run, or takes longer.
  """
  try:
    return run.fetch(tensors, seconds)
  except (tf.errors.OpError, ValueError, TypeError) as error:
    raise CannotPlant(f'{type(error).__name__}: {error}') from error


def _function_at(graph_def: Any, path: tuple[tuple[str, str], ...]) -> Any:
  """Returns the function that a path leads to; None for the graph itself."""
  nodes, function = graph_def.node, None
  for op_name, attribute in path:
    (outer,) = (node for node in nodes if node.name == op_name)
    name = outer.attr[attribute].func.name
    (function,) = (one for one in graph_def.library.function if one.signature.name == name)
    nodes = function.node_def
  return function


def _rename_output(function: Any, op_name: str) -> None:
  """Lets a function read an operation's output by the name that Identity has for it."""
  start = f'{op_name}:'
  for node in function.node_def:
    for number, name in enumerate(node.input):
      if name.startswith(start):
        node.input[number] = f'{op_name}:output:0'
  for key, name in function.ret.items():
    if name.startswith(start):
      function.ret[key] = f'{op_name}:output:0'
