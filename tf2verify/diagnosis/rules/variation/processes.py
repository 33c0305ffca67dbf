"""Why another process gives other bits."""

from tf2verify.diagnosis.evidence.variation import OtherProcesses
from tf2verify.records.diagnosis import Cause


def hash_seed(evidence: OtherProcesses) -> Cause | None:
  """Python's hash seed decides."""
  if not evidence.repeats or not evidence.hash_seed_counts:
    return None
  return Cause(
    'two processes with one PYTHONHASHSEED agree, and one with another does not: hash() of a '
    'string, or the order of a set of strings, decides; sort it, or set PYTHONHASHSEED before '
    'Python starts'
  )


def each_process_differs(evidence: OtherProcesses) -> Cause | None:
  """No two processes agree."""
  if evidence.repeats is not False:
    return None
  return Cause(
    'two processes with one PYTHONHASHSEED differ as well: it depends on time, on the process, '
    'or on numbers without a seed'
  )


def state_of_this_process(evidence: OtherProcesses) -> Cause | None:
  """The others agree with each other."""
  return Cause(
    'other processes agree with each other, but not with this one: something that was set, or '
    'run, here before'
  )
