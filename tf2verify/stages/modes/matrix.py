"""All execution modes of a port next to eager mode, judged and shown as a table."""

import dataclasses
import itertools
import math
from collections.abc import Sequence

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.modes import PythonState
from tf2verify.errors import UserCodeError
from tf2verify.numerics.noise import Kind
from tf2verify.numerics.telling import Blank
from tf2verify.records import execution_mode as words
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.execution_mode import ModeCall, ModeRun
from tf2verify.records.observation import VariableCreation
from tf2verify.records.table import Table
from tf2verify.records.verdict import Compared
from tf2verify.sides.modes.execution_modes import PortModes
from tf2verify.sides.side import training_name
from tf2verify.stages.comparison.vacuity import Telling
from tf2verify.stages.modes.comparison import (
  COLUMNS,
  Judged,
  Pair,
  column_of,
  comparable,
  difference_of,
  pairs_of,
  rounding_note,
)
from tf2verify.stages.modes.evidence import calls_agree, mode_evidence
from tf2verify.stages.modes.noise import is_forward, judged_by_noise, same_bits, wanted_of
from tf2verify.stages.modes.reference import Reference
from tf2verify.stages.passes.no_new_variables import created
from tf2verify.stages.stage import CaseUnderTest, Findings

_OF_MODE = (
  'the port makes a variable in this mode that it does not make in eager mode: the code depends on '
  'how '
  'it is run (tf.executing_eagerly(), tf.inside_function()); make every variable in __init__ or '
  'build()'
)


