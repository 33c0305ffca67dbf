"""Both sides of a case, repeated from fresh state."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

from tf2verify.errors import CaseDefinitionError, Tf2VerifyError
from tf2verify.numerics.repeatability import Remembered, digests, first_variation, varying
from tf2verify.records.races import Order, Race
from tf2verify.records.repetition import FirstVariation, Variation
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides import side
from tf2verify.sides.repetition import recorded as recorded_repetition
from tf2verify.sides.repetition import repeating, run_ops
from tf2verify.sides.repetition.repeating import Repeat
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import RecordedReference
from tf2verify.sides.tf1.reference_steps import PreparedSteps
from tf2verify.stages import orders
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest

# Runs of each side: two of one that yields more elements, of which one run is kept at most.
RUNS = 3
LARGE = 2**22
# Steps that are repeated; a case whose schedule has a late boundary takes many more. Of a large
# model the second step is the last: it starts from slots and counts that the first one has left.
MOST_STEPS = 3
MOST_STEPS_OF_LARGE = 2
_MOST_OTHER_ORDERS = 3


@dataclasses.dataclass(frozen=True)
class SideRepetitions:
  """What the repetitions of one side have shown."""

  side: str  # 'tf1' or 'tf2'
  runs: int  # how many
  tensors: int  # how many are compared
  elements: int  # of all tensors
  varying: tuple[Variation, ...]  # those that are not the same bits in all runs
  digests: dict[TensorKey, str]  # of the first run
  sources: run_ops.Sources  # op types that vary on a GPU, with the user's lines
  refused: str = ''  # why the port does not run with `enable_op_determinism`; '' if it does
  # Tensors that are repeatable, and others with `enable_op_determinism`.
  other_bits: tuple[Variation, ...] = ()
  # The first operation that varies; None where nothing does or none is found.
  first: FirstVariation | None = None
  # Why training steps were not repeated; '' if they were or are not declared.
  not_repeated: str = ''
  races: tuple[Race, ...] = ()  # accesses to variables that the reference's graph does not order
  # What differs in other orders of these from the first; only where it does.
  by_order: tuple[tuple[Order, tuple[Variation, ...]], ...] = ()
  is_recorded: bool = False  # whether the repetitions were made when the side was recorded


@dataclasses.dataclass(frozen=True, eq=False)
class Repeater:
  """Repeats the sides of a case."""

  case: CaseUnderTest  # both sides
  tf1_run: RunSpec  # the run at given values, by the reference's variable names
  tf2_run: RunSpec  # likewise by the port's

  @classmethod
  def of(cls, case: CaseUnderTest) -> 'Repeater':
    """Returns what repeats a case in training mode, if it has one, at distinct values."""
    training = True in case.declaration.training_modes
    inputs, _ = case_inputs.varied_inputs(case.inputs)
    pairs = case.alignment().pairs
    fill = case_fill(case)
    return cls(
      case,
      RunSpec(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs}, gradients=True),
      RunSpec(inputs, training, fill, {tf2: tf1 for tf1, tf2 in pairs}, gradients=True),
    )

  def tf1(self) -> SideRepetitions:
    """Repeats the reference in fresh sessions; a recorded one was repeated by the recorder."""
    recorded = self.case.tf1.recorded()
    if recorded is not None:
      return self._recorded_tf1(recorded)
    first, repeat, not_repeated = _begun(*self._tf1_repeats())
    remembered, count = Remembered(first, LARGE), len(first)
    del first
    runs = RUNS if remembered.is_whole else 2
    found = merged(remembered.varying(repeat()) for _ in range(runs - 1))
    races = orders.races_met(self.case)
    first_found = _looked_for(lambda: self._first_tf1(found)) if found else None
    return SideRepetitions(
      side.TF1,
      runs,
      count,
      remembered.elements,
      _measured(found, repeat),
      remembered.digests,
      repeating.watched_in_graph(self.case.tf1, self.tf1_run.training),
      first=first_found,
      not_repeated=not_repeated,
      races=races,
      by_order=self._in_other_orders(remembered, not not_repeated) if races else (),
    )

  def _in_other_orders(
    self, remembered: Remembered, with_steps: bool
  ) -> tuple[tuple[Order, tuple[Variation, ...]], ...]:
    """Runs the reference in other orders of what its graph leaves open."""
    found = []
    for order in orders.orders_met(self.case)[1 : 1 + _MOST_OTHER_ORDERS]:
      orders.begin(self.case, order)
      repeat, steps = self._tf1_repeats()
      taken = steps() if steps is not None and with_steps else {}
      differs = remembered.varying({**repeat(), **taken})
      if differs:
        found.append((order, differs))
    orders.begin(self.case, None)
    return tuple(found)

  def _recorded_tf1(self, tf1: RecordedReference) -> SideRepetitions:
    repeat, steps = self._tf1_repeats()
    first, _, not_repeated = _begun(repeat, steps)
    with_steps = steps is not None and not not_repeated
    found = recorded_repetition.varying_tensors(tf1, self.tf1_run, self._steps(), with_steps)
    tf1.remark(recorded_repetition.REMARK)
    return SideRepetitions(
      side.TF1,
      2,
      len(first),
      sum(value.size for value in first.values() if value is not None),
      found,
      digests(first),
      recorded_repetition.watched_ops(tf1, self.tf1_run.training),
      first=_looked_for(lambda: self._first_tf1(found)) if found else None,
      not_repeated=not_repeated,
      races=orders.races_met(self.case),
      is_recorded=True,
    )

  def tf2(self) -> SideRepetitions:
    """Repeats the port with fresh layers; the last time with `enable_op_determinism`."""
    watched = run_ops.OpSources()
    with watched.recording():
      first, repeat, not_repeated = _begun(*self._tf2_repeats())
    remembered, count = Remembered(first, LARGE), len(first)
    del first
    plain = RUNS - 2 if remembered.is_whole else 0
    found = merged(remembered.varying(repeat()) for _ in range(plain))
    other_bits, refused = self._with_op_determinism(repeat, remembered)
    if (other_bits or refused) and not plain:  # the switch, or does the port vary anyway?
      plain, found = 1, remembered.varying(repeat())
    varies = {variation.key for variation in found}
    return SideRepetitions(
      side.TF2,
      plain + 1 + (not refused),
      count,
      remembered.elements,
      _measured(found, repeat),
      remembered.digests,
      watched.found,
      refused,
      tuple(variation for variation in other_bits if variation.key not in varies),
      _looked_for(lambda: self._first_tf2(repeat)) if found else None,
      not_repeated,
    )

  def digests(self) -> dict[str, dict[TensorKey, str]]:
    """Runs each side once and returns the digest of every tensor, by side."""
    tf1, _, _ = _begun(*self._tf1_repeats())
    tf2, _, _ = _begun(*self._tf2_repeats())
    return {side.TF1: digests(tf1), side.TF2: digests(tf2)}

  def _tf1_repeats(self) -> tuple[Repeat, Repeat | None]:
    repeat = self._tf1_runs()
    declares = self.case.declaration.declares
    if not (declares('make_tf1_optimizer') or declares('make_tf1_train_op')):
      return repeat, None
    prepared: list[PreparedSteps] = []

    def steps() -> Run:
      if not prepared:
        prepared.append(self.case.tf1_training.prepare_steps(self.tf1_run, self._steps()))
      with prepared[0].begin(None) as begun:
        begun.run()  # reads the values before the first step
        return repeating.tensors_of_steps(begun.take, self._steps())

    return repeat, steps

  def _tf1_runs(self) -> Repeat:
    recorded = self.case.tf1.recorded()
    if recorded is None:
      return repeating.prepare_tf1(self.case.tf1, self.tf1_run)
    tensors = recorded_repetition.recorded_tensors(recorded, self.tf1_run)
    return lambda: tensors

  def _tf2_repeats(self) -> tuple[Repeat, Repeat | None]:
    case = self.case

    def repeat() -> Run:
      return repeating.observe_tf2(case.tf2, case.inputs, self.tf2_run)

    def steps() -> Run:
      begun = case.tf2_training.begin_steps(self.tf2_run, self._steps())
      return repeating.tensors_of_steps(begun.take, self._steps())

    declares = case.declaration.declares
    declared = declares('make_tf2_optimizer') or declares('tf2_train_step')
    return repeat, steps if declared else None

  def _with_op_determinism(
    self, repeat: Repeat, remembered: Remembered
  ) -> tuple[tuple[Variation, ...], str]:
    try:
      with repeating.op_determinism():
        return remembered.varying(repeat()), ''
    except Tf2VerifyError as error:
      return (), str(error)

  def _steps(self) -> int:
    count = self.case.declaration.training_steps_to_take
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
      raise CaseDefinitionError(
        f'training_steps_to_take is {count!r}, which is not a number of steps'
      )
    variables = self.case.tf1.inventory().variables
    elements = sum(math.prod(size or 0 for size in known.shape) for known in variables)
    return min(count, MOST_STEPS_OF_LARGE if elements > LARGE else MOST_STEPS)

  def _first_tf1(self, found: Sequence[Variation]) -> FirstVariation | None:
    for variation in found:
      if variation.key.quantity == 'initial value':
        records = {v.name: v for v in self.case.tf1.inventory().variables}
        record = records.get(variation.key.name)
        source = None if record is None else record.source
        return FirstVariation('initial value of', variation.key.name, source, '', variation)
    runs = [run_ops.graph_ops(self.case.tf1.inspectable(self.tf1_run)) for _ in range(2)]
    return first_variation(*runs)

  def _first_tf2(self, repeat: Repeat) -> FirstVariation | None:
    return first_variation(run_ops.eager_ops(repeat), run_ops.eager_ops(repeat))


def _looked_for(search: Callable[[], FirstVariation | None]) -> FirstVariation | None:
  """Returns what a search for the first operation to vary finds, or that it failed."""
  try:
    return search()
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the finding
    why = f'the search for it was abandoned: {type(error).__name__}: {error}'
    return FirstVariation('(not found)', '', None, why, None)


def _begun(repeat: Repeat, steps: Repeat | None) -> tuple[Run, Repeat, str]:
  """Runs a side once; what cannot take its training steps is repeated without them.

  Returns:
    The tensors, what repeats them, and why there are no training steps among them; ''
    where there are, or none are declared.
  """
  first = repeat()
  if steps is None:
    return first, repeat, ''
  try:
    taken = steps()
  except Tf2VerifyError as error:  # which the stage training_steps reports
    return first, repeat, str(error)
  return {**first, **taken}, lambda: {**repeat(), **steps()}, ''


def merged(runs: Iterable[Sequence[Variation]]) -> tuple[Variation, ...]:
  """Returns each tensor that varies in any run, with the greatest variation of it."""
  found: dict[TensorKey, Variation] = {}
  for variations in runs:
    for variation in variations:
      known = found.get(variation.key)
      if known is None or variation.greatest_absolute > known.greatest_absolute:
        found[variation.key] = variation
  return tuple(found.values())


def _measured(found: Sequence[Variation], repeat: Repeat) -> tuple[Variation, ...]:
  """Returns how far tensors vary, in two further runs where only their digests are known."""
  if not any(variation.other == 'different bits' for variation in found):
    return tuple(found)
  wanted = {variation.key for variation in found}

  def again() -> Run:
    return {key: value for key, value in repeat().items() if key in wanted}

  measured = {variation.key: variation for variation in varying(again(), again())}
  return tuple(measured.get(variation.key, variation) for variation in found)
