"""Rung 2: both sides have the same variables."""

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.causes import texts_by_variable
from tf2verify.diagnosis.evidence.variables import extra_variables, missing_variables
from tf2verify.errors import NotApplicable
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import VariableRecord
from tf2verify.records.side_by_side import UNTRACKED, VariablePair, VariableSummary
from tf2verify.records.verdict import Compared
from tf2verify.records.wording import listed
from tf2verify.relation.derivation.leftover_pairs import of_parts
from tf2verify.relation.names.alignment import Alignment
from tf2verify.relation.names.naming_rule import NamingRule, code, naming_rule
from tf2verify.relation.names.renames import RenameSuggestion, rename_suggestions
from tf2verify.relation.names.roles import owner
from tf2verify.relation.variable_pairs import FLOATX, VARIABLE, compare_pairs, described
from tf2verify.sides.losses.loss_function import leaves_of
from tf2verify.sides.side import Inventory
from tf2verify.stages.passes.left_out import LeftOutOfBoth
from tf2verify.stages.passes.pairing_notes import pairing_notes
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage, by_name
from tf2verify.stages.variables.mapped import layout_text
from tf2verify.stages.variables.pairing import Pairing

# More renames than that are written down in a note.
_SHOWN_RENAMES = 4
# The slots of TF1's optimizers, which a builder that also trains would create.
_SLOTS = ('Adam', 'Adam_1', 'Momentum', 'RMSProp', 'RMSProp_1', 'Adagrad', 'Adadelta', 'Ftrl')


