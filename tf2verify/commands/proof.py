"""What of a case is proven by its two graphs alone: nothing of it is run."""

import time

from tf2verify.case import EquivalenceCase, declared_case, place_of
from tf2verify.records.case_proof import CaseProof
from tf2verify.sides.process import freed_memory
from tf2verify.sides.process import state as process_state
from tf2verify.sides.recorded import references
from tf2verify.sides.side import Progress
from tf2verify.stages.comparison.unrun_proof import unrun_proof


def prove_case(case: type[EquivalenceCase], progress: Progress | None = None) -> CaseProof:
  """Relates the two graphs of a case, operation by operation, without running either.

  The reference's graph is built and the port is traced. As far as it can be, the port is made of
  variables that have a shape and no value, so that models can be related that do not fit this
  machine.

  Args:
    case: a subclass of `EquivalenceCase`.
    progress: called with one line of text before every long step.

  Raises:
    CaseDefinitionError: the class is not a complete case.
    Tf2VerifyError: a hook raises, or a side cannot be made.
  """
  start = time.perf_counter()
  declared = declared_case(case)
  process_state.require_eager()
  try:
    with process_state.preserved(), references.conditions(declared):
      found = unrun_proof(declared, progress or (lambda _: None))
  finally:
    freed_memory.give_back()
  return CaseProof(
    case.__name__,
    place_of(case),
    found.runs,
    found.only_tf1,
    found.only_tf2,
    found.allocated,
    (*found.seconds, ('in all', time.perf_counter() - start)),
  )
