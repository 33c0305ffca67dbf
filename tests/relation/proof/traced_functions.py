"""Functions of TensorFlow as graphs to relate."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.op_graph import OpGraph
from tf2verify.relation.proof.proving import Proof, prove
from tf2verify.sides.graphs.reading import GraphReader, Target

Function = Callable[..., Any]
Shapes = Sequence[Sequence[int]]


def graph_of(function: Function, shapes: Shapes, side: str = 'tf1') -> OpGraph:
  """Returns the graph of a function of floating-point tensors."""
  graph = tf.Graph()
  with graph.as_default():
    inputs = [tf.compat.v1.placeholder(tf.float32, shape) for shape in shapes]
    results = function(*inputs)
    results = results if isinstance(results, (list, tuple)) else [results]
    results = [tf.identity(tf.convert_to_tensor(result)) for result in results]
  names = {tensor.op.name: f'[{n}]' for n, tensor in enumerate(inputs)}
  targets = [Target(f'output [{n}]', (one.name,)) for n, one in enumerate(results)]
  return GraphReader(graph, {}, names, {}).read(targets, (), side)


def related(one: Function, other: Function, shapes: Shapes, in_rounds: bool = False) -> Proof:
  """Relates two functions of the same tensors."""
  graphs = graph_of(one, shapes), graph_of(other, shapes, 'tf2')
  return prove(*graphs, {}, in_rounds=in_rounds)


def values(function: Function, shapes: Shapes, seed: int = 0) -> list[np.ndarray]:
  """Returns what a function yields for random numbers."""
  random = np.random.RandomState(seed)
  results = function(*(tf.constant(random.randn(*shape), tf.float32) for shape in shapes))
  results = results if isinstance(results, (list, tuple)) else [results]
  return [np.asarray(result) for result in results]
