"""Fused batch norms as the operations that they stand for, which have kernels for float64.

FusedBatchNorm and its gradient compute float32 and narrower only. The formulas are those of
tensorflow/core/kernels/fused_batch_norm_op.cc, for the CPU: `reserve_space_2` holds the biased
variance, and the variance that goes into a moving average is the unbiased one.
"""

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf2verify.sides.graphs.graph_defs.inlining import become, control_inputs, data_inputs

_FORWARD = ('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3')
_GRADIENT = ('FusedBatchNormGrad', 'FusedBatchNormGradV2', 'FusedBatchNormGradV3')
_OUTPUTS = {'FusedBatchNormV3': 6}  # of the others 5
_SINGLE, _DOUBLE = tf.float32.as_datatype_enum, tf.float64.as_datatype_enum


def unfuse(graph_def: Any) -> None:
  """Replaces the fused batch norms of float32 in a GraphDef, not in its functions.

  A node keeps its name and outputs, so that what reads it stays as it is.
  """
  added: list[Any] = []
  for node in graph_def.node:
    if node.op not in (*_FORWARD, *_GRADIENT) or node.attr['T'].type != _SINGLE:
      continue
    settings = (
      node.op in _GRADIENT,
      node.attr['epsilon'].f if 'epsilon' in node.attr else 1e-4,
      node.attr['data_format'].s.decode() or 'NHWC',
      node.attr['is_training'].b if 'is_training' in node.attr else True,
      node.attr['exponential_avg_factor'].f if 'exponential_avg_factor' in node.attr else 1.0,
    )
    added += _take_apart(node, _formula(*settings, _OUTPUTS.get(node.op, 5)))
  graph_def.node.extend(added)


def _take_apart(node: Any, formula: tuple[Any, tuple[str, ...]]) -> list[Any]:
  """Makes a node pass on what others compute; returns these."""
  small, outputs = formula
  data = data_inputs(node)
  control = control_inputs(node)
  given = {f'input{number}': name for number, name in enumerate(data)}
  prefix = f'{node.name}/unfused/'

  def named(name: str) -> str:
    return given.get(name) or f'{prefix}{name}'

  added = []
  for one in small.node:
    if one.name in given:
      continue
    copy = type(node)()
    copy.CopyFrom(one)
    copy.name = named(one.name)
    copy.input[:] = [*map(named, one.input), *control]
    added.append(copy)
  become(node, 'IdentityN', map(named, outputs))
  node.attr['T'].list.type.extend([_DOUBLE] * len(outputs))
  return added


@functools.cache
def _formula(
  is_gradient: bool,
  epsilon: float,
  data_format: str,
  is_training: bool,
  factor: float,
  count: int,
) -> tuple[Any, tuple[str, ...]]:
  """Returns a GraphDef that computes a batch norm, and the names of its outputs."""
  with tf.Graph().as_default() as graph:
    inputs = [tf.compat.v1.placeholder(tf.float64, name=f'input{n}') for n in range(5)]
    norm = _Norm(epsilon, data_format, is_training, factor)
    found = norm.gradient(inputs) if is_gradient else norm.forward(inputs)
    found += [tf.zeros([0], tf.float64)] * (count - len(found))
    names = tuple(tensor.op.name for tensor in found)
  return graph.as_graph_def(), names


class _Norm:
  """A batch norm with its settings."""

  def __init__(self, epsilon: float, data_format: str, is_training: bool, factor: float) -> None:
    channels = data_format.index('C')
    self._axes = [axis for axis in range(len(data_format)) if axis != channels]
    self._shape = [-1 if axis == channels else 1 for axis in range(len(data_format))]
    self._epsilon = epsilon
    self._is_training = is_training
    self._factor = factor

  def forward(self, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns y, the new mean and variance, and the mean and variance that y was made with."""
    x, scale, offset, known_mean, known_variance = inputs
    if not self._is_training:
      y = self._normalized(x, known_mean, known_variance) * self._wide(scale) + self._wide(offset)
      return [y, known_mean, known_variance, known_mean, known_variance]
    mean = tf.reduce_mean(x, self._axes)
    variance = tf.reduce_mean(tf.square(x - self._wide(mean)), self._axes)
    y = self._normalized(x, mean, variance) * self._wide(scale) + self._wide(offset)
    count = self._count(x)
    new = mean, variance * count / tf.maximum(count - 1.0, 1.0)
    if self._factor != 1.0:
      known = known_mean, known_variance
      new = tuple(
        (1.0 - self._factor) * a + self._factor * b for a, b in zip(known, new, strict=True)
      )
    return [y, *new, mean, variance]

  def gradient(self, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the gradients for x, scale and offset."""
    dy, x, scale, mean, variance = inputs
    normalized = self._normalized(x, mean, variance)
    for_offset = tf.reduce_sum(dy, self._axes)
    for_scale = tf.reduce_sum(dy * normalized, self._axes)
    if self._is_training:
      count = self._count(x)
      dy = dy - self._wide(for_offset / count) - normalized * self._wide(for_scale / count)
    for_x = dy * self._wide(scale * tf.math.rsqrt(variance + self._epsilon))
    return [for_x, for_scale, for_offset]

  def _normalized(self, x: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    return (x - self._wide(mean)) * self._wide(tf.math.rsqrt(variance + self._epsilon))

  def _wide(self, vector: tf.Tensor) -> tf.Tensor:
    """Returns a value for each channel in the rank of the images."""
    return tf.reshape(vector, self._shape)

  def _count(self, x: tf.Tensor) -> tf.Tensor:
    """Returns how many elements a channel has."""
    return tf.cast(tf.reduce_prod(tf.gather(tf.shape(x), self._axes)), tf.float64)
