"""How much of what can go wrong a case's inputs and tolerances would show."""

import dataclasses
import enum
import json
from collections.abc import Sequence

from tf2verify.records.planted_fault import FaultKind, PlantedFault
from tf2verify.safe_text import safe_values

SCHEMA_VERSION = 2


class Fate(enum.Enum):
  """What became of a planted fault."""

  CAUGHT = 'caught'
  WITHIN_TOLERANCE = 'within tolerance'
  IDENTICAL = 'identical'
  NOT_RUN = 'not run'


class ByProof(enum.Enum):
  """What the comparison of the graphs says of a fault that no number shows."""

  NOTHING = ''
  NAMED = 'named'  # it is a blind spot of a passing stage
  EQUIVALENT = 'equivalent'  # the graph with it is proven to compute the same for all inputs


@dataclasses.dataclass(frozen=True)
class FaultOutcome:
  """A planted fault and what became of it."""

  planted: PlantedFault  # the fault
  # CAUGHT: some run of the case would fail. WITHIN_TOLERANCE: numbers that are compared differ, by
  # no more than is allowed. IDENTICAL: all of them are the same bit by bit. NOT_RUN: TensorFlow
  # refuses the graph with the fault.
  fate: Fate
  run: str = ''  # the run that catches it; '' elsewhere
  explanation: str = ''  # why it is not caught, or not run; '' for one that is caught
  by_proof: ByProof = ByProof.NOTHING  # of one that is not caught


@dataclasses.dataclass(frozen=True)
class AdequacyReport:
  """What a case's own inputs and tolerances catch."""

  case: str  # the class's name
  module: str  # its file or module
  # What was run with each fault, in this order, up to the first that catches it.
  runs: tuple[str, ...]
  possible: int  # how many faults the port's graphs can have
  seed: int  # of the draw
  outcomes: tuple[FaultOutcome, ...]  # of the faults drawn, in the order of the draw
  notes: tuple[str, ...] = ()  # what a reader has to know
  seconds: float = 0.0  # wall time

  @property
  def counted(self) -> tuple[FaultOutcome, ...]:
    """The faults that could be run, and change what the port computes for some input."""
    return tuple(
      outcome
      for outcome in self.outcomes
      if outcome.fate is not Fate.NOT_RUN and outcome.by_proof is not ByProof.EQUIVALENT
    )

  @property
  def survivors(self) -> tuple[FaultOutcome, ...]:
    """The faults that no run catches: within tolerance first."""
    fates = (Fate.WITHIN_TOLERANCE, Fate.IDENTICAL)
    return tuple(outcome for fate in fates for outcome in self.counted if outcome.fate is fate)

  def _count(self, what: Fate | ByProof) -> int:
    return sum(what in (outcome.fate, outcome.by_proof) for outcome in self.outcomes)

  def to_text(self) -> str:
    """Returns the report for a terminal."""
    counted, not_run = self.counted, self._count(Fate.NOT_RUN)
    named, equivalent = self._count(ByProof.NAMED), self._count(ByProof.EQUIVALENT)
    lines = [f'{self.case}: {_share(counted, " planted faults caught")}']
    lines += [f'  run {number}: {run}' for number, run in enumerate(self.runs, 1)]
    for kind in FaultKind:
      of_kind = [outcome for outcome in counted if outcome.planted.kind is kind]
      if of_kind:
        lines.append(f'  {kind.value:<20} {_share(of_kind)}')
    if named:
      lines.append(
        f'  named by the comparison of graphs: {named} of {len(self.survivors)} survivors'
      )
    for fate, title in (
      (Fate.WITHIN_TOLERANCE, 'survivors that change numbers, within the tolerance'),
      (Fate.IDENTICAL, 'survivors that change no compared number'),
    ):
      found = [outcome for outcome in counted if outcome.fate is fate]
      if found:
        lines.append(f'  {title}: {len(found)}')
      for outcome in found:
        lines.append(f'    {outcome.planted}')
        if outcome.planted.source is not None:
          lines.append(f'      {outcome.planted.source}')
        lines.append(f'      {outcome.explanation}')
        if outcome.by_proof is ByProof.NAMED:
          lines.append('      the comparison of graphs names it, as a blind spot')
    lines += [f'  note: {note}' for note in self.notes]
    lines.append(
      f'  drawn: {len(self.outcomes)} of {self.possible:,} possible faults, seed {self.seed}; '
      f'{not_run} left out, since the graph did not run with them, and {equivalent}, since they '
      f'are proven to change nothing; {self.seconds:.1f} s'
    )
    return '\n'.join(lines)

  def to_json(self) -> str:
    """Returns the report as a JSON object.

    Its keys: `schema_version` (2), `case`, `module`, `caught`, `named`, `equivalent`, `counted`,
    `possible`, `seed`, `seconds`, `runs`, `notes`, and `faults`: one object each, with the fields
    of `PlantedFault` and of `FaultOutcome`.
    """
    report = {
      'schema_version': SCHEMA_VERSION,
      'case': self.case,
      'module': self.module,
      'caught': sum(outcome.fate is Fate.CAUGHT for outcome in self.outcomes),
      'named': self._count(ByProof.NAMED),
      'equivalent': self._count(ByProof.EQUIVALENT),
      'counted': len(self.counted),
      'possible': self.possible,
      'seed': self.seed,
      'seconds': round(self.seconds, 3),
      'runs': list(self.runs),
      'notes': list(self.notes),
      'faults': [
        {
          **{key: _plain(value) for key, value in vars(outcome.planted).items()},
          'fate': outcome.fate.value,
          'run': outcome.run,
          'explanation': outcome.explanation,
          'by_proof': outcome.by_proof.value,
        }
        for outcome in self.outcomes
      ],
    }
    return json.dumps(safe_values(report), indent=1, ensure_ascii=False)


def _plain(value: object) -> object:
  if isinstance(value, enum.Enum):
    return value.value
  return value if value is None else str(value)


def _share(outcomes: Sequence[FaultOutcome], noun: str = '') -> str:
  caught = sum(outcome.fate is Fate.CAUGHT for outcome in outcomes)
  percent = f' ({100 * caught / len(outcomes):.0f} %)' if outcomes else ''
  return f'{caught} of {len(outcomes)}{noun}{percent}'
