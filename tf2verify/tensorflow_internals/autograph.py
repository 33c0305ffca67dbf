"""AutoGraph's switch, and its conversion of one function.

`tf.autograph.to_graph` converts without regard to the switch, and leaves out the methods of test
cases, as every `EquivalenceCase` is one. Run with TensorFlow 2.16 to 2.21.
"""

from collections.abc import Callable
from typing import Any

from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api


def switched(on: bool = True) -> Any:
  """Returns a context manager in which functions are converted, or are not."""
  return ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED if on else ag_ctx.Status.DISABLED)


def converted(function: Callable[..., Any], by_name: bool = False) -> Callable[..., Any]:
  """Returns a function as AutoGraph rewrites it, where that is switched on.

  Args:
    function: the user's.
    by_name: whether it is asked for itself, so that no class of methods is left out.
  """
  status = ag_ctx.control_status_ctx()
  if status.status is not ag_ctx.Status.ENABLED:
    return function
  found: Callable[..., Any] = api.tf_convert(function, status, user_requested=by_name)
  return found