class VariableInventory(Stage):
  """Pairs the variables by name and compares what they are."""

  name = 'variable_inventory'
  needs = ()
  follows = ('no_new_variables',)  # what is made anew in every call is in no layer's variables
  proves = 'both sides have variables of the same names, shapes, dtypes and trainability'

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares the inventories of both sides."""
    alignment = case.alignment()  # before the variables: a map shows those of the port as tf1's
    tf1, tf2 = case.tf1.inventory(), case.tf2.inventory()
    if not tf1.variables and not tf2.variables and not tf2.untracked:
      raise NotApplicable(
        'neither side has a variable; if the model should have some, build_tf1_graph and '
        'make_tf2_layer do not reach it'
      )
    ones, others = by_name(tf1), by_name(tf2)
    pairs = [(ones[tf1_name], others[tf2_name]) for tf1_name, tf2_name in alignment.pairs]
    of_doubles = _of_double_inputs(case.inputs) or FLOATX
    differences, notes = compare_pairs(pairs, of_doubles, case.trained_by_tf1)
    left_tf1 = [ones[name] for name in alignment.only_tf1]
    steps = [v for v in left_tf1 if 'global_step' in v.collections]
    if steps:
      left_tf1 = [v for v in left_tf1 if v not in steps]
      notes.append(f'{steps[0].name} (the global step) is not part of the model: not compared')
    left_tf2 = [others[name] for name in alignment.only_tf2]
    suggestion = RenameSuggestion(())
    if left_tf1 and left_tf2:
      suggestion = rename_suggestions(left_tf1, left_tf2)
    left_out = LeftOutOfBoth.of(case, left_tf1, left_tf2, suggestion.renames)
    left_tf1, left_tf2 = left_out.remaining(left_tf1, left_tf2)
    suggestion = suggestion.among(left_tf1, left_tf2)
    differences += left_out.differences
    # A rule is applied to every name, so that it would undo what is paired already.
    rule = None if pairs else naming_rule(suggestion.renames)
    notes += _left_alone(case.tf2.seed_states())
    hint = _parts_hint(suggestion, left_tf1, left_tf2)
    hint = hint or _rename_hint(suggestion, rule, case.pairing)
    causes = _causes(pairs, left_tf1, left_tf2, suggestion)
    looked_for = dict(alignment.looked_for)
    differences += _leftovers(left_tf1, left_tf2, tf1, tf2, looked_for, causes, hint, pairs)
    declaration = _declaration(suggestion, rule, declared=bool(case.variable_names))
    inferred = pairing_notes(case.pairing)
    differences += _duplicates(alignment, tf1, tf2, case)
    differences += _untracked(tf2)
    judged = _without_frozen(tf1, case.rightly_frozen)
    notes = [*_totals(alignment, by_name(judged)), *inferred, *left_out.notes, *_grouped(notes)]
    return Findings(
      Compared(
        tensors=len(alignment.pairs),
        unpaired=len(left_tf1) + len(left_tf2) + len(tf2.untracked) + len(left_out.differences),
        noun='variables',
      ),
      tuple(differences),
      (*notes, *declaration),
      left_out.inconclusive,
      inventory=left_out.marked(_side_by_side(alignment, judged, tf2, case.pairing)),
    )


def _without_frozen(tf1: Inventory, frozen: Collection[str]) -> Inventory:
  """Returns the variables of tf1 with some as not trainable."""
  variables = tuple(
    dataclasses.replace(v, trainable=v.trainable and v.name not in frozen) for v in tf1.variables
  )
  return dataclasses.replace(tf1, variables=variables)


def _of_double_inputs(inputs: Any) -> str:
  """Returns why TF1 makes variables of float64, where the inputs explain it; ''."""
  paths = [path for path, leaf in leaves_of(inputs).items() if leaf.dtype == np.float64]
  if not paths:
    return ''
  named = f' for inputs{paths[0]}' if paths[0] else ''
  return (
    f'make_inputs returns float64{named}: return x.astype(np.float32), if production feeds float32 '
    '(numpy makes float64 by default, and TF1 makes variables of the dtype of what it is given); '
    "if it feeds float64, Keras casts to floatx: pass dtype='float64' to the layer"
  )


def _left_alone(seed_states: Sequence[str]) -> list[str]:
  """Returns a note on the variables of Keras 3 that are no weights."""
  if not seed_states:
    return []
  more = f' and {len(seed_states) - 1} more' if len(seed_states) > 1 else ''
  return [f'{seed_states[0]}{more}: states of seed generators, which are not weights: not compared']


def _side_by_side(
  alignment: Alignment, tf1: Inventory, tf2: Inventory, pairing: Pairing
) -> tuple[VariablePair, ...]:
  """Returns every variable of both sides: tf1's in its order, then what tf2 alone has."""
  ones, others = by_name(tf1), by_name(tf2)
  names = dict(alignment.pairs)
  layouts = _layout_texts(pairing)
  single = [
    VariablePair(
      _summary(v),
      _summary(others[names[v.name]]) if v.name in names else None,
      layouts.get(v.name, ''),
    )
    if v.name not in alignment.duplicates_tf1
    else VariablePair(_summary(v), None, 'duplicate')
    for v in tf1.variables
  ]
  rows = [
    dataclasses.replace(row, remark='the global step')
    if row.tf1 is not None and row.tf2 is None and 'global_step' in ones[row.tf1.name].collections
    else row
    for row in single
  ]
  paired = set(names.values())
  for variable in tf2.variables:
    if variable.name not in paired:
      remark = 'duplicate' if variable.name in alignment.duplicates_tf2 else ''
      rows.append(VariablePair(None, _summary(variable), remark))
  rows += [VariablePair(None, _summary(variable), UNTRACKED) for variable in tf2.untracked]
  return tuple(rows)


def _summary(variable: VariableRecord) -> VariableSummary:
  return VariableSummary(variable.name, variable.shape, variable.dtype, variable.trainable)


def _totals(alignment: Alignment, ones: dict[str, VariableRecord]) -> tuple[str, ...]:
  records = [ones[tf1_name] for tf1_name, _ in alignment.pairs]
  sizes = sum(math.prod(size or 0 for size in record.shape) for record in records)
  trainable = sum(record.trainable for record in records)
  noun = 'variable' if trainable == 1 else 'variables'
  return (f'{sizes:,} parameters in pairs; {trainable:,} {noun} trainable',)


def _grouped(notes: list[str]) -> list[str]:
  return notes[:3] + ([f'… and {len(notes) - 3} more such notes'] if len(notes) > 3 else [])


