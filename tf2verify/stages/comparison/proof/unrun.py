"""Both graphs of a case related, of which neither is run."""

import dataclasses
import textwrap
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tf2verify.errors import LayerError, NotApplicable, Tf2VerifyError, UserCodeError
from tf2verify.numerics.tolerance import VALUE_TOLERANCES
from tf2verify.records.case_proof import ProvenRun
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import Observation
from tf2verify.records.op_graph import OpGraph
from tf2verify.records.proven import Proven
from tf2verify.relation.variable_pairs import compare_pairs
from tf2verify.safe_text import message_of
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.recorded import references
from tf2verify.sides.side import TF1, TF2, Inventory, Progress, RunSpec, training_name
from tf2verify.sides.tf1.reference import ReferenceGraph
from tf2verify.sides.tf2.graphs.unallocated import UnallocatedLayer
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.layers.noted_outputs import NotedOutputs
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.proving import compared, reference_graph, variables_of
from tf2verify.stages.stage import by_name
from tf2verify.stages.variables.pairing import CannotBePaired, Pairing, paired

_Found = TypeVar('_Found')
# What may be raised only since variables have no values.
_WITHOUT_VALUES = (NotTraceable, CannotBePaired, LayerError, UserCodeError)
_LONGEST_REASON = 600  # what was wrong comes last, after the lines that led to it
_ARGUMENTS = 'Call arguments received by'  # after what Keras says, and different in every mode


@dataclasses.dataclass(frozen=True)
class UnrunProof:
  """What was found.

  Attributes:
    runs: one for each training mode.
    only_tf1: names of tf1's variables without a partner.
    only_tf2: the port's, likewise.
    differing: of paired variables, and of the structures of outputs.
    allocated: why the port's variables had to be allocated; '' where they were not.
    ran_both: whether both sides were run, to derive which variables are pairs.
    seconds: wall time, by what was done.
  """

  runs: tuple[ProvenRun, ...]
  only_tf1: tuple[str, ...]
  only_tf2: tuple[str, ...]
  differing: tuple[Difference, ...]
  allocated: str
  ran_both: bool
  seconds: tuple[tuple[str, float], ...]


class FailedWithValues(Tf2VerifyError):
  """A port raises with values of its variables, and raised something else without them.

  Attributes:
    allocated: as in `UnrunProof`; where memory was too small for the values, that is the error.
    error: what was raised with values.
  """

  def __init__(self, allocated: str, error: Tf2VerifyError) -> None:
    super().__init__(str(error))
    self.allocated = allocated
    self.error = error


class _EitherPort:
  """The port whose variables have no values, or with values once it shows that it needs them.

  Attributes:
    now: the one that is used.
    allocated: as in `UnrunProof`.
    structures: of the outputs, by training mode, once they are traced.
  """

  def __init__(self, case: Any, inputs: Any, progress: Progress) -> None:
    noted = NotedOutputs(case)
    self._arguments = noted, inputs, progress
    self._raised = ''  # without values
    self.now: UnallocatedLayer | Tf2Layer = UnallocatedLayer(*self._arguments)
    self.allocated = ''
    self.structures = noted.structures

  def attempted(self, work: Callable[[UnallocatedLayer | Tf2Layer], _Found]) -> _Found:
    """Returns what a function finds of the port; with values where it fails without them.

    What it raises of a port with values is the port's own error.

    Raises:
      FailedWithValues: it is not what was raised without them.
    """
    if not self.allocated:
      try:
        return work(self.now)
      except _WITHOUT_VALUES as error:
        is_raised = isinstance(error, (LayerError, UserCodeError))
        self.allocated = f'{"without values, " if is_raised else ""}{_why(error)}'
        self._raised = message_of(error.__cause__ or error)
      self.now = Tf2Layer(*self._arguments)
    try:
      return work(self.now)
    except Tf2VerifyError as error:
      if message_of(error.__cause__ or error) == self._raised:
        raise
      raise FailedWithValues(self.allocated, error) from error


