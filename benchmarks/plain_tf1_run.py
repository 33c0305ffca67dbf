"""What somebody runs by hand in TensorFlow 1.x to have the numbers that a recording has.

    python plain_tf1_run.py MODULE:FUNCTION INPUTS

Written for Python 3.6 and TensorFlow 1.13 to 1.15; see benchmarks/recording.py.
"""

import importlib
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import random_seed

v1 = tf.compat.v1


def seeds(mode):
  """Returns what stands in for TensorFlow's `get_seed`."""
  count = [0]

  def get_seed(op_seed):
    del op_seed
    count[0] += mode == 'num_random_ops'
    return 42, max(count[0] - 1, 0)

  return get_seed


def build(builder, inputs, training, mode):
  """Returns graph, placeholder and outputs."""
  random_seed.get_seed = seeds(mode)
  graph = tf.Graph()
  with graph.as_default():
    fed = v1.placeholder(inputs.dtype, inputs.shape)
    return graph, fed, builder(fed, training)


def fetches(graph, outputs):
  """Returns outputs, losses and update ops."""
  keys = v1.GraphKeys
  losses = graph.get_collection(keys.REGULARIZATION_LOSSES)
  return outputs, losses, graph.get_collection(keys.UPDATE_OPS)


def run_seeded(graph, fed, outputs, inputs):
  """Runs from the graph's own initial values."""
  with graph.as_default(), v1.Session() as session:
    session.run(v1.global_variables_initializer())
    before = session.run(v1.global_variables())
    session.run(fetches(graph, outputs), {fed: inputs})
    after = session.run(v1.global_variables())
  return before, after


def run_filled(graph, fed, wanted, inputs, fills):
  """Runs from given values of the variables."""
  with graph.as_default(), v1.Session() as session:
    variables = [v for v in v1.global_variables() if v.dtype.base_dtype.is_floating]
    session.run(v1.global_variables_initializer())
    for fill in fills:
      values = {v.initializer.inputs[1]: fill(v) for v in variables}
      session.run([v.initializer for v in variables], values)
      session.run(wanted, {fed: inputs})


def distinct(variable):
  """Returns random values, seeded by the name."""
  generator = np.random.RandomState(sum(variable.name.encode()))
  return (generator.standard_normal(variable.shape.as_list()) * 0.05).astype(np.float32)


def constant(variable):
  """Returns the migration guide's constant."""
  return np.full(variable.shape.as_list(), 0.001, np.float32)


def run_steps(graph, fed, outputs, inputs):
  """Takes three training steps."""
  with graph.as_default():
    first = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
    loss = tf.reduce_mean(first) + tf.add_n(v1.losses.get_regularization_losses() or [0.0])
    optimizer = importlib.import_module('rmsprop').optimizer()
    gradients = [pair for pair in optimizer.compute_gradients(loss) if pair[0] is not None]
    updates = graph.get_collection(v1.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
      train_op = optimizer.apply_gradients(gradients)
    with v1.Session() as session:
      session.run(v1.global_variables_initializer())
      for _ in range(3):
        session.run([loss, [gradient for gradient, _ in gradients], train_op], {fed: inputs})
        session.run(v1.global_variables())


def main(model, path):
  """Runs the stages."""
  module, _, function = model.partition(':')
  builder = getattr(importlib.import_module(module), function)
  inputs = np.load(path)['arr_0']
  for training in (False, True):
    for mode in ('num_random_ops', 'constant'):
      graph, fed, outputs = build(builder, inputs, training, mode)
      run_seeded(graph, fed, outputs, inputs)
    if not training:
      run_filled(graph, fed, fetches(graph, outputs), inputs, (distinct, constant))
      continue
    with graph.as_default():
      first = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
      gradients = v1.gradients(tf.reduce_mean(first), v1.trainable_variables())
    wanted = [fetches(graph, outputs), [g for g in gradients if g is not None]]
    run_filled(graph, fed, wanted, inputs, (distinct,))
    run_steps(*build(builder, inputs, training, 'constant'), inputs=inputs)


if __name__ == '__main__':
  main(*sys.argv[1:])
