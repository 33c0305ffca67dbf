"""Variables that one side has alone, and that nothing which is compared depends on."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from tf2verify.errors import Tf2VerifyError
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import VariableRecord
from tf2verify.records.side_by_side import VariablePair
from tf2verify.records.wording import listed
from tf2verify.relation.left_out import declaration
from tf2verify.relation.variable_pairs import VARIABLE, described
from tf2verify.sides.graphs.variables.effects import Effect, effects
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.stages.variables.step_counter import is_counter

_REASON = 'no output, loss or update depends on it'
_SHOWN = 4
# With both, the total losses are compared.
_LOSSES = ('tf1_loss', 'tf2_loss')


@dataclasses.dataclass(frozen=True)
class LeftOut:
  """What is known of one side's variables that the other lacks."""

  # Of those that may be left out: declared as such, or without effect.
  names: frozenset[str] = frozenset()
  differences: tuple[Difference, ...] = ()  # of those that are declared and have an effect
  notes: tuple[str, ...] = ()  # the reasons that are declared
  undeclared: str = ''  # what to declare, as a sentence without a full stop; '' for nothing


def effects_of_tf1(case: CaseUnderTest, names: Collection[str]) -> dict[str, Effect]:
  """Returns which of the reference's variables some number depends on, and how."""
  found = case.tf1.effects_of(names)
  try:
    program = case.tf1_training.program()
  except Tf2VerifyError:  # what is wrong with losses and train op is said by their stages
    program = None
  return found if program is None else {**effects(program, names), **found}


def left_out_of_port(case: CaseUnderTest, left: Sequence[VariableRecord]) -> LeftOut:
  """Judges the variables that only the reference has."""
  if not left:
    return LeftOut()
  known = {variable.name for variable in case.tf1.inventory().variables}
  found = effects_of_tf1(case, [variable.name for variable in left])
  declared = case.pairing.tf1_only
  if False not in case.declaration.training_modes:
    # Moving averages: training writes them, and only inference, which is not run, reads them.
    left = [v for v in left if v.trainable or v.name in declared or v.name in found]
  return _judged('tf1', left, known, declared, found)


def left_out_of_reference(case: CaseUnderTest, left: Sequence[VariableRecord]) -> LeftOut:
  """Judges the variables that only the port has."""
  if not left:
    return LeftOut()
  known = {variable.name for variable in case.tf2.inventory().variables}
  declared = case.pairing.tf2_only
  found = case.tf2.effects_of([variable.name for variable in left], case.labels)
  if found is not None:
    trained = {variable.name for variable in left if variable.trainable}
    added = {n: e for n, e in found.items() if e.is_of_added_loss and n not in trained}
    if all(map(case.declaration.declares, _LOSSES)):
      judged = _with_counter(case, _judged('tf2', left, known, declared, found))
      return _with_added(left, declared, added, judged)
    return _with_counter(case, _judged('tf2', left, known, declared, found))
  judged = _judged('tf2', [v for v in left if v.name in declared], known, declared, {})
  if not judged.names:
    return judged
  note = 'whether anything reads them is not known: the port does not run as a graph'
  return dataclasses.replace(judged, notes=(*judged.notes, note))


def _with_counter(case: CaseUnderTest, judged: LeftOut) -> LeftOut:
  """Returns what is known with how to pair a count of steps that is declared as the port's own."""
  steps = [v.name for v in case.tf1.inventory().variables if 'global_step' in v.collections]
  counters = [v.name for v in case.tf2.inventory().variables if is_counter(v)]
  if not steps:
    return judged
  advice = (
    f'; if it counts steps as {steps[0]} of tf1 does, leave it out of tf2_only_variables: the two '
    'are then paired'
  )
  return dataclasses.replace(
    judged,
    differences=tuple(
      dataclasses.replace(d, hint=d.hint + advice) if d.subject in counters else d
      for d in judged.differences
    ),
  )


def _with_added(
  left: Sequence[VariableRecord],
  declared: Mapping[str, str],
  added: Mapping[str, Effect],
  judged: LeftOut,
) -> LeftOut:
  """Returns what is known with variables that only count in losses that the port adds itself.

  These are compared with what tf1 has in its own loss, as parts of the total losses.
  """
  allowed = [name for name in added if name in declared]
  differences = [d for d in judged.differences if d.subject not in allowed]
  for variable in left:
    if variable.name in added and variable.name not in declared:
      hint = (
        f'{added[variable.name]}, and nothing else does: if tf1 has its value as a number in the '
        f'loss, declare tf2_only_variables = {{{variable.name!r}: ...}} with the reason; the total '
        'losses are compared with it'
      )
      texts = 'missing', described(variable)
      differences.append(Difference(VARIABLE, variable.name, Aspect.PRESENCE, *texts, hint=hint))
  notes = [
    f'only tf2 has {name}, as tf2_only_variables says: {declared[name]}; '
    f'{added[name]}: compared as part of the total loss'
    for name in allowed
  ]
  return dataclasses.replace(
    judged,
    names=judged.names.union(allowed),
    differences=tuple(differences),
    notes=(*judged.notes, *notes),
  )