def _leftovers(
  left_tf1: list[VariableRecord],
  left_tf2: list[VariableRecord],
  tf1: Inventory,
  tf2: Inventory,
  looked_for: dict[str, str],
  causes: tuple[dict[str, str], dict[str, str]],
  hint: str,
  pairs: Sequence[tuple[VariableRecord, VariableRecord]],
) -> Iterable[Difference]:
  # What a module of one scope, or none, holds is no layer.
  siblings = {owner(o.name): other for o, other in pairs if owner(o.name) and owner(other.name)}
  untracked = {variable.name for variable in tf2.untracked}
  for variable in left_tf1:
    expected = looked_for.get(variable.name)
    certain = _missing_hint(variable, tf1, tf2, untracked)
    yield Difference(
      VARIABLE,
      variable.name,
      Aspect.PRESENCE,
      described(variable),
      f'missing: variable_names gives it the tf2 name {expected!r}'
      if expected
      else _missing(siblings.get(owner(variable.name))),
      hint=certain or causes[0].get(variable.name, hint),
    )
  for variable in left_tf2:
    yield Difference(
      VARIABLE,
      variable.name,
      Aspect.PRESENCE,
      'missing',
      described(variable),
      hint=causes[1].get(variable.name, hint),
    )


def _missing(sibling: VariableRecord | None) -> str:
  """Returns that a variable is missing, and where its layer creates another one."""
  if sibling is None or sibling.source is None:
    return 'missing'
  return f'missing; {sibling.name} of this layer is created at {sibling.source.with_layer()}'


def _causes(
  pairs: Sequence[tuple[VariableRecord, VariableRecord]],
  left_tf1: list[VariableRecord],
  left_tf2: list[VariableRecord],
  suggestion: RenameSuggestion,
) -> tuple[dict[str, str], dict[str, str]]:
  """Explains what no rename does, by name on each side; what is renamed counts as a pair."""
  ones, others = ({v.name: v for v in left} for left in (left_tf1, left_tf2))
  renamed = [(ones.pop(tf1), others.pop(tf2)) for tf1, tf2 in suggestion.renames]
  found = [*pairs, *renamed], list(ones.values()), list(others.values())
  tf1 = texts_by_variable(*missing_variables(*found))
  tf2 = texts_by_variable(*extra_variables(*found))
  if len(pairs) >= len(renamed):
    return tf1, tf2
  # Where the names are other ones throughout, what each side has left of one shape is rather
  # one variable of two names.
  kinds = [{(v.shape, v.dtype) for v in left.values()} for left in (ones, others)]
  return (
    {n: text for n, text in tf1.items() if (ones[n].shape, ones[n].dtype) not in kinds[1]},
    {n: text for n, text in tf2.items() if (others[n].shape, others[n].dtype) not in kinds[0]},
  )


def _parts_hint(
  suggestion: RenameSuggestion, left_tf1: list[VariableRecord], left_tf2: list[VariableRecord]
) -> str:
  """Returns what to declare where variables of one side may be parts of one of the other."""
  renamed = [*dict(suggestion.renames), *dict(suggestion.renames).values()]
  shapes = [
    {v.name: tuple(size or 0 for size in v.shape) for v in left if v.name not in renamed}
    for left in (left_tf1, left_tf2)
  ]
  entries = [alternatives[0][0] for alternatives in of_parts(*shapes)]
  if not entries:
    return ''
  lines = [f'`{entry}`, layout `{entry.layout}`' for entry in entries]
  lines += [f'`{tf1} -> {tf2}`' for tf1, tf2 in suggestion.renames]
  more = f'; and {len(lines) - _SHOWN_RENAMES} more' if len(lines) > _SHOWN_RENAMES else ''
  return (
    'split, or fused? variable_names cannot say that: write a variable map (`python -m tf2verify '
    f'map` begins one) with {"; ".join(lines[:_SHOWN_RENAMES])}{more}; the parts may lie in '
    'another order'
  )


