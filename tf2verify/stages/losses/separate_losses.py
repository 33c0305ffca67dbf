"""Both losses alone, on the same arrays."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.causes import causes_of, first_cause
from tf2verify.diagnosis.evidence.losses import RepeatedLoss, loss_evidence
from tf2verify.diagnosis.formulas.losses import Evaluated, Weights
from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.extreme_outputs import extreme_examples, gentle_examples
from tf2verify.numerics.output_relations import relations
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.loss_values import LossExample, LossValue
from tf2verify.records.observation import SourceLine
from tf2verify.records.table import Table
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.records.training import LossObservation
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.losses import loss_function
from tf2verify.sides.tf2.loss_function import Tf2LossFunction
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import Rerun
from tf2verify.stages.losses import kinks, other_labels, reference_faults
from tf2verify.stages.losses.computed_weights import computed_weights
from tf2verify.stages.losses.edited_losses import EditedLosses
from tf2verify.stages.losses.examples import own_examples
from tf2verify.stages.losses.kept_tensors import kept_tensors
from tf2verify.stages.losses.kept_values import KeptValues
from tf2verify.stages.losses.loss_graphs import of_loss_alone
from tf2verify.stages.losses.results import (
  GRADIENT,
  LOSS,
  MODEL,
  TRACED,
  LossReading,
  LossResult,
  both_nan,
  comparable,
  gradient_tolerance,
  is_offset,
  loss_tolerance,
  no_numbers,
  place,
  same_when_traced,
  summed,
  table_of_losses,
  unlike_examples,
)
from tf2verify.stages.losses.without_variables import without_variables
from tf2verify.stages.stage import CaseUnderTest, EditedRuns, Inspection

_NOT_GRADED = 'gradients with respect to {} were not compared: it depends on no variable of tf1'
_VALUE = 'value'
_CALLS = 3  # of the port's loss on the same data, to see that it stays the same


class SeparateLosses:
  """Compares `tf1_loss` and `tf2_loss` on the model's outputs and on extreme ones.

  Attributes:
    notes: for the report.
    tables: for the report.
    causes: the most specific mistake that is known; empty without any.
  """

  def __init__(
    self,
    case: CaseUnderTest,
    tf1: LossObservation,
    tf2: LossObservation,
    comparison: Comparison,
  ) -> None:
    self._case = case
    self._comparison = comparison
    labels = loss_function.leaves_of(case.labels)
    self._model = LossExample(MODEL, loss_function.leaves_of(tf1.outputs), labels, extreme=False)
    self._tf1 = case.tf1_training.loss_function(tf1.outputs, case.labels)
    self._tf2 = Tf2LossFunction(case.declaration, tf2.outputs, case.labels)
    self._moved = KeptValues(self._tf1)
    self._results: list[LossResult] = []
    self._reading = LossReading()
    self._ungraded: frozenset[str] = frozenset()  # outputs by which no gradient is compared
    self._traceable = True
    self._hint = self._growth = ''
    self._sources: list[tuple[str, SourceLine | None]] = []
    self.notes: list[str] = []
    self.tables: list[Table] = []
    self.causes: tuple[Cause, ...] = ()
    self._computed = functools.cache(functools.partial(computed_weights, self._tf1.inspectable))

  def compare(self) -> None:
    """Runs both losses on every example and compares what they give."""
    try:
      eager = self._eagerly(self._model)
    except UserCodeError as error:
      # Within the model it ran.
      self._comparison.blind_spots.append(
        f'{error.hook} cannot be run without the model that it was built with ({error.summary}), '
        'so extreme outputs were not tried'
      )
      return
    if self._changes(eager):
      return
    model = dataclasses.replace(eager, traced=self._traced(self._model))
    self._find_what_is_read(model)
    self._compare(model)
    self._try(self._examples())
    if no_numbers(self._model, self._results):
      self._try(gentle_examples(self._model, self._graded(), self._reading.related))
      self._comparison.blind_spots += no_numbers(self._model, self._results)
    self._look_for_cause()
    self.notes += both_nan(self._results)
    if not self._comparison.differences:
      compared = other_labels.Compared(self._run, self._compared_again, (self._tf1, self._tf2))
      self._comparison.blind_spots += other_labels.blind_spots(self._model, compared)

  def _try(self, examples: Iterable[LossExample]) -> None:
    for example in examples:
      result = self._tried(example)
      if result is not None and self._tells(result):
        self._compare(result)

  def withdraw(self) -> None:
    """Takes back what was found: these are not the whole losses of both sides."""
    self._comparison.withdraw(lambda known: known.quantity in (LOSS, GRADIENT))
    self.causes = ()

  def with_cause(self, difference: Difference) -> Difference:
    """Returns a difference with its cause, where that is known."""
    if difference.quantity not in (LOSS, GRADIENT) or difference.hint:
      return difference
    return dataclasses.replace(difference, hint=self._growth or self._hint)

  def inspection(self) -> Inspection | None:
    """Returns what to look into for the first operation that differs; None without any."""
    # The model's own come first, and none at all where the port's loss changes from call to call.
    examples = {result.example.name: result for result in self._results}
    examples |= {name + TRACED: result for name, result in examples.items()}
    known = self._comparison.differences
    failed = {d.run for d in known if d.aspect is not Aspect.PRESENCE}
    failed = failed or {d.run for d in known if d.quantity == GRADIENT}  # stopped on one side
    found = next((name for name in examples if name in failed), None)
    if found is None:
      return None
    first = examples[found]
    results = [first, *(result for result in self._results if result is not first)]
    edited = EditedRuns(
      lambda tf1: EditedLosses(
        results, (self._tf1, self._tf2), self._compared_again, self._causes_of, tf1
      ),
      (LOSS, GRADIENT),
      derives=True,
    )
    return of_loss_alone(found, first.example, (self._tf1, self._tf2), edited)

  def differs_on_model(self) -> bool:
    """Returns whether the losses differ on the model's own outputs."""
    return any(
      d.quantity in (LOSS, GRADIENT) and d.run.startswith(MODEL)
      for d in self._comparison.differences
    )

  def _eagerly(self, example: LossExample) -> LossResult:
    return LossResult(example, self._tf1.value(example), self._tf2.value(example), None)

  def _traced(self, example: LossExample) -> LossValue | None:
    if not self._traceable:
      return None
    try:
      return self._tf2.traced_value(example)
    except UserCodeError as error:
      self._traceable = False
      self._comparison.blind_spots.append(
        f'tf2_loss runs eagerly, but not as a tf.function: {error.summary}'
      )
      return None

  def _changes(self, model: LossResult) -> bool:
    """Calls the port's loss again: a list that is never cleared makes it grow."""
    values = [model.tf2.value]
    values += [self._tf2.value(self._model).value for _ in range(_CALLS - 1)]
    sums = [float(np.sum(value, dtype=np.float64)) for value in values]
    if all(np.array_equal(values[0], value, equal_nan=True) for value in values[1:]):
      return False
    self._growth = first_cause(RepeatedLoss(tuple(sums)))
    # The last call against the first: what the reference is compared with has no meaning.
    tolerance = loss_tolerance(self._case.tolerance)
    key = TensorKey(LOSS, 'called again (first call, last call)', MODEL)
    self._comparison.tensors(key, values[0], values[-1], tolerance)
    return True

  def _find_what_is_read(self, model: LossResult) -> None:
    """Finds the outputs that each side reads, and which of them follow from others."""
    reference = self._tf1.program(self._model)
    tf1 = reference.reads
    self._sources = [('tf1_loss', reference.source)]
    if self._traceable:
      port = self._tf2.program(self._model)
      tf2 = port.reads
      self._sources.append(('tf2_loss', port.source))
    else:
      tf2 = frozenset(r.name for r in model.tf2.gradients if r.value is not None)
    floating = set(loss_function.floating_paths(self._model.outputs))
    related = relations(self._model.outputs, tf1 | tf2)
    roots = {relation.derived: relation.source for relation in related}
    read = [{roots.get(path, path) for path in reads & floating} for reads in (tf1, tf2)]
    if not read[0] and not read[1]:
      self._comparison.blind_spots.append('neither loss reads a floating output of the model')
    elif read[0] == read[1]:
      paths = tuple(path for path in self._model.outputs if path in read[0])
      self._reading = LossReading(paths, related)
      self._ungraded = without_variables(self._case, paths)
      self.notes += [_NOT_GRADED.format(place(path)) for path in sorted(self._ungraded)]
    else:
      shown = [', '.join(sorted(map(place, paths))) or 'none' for paths in read]
      self._comparison.blind_spots.append(
        f'the losses read different outputs (tf1: {shown[0]}; tf2: {shown[1]}), of which none is '
        'the softmax, sigmoid or copy of another, so no extreme ones can be made that fit both, '
        'and gradients were not compared: give loss_examples'
      )
    if self._traceable and self._reading.read:
      table, note = kept_tensors(self._tf1, self._tf2, self._model, self._reading)
      self.tables.append(table)
      self.notes += [note] if note else []

  def _examples(self) -> Iterator[LossExample]:
    has_one_size = self._case.declaration.other_sizes in ((), [])
    for example in extreme_examples(self._model, self._graded(), self._reading.related):
      if example.other_batch and has_one_size:
        self.notes.append(f'left out: {example.name}: the case forbids it (other_sizes)')
      else:
        yield example
    yield from own_examples(self._case.declaration, self._model)

  def _tried(self, example: LossExample) -> LossResult | None:
    """Runs an example; that one side alone raises is a difference."""
    found = self._run(example)
    if isinstance(found, LossResult) or found is None:
      return found
    if all(found):
      self.notes.append(f'left out, since both losses raise on it: {example.name} ({found[0]})')
    elif found[0] and not example.declared:
      # TF1 rejects what nobody but the tool gave it: there is no loss to be equal to.
      self.notes.append(f'left out, since tf1_loss raises on it: {example.name} ({found[0]})')
    elif example.larger and isinstance(result := self._run(example.larger), LossResult):
      self._comparison.blind_spots.append(
        f'tf2_loss raises on {example.name}, tf1_loss does not: not judged, since both take '
        f'{example.larger.name} ({found[1]})'
      )
      return result
    else:
      texts = [f'raises {error}' if error else 'gives a loss' for error in found]
      hint = reference_faults.FIXED_SIZE if example.other_batch else ''
      self._comparison.add(
        Difference(LOSS, _VALUE, Aspect.PRESENCE, texts[0], texts[1], example.name, hint=hint)
      )
    return None

  def _run(self, example: LossExample) -> LossResult | Sequence[str] | None:
    """Returns what both sides give, or what they raise; None for what cannot be run."""
    errors: list[str] = []
    values: list[LossValue] = []
    for function in (self._tf1, self._tf2):
      try:
        values.append(function.value(example))
        errors.append('')
      except UserCodeError as error:
        errors.append(error.summary)
      except NotApplicable as reason:
        self.notes.append(f'left out: {example.name}: {reason}')
        return None
    if any(errors):
      return errors
    return LossResult(example, values[0], values[1], self._traced(example))

  def _tells(self, result: LossResult) -> bool:
    """Returns whether what an example gives can tell a wrong port from a right one."""
    if result.example.finite_only:
      return self._has_to_be_finite(result)
    note = reference_faults.fixed_size(self._model, result, self._reading.read)
    blind_spot = reference_faults.zero_by_zero(self._model, result)
    self.notes += [note] if note else []
    self._comparison.blind_spots += [blind_spot] if blind_spot else []
    return not note and not blind_spot

  def _has_to_be_finite(self, result: LossResult) -> bool:
    """Returns whether tf1 alone is finite; anything else that differs is a blind spot."""
    values = [value for value in (result.tf1, result.tf2, result.traced) if value is not None]
    tf1, *port = (self._reading.is_finite(value, result.example) for value in values)
    if not all(port):
      return tf1
    differ = [d.subject for d in self._compared_again(result, result.tf2)] if tf1 else []
    self._comparison.blind_spots += reference_faults.saturated(result, tf1, differ)
    return False

  def _compare(self, result: LossResult) -> None:
    self._results.append(result)
    name, case = result.example.name, self._case
    self._compare_with(self._comparison, result, result.tf2, name)
    same = same_when_traced(result, self._reading, case.tolerance, case.gradient_tolerance)
    if result.traced is not None and not (
      same and any(known.run == name for known in self._comparison.differences)
    ):
      self._compare_with(self._comparison, result, result.traced, name + TRACED)
    self._excuse_rounding(self._comparison, result)
    self.notes += kinks.leave_out(self._comparison, result, self._reading, self._agreed)

  def _agreed(self, example: LossExample) -> LossResult | None:
    """Returns what both sides give for an example, where that is the same."""
    found = self._run(example)
    if not isinstance(found, LossResult):
      return None
    port = [value for value in (found.tf2, found.traced) if value is not None]
    return None if any(self._compared_again(found, value) for value in port) else found

  def _compared_again(self, result: LossResult, tf2: LossValue) -> Sequence[Difference]:
    """Returns what differs where the port gives something else for an example."""
    comparison = Comparison()
    self._compare_with(comparison, result, tf2, result.example.name)
    comparison.excuse_rounding(None, self._rerun(result))
    return comparison.differences

  def _excuse_rounding(self, comparison: Comparison, result: LossResult) -> None:
    tf1, tf2 = (
      functools.partial(one.inspectable, result.example) for one in (self._tf1, self._tf2)
    )
    port = tf2 if self._traceable else None
    comparison.excuse_rounding(None, self._rerun(result), inspect=tf1, inspect_port=port)

  def _rerun(self, result: LossResult) -> Rerun:
    def rerun(perturber: Perturber | None, wanted: frozenset[TensorKey]) -> Run:
      return self._tensors(self._moved.of(result.example, perturber), result, wanted)

    return rerun

  def _compare_with(
    self, comparison: Comparison, result: LossResult, tf2: LossValue, run: str
  ) -> None:
    tolerance = loss_tolerance(self._case.tolerance)
    values = comparable(result.tf1.value, tf2.value)
    comparison.tensors(TensorKey(LOSS, _VALUE, run), *values, tolerance)
    if not np.isfinite(values[0]).any() and not np.isfinite(values[1]).any():
      return  # what is no number has no gradient that means anything
    for path in self._graded():
      one, other = (
        self._reading.gradient(value, result.example, path) for value in (result.tf1, tf2)
      )
      tolerance = gradient_tolerance(self._case.gradient_tolerance, one)
      comparison.tensors(TensorKey(GRADIENT, place(path), run), one, other, tolerance)

  def _graded(self) -> list[str]:
    return [path for path in self._reading.read if path not in self._ungraded]

  def _tensors(self, value: LossValue, result: LossResult, wanted: Iterable[TensorKey]) -> Run:
    """Returns a loss of the reference, and its gradients, as they are compared."""
    loss = summed(value.value) if result.summed else value.value
    known: dict[tuple[str, str], np.ndarray | None] = {(LOSS, _VALUE): loss}
    for path in self._graded():
      known[GRADIENT, place(path)] = self._reading.gradient(value, result.example, path)
    return {key: known.get((key.quantity, key.name)) for key in wanted}

  def _look_for_cause(self) -> None:
    if not any(d.quantity in (LOSS, GRADIENT) for d in self._comparison.differences):
      return
    results = self._results
    self.causes = self._causes_of(results)
    self._hint = self.causes[0].text if self.causes else ''
    if not self._hint:
      self._hint = self._where_they_differ()
      self.notes += [f'{hook} ends at {line}' for hook, line in self._sources if line is not None]
    self.tables.insert(0, table_of_losses(results))

  def _causes_of(self, results: Sequence[LossResult]) -> tuple[Cause, ...]:
    ways = (lambda _: (), self._computed)
    return tuple(itertools.islice((c for way in ways for c in self._causes_with(results, way)), 1))

  def _causes_with(
    self, results: Sequence[LossResult], weights: Callable[[LossExample], tuple[Weights, ...]]
  ) -> Iterator[Cause]:
    computed = [(result, weights(result.example)) for result in results]
    tf1 = [Evaluated(result.example, result.tf1.value, own) for result, own in computed]
    tf2 = [Evaluated(result.example, result.tf2.value, own) for result, own in computed]
    for known in loss_evidence(tf1, tf2, self._reading.read):
      for cause in causes_of(known):
        if cause.rule != 'constant_offset' or is_offset(results, self._comparison.differences):
          yield cause

  def _where_they_differ(self) -> str:
    """Returns that some examples alone differ, or only in eager mode, where that is so."""
    given = self._reading, self._case.tolerance, self._case.gradient_tolerance
    differences = self._comparison.differences
    known = unlike_examples(self._results, differences, lambda r: same_when_traced(r, *given))
    return '' if known is None else first_cause(known)
