"""All execution modes of a port beside eager mode, judged and shown as a table."""

import dataclasses
import itertools
import math
from collections.abc import Sequence

from tf2verify.compare.moving import Mover
from tf2verify.compare.noise import Kind
from tf2verify.records import execution_mode as words
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.execution_mode import ModeRun
from tf2verify.records.observation import Observation, VariableCreation
from tf2verify.records.verdict import Compared, Table
from tf2verify.sides.execution_modes import PortModes
from tf2verify.sides.side import training_name
from tf2verify.stages import mode_causes, rounding
from tf2verify.stages.mode_comparison import (
  COLUMNS,
  Judged,
  Pair,
  column_of,
  comparable,
  difference_of,
  judged,
  observation_of,
  pairs_of,
  rounding_note,
  suspects_of,
)
from tf2verify.stages.mode_reference import Reference
from tf2verify.stages.stage import CaseUnderTest, Findings


class ModeMatrix:
  """Collects the modes of one port, and tells at the end what differs."""

  def __init__(self, case: CaseUnderTest, port: PortModes, eager: ModeRun) -> None:
    self._case = case
    self._port = port
    self._eager = eager
    self._drawing = eager
    self._runs: list[ModeRun] = []
    self._pairs: list[Pair] = []
    # What is known of pairs, by identity.
    self._excused: dict[int, Judged] = {}
    self._noises: dict[int, float] = {}
    self._hints: dict[int, str] = {}
    self._undecided: dict[bool, str] = {}

  def add(self, run: ModeRun) -> None:
    """Compares a mode with eager mode."""
    if run.mode == words.FUNCTION and len(run.calls) == len(self._eager.calls):
      self._drawing = run
    self._runs.append(run)
    self._pairs += pairs_of(self._case, self._eager, run, self._drawing)

  def findings(self) -> Findings:
    """Judges all that differs, and returns what the stage found."""
    reference = Reference(self._case, self._port)
    self._judge(reference)
    not_run = [found for run in self._runs for found in _not_traceable(run)]
    created = [found for run in self._runs for found in _created(run)]
    blind_spots = self._blind_spots()
    explained = list(self._excused.values())
    degenerate = [item for item in explained if item.kind is Kind.DEGENERATE]
    behind = [item for item in explained if item.behind_equals and item.kind is Kind.DEGENERATE]
    plain = [item for item in explained if item not in behind]
    rounding_notes = [rounding_note(found) for found in (plain, behind) if found]
    inconclusive = next(iter(self._undecided.values()), '')
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
      (*blind_spots, *reference.notes(), *rounding_notes, *self._draw_notes()),
      inconclusive,
      tables=(self._table(),),
    )

  def _wrong(self) -> list[Pair]:
    """Returns what differs and is not excused so far."""
    return [
      pair
      for pair in self._pairs
      if pair.difference is not None
      and id(pair) not in self._excused
      and pair.training not in self._undecided
    ]

  def _judge(self, reference: Reference) -> None:
    for training, number in sorted({(pair.training, pair.number) for pair in self._wrong()}):
      if self._repeats(training, number):
        self._sort_out_rounding(training, number)
    for _, grouped in itertools.groupby(self._wrong(), lambda pair: (pair.mode, pair.training)):
      wrong = list(grouped)
      # What differs in the second call too has the cause of the first.
      wrong = [pair for pair in wrong if pair.number == wrong[0].number]
      self._explain(wrong)
      reference.ask(wrong)

  def _repeats(self, training: bool, number: int) -> bool:
    """Tells whether eager mode computes the same twice; where not, that is the finding."""
    first, second = self._port.again(training, number, times=2)
    if mode_causes.calls_agree(self._case, first, second):
      return True
    if training in self._drawing.draws:
      self._undecided[training] = (
        f'the port draws random numbers in {training_name(training)} that differ from call to '
        'call in eager mode also with fixed seeds, so modes cannot be compared: declare the case '
        'with that randomness switched off'
      )
      return False
    hint = mode_causes.python_state(self._port, training)
    for pair in self._wrong():
      if pair.training == training:
        self._hints[id(pair)] = hint
    return False

  def _sort_out_rounding(self, training: bool, number: int) -> None:
    def rerun(mover: Mover | None, _: frozenset[str]) -> Observation:
      return observation_of(self._port.again(training, number, mover=mover)[0])

    wrong = [p for p in self._wrong() if (p.training, p.number) == (training, number)]
    compiled = [pair for pair in wrong if pair.mode == words.JIT]
    others = [pair for pair in wrong if pair.mode != words.JIT]
    compiled_found = self._judged_compiled(compiled, rerun)
    found = [*compiled_found, *self._judged(others, rerun)]
    if any(item.kind is Kind.DIFFERENT and item.pair.mode != words.JIT for item in found):
      # One mode that differs excuses nothing in the same runs: mode by mode.
      found = compiled_found
      for _, grouped in itertools.groupby(others, lambda pair: pair.mode):
        found += self._judged(list(grouped), rerun)
    for item in found:
      if item.kind is Kind.DIFFERENT:
        self._noises[id(item.pair)] = item.noise.noise
      else:
        self._excused[id(item.pair)] = item

  def _judged_compiled(self, pairs: Sequence[Pair], rerun: rounding.Rerun) -> list[Judged]:
    """Judges what XLA computed: outputs and losses first, then what is behind them."""
    forward = [pair for pair in pairs if pair.column in ('outputs', 'losses')]
    behind = [pair for pair in pairs if pair.column not in ('outputs', 'losses')]
    found = self._judged(forward, rerun)
    agrees = len(found) == len(forward) and all(item.kind is not Kind.DIFFERENT for item in found)
    found += [
      dataclasses.replace(item, behind_equals=agrees) for item in self._judged(behind, rerun)
    ]
    return found

  def _judged(self, pairs: Sequence[Pair], rerun: rounding.Rerun) -> list[Judged]:
    suspects = suspects_of(self._case, pairs)
    return list(judged(suspects, rerun)) if suspects else []

  def _explain(self, wrong: Sequence[Pair]) -> None:
    """Looks for the cause of what differs in one call of a mode."""
    first = wrong[0]
    if id(first) in self._hints:
      return
    call = (first.mode, first.training, first.number)
    same = [p for p in self._pairs if (p.mode, p.training, p.number) == call]
    same = [p for p in same if id(p) not in self._excused]
    hint = mode_causes.cause_of(self._case, self._port, self._eager, same)
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
      'a function draws on'
    ]
    for mode in sorted(self._drawing.draws_in_loops):
      notes.append(
        f'nothing was compared in {training_name(mode)}: a random op stands in a loop, which draws '
        'on from step to step in a function only'
      )
    if words.JIT in left_out:
      notes.append(f'{words.JIT} was not compared in {training}: XLA draws other random numbers')
    return notes

  def _table(self) -> Table:
    rows = []
    for run in self._runs:
      cells = [self._cell(run, column) for column in COLUMNS]
      traces = str(max(run.traces)) if run.traces else '-'
      rows.append((run.mode, *cells, traces, str(len(_created(run)))))
    columns = ('mode', *COLUMNS, 'traces', 'new variables')
    return Table('the port beside itself in eager mode', columns, tuple(rows))

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


def _created(run: ModeRun) -> list[Difference]:
  """Returns what a mode created although eager calls had made every variable.

  One for every line of the user's: TensorFlow traces again after a creation, and
  refuses the next.
  """
  by_place: dict[str, VariableCreation] = {}
  for creation in run.created:
    by_place.setdefault(str(creation.source), creation)
  return [_creation(creation) for creation in by_place.values()]


def _creation(creation: VariableCreation) -> Difference:
  shape = '(' + ', '.join('?' if size is None else str(size) for size in creation.shape) + ')'
  verb = 'tried to create' if creation.refused else 'created'
  where = f' at {creation.source}' if creation.source else ''
  return Difference(
    'variable',
    creation.name,
    Aspect.CREATION,
    tf2=f'{creation.call} {verb} it, {shape} {creation.dtype}{where}',
    hint='the port makes a variable in this mode that it does not make in eager mode: the code '
    'asks how it is run (tf.executing_eagerly(), tf.inside_function()); make every variable in '
    '__init__ or build()',
  )


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
      '(`if tensor`, int(tensor), .numpy()) are not there while a function is traced; use '
      "TensorFlow's operations, or leave the mode out of modes_to_run if nobody traces this port",
    )
  ]
