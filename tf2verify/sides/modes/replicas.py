"""Two replicas of a port on two logical CPU devices."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import tensorflow as tf
import tf_keras

from tf2verify.sides.modes.computation import Computation
from tf2verify.tensorflow_internals import keras3

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


def refusal(classes: Sequence[str]) -> str:
  """Returns what a reader has to know of losses that Keras would have refused."""
  if not classes:
    return ''
  return (
    f'{", ".join(classes)} took the mean over each replica: in a training loop of your own under a '
    'strategy Keras refuses the default reduction of a loss; give it '
    'reduction=tf.keras.losses.Reduction.SUM there, and divide by the global batch size'
  )


@contextlib.contextmanager
def mean_over_each_replica() -> Iterator[list[str]]:
  """Lets Keras' losses take the mean of what a replica has, as `Model.fit` does.

  In a custom loop under a strategy they refuse their default reduction. Both
  replicas have the same data here, so the mean is that of one device.

  Yields:
    The classes of the losses that would have been refused.
  """
  refused: list[str] = []
  reductions = tf_keras.losses.Reduction

  def reduction(loss: Any) -> Any:
    by_default = loss.reduction in (reductions.AUTO, reductions.SUM_OVER_BATCH_SIZE)
    if not by_default:
      return loss.reduction
    if not loss._allow_sum_over_batch_size and type(loss).__name__ not in refused:
      refused.append(type(loss).__name__)
    return reductions.SUM_OVER_BATCH_SIZE

  with (
    mock.patch.object(tf_keras.losses.Loss, '_get_reduction', reduction),
    keras3.mean_over_each_replica(),
  ):
    yield refused


def replicated(strategy: Any, computation: Computation) -> Any:
  """Returns a function that computes the same on both replicas, of the same data.

  It returns, for every tensor of the computation, a tuple of both replicas' values.
  """

  def compute(*leaves: tf.Tensor) -> list[Any]:
    by_tensor = strategy.run(lambda *own: computation(own), args=leaves)
    return [strategy.experimental_local_results(values) for values in by_tensor]

  return tf.function(compute, autograph=False)
