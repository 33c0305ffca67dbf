"""Observations compared, tensor by tensor."""

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tf2verify.numerics.telling import Blank, blank, constant_of
from tf2verify.numerics.tolerance import ToleranceTable
from tf2verify.records.difference import Aspect, Deviation, Difference, Judgement
from tf2verify.records.failed_tensor import FailedTensor, kept_tensors
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.sampled import SampledArray
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import TrainingRun
from tf2verify.records.verdict import Compared, Figure
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.loss_groups import by_common_groups, by_variables
from tf2verify.stages.comparison.noise import kernels, rounding
from tf2verify.stages.comparison.noise import operations as operation_noise
from tf2verify.stages.comparison.noise.reruns import Rerun, RunHere
from tf2verify.stages.comparison.presence import presence_difference, regularization_hints
from tf2verify.stages.comparison.sampled_tensors import SampledCount, SampleResult, compare_either
from tf2verify.stages.comparison.vacuity import Telling, near_zero_note
from tf2verify.stages.stage import Findings

# What no operation of a run computes.
_STARTS = frozenset({'initial value'})


class Comparison:
  """Collects comparisons of one stage.

  Attributes:
    figures: the total regularization losses met so far.
    blind_spots: notes on what the numbers cannot show.
    telling: which of the tensors tell anything of the port.
  """

  def __init__(self) -> None:
    self.telling = Telling()
    self._tensors = 0
    self._elements = 0
    self._inconclusive = 0
    self._near_zero: list[str] = []
    self._unpaired = 0
    self._differences: list[Difference] = []
    self._undecided = ''
    self._suspects: list[rounding.Suspect] = []
    self._failed: list[FailedTensor] = []
    self._failed_run: RunSpec | None = None
    self._starts_alone = False  # whether only initial values differ in it
    self._rounding = 0
    self._notes: list[str] = []
    self._deviations: list[Deviation] = []
    self._sampled = SampledCount()
    self.figures: list[Figure] = []
    self.blind_spots: list[str] = []

  def copied(self) -> 'Comparison':
    """Returns a comparison that has found the same so far, to go on with or to drop."""
    other = Comparison()
    for name, value in vars(self).items():
      setattr(other, name, list(value) if isinstance(value, list) else copy.copy(value))
    return other

  @property
  def compared(self) -> Compared:
    """How much was compared so far."""
    return Compared(
      self._tensors,
      self._elements,
      self._inconclusive,
      self._unpaired,
      rounding=self._rounding,
      blind_spots=len(self._all_blind_spots()),
    )

  def _all_blind_spots(self) -> list[str]:
    # What a difference hides is not said beside it.
    return [*self.blind_spots, *([] if self._differences else self.telling.notes())]

  @property
  def near_zero(self) -> tuple[str, ...]:
    """The inconclusive tensors of which zeros would have passed as well."""
    return tuple(self._near_zero)

  @property
  def differences(self) -> tuple[Difference, ...]:
    """The differences so far, attributes before values, the worst first, maybe rounding last."""

    def rank(difference: Difference) -> tuple[bool, int, float]:
      excess = 0.0
      if (array := difference.array) is not None:
        excess = array.greatest_absolute / (array.atol + array.rtol * _size(array.tf1) + 1e-300)
      # Of those that are as far apart, but for rounding, the model's order stays.
      excess = -float(f'{excess:.3g}') if excess == excess else float('-inf')
      return difference.may_be_rounding, list(Aspect).index(difference.aspect), excess

    return tuple(sorted(self._differences, key=rank))

  @property
  def inconclusive(self) -> str:
    """Why the stage can tell nothing although it compared something; '' if it can."""
    if self._undecided:
      return self._undecided
    if not self._tensors:
      return 'nothing was compared'
    return self.telling.reason()

  @contextlib.contextmanager
  def unless_drawn_in_a_loop(self, tf1: Observation | TrainingRun) -> Iterator['Comparison']:
    """Yields where to compare what depends on the random ops of a run.

    A random op in the body of a loop has one seed for all steps in a graph, and the
    steps draw in no fixed order: no seeds align it with the steps of the port. What
    agrees all the same counts; what differs makes the stage inconclusive.
    """
    loop = next((draw for draw in tf1.random_draws if draw.in_loop), None)
    if loop is None:
      yield self
      return
    part = Comparison()
    yield part
    if part.differences:
      self._undecided = (
        f'{len(part.differences)} tensors differ [{tf1.run}], but the model draws random numbers '
        f'inside a loop ({loop.op_type} at {loop.source}), which no seed aligns between a graph '
        'and eager mode: declare the case with that randomness switched off (a dropout rate of 0)'
      )
    else:
      self.absorb(part)
    self.figures += part.figures

  def undecide(self, reason: str) -> None:
    """Makes the stage inconclusive, whatever agrees."""
    self._undecided = reason

  def absorb(self, part: 'Comparison') -> None:
    """Adds what another comparison has collected, but for its notes and figures."""
    self._tensors += part._tensors
    self._elements += part._elements
    self._inconclusive += part._inconclusive
    self._near_zero += part._near_zero
    self._unpaired += part._unpaired
    self._differences += part._differences
    self._suspects += part._suspects
    self._failed += part._failed
    self._deviations += part._deviations
    self._sampled.merge(part._sampled)
    self.telling.merge(part.telling)

  def rounding_alone(self, key: TensorKey, elements: int) -> None:
    """Counts a tensor of which no element can be told from its rounding noise."""
    self._tensors += 1
    self._elements += elements
    self._inconclusive += 1
    self.telling.add(key, Blank.DEGENERATE)

  def agreed(self, value: np.ndarray) -> None:
    """Counts a tensor that was compared in another way and agrees."""
    self._tensors += 1
    self._elements += value.size

  def add(self, difference: Difference) -> None:
    """Adds a finding that is not a comparison of two tensors."""
    self._differences.append(difference)

  def lost(self, difference: Difference) -> None:
    """Adds something that one side has and the other has not."""
    self._unpaired += 1
    self.add(difference)

  def tensors(
    self,
    key: TensorKey,
    tf1: np.ndarray | None,
    tf2: np.ndarray | None,
    tolerance: ToleranceTable,
    with_cause: Callable[[Difference], Difference] = lambda found: found,
  ) -> None:
    """Compares one pair; None on one side is a difference, on both sides agreement.

    Where they differ, `with_cause` is asked why.
    """
    if tf1 is None or tf2 is None:
      if tf1 is not tf2:
        self.lost(with_cause(presence_difference(key, tf1, tf2)))
      return
    looked = compare_either(key, tf1, tf2, tolerance)
    result = looked.result
    self._tensors += 1
    self._elements += result.elements
    self._sampled.add(looked)
    near_zero = self._tells(key, looked, tolerance) is Blank.TOLERANCE
    if near_zero or result.inconclusive:
      self._inconclusive += 1
      self._near_zero.append(str(key))
    if result.deviation is not None:
      known = result.deviation
      near = dataclasses.replace(known, judgement=Judgement.NEAR_ZERO) if near_zero else known
      self._deviations.append(near)
    if result.difference is not None:
      found = with_cause(result.difference)
      self.add(found)
      failed = looked.failed()
      self._failed += [] if failed is None else [failed]
      if rounding.may_be_rounding(found, tf1):
        allowed = tolerance.for_dtype(tf1.dtype)
        sides = looked.tf1, looked.tf2
        self._suspects.append(rounding.Suspect(found, *sides, allowed, looked.views))

  def _tells(self, key: TensorKey, looked: SampleResult, tolerance: ToleranceTable) -> Blank | None:
    """Keeps, and returns, why a pair tells nothing of the port; None where it does."""
    value = looked.tf2 if isinstance(looked.tf1, SampledArray) else looked.tf1
    found = None
    if looked.result.difference is None:
      found = blank(value, tolerance.for_dtype(value.dtype), looked.result.identical)
    constant = constant_of(value) if found is Blank.SAME else ''
    self.telling.add(key, found, constant)
    return found

  def excuse_rounding(
    self,
    tf1: Observation | TrainingRun | None,
    rerun: Rerun,
    here: RunHere | None = None,
    inspect: operation_noise.Inspect | None = None,
    inspect_port: operation_noise.Inspect | None = None,
    further: rounding.Judge | None = None,
    decides: bool = True,
    lined_up: bool = False,
  ) -> None:
    """Takes what rounding explains out of the differences since this was last called.

    Args:
      tf1: the run that was compared; None for a loss, of which no draws are known.
      rerun: repeats it.
      here: runs a recorded reference's graph here; None for another reference.
      inspect: repeats the run, to ask for any tensor.
      inspect_port: repeats that of the port likewise.
      further: judges what is left.
      decides: whether outputs of which rounding changes too much make the stage inconclusive; not
        where another run has compared them.
      lined_up: as `double_precision.explained`.
    """
    suspects, self._suspects = self._suspects, []
    if tf1 is not None and any(draw.in_loop for draw in tf1.random_draws):
      return  # no two runs draw alike
    found = kernels.sort_out(suspects, rerun, here, 0 if tf1 is None else tf1.narrow_bits)
    if inspect is not None:
      found = operation_noise.excused(suspects, found, inspect, inspect_port, lined_up)
    found = found if further is None else further(suspects, found)
    self._notes += found.notes
    sorted_out = {id(known): replacement for known, replacement in found.replacements}
    kept = [sorted_out.get(id(known), known) for known in self._differences]
    self._differences = [known for known in kept if known is not None]
    self._deviations = found.told(self._deviations)
    self._rounding += len(found.rounding)
    self._inconclusive += len(found.degenerate)
    for known in found.degenerate:
      self.telling.add(known.key, Blank.DEGENERATE)
    telling = [d for d in found.degenerate if d.quantity in ('output', 'regularization loss')]
    if telling and decides:
      text = 'is beyond the tolerance, but rounding alone changes it as much; see the notes'
      self._undecided = f'{telling[0].key} {text}'

  def repeatable(self, run: RunSpec) -> None:
    """Remembers how to repeat the first run that shows a difference, of what it computes if any.

    A run in training has all operations of one in inference, and more that may differ.
    """
    here = {d.quantity for d in self._differences if d.run == run.description}
    known, computes = self._failed_run, bool(here - _STARTS)
    tells_more = computes and (self._starts_alone or (known is not None and not known.training))
    if here and (
      known is None or (run.training and tells_more) or (self._starts_alone and computes)
    ):
      self._failed_run, self._starts_alone = run, not computes

  def outputs(self, tf1: Observation, tf2: Observation, tolerance: ToleranceTable) -> None:
    """Compares structure first, then output by output."""
    if tf1.structure != tf2.structure:
      self._unpaired += 1
      self._differences.append(
        Difference(
          'outputs',
          '(the whole nest)',
          Aspect.STRUCTURE,
          tf1.structure,
          tf2.structure,
          tf1.run,
          hint='return the same nest on both sides; to drop or reorder outputs, override '
          'call_tf2_layer',
        )
      )
      return
    for one, other in zip(tf1.outputs, tf2.outputs, strict=True):
      key = TensorKey('output', one.name, tf1.run)
      self.tensors(key, one.value, other.value, tolerance)

  def variables(
    self,
    quantity: str,
    pairs: Sequence[tuple[str, str]],
    tf1: Iterable[TensorRecord],
    tf2: Iterable[TensorRecord],
    tolerance: ToleranceTable,
    run: str,
  ) -> None:
    """Compares the tensors of paired variables."""
    ones = {record.name: record.value for record in tf1}
    others = {record.name: record.value for record in tf2}
    for tf1_name, tf2_name in pairs:
      key = TensorKey(quantity, tf1_name, run, tf2_name)
      self.tensors(key, ones.get(tf1_name), others.get(tf2_name), tolerance)

  def regularization(
    self,
    tf1: Observation,
    tf2: Observation,
    pairs: Sequence[tuple[str, str]],
    tolerance: ToleranceTable,
  ) -> None:
    """Compares the losses by the variables that they read, and their total.

    Where one side has one loss for what the other has several, those of the
    other are added up.
    """
    tf1_names = {tf2_name: tf1_name for tf1_name, tf2_name in pairs}
    ones = by_variables(tf1.regularization_losses, {})
    others = by_variables(tf2.regularization_losses, tf1_names)
    if not ones and not others:
      return
    ones, others = by_common_groups(ones, others)
    hinted = regularization_hints(ones, others, tf2.losses_left_out)
    for variables in sorted(ones.keys() | others.keys()):
      name = ', '.join(variables) or '(reads no variable)'
      key = TensorKey('regularization loss', name, tf1.run)
      self.tensors(key, ones.get(variables), others.get(variables), tolerance, hinted)
    one, other = tf1.regularization_total, tf2.regularization_total
    key = TensorKey('regularization loss', '(total)', tf1.run)
    self.tensors(key, one, other, tolerance, hinted)
    if one is not None and other is not None:
      self.figures.append(Figure('regularization loss', tf1.run, float(one), float(other)))

  def withdraw(self, taken: Callable[[Difference], bool]) -> list[Difference]:
    """Takes back what was found of some pairs, which count as compared; returns it."""
    withdrawn = [known for known in self._differences if taken(known)]
    self._differences = [known for known in self._differences if not taken(known)]
    self._unpaired -= sum(known.aspect is Aspect.PRESENCE for known in withdrawn)
    run = None if self._failed_run is None else self._failed_run.description
    if run is not None and not any(known.run == run for known in self._differences):
      self._failed_run = None
    subjects = {(known.quantity, known.subject, known.run) for known in withdrawn}
    self._deviations = [
      known
      for known in self._deviations
      if (known.quantity, known.subject, known.run) not in subjects
    ]
    return withdrawn

  def note(self, *texts: str) -> None:
    """Adds notes, each of them once."""
    self._notes += [text for text in texts if text not in self._notes]

  def findings(self, notes: Sequence[str] = ()) -> Findings:
    """Returns what the stage found."""
    return Findings(
      self.compared,
      self.differences,
      (
        *notes,
        *self._all_blind_spots(),
        *self._notes,
        *near_zero_note(self._near_zero),
        *self._sampled.notes(),
      ),
      self.inconclusive,
      tuple(self.figures),
      self._failed_run,
      self.failed_tensors(),
      tuple(self._deviations),
      blind_spots=tuple(self._all_blind_spots()),
      undecided=(*near_zero_note(self._near_zero), *self.telling.degenerate()),
    )

  def failed_tensors(self) -> tuple[FailedTensor, ...]:
    """Returns the arrays behind what is left of the differences, within a bound of memory."""
    return kept_tensors(self._failed, {d.key for d in self._differences})


def _size(value: object) -> float:
  return abs(value) if isinstance(value, (int, float, complex)) and value == value else 0.0