@dataclasses.dataclass(frozen=True)
class LeftOutOfBoth:
  """What is known of the variables that either side has alone."""

  sides: tuple[LeftOut, LeftOut]  # of tf1, and of tf2

  @classmethod
  def of(
    cls,
    case: CaseUnderTest,
    only_tf1: Sequence[VariableRecord],
    only_tf2: Sequence[VariableRecord],
    renames: Sequence[tuple[str, str]],
  ) -> 'LeftOutOfBoth':
    """Judges what both sides have alone.

    Args:
      case: the case.
      only_tf1: variables of tf1, without the global step.
      only_tf2: variables of the port.
      renames: pairs of them that are rather one variable under two names.
    """
    pairing = case.pairing
    ones = {one for one, _ in renames} - pairing.tf1_only.keys()
    others = {other for _, other in renames} - pairing.tf2_only.keys()
    return cls(
      (
        left_out_of_port(case, [v for v in only_tf1 if v.name not in ones]),
        left_out_of_reference(case, [v for v in only_tf2 if v.name not in others]),
      )
    )

  def remaining(
    self, only_tf1: Sequence[VariableRecord], only_tf2: Sequence[VariableRecord]
  ) -> tuple[list[VariableRecord], list[VariableRecord]]:
    """Returns the variables that the other side should have, and is not blamed for yet."""
    one, other = (side.names.union(d.subject for d in side.differences) for side in self.sides)
    return [v for v in only_tf1 if v.name not in one], [v for v in only_tf2 if v.name not in other]

  def marked(self, rows: Sequence[VariablePair]) -> tuple[VariablePair, ...]:
    """Returns the variables of both sides, with a remark on those that may be left out."""
    tf1, tf2 = (side.names for side in self.sides)
    return tuple(
      dataclasses.replace(row, remark='left out')
      if not row.remark
      and (
        (row.tf2 is None and row.tf1 is not None and row.tf1.name in tf1)
        or (row.tf1 is None and row.tf2 is not None and row.tf2.name in tf2)
      )
      else row
      for row in rows
    )

  @property
  def differences(self) -> list[Difference]:
    """Those of both sides."""
    return [difference for side in self.sides for difference in side.differences]

  @property
  def notes(self) -> list[str]:
    """Those of both sides."""
    return [note for side in self.sides for note in side.notes]

  @property
  def inconclusive(self) -> str:
    """What is to be declared; '' for nothing."""
    return '; '.join(side.undeclared for side in self.sides if side.undeclared)


def _judged(
  side: str,
  left: Sequence[VariableRecord],
  known: Collection[str],
  declared: Mapping[str, str],
  found: Mapping[str, Effect],
) -> LeftOut:
  other = 'tf2' if side == 'tf1' else 'tf1'
  attribute = f'{side}_only_variables'
  differences = []
  for variable in left:
    if variable.name in declared and variable.name in found:
      texts = {side: described(variable), other: f'missing, as {attribute} says'}
      effect = found[variable.name]
      hint = f'{variable.name} has an effect: {effect}'
      differences.append(
        Difference(VARIABLE, variable.name, Aspect.PRESENCE, texts['tf1'], texts['tf2'], hint=hint)
      )
  without = [variable.name for variable in left if variable.name not in found]
  undeclared = [name for name in without if name not in declared]
  by_reason: dict[str, list[str]] = {}
  for name in without:
    if name in declared:
      by_reason.setdefault(declared[name], []).append(name)
  notes = [
    f'only {side} has {listed(names, _SHOWN)}, as {attribute} says: {reason}'
    for reason, names in by_reason.items()
  ]
  text = ''
  if undeclared:
    line = declaration(attribute, undeclared, known, _REASON)
    text = f'only {side} has {listed(undeclared, _SHOWN)}, without effect: declare {attribute}'
    them = 'it' if len(undeclared) == 1 else 'them'
    notes.append(
      f'{listed(undeclared, _SHOWN)}: only {side} has {them}, and no output, loss or update '
      f'depends on {them}; if that is intended, add to the case:\n  {line}'
    )
  return LeftOut(frozenset(without), tuple(differences), tuple(notes), text)
