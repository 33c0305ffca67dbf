"""The classifier in Keras 3."""

from typing import Any

import keras


class UnbiasedBatchNormalization(keras.layers.BatchNormalization):  # type: ignore[misc]
  """Batch norm whose moving variance follows the unbiased variance, as TF1's fused kernel has it.

  Keras 3 keeps the variance that it normalizes by, (N-1)/N of the unbiased one, for N values of
  each channel in a batch.
  """

  def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
    """Returns the normalized inputs."""
    kept = self.momentum * self.moving_variance
    outputs = super().call(inputs, training=training, mask=mask)
    if training:
      values = keras.ops.cast(keras.ops.size(inputs) / inputs.shape[-1], kept.dtype)
      added = self.moving_variance - kept
      self.moving_variance.assign(kept + added * values / (values - 1))
    return outputs


def classifier(norm: type[Any] = UnbiasedBatchNormalization) -> Any:
  """Returns the model.

  Args:
    norm: the class of the batch norms.
  """
  decay = keras.regularizers.L2(5e-4)  # times the sum of squares; tf.nn.l2_loss is half of it
  return keras.Sequential(
    [
      keras.layers.Conv2D(
        8, 3, padding='same', use_bias=False, kernel_regularizer=decay, name='conv1'
      ),
      norm(momentum=0.9, name='norm1'),
      keras.layers.LeakyReLU(negative_slope=0.2),
      keras.layers.MaxPooling2D(2, 2),
      keras.layers.Conv2D(
        16, 3, padding='same', use_bias=False, kernel_regularizer=decay, name='conv2'
      ),
      norm(momentum=0.9, name='norm2'),
      keras.layers.LeakyReLU(negative_slope=0.2),
      keras.layers.GlobalAveragePooling2D(),
      keras.layers.Dropout(0.3),
      keras.layers.Dense(4, name='logits'),
    ],
    name='classifier',
  )
