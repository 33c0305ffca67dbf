"""Two replicas of a port on two logical CPU devices."""

from typing import Any

import tensorflow as tf

from tf2verify.sides.mode_computation import Computation

DEVICES = ('CPU:0', 'CPU:1')
ONE_DEVICE = (
  'this process has one logical CPU device; run the case by `python -m tf2verify run` or '
  'tf2verify.main(), or divide the CPU before anything is computed: '
  "tf.config.set_logical_device_configuration(tf.config.list_physical_devices('CPU')[0], "
  '[tf.config.LogicalDeviceConfiguration()] * 2)'
)


def two_replicas() -> Any:
  """Returns a mirrored strategy over two logical CPU devices, which must be there."""
  return tf.distribute.MirroredStrategy(DEVICES)


def replicated(strategy: Any, computation: Computation) -> Any:
  """Returns a function that computes the same on both replicas, of the same data.

  It returns, for every tensor of the computation, a tuple of both replicas' values.
  """

  def compute(*leaves: tf.Tensor) -> list[Any]:
    by_tensor = strategy.run(lambda *own: computation(own), args=leaves)
    return [strategy.experimental_local_results(values) for values in by_tensor]

  return tf.function(compute, autograph=False)
