"""Variables that results of a graph are computed from."""

from collections.abc import Iterable

from tf2verify.records.op_graph import INPUT, TARGET, VARIABLE, OpGraph, OpRecord, TensorKey
from tf2verify.reference.graph_ops import reached

_LOOPS = ('While', 'StatelessWhile')


def variables_read(graph: OpGraph) -> set[str]:
  """Returns the names of the variables that results are computed from."""
  ends = [
    position
    for position, op in enumerate(graph.ops)
    if op.op_type == TARGET and not op.is_of_variable
  ]
  behind = _behind(graph, ends)
  return {graph.ops[n].name for n in behind if graph.ops[n].op_type == VARIABLE}


def _behind(graph: OpGraph, ends: Iterable[int]) -> set[int]:
  """Returns what some operations are computed from, output by output of every loop."""

  def before(key: TensorKey) -> list[TensorKey]:
    op = graph.ops[key[0]]
    needed = _needed(op, key[1]) if op.op_type in _LOOPS else None
    return [one for slot, one in enumerate(op.inputs) if needed is None or slot in needed]

  return {n for n, _ in reached([(n, 0) for n in ends], before)}


def _needed(loop: OpRecord, output: int) -> set[int] | None:
  """Returns the inputs of a loop that one of its outputs depends on, in any round."""
  functions = dict(loop.functions)
  if not {'body', 'cond'} <= functions.keys():
    return None
  needed = {output} | _arguments(functions['cond'], functions['cond'].targets().values())
  results = functions['body'].targets()

  def before(number: int) -> set[int]:
    result = results.get(f'result {number}')
    return set() if result is None else _arguments(functions['body'], [result])

  return set(reached(needed, before))


def _arguments(graph: OpGraph, ends: Iterable[int]) -> set[int]:
  """Returns the numbers of the arguments of a function that some of its results depend on."""
  names = (graph.ops[n].name for n in _behind(graph, ends) if graph.ops[n].op_type == INPUT)
  return {int(name.rpartition(' ')[2]) for name in names}
