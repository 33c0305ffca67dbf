"""Both graphs of a case related, of which neither is run."""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

from tf2verify.errors import LayerError, NotApplicable, UserCodeError
from tf2verify.records.case_proof import ProvenRun
from tf2verify.records.op_graph import OpGraph
from tf2verify.records.proven import Proven
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.recorded import references
from tf2verify.sides.side import Inventory, Progress, RunSpec, training_name
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.tracing import NotTraceable
from tf2verify.sides.tf2.unallocated import UnallocatedLayer
from tf2verify.stages.comparison.proving import compared, reference_graph, variables_of
from tf2verify.stages.pairing import CannotBePaired, Pairing, paired


@dataclasses.dataclass(frozen=True)
class UnrunProof:
  """What was found.

  Attributes:
    runs: one for each training mode.
    only_tf1: names of tf1's variables without a partner.
    only_tf2: the port's, likewise.
    allocated: why the port's variables had to be allocated; '' where they were not.
    seconds: wall time, by what was done.
  """

  runs: tuple[ProvenRun, ...]
  only_tf1: tuple[str, ...]
  only_tf2: tuple[str, ...]
  allocated: str
  seconds: tuple[tuple[str, float], ...]


def unrun_proof(case: Any, progress: Progress) -> UnrunProof:
  """Relates both graphs of a case in every training mode.

  Args:
    case: what a case class declares.
    progress: called with one line of text before every long step.

  Raises:
    Tf2VerifyError: a hook raises, or a side cannot be made.
  """
  start = time.perf_counter()
  port: list[UnallocatedLayer] = []
  reference = references.reference(case, progress, lambda: port[0].is_of_keras3())
  tf1 = reference.graph
  port.append(UnallocatedLayer(case, reference.inputs, progress))
  try:
    tf1.inventory()  # builds the graphs of all training modes
    built = time.perf_counter()
    arguments = case.variable_names, reference.labels, reference.inputs
    tf2: UnallocatedLayer | Tf2Layer = port[0]
    allocated = ''
    try:
      pairing = paired(case, tf1, tf2, *arguments)
    except (NotTraceable, CannotBePaired, LayerError, UserCodeError) as error:
      allocated = ' '.join(str(error).split())
      tf2 = Tf2Layer(case, reference.inputs, progress)
      pairing = paired(case, tf1, tf2, *arguments)
    tf2.present(pairing.presentation())
    runs, traced = [], time.perf_counter()
    for training in case.training_modes:
      run = RunSpec(reference.inputs, training, ConstantFill(), {})
      runs.append(_related(tf1, tf2, pairing, run))
  finally:
    tf1.close()
  end = time.perf_counter()
  return UnrunProof(
    tuple(runs),
    tuple(name for name in pairing.alignment.only_tf1 if name not in pairing.tf1_only),
    tuple(name for name in pairing.alignment.only_tf2 if name not in pairing.tf2_only),
    allocated,
    (
      ('building tf1', built - start),
      ('making the port', traced - built),
      ('proof', end - traced),
    ),
  )


def _related(
  tf1: Any, tf2: UnallocatedLayer | Tf2Layer, pairing: Pairing, run: RunSpec
) -> ProvenRun:
  start, name = time.perf_counter(), training_name(run.training)
  pairs = pairing.alignment.pairs
  names = {two: one for one, two in pairs}
  if len(set(shown := _shown(tf2.inventory(), names))) < len(shown):
    return ProvenRun(Proven(name, reason='two variables of the port have one name'))
  try:
    one = reference_graph(tf1, run, pairs)
    other: OpGraph = tf2.traced(dataclasses.replace(run, tf1_names=names)).op_graph()
  except (NotTraceable, NotApplicable) as error:
    return ProvenRun(Proven(name, reason=' '.join(str(error).split())))
  found = compared(one, other, variables_of(tf1.inventory(), pairing), name, start)
  return ProvenRun(found.proven, found.differences)


def _shown(inventory: Inventory, names: Mapping[str, str]) -> list[str]:
  return [names.get(variable.name, variable.name) for variable in inventory.variables]
