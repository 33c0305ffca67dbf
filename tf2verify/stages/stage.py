"""What a rung of the ladder is."""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

from tf2verify.diagnosis.places.bench import BenchRun
from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.tolerance import ToleranceTable
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Deviation, Difference, ErrorSummary
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.initial_value import JudgedStart
from tf2verify.records.observation import VariableRecord
from tf2verify.records.proven import Proven
from tf2verify.records.side_by_side import Curve, RandomOps, VariablePair
from tf2verify.records.table import Table
from tf2verify.records.verdict import Compared, Figure
from tf2verify.relation.names.alignment import Alignment
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.hooks.other_sizes import OtherSize
from tf2verify.sides.side import Declaration, Inventory, RunSpec
from tf2verify.sides.tf1.reference import ReferenceGraph, ReferenceTraining
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.training import Tf2Training
from tf2verify.stages.variables.pairing import Pairing, paired


@dataclasses.dataclass(frozen=True, eq=False)
class CaseUnderTest:
  """Both sides of a case, and the policy to judge them by.

  Attributes:
    declaration: the case itself.
    tf1: the reference.
    tf2: the port.
    inputs: the checked nest of arrays.
    variable_names: the case's mapping from tf1 to tf2 names; None is identity.
    tolerance: for outputs, initial values and state.
    gradient_tolerance: for gradients.
    regularization_tolerance: for regularization losses.
    training_tolerance: for what training steps compute; atol is a share of the tensor's
      greatest element.
    labels: the checked nest of arrays; None without labels.
    tf1_training: the reference's training graph.
    tf2_training: the port's training steps.
    left_out: the stages that the case leaves out.
    judged_starts: what is known of initial values that differ, by tf1 name; filled by the
      seeded stages.
    remembered: results of a stage that other stages reuse.
    agreed_sizes: one other size at which both sides agree in inference, where there is one; filled
      by `zero_randomness`.
    neutral: variables of one side alone that keep their initial values, by its own names, so that
      all is compared without them; filled where `variable_inventory` has failed by no others.
    milder: the factor of the distinct values of variables, where tf1 overflows with them as they
      are; filled by `zero_randomness`.
  """

  declaration: Declaration
  tf1: ReferenceGraph
  tf2: Tf2Layer
  inputs: Any
  variable_names: Any
  tolerance: ToleranceTable
  gradient_tolerance: ToleranceTable
  regularization_tolerance: ToleranceTable
  training_tolerance: ToleranceTable
  labels: Any
  tf1_training: ReferenceTraining
  tf2_training: Tf2Training
  left_out: frozenset[str] = frozenset()
  judged_starts: dict[str, JudgedStart] = dataclasses.field(default_factory=dict)
  remembered: dict[str, str] = dataclasses.field(default_factory=dict)
  agreed_sizes: list[OtherSize] = dataclasses.field(default_factory=list)
  neutral: set[str] = dataclasses.field(default_factory=set)
  milder: list[float] = dataclasses.field(default_factory=list)

  def alignment(self) -> Alignment:
    """Returns which variables of the two sides belong together."""
    return self.pairing.alignment

  @functools.cached_property
  def pairing(self) -> Pairing:
    """The variables of both sides laid side by side; from then on the port's are as tf1's."""
    pairing = paired(
      self.declaration, self.tf1, self.tf2, self.variable_names, self.labels, self.inputs
    )
    self.tf2.present(pairing.presentation())
    return pairing

  @property
  def is_paired(self) -> bool:
    """Whether a stage has asked for the pairs of variables."""
    return 'pairing' in self.__dict__

  def pair_by(self, pairing: Pairing) -> None:
    """Pairs the variables otherwise from now on."""
    for name in ('trained_by_tf1', 'rightly_frozen', '_frozen'):
      self.__dict__.pop(name, None)  # what was found out by the former pairs
    self.__dict__['pairing'] = pairing
    self.tf2.present(pairing.presentation(), mapped=pairing.mapped is not None)

  @functools.cached_property
  def trained_by_tf1(self) -> frozenset[str] | None:
    """What the train op of tf1 moves by gradients, by tf1 names.

    None where that is not known, or nobody has to know it: no pair is trainable in tf1 alone. The
    graph with the train op is the one of the later stages.
    """
    if not self._frozen:
      return None
    try:
      return self.tf1_training.trained_variables()
    except Tf2VerifyError:  # what is wrong with losses and train op is said by their stages
      return None

  @functools.cached_property
  def rightly_frozen(self) -> frozenset[str]:
    """Variables, by tf1 names, that the port freezes, as it may: no train op of tf1 trains them."""
    trained = self.trained_by_tf1
    return frozenset() if trained is None else self._frozen - trained

  @functools.cached_property
  def _frozen(self) -> frozenset[str]:
    ones, others = by_name(self.tf1.inventory()), by_name(self.tf2.inventory())
    pairs = self.alignment().pairs
    return frozenset(
      one for one, other in pairs if ones[one].trainable and not others[other].trainable
    )

  def inspectable_port(self, run: RunSpec) -> GraphRun:
    """Returns a run of the port that goes by tf1 names, of which every tensor can be asked for.

    Raises:
      NotTraceable: the port does not run on symbolic tensors.
    """
    names = {tf2: tf1 for tf1, tf2 in self.alignment().pairs}
    return self.tf2.inspectable(dataclasses.replace(run, tf1_names=names))

  def with_reference(self, tf1: ReferenceGraph, training: ReferenceTraining) -> 'CaseUnderTest':
    """Returns the same port with a different reference of the same variables."""
    found = dataclasses.replace(
      self, tf1=tf1, tf1_training=training, judged_starts={}, remembered={}, agreed_sizes=[]
    )
    found.__dict__['pairing'] = self.pairing  # laid side by side once
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class EditedRuns:
  """How to make the runs of a failed stage again, with edits of the port's graph.

  Attributes:
    make: makes them ready, beside the reference as it is looked into.
    compared: the quantities that are compared of them.
    derives: whether the port's gradients are formed after an edit, so that they follow from it.
    told: what the port tells of itself, and no run shows; what it does to the port is compared.
  """

  make: Callable[[GraphRun], BenchRun]
  compared: tuple[str, ...]
  derives: bool = False
  told: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Inspection:
  """A run of both sides to look into for the first divergence, other than one of the model.

  Attributes:
    run: which run, as the differences name it.
    traced: what of the port is traced for it: `tf2_loss`.
    sides: makes that run of both sides ready to be looked into, and may raise
      `NotTraceable` and `NotApplicable`.
    edited: how causes are tried out; None for no experiments.
    further: what both sides yield that is looked into as well, if anything differs: names of
      targets of the graphs.
    unless_proven: why what differs is no failure unless an experiment proves a mistake; '' where it
      is one.
  """

  run: str
  traced: str
  sides: Callable[[], tuple[GraphRun, GraphRun]]
  edited: EditedRuns | None = None
  further: tuple[str, ...] = ()
  unless_proven: str = ''


