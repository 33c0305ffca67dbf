"""Tensors that one side has and the other has not."""

import numpy as np

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.sampled import SampledArray
from tf2verify.records.tensor_key import TensorKey

_PRESENCE_HINTS = {
  ('gradient', False): 'the path from the variable to the outputs is cut on the tf2 side: a '
  'stop_gradient, numpy in the forward pass, or a variable outside of layer.trainable_variables',
  ('gradient', True): 'the tf1 side has no gradient here: a stop_gradient was lost in the port, or '
  'the variable is not in TRAINABLE_VARIABLES',
  ('regularization loss', False): 'the port does not regularize this variable: the regularizer '
  'was lost (a tf.Module tracks no losses: override tf2_regularization_losses)',
  ('regularization loss', True): 'the port regularizes a variable that tf1 does not: pass no '
  'regularizer for it; if this is a part of what tf1_loss computes (a KL divergence by add_loss), '
  'leave it out of tf2_loss, or return the other losses alone in tf2_regularization_losses',
}


def presence_difference(
  key: TensorKey, tf1: np.ndarray | None, tf2: np.ndarray | None
) -> Difference:
  """Returns the difference of a tensor that one side has and the other has not."""
  return Difference.of(
    key,
    Aspect.PRESENCE,
    _presence_text(key.quantity, tf1),
    _presence_text(key.quantity, tf2),
    hint=_PRESENCE_HINTS.get((key.quantity, tf1 is None), ''),
  )


def _presence_text(quantity: str, value: np.ndarray | None) -> str:
  if value is None:
    return 'None' if quantity in ('gradient', 'output') else 'missing'
  if value.size == 1:
    return f'{value.reshape(-1)[0]!s} ({value.dtype})'
  shape = value.full_shape if isinstance(value, SampledArray) else value.shape
  return f'{shape} {value.dtype}'
