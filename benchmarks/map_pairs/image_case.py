"""What the image models have in common: one image, in inference."""

import abc
from typing import Any

import tf2verify


class ImageCase(tf2verify.EquivalenceCase, abc.ABC):
  training_modes = (False,)
  variable_map = 'derive'
  other_sizes = ()  # keras.applications are made for one
  pixels = 64
  classes = 10

  def make_inputs(self) -> Any:
    return tf2verify.normal_inputs((1, self.pixels, self.pixels, 3))

  def application(self, name: str) -> Any:
    """Returns a model of `keras.applications` that yields logits."""
    import keras

    return getattr(keras.applications, name)(
      weights=None,
      input_shape=(self.pixels, self.pixels, 3),
      classes=self.classes,
      classifier_activation=None,
    )