class ModeMatrix:
  """Collects the modes of one port, and tells at the end what differs."""

  def __init__(self, case: CaseUnderTest, port: PortModes) -> None:
    """Runs the port in eager mode."""
    self._case = case
    self._port = port
    self._eager = self._drawing = _without_second_draws(port.eager())
    self._runs: list[ModeRun] = []
    self._pairs: list[Pair] = []
    # What is known of pairs, by identity.
    self._excused: dict[int, Judged] = {}
    self._noises: dict[int, float] = {}
    self._hints: dict[int, str] = {}
    self._undecided: dict[bool, str] = {}

  def run(self, mode: str, limited: bool) -> None:
    """Runs the port in a mode, and compares it with eager mode call by call.

    Args:
      mode: of `MODES`.
      limited: whether what takes long for a large graph is left out.
    """
    pairs: list[Pair] = []

    def compared(call: ModeCall) -> ModeCall:
      if comparable(self._drawing, mode, call):
        pairs.extend(pairs_of(self._case, self._eager, call, mode))
      return call.with_values_of(())

    run = self._port.observe(mode, limited, compared)
    if run.mode == words.FUNCTION and len(run.calls) == len(self._eager.calls):
      # A graph shows draws that eager mode hides. What eager mode drew has been let go of.
      self._drawing = dataclasses.replace(
        run,
        draws=run.draws | self._eager.draws,
        draws_in_loops=run.draws_in_loops | self._eager.draws_in_loops,
      )
    left = [call for call in run.calls if comparable(self._drawing, mode, call)]
    known = {(call.training, call.number) for call in left}
    self._runs.append(run)
    self._pairs += [pair for pair in pairs if (pair.training, pair.number) in known]

  def findings(self) -> Findings:
    """Judges all that differs, and returns what the stage found."""
    reference = Reference(self._case, self._port)
    if self._wrong():
      self._release()
      self._judge(reference)
    not_run = [found for run in self._runs for found in _not_traceable(run)]
    created = [found for run in self._runs for found in _created(run)]
    explained = list(self._excused.values())
    telling = self._telling()
    blind_spots = self._blind_spots() + ([] if self._wrong() else telling.notes())
    degenerate = [item for item in explained if item.kind is Kind.DEGENERATE]
    behind = [item for item in explained if item.behind_equals and item.kind is Kind.DEGENERATE]
    plain = [item for item in explained if item not in behind]
    rounding_notes = [rounding_note(found) for found in (plain, behind) if found]
    inconclusive = next(iter(self._undecided.values()), '') or telling.reason()
    if not self._pairs and not created and not not_run:
      inconclusive = 'no execution mode could be compared with eager mode; see the notes'
    return Findings(
      Compared(
        tensors=len(self._pairs),
        elements=sum(pair.elements for pair in self._pairs),
        inconclusive=len(degenerate),
        unpaired=len(created) + len(not_run),
        rounding=len(explained) - len(degenerate),
        blind_spots=len(blind_spots),
      ),
      (*created, *not_run, *self._differences()),
      (*blind_spots, *reference.notes(), *rounding_notes, *self._remarks()),
      inconclusive,
      tables=(self._table(),),
      blind_spots=tuple(blind_spots),
    )

  def _telling(self) -> Telling:
    """Returns which tensors tell anything, in some call of some mode."""
    telling = Telling()
    telling.told_elsewhere = ((words.OUTPUT, Blank.ZERO), (words.GRADIENT, Blank.ZERO))
    for pair in self._pairs:
      excused = self._excused.get(id(pair))
      degenerate = excused is not None and excused.kind is Kind.DEGENERATE
      found = Blank.DEGENERATE if degenerate else pair.blank
      if pair.elements or found is not None:
        run = f'{pair.mode} {pair.training} {pair.number}'
        telling.add(dataclasses.replace(pair.key, run=run), found, pair.constant)
    return telling

  def _wrong(self) -> list[Pair]:
    """Returns what differs and is not excused so far."""
    return [
      pair
      for pair in self._pairs
      if pair.difference is not None
      and id(pair) not in self._excused
      and pair.training not in self._undecided
    ]

  def _release(self) -> None:
    """Lets go of what no judgement needs: pairs have the values that differ."""
    drawing, self._drawing = self._drawing, self._eager
    calls = tuple(call.with_values_of((words.OUTPUT,)) for call in self._eager.calls)
    self._eager = dataclasses.replace(self._eager, calls=calls)
    self._drawing = drawing if drawing.mode == words.FUNCTION else self._eager
    self._port.release()

  def _judge(self, reference: Reference) -> None:
    for training in sorted({pair.training for pair in self._wrong()}):
      for numbers in self._port.calls_alike(training):
        wrong = [p for p in self._wrong() if p.training == training and p.number in numbers]
        unmoved = self._repeated(wrong) if wrong else ()
        if unmoved:
          self._excuse_rounding(training, numbers, unmoved)
    for _, grouped in itertools.groupby(self._wrong(), lambda pair: (pair.mode, pair.training)):
      wrong = list(grouped)
      # What differs in the second call too has the cause of the first.
      wrong = [pair for pair in wrong if pair.number == wrong[0].number]
      self._explain(wrong)
      reference.ask(wrong)

  def _repeated(self, wrong: Sequence[Pair]) -> tuple[ModeCall, ...]:
    """Repeats a call in eager mode twice.

    Returns:
      Both, with the tensors that are wrong; nothing where they differ from each other,
      which is the finding then.
    """
    training = wrong[0].training
    first, second = self._twice(wrong)
    if calls_agree(self._case, first, second):
      wanted = wanted_of(wrong)
      return first.only(wanted), second.only(wanted)
    if training in self._drawing.draws:
      self._undecided[training] = (
        f'the port draws random numbers in {training_name(training)} that differ from call to '
        'call in eager mode even with fixed seeds, so modes cannot be compared: declare the case '
        'with that randomness switched off'
      )
      return ()
    hint = first_cause(PythonState(self._port.python_draws(training)))
    for pair in self._wrong():
      if pair.training == training:
        self._hints[id(pair)] = hint
    return ()

  def _twice(self, wrong: Sequence[Pair]) -> tuple[ModeCall, ...]:
    """Makes a call twice, with a layer that was in all modes if it still yields the same bits."""
    training, number = wrong[0].training, wrong[0].number
    try:
      calls = self._port.again(training, number, times=2)
      if same_bits(wrong, calls[0]) or not self._port.renew():
        return calls
    except UserCodeError:  # what a trace has left in the layer
      if not self._port.renew():
        raise
    return self._port.again(training, number, times=2)

  def _excuse_rounding(
    self, training: bool, numbers: Sequence[int], unmoved: Sequence[ModeCall]
  ) -> None:
    wrong = [p for p in self._wrong() if p.training == training and p.number in numbers]
    rounding_calls = {
      (pair.mode, pair.number)
      for pair in self._pairs
      if pair.training == training and is_forward(pair) and pair.greatest != 0
    }
    for item in judged_by_noise(self._case, self._port, wrong, unmoved, rounding_calls):
      if item.kind is Kind.DIFFERENT:
        self._noises[id(item.pair)] = item.noise.noise
      else:
        self._excused[id(item.pair)] = item

  def _explain(self, wrong: Sequence[Pair]) -> None:
    """Looks for the cause of what differs in one call of a mode."""
    first = wrong[0]
    if id(first) in self._hints:
      return
    call = (first.mode, first.training, first.number)
    same = [p for p in self._pairs if (p.mode, p.training, p.number) == call]
    same = [p for p in same if id(p) not in self._excused]
    hint = first_cause(mode_evidence(self._case, self._port, self._eager, same))
    self._hints |= {id(pair): hint for pair in wrong}

  def _differences(self) -> list[Difference]:
    """Returns the findings: the first of every mode, then the others."""
    firsts, others = [], []
    for _, grouped in itertools.groupby(self._wrong(), lambda pair: pair.mode):
      first, *rest = sorted(grouped, key=lambda pair: (pair.rank, pair.number, not pair.training))
      firsts.append(first)
      others += rest
    return [
      difference_of(pair, self._noises.get(id(pair)), self._hints.get(id(pair), ''))
      for pair in (*firsts, *others)
    ]

  def _blind_spots(self) -> list[str]:
    """Returns a note for every mode that was not run, or not wholly."""
    spots = []
    said = {run.not_run for run in self._runs if _not_traceable(run)}
    for run in self._runs:
      if run.not_run and run.not_run not in said and not run.created:
        how_far = 'not run' if not run.calls else 'only partly run'
        spots.append(f'{run.mode} was {how_far}: {run.not_run}')
    return spots

  def _remarks(self) -> list[str]:
    """Returns what is to be known of modes that were compared."""
    said = [f'{run.mode}: {run.remark}' for run in self._runs if run.remark]
    return said + self._draw_notes()

  def _draw_notes(self) -> list[str]:
    """Says what random numbers keep from being compared."""
    left_out = [
      run.mode
      for run in self._runs
      if any(not comparable(self._drawing, run.mode, call) for call in run.calls)
    ]
    if not left_out:
      return []
    training = ' and '.join(training_name(mode) for mode in sorted(self._drawing.draws))
    notes = [
      f'the port draws random numbers in {training}: there, only first calls were compared, since '
      'a function continues its random sequence'
    ]
    for mode in sorted(self._drawing.draws_in_loops):
      notes.append(
        f'nothing was compared in {training_name(mode)}: there is a random op in a loop, which '
        'continues '
        'its random sequence from step to step in a function only'
      )
    if words.JIT in left_out:
      notes.append(
        f'{words.JIT} was not compared in {training}: XLA draws different random numbers'
      )
    return notes

  def _table(self) -> Table:
    rows = []
    for run in self._runs:
      cells = [self._cell(run, column) for column in COLUMNS]
      traces = str(max(run.traces)) if run.traces else '-'
      rows.append((run.mode, *cells, traces, str(len(_created(run)))))
    columns = ('mode', *COLUMNS, 'traces', 'new variables')
    return Table('execution modes compared with eager mode', columns, tuple(rows))

  def _cell(self, run: ModeRun, column: str) -> str:
    if not run.calls:
      return 'not run'
    pairs = [pair for pair in self._pairs if (pair.mode, pair.column) == (run.mode, column)]
    eager = [
      call
      for call in self._eager.calls
      if any(column_of(tensor) == column for tensor in call.tensors)
    ]
    if not pairs:
      return 'not compared' if eager else '-'
    wrong = {id(pair) for pair in self._wrong()}
    worst = [pair.greatest for pair in pairs if id(pair) in wrong]
    if worst:
      finite = [value for value in worst if not math.isnan(value)]
      text = f'DIFFERS {max(finite):.2g}' if finite else 'DIFFERS'
    elif not any(pair.greatest for pair in pairs):
      text = 'equal'
    else:
      text = f'rounding {max(pair.greatest for pair in pairs):.1g}'
    seen = {pair.training for pair in pairs}
    if seen < {call.training for call in eager}:
      text += f', {training_name(seen.pop())} only'
    return text