@dataclasses.dataclass(frozen=True)
class Findings:
  """What a stage returns; the ladder makes a verdict of it.

  Attributes:
    compared: how much was looked at.
    differences: what differs.
    notes: what a reader of a PASSED line has to know.
    inconclusive: why the stage is inconclusive; '' if it is not.
    figures: numbers worth showing.
    failed_run: the first run that shows a difference, by tf1 names; None without one,
      or where it cannot be repeated alone.
    failed_tensors: the arrays of some of the differences.
    deviations: every pair of floating tensors that is not the same bit by bit.
    tables: what reads best as a table.
    inventory: as in `StageVerdict`, and so are the next two.
    random_ops: see there.
    curves: see there.
    extents: see there.
    blind_spots: see there.
    undecided: likewise.
    proven: see there.
    inspection: what to look into for the first divergence, if that is no run of the model
      alone.
    causes: what a stage that explains itself has found, the most specific first.
  """

  compared: Compared
  differences: tuple[Difference, ...] = ()
  notes: tuple[str, ...] = ()
  inconclusive: str = ''
  figures: tuple[Figure, ...] = ()
  failed_run: RunSpec | None = None
  failed_tensors: tuple[FailedTensor, ...] = ()
  deviations: tuple[Deviation, ...] = ()
  tables: tuple[Table, ...] = ()
  inventory: tuple[VariablePair, ...] = ()
  random_ops: tuple[RandomOps, ...] = ()
  curves: tuple[Curve, ...] = ()
  extents: tuple[ErrorSummary, ...] = ()
  blind_spots: tuple[str, ...] = ()
  undecided: tuple[str, ...] = ()
  proven: Proven | None = None
  inspection: Inspection | None = None
  causes: tuple[Cause, ...] = ()


class Stage(abc.ABC):
  """One rung of the ladder.

  Attributes:
    name: as in `STAGES`, docs and test names.
    needs: the stages without which this one would only repeat their failure.
    proves: one sentence.
    repeats_errors_of: stages whose ERROR, if they have run, this one would only repeat,
      although it does not need them to pass.
    follows: stages of whose failure, if they have run, most of what this one finds would follow,
      although it does not need them to pass.
    diagnosed: whether it holds the two models against each other by the case's tolerances,
      so that a failure is looked into op by op, and can be judged by other tolerances.
    tried_when_blocked: whether it is run although a stage that it needs has failed, for mistakes
      that no earlier stage has shown.
    stands_alone: whether what `check_alone` compares does not depend on the stages that it needs.
    tells_sure_starts: whether `check_alone` compares the initial values, and leaves out those that
      may differ by a wrong map alone.
    compares_sides: whether it holds numbers of the reference against the port, so that a
      reference that races is tried in several orders.
  """

  name: ClassVar[str]
  needs: ClassVar[tuple[str, ...]]
  proves: ClassVar[str]
  repeats_errors_of: ClassVar[tuple[str, ...]] = ()
  follows: ClassVar[tuple[str, ...]] = ()
  diagnosed: ClassVar[bool] = True
  compares_sides: ClassVar[bool] = True
  tried_when_blocked: ClassVar[bool] = False
  stands_alone: ClassVar[bool] = False
  tells_sure_starts: ClassVar[bool] = False

  def check_alone(self, case: CaseUnderTest) -> Findings:
    """Does the same as far as it does not depend on the stages that it needs; raises as `check`."""
    return self.check(case)

  @abc.abstractmethod
  def check(self, case: CaseUnderTest) -> Findings:
    """Runs what the stage needs of both sides and compares it.

    Raises:
      NotApplicable: there is nothing to look at, and that is not a fault.
      Tf2VerifyError: the case cannot be run.
    """


def by_name(inventory: Inventory) -> dict[str, VariableRecord]:
  """Returns an inventory's records by name."""
  return {variable.name: variable for variable in inventory.variables}