def unrun_proof(case: Any, progress: Progress) -> UnrunProof:
  """Relates both graphs of a case in every training mode.

  Args:
    case: what a case class declares.
    progress: called with one line of text before every long step.

  Raises:
    FailedWithValues: the port raises, and raised something else without values.
    Tf2VerifyError: a hook raises, or a side cannot be made.
  """
  start = time.perf_counter()

  def is_of_keras3() -> bool:
    return port.now.is_of_keras3()

  reference = references.reference(case, progress, is_of_keras3)
  tf1 = reference.graph
  port = _EitherPort(case, reference.inputs, progress)
  try:
    port.attempted(lambda tf2: tf2.is_of_keras3())  # makes it, before tf1 asks for it
    made = time.perf_counter()
    tf1.inventory()  # builds the graphs of all training modes
    built = time.perf_counter()
    arguments = case.variable_names, reference.labels, reference.inputs
    pairing = port.attempted(lambda tf2: paired(case, tf1, tf2, *arguments))
    port.now.present(pairing.presentation())
    traced = time.perf_counter()
    differing = _unlike_variables(tf1.inventory(), port.now.inventory(), pairing)
    runs = []
    for training in case.training_modes:
      run = RunSpec(reference.inputs, training, ConstantFill(), {})
      found, unlike = _related(tf1, port, pairing, run)
      runs.append(found)
      differing += unlike
  finally:
    tf1.close()
  end = time.perf_counter()
  return UnrunProof(
    tuple(runs),
    tuple(name for name in pairing.alignment.only_tf1 if name not in pairing.tf1_only),
    tuple(name for name in pairing.alignment.only_tf2 if name not in pairing.tf2_only),
    tuple(differing),
    port.allocated,
    pairing.derived is not None,
    (
      ('building tf1', built - made),
      ('making the port', made - start + traced - built),
      ('proof', end - traced),
    ),
  )


def _related(
  tf1: ReferenceGraph, port: _EitherPort, pairing: Pairing, run: RunSpec
) -> tuple[ProvenRun, tuple[Difference, ...]]:
  """Returns what is proven of a training mode, and how the outputs differ in their structure."""
  start, name = time.perf_counter(), training_name(run.training)
  pairs = pairing.alignment.pairs
  names = {two: one for one, two in pairs}
  if len(set(shown := _shown(port.now.inventory(), names))) < len(shown):
    return ProvenRun(Proven(name, reason='two variables of the port have one name')), ()
  try:
    one = reference_graph(tf1, run, pairs)
    other: OpGraph = port.now.traced(dataclasses.replace(run, tf1_names=names)).op_graph()
  except (NotTraceable, NotApplicable) as error:
    return ProvenRun(Proven(name, reason=_why(error))), ()
  structures = tf1.built(run.training).structure, port.structures[run.training]
  unlike = _unlike_outputs(*structures, name)
  if unlike:  # which outputs belong together is not known
    return ProvenRun(Proven(name, reason='the outputs have different structures')), unlike
  found = compared(one, other, variables_of(tf1.inventory(), pairing), name, start)
  return ProvenRun(found.proven, found.differences), ()


def _unlike_variables(tf1: Inventory, tf2: Inventory, pairing: Pairing) -> list[Difference]:
  """Returns paired variables that cannot hold the same values, as `variable_inventory` does."""
  ones, others = by_name(tf1), by_name(tf2)
  found, _ = compare_pairs([(ones[one], others[two]) for one, two in pairing.alignment.pairs])
  return [one for one in found if one.aspect in (Aspect.SHAPE, Aspect.DTYPE)]


def _unlike_outputs(tf1: str, tf2: str, name: str) -> tuple[Difference, ...]:
  """Returns how structures of outputs differ, as stages do that compare the outputs."""
  comparison = Comparison()
  one, other = Observation(TF1, name, tf1, ()), Observation(TF2, name, tf2, ())
  comparison.outputs(one, other, VALUE_TOLERANCES)
  return comparison.findings().differences


def _why(error: Exception) -> str:
  """Returns on one line why something is not possible, in whole words."""
  cause = error.__cause__ if isinstance(error, NotTraceable) else None
  said = message_of(error)
  if cause is not None:  # the message has the beginning of what was raised
    said = f'{type(cause).__name__}: {message_of(cause).partition(_ARGUMENTS)[0]}'
  return textwrap.shorten(said, _LONGEST_REASON, placeholder=' …')


def _shown(inventory: Inventory, names: Mapping[str, str]) -> list[str]:
  return [names.get(variable.name, variable.name) for variable in inventory.variables]
