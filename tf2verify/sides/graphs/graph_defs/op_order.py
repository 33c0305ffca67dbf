"""In which order the operations of a graph are told: none before what it reads."""

import heapq
from collections import defaultdict

import tensorflow as tf

_OF_A_LOOP = 'NextIteration'


def positions(graph: tf.Graph) -> dict[str, int]:
  """Returns the number of each operation, by name: as they were made, if the graph was not changed.

  An operation that was put between two others later comes before the second one. Loops of control
  flow v1 are cycles: a graph that has them stays as it was made.
  """
  ops = graph.get_operations()
  made = {op.name: n for n, op in enumerate(ops)}
  is_in_order = all(made[read.op.name] < n for n, op in enumerate(ops) for read in op.inputs)
  if is_in_order or any(op.type == _OF_A_LOOP for op in ops):
    return made
  left = [0] * len(ops)
  readers: dict[int, list[int]] = defaultdict(list)
  for n, op in enumerate(ops):
    for producer in {made[read.op.name] for read in op.inputs}:
      readers[producer].append(n)
      left[n] += 1
  ready = [n for n, count in enumerate(left) if not count]
  found: dict[str, int] = {}
  while ready:
    n = heapq.heappop(ready)
    found[ops[n].name] = len(found)
    for reader in readers[n]:
      left[reader] -= 1
      if not left[reader]:
        heapq.heappush(ready, reader)
  return found
