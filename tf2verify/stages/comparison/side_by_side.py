"""Both sides run at the same time."""

import concurrent.futures
from collections.abc import Callable
from typing import TypeVar

from tf2verify.errors import Tf2VerifyError

_Observed = TypeVar('_Observed')


def side_by_side(
  run_tf1: Callable[[], _Observed], run_tf2: Callable[[], _Observed]
) -> tuple[_Observed, _Observed]:
  """Runs the tf1 side in a thread of its own, and the tf2 side in this one.

  A session runs without Python's lock, an eager call almost wholly within it.

  Args:
    run_tf1: runs sessions only; what turns process globals is done before.
    run_tf2: turns process globals, so it stays in this thread.
  """
  with concurrent.futures.ThreadPoolExecutor(1, 'tf2verify-tf1') as beside:
    running = beside.submit(run_tf1)
    try:
      tf2 = run_tf2()
    except Tf2VerifyError:
      running.result()  # where both sides fail, the reference's error is the one to fix
      raise
    return running.result(), tf2
