"""Lines of Python that a report tells a program to use, run as such a program would run them."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf2verify.reference import nests
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code


def names_for(declaration: side.Declaration, layer: Any, inputs: Any) -> dict[str, Any]:
  """Returns what the lines may name: `tf`, `case`, `layer`, and `inputs` as eager tensors."""
  fed = nests.map_leaves(lambda _, leaf: tf.constant(leaf), inputs)
  return {'tf': tf, 'case': declaration, 'layer': layer, 'inputs': fed}


def run(lines: Sequence[str], names: dict[str, Any]) -> None:
  """Runs lines with names, which they may change.

  Raises:
    UserCodeError: one of them raises.
  """
  with user_code(side.TF2, 'the printed lines'):
    exec('\n'.join(lines), names)
