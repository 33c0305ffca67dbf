"""What the names of operations say about gradients: whose gradient they compute."""

import re

# `tf.gradients` calls what it makes `gradients/<operation>_grad/...`, in the scope of the call; of
# a gradient's gradient, the operation is `gradients/<operation>_grad/...` itself.
_OF_TF1 = re.compile(r'(?:.*/)?gradients(?:_\d+)?/(.+?)_grad(?:_\d+)?/')
# A tape calls it `gradient_tape/<operation>/...`.
_OF_TAPE = re.compile(r'(?:.*/)?gradient_tape/(.+)/[^/]+$')
_WITHIN_TAPE = re.compile('(?:.*/)?gradient_tape/')


def differentiated(name: str) -> str:
  """Returns the operation whose gradient an operation belongs to, by its name; '' for none.

  Of a gradient of a gradient, that is the operation of the forward pass.
  """
  found = _OF_TF1.match(name) or _OF_TAPE.match(name)
  return found[1] if found is not None else ''


def is_of_gradient(name: str) -> bool:
  """Returns whether differentiation made an operation, whatever it belongs to."""
  return bool(differentiated(name)) or _WITHIN_TAPE.match(name) is not None