def _without_second_draws(eager: ModeRun) -> ModeRun:
  """Lets go of second calls with random draws: no mode is compared with them."""
  calls = (
    call if comparable(eager, words.FUNCTION, call) else call.with_values_of((words.OUTPUT,))
    for call in eager.calls
  )
  return dataclasses.replace(eager, calls=tuple(calls))


def _created(run: ModeRun) -> list[Difference]:
  """Returns what a mode created although eager calls had made every variable.

  One for every line of the user's: TensorFlow traces again after a creation, and
  refuses the next.
  """
  by_place: dict[str, VariableCreation] = {}
  for creation in run.created:
    by_place.setdefault(str(creation.source), creation)
  return [created(creation, _OF_MODE) for creation in by_place.values()]


def _not_traceable(run: ModeRun) -> list[Difference]:
  """Returns the finding where a port runs in eager mode only."""
  if run.mode != words.FUNCTION or not run.raised or run.created:
    return []
  return [
    Difference(
      'call',
      'call_tf2_layer',
      Aspect.PRESENCE,
      tf2=f'computed in eager mode; {run.not_run}',
      run=run.mode,
      hint='the port runs in eager mode only, and tf1 ran as a graph: Python values of tensors '
      '(`if tensor`, int(tensor), .numpy()) are not available while a function is traced; use '
      "TensorFlow's operations, or leave the mode out of modes_to_run if nobody traces this port",
    )
  ]
