"""Which calls traced a `tf.function` again."""

import dataclasses
from collections.abc import Sequence

from tf2verify.records.observation import SourceLine


@dataclasses.dataclass(frozen=True)
class Trace:
  """A `tf.function` traced during a call."""

  function: str  # its name
  call: str  # which call it was: `call 2 (inference)`
  source: SourceLine | None  # the user's line that was running


def retraced(calls: Sequence[tuple[str, bool]], traces: Sequence[Trace]) -> tuple[Trace, ...]:
  """Returns the traces of functions that an earlier call in the same mode had traced already.

  Args:
    calls: (call, training), in order.
    traces: of all calls.

  Returns:
    One for every function and call.
  """
  found = {}
  for number, (call, training) in enumerate(calls):
    earlier = {name for name, mode in calls[:number] if mode == training}
    known = {trace.function for trace in traces if trace.call in earlier}
    for trace in traces:
      if trace.call == call and trace.function in known:
        found[trace.function, call] = trace
  return tuple(found.values())