def _rename_hint(suggestion: RenameSuggestion, rule: NamingRule | None, pairing: Pairing) -> str:
  renames = suggestion.renames
  if not renames:
    return ''
  reason = f'{suggestion.explanation}; ' if suggestion.explanation else ''
  if pairing.mapped is not None and pairing.derived is None:
    lines = listed([f'`{tf1} -> {tf2}`' for tf1, tf2 in renames], _SHOWN_RENAMES)
    return f'{reason}renamed? Then the variable map of the case lacks {lines}: one entry each'
  if len(renames) > _SHOWN_RENAMES and rule is not None:
    but = f', but for {len(rule.exceptions)} names' if rule.exceptions else ''
    return (
      f'{reason}renamed? {len(renames) - len(rule.exceptions)} names of the port are '
      f'{rule.expression}{but}: declare variable_names as in the note below'
    )
  shown = ', '.join(f'{tf1!r}: {tf2!r}' for tf1, tf2 in renames[:_SHOWN_RENAMES])
  if len(renames) > _SHOWN_RENAMES:
    shown += f', … {len(renames) - _SHOWN_RENAMES} more, see the note below'
  return f'{reason}renamed? Then declare variable_names = {{{shown}}}'


def _declaration(
  suggestion: RenameSuggestion, rule: NamingRule | None, declared: bool
) -> Iterable[str]:
  """Yields what to paste into the case, where the hint has no room for it."""
  if len(suggestion.renames) > _SHOWN_RENAMES:
    what = 'to add to variable_names' if declared else 'for the case'
    yield f'if they are renamed, {what}:\n{code(suggestion.renames, rule)}'


def _layout_texts(pairing: Pairing) -> dict[str, str]:
  """Returns by tf1 names how variables of a map lie that do not lie alike."""
  entries = () if pairing.mapped is None else pairing.mapped.variable_map.entries
  return {name: layout_text(entry) for entry in entries for name in entry.tf1 if entry.layout}


def _missing_hint(
  variable: VariableRecord, tf1: Inventory, tf2: Inventory, untracked: set[str]
) -> str:
  if variable.name in untracked:
    return (
      'the port creates it, but layer.variables does not contain it: see the untracked variables'
    )
  if not tf2.variables:
    return (
      'layer.variables is empty after a call: decorate the method that creates the variables with '
      'tf.compat.v1.keras.utils.track_tf1_style_variables'
    )
  owner, _, slot = variable.name.rpartition('/')
  if slot in _SLOTS and owner in by_name(tf1):
    return (
      'build_tf1_graph makes the slots of an optimizer, as the variables named '
      f'…/{slot} are: leave the optimizer and the train op out of it'
    )
  return ''


def _duplicates(
  alignment: Alignment, tf1: Inventory, tf2: Inventory, case: CaseUnderTest
) -> Iterable[Difference]:
  duplicates = (
    ('tf1', tf1, alignment.duplicates_tf1),
    ('tf2', tf2, alignment.duplicates_tf2),
  )
  for side, inventory, names in duplicates:
    for name in names:
      several = [variable for variable in inventory.variables if variable.name == name]
      text = {'tf1': 'one', 'tf2': 'one', side: f'{len(several)} variables of this name'}
      hint = (
        f'{name} names several variables on the {side} side, so they cannot be told apart: give '
        'the layers that make them different names'
      )
      if side == 'tf2' and _made_by_get_variable(name, case):
        hint = (
          f'{name} was made by get_variable in {len(several)} layers: every layer under '
          'track_tf1_style_variables has a store of its own, so that no name is shared between '
          'layers; make it in one, and pass the layer or the variable on'
        )
      yield Difference(VARIABLE, name, Aspect.PRESENCE, text['tf1'], text['tf2'], hint=hint)


def _made_by_get_variable(name: str, case: CaseUnderTest) -> bool:
  made = [one for one in case.tf2.creation_report().first_call if one.name == name]
  return len(made) > 1 and all(one.creator == 'get_variable' for one in made)


def _untracked(tf2: Inventory) -> Iterable[Difference]:
  for variable in tf2.untracked:
    yield Difference(
      VARIABLE,
      variable.name,
      Aspect.PRESENCE,
      '',
      f'untracked: {described(variable)}; the calls create or read it, but layer.variables does '
      'not contain it, so it is neither trained nor saved',
      hint='keep the variable, or the layer that owns it, in an attribute of the layer (a closure, '
      'a Lambda or a plain object hides it), or decorate the method with '
      'track_tf1_style_variables',
    )
