"""Tensors that one side has and the other has not."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.sampled import SampledArray
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.wording import listed

_MISSING = 'missing'
_PRESENCE_HINTS = {
  ('gradient', False): 'the path from the variable to the outputs is cut on the tf2 side: a '
  'stop_gradient, numpy in the forward pass, or a variable outside of layer.trainable_variables',
  ('gradient', True): 'the tf1 side has no gradient here: a stop_gradient was lost in the port, or '
  'the variable is not in TRAINABLE_VARIABLES',
}
_ONLY_ZEROS = (
  'the tf1 side has no gradient here (None), and that of the port is zero everywhere: the port '
  'computes something of the variable that changes nothing, such as a product with 0; momentum and '
  'weight decay move a variable whose gradient is zero, and not one that has none'
)
_Losses = Mapping[tuple[str, ...], np.ndarray]


def presence_difference(
  key: TensorKey, tf1: np.ndarray | None, tf2: np.ndarray | None
) -> Difference:
  """Returns the difference of a tensor that one side has and the other has not."""
  return Difference.of(
    key,
    Aspect.PRESENCE,
    _presence_text(key.quantity, tf1),
    _presence_text(key.quantity, tf2),
    hint=_hint(key.quantity, tf1, tf2),
  )


def _hint(quantity: str, tf1: np.ndarray | None, tf2: np.ndarray | None) -> str:
  if quantity == 'gradient' and tf1 is None and tf2 is not None and not np.any(tf2):
    return _ONLY_ZEROS
  return _PRESENCE_HINTS.get((quantity, tf1 is None), '')


def regularization_hints(
  tf1: _Losses, tf2: _Losses, left_out: int
) -> Callable[[Difference], Difference]:
  """Returns what gives a loss that one side lacks its cause, which names the variables.

  Args:
    tf1: its regularization losses, by the variables that they read.
    tf2: those of the port.
    left_out: the losses that the layer has and the hook does not return, by their number.
  """
  lost, added = (
    listed([', '.join(key) or 'what reads no variable' for key in one if key not in other])
    for one, other in ((tf1, tf2), (tf2, tf1))
  )
  of_module = ' (a tf.Module tracks no losses: override tf2_regularization_losses)'
  lacks = (
    f'the port does not regularize {lost}: the regularizer was lost; pass it to the layer that '
    f'makes the variable{"" if tf2 else of_module}'
  )
  if left_out:
    lacks = (
      f'tf2_regularization_losses returned no loss, and layer.losses holds {left_out}: a '
      'collection (tf.compat.v1.get_collection, tf.compat.v1.losses.get_regularization_losses) is '
      'empty in eager mode: return layer.losses'
    )
  has = (
    f'the port regularizes a variable that tf1 does not: pass no regularizer for it ({added}); if '
    'this is a part of what tf1_loss computes (a KL divergence by add_loss), leave it out of '
    'tf2_loss, or return only the other losses in tf2_regularization_losses'
  )

  def hinted(found: Difference) -> Difference:
    if found.aspect is not Aspect.PRESENCE:
      return found
    hint = ''
    if lost and found.tf2 == _MISSING:
      hint = lacks
    elif added and found.tf1 == _MISSING:
      hint = has
    return dataclasses.replace(found, hint=hint)

  return hinted


def _presence_text(quantity: str, value: np.ndarray | None) -> str:
  if value is None:
    return 'None' if quantity in ('gradient', 'output') else _MISSING
  if value.size == 1:
    return f'{value.reshape(-1)[0]!s} ({value.dtype})'
  shape = value.full_shape if isinstance(value, SampledArray) else value.shape
  return f'{shape} {value.dtype}'
