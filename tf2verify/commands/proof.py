"""What of a case is proven by its two graphs alone: nothing of it is run, if possible."""

import time

from tf2verify.case import EquivalenceCase, declared_case
from tf2verify.environment.case_files import place_of
from tf2verify.errors import EnvironmentProblem, Tf2VerifyError, UsageError
from tf2verify.records.case_proof import CaseProof
from tf2verify.sides.process import freed_memory
from tf2verify.sides.process import state as process_state
from tf2verify.sides.recorded import references
from tf2verify.sides.side import Progress
from tf2verify.stages.comparison.proof.unrun import FailedWithValues, UnrunProof, unrun_proof
from tf2verify.stages.raised import defect_record, error_record


def prove_case(case: type[EquivalenceCase], progress: Progress | None = None) -> CaseProof:
  """Relates the two graphs of a case, operation by operation, without running either.

  The reference's graph is built and the port is traced. As far as it can be, the port is made of
  variables that have a shape and no value, so that models can be related that do not fit this
  machine. What a hook raises, or an incomplete case, is reported: it keeps no other case from being
  proven.

  Args:
    case: a subclass of `EquivalenceCase`.
    progress: called with one line of text before every long step.

  Raises:
    EnvironmentProblem: no case can be proven in this process.
    UsageError: something that the command was given cannot be read.
  """
  start = time.perf_counter()
  process_state.require_eager()
  allocated = ''
  try:
    return _case_proof(case, _unrun_proof(case, progress or (lambda _: None)), start)
  except (EnvironmentProblem, UsageError):
    raise
  except FailedWithValues as error:
    record, allocated = error_record(error.error), error.allocated
  except Tf2VerifyError as error:
    record = error_record(error)
  except Exception as error:  # noqa: BLE001 - the proofs of other cases are not lost
    record = defect_record(error)
  finally:
    freed_memory.give_back()
  return CaseProof(case.__name__, place_of(case), (), allocated=allocated, error=record)


def _unrun_proof(case: type[EquivalenceCase], progress: Progress) -> UnrunProof:
  declared = declared_case(case)
  with process_state.preserved(), references.conditions(declared):
    return unrun_proof(declared, progress)


def _case_proof(case: type[EquivalenceCase], found: UnrunProof, start: float) -> CaseProof:
  return CaseProof(
    case.__name__,
    place_of(case),
    found.runs,
    found.only_tf1,
    found.only_tf2,
    found.allocated,
    (*found.seconds, ('in all', time.perf_counter() - start)),
    found.differing,
    found.ran_both,
  )
