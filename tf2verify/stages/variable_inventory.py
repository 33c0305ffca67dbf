"""Rung 2: both sides have the same variables."""

from collections.abc import Iterable

from tf2verify.compare.alignment import Alignment
from tf2verify.compare.renames import RenameSuggestion, rename_suggestions
from tf2verify.errors import NotApplicable
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import VariableRecord
from tf2verify.records.verdict import Compared
from tf2verify.sides.side import Inventory
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage, by_name

_QUANTITY = 'variable'
# The slots of TF1's optimizers, which a builder that also trains would create.
_SLOTS = ('Adam', 'Adam_1', 'Momentum', 'RMSProp', 'RMSProp_1', 'Adagrad', 'Adadelta', 'Ftrl')


class VariableInventory(Stage):
  """Pairs the variables by name and compares what they are."""

  name = 'variable_inventory'
  needs = ()
  proves = 'both sides have variables of the same names, shapes, dtypes and trainability'

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares the inventories of both sides."""
    tf1, tf2 = case.tf1.inventory(), case.tf2.inventory()
    if not tf1.variables and not tf2.variables and not tf2.untracked:
      raise NotApplicable(
        'neither side has a variable; if the model should have some, build_tf1_graph and '
        'make_tf2_layer do not reach it'
      )
    alignment = case.alignment()
    ones, others = by_name(tf1), by_name(tf2)
    differences: list[Difference] = []
    notes: list[str] = []
    for tf1_name, tf2_name in alignment.pairs:
      found, note = _compare(ones[tf1_name], others[tf2_name])
      differences += found
      notes += note
    left_tf1 = [ones[name] for name in alignment.only_tf1]
    steps = [v for v in left_tf1 if 'global_step' in v.collections]
    if steps:
      left_tf1 = [v for v in left_tf1 if v not in steps]
      notes.append(f'{steps[0].name} (the global step) is not part of the model: not compared')
    left_tf2 = [others[name] for name in alignment.only_tf2]
    differences += _leftovers(left_tf1, left_tf2, tf1, tf2, dict(alignment.looked_for))
    differences += _duplicates(alignment)
    differences += _untracked(tf2)
    return Findings(
      Compared(
        tensors=len(alignment.pairs),
        unpaired=len(left_tf1) + len(left_tf2) + len(tf2.untracked),
        noun='variables',
      ),
      tuple(differences),
      (*_totals(alignment, ones), *_grouped(notes)),
    )


def _totals(alignment: Alignment, ones: dict[str, VariableRecord]) -> tuple[str, ...]:
  sizes, trainable = 0, 0
  for tf1_name, _ in alignment.pairs:
    record = ones[tf1_name]
    size = 1
    for dimension in record.shape:
      size *= dimension or 0
    sizes += size
    trainable += record.trainable
  return (f'{sizes:,} parameters in pairs; {trainable:,} variables trainable',)


def _grouped(notes: list[str]) -> list[str]:
  return notes[:3] + ([f'… and {len(notes) - 3} more such notes'] if len(notes) > 3 else [])


def _describe(variable: VariableRecord) -> str:
  shape = '(' + ', '.join('?' if s is None else str(s) for s in variable.shape) + ')'
  where = f', created at {variable.source}' if variable.source else ''
  return f'{shape} {variable.dtype}{where}'


def _compare(tf1: VariableRecord, tf2: VariableRecord) -> tuple[list[Difference], list[str]]:
  name = tf1.name if tf1.name == tf2.name else f'{tf1.name} (tf2: {tf2.name})'
  found = []
  if tf1.shape != tf2.shape:
    found.append(Difference(_QUANTITY, name, Aspect.SHAPE, _describe(tf1), _describe(tf2)))
  if tf1.dtype != tf2.dtype:
    hint = ''
    if (tf1.dtype, tf2.dtype) == ('float64', 'float32'):
      hint = "Keras casts to floatx: pass dtype='float64' to the layer"
    found.append(
      Difference(_QUANTITY, name, Aspect.DTYPE, _describe(tf1), _describe(tf2), hint=hint)
    )
  if tf1.trainable == tf2.trainable:
    return found, []
  if tf1.trainable and not tf1.trainable_flag:
    # FaceNet's batch norm: variables_collections names TRAINABLE_VARIABLES.
    return found, [
      f'{name} is in TRAINABLE_VARIABLES of tf1 although it was made with trainable=False '
      '(variables_collections): a quirk of the reference, no fault of the port'
    ]
  found.append(_trainability(name, tf1, tf2))
  return found, []


def _trainability(name: str, tf1: VariableRecord, tf2: VariableRecord) -> Difference:
  if tf1.trainable:
    hint = (
      f'{name} is trained in tf1 but frozen in the port: layer.trainable=False, or a lost '
      'collection'
    )
  else:
    hint = f'{name} is frozen in tf1 but would be trained in tf2: pass trainable=False'
  names = ('in TRAINABLE_VARIABLES', 'not in TRAINABLE_VARIABLES')
  layer = ('in layer.trainable_variables', 'not in layer.trainable_variables')
  return Difference(
    _QUANTITY,
    name,
    Aspect.TRAINABLE,
    f'{names[0] if tf1.trainable else names[1]} (trainable={tf1.trainable_flag})',
    f'{layer[0] if tf2.trainable else layer[1]} (trainable={tf2.trainable_flag})',
    hint=hint,
  )


def _leftovers(
  left_tf1: list[VariableRecord],
  left_tf2: list[VariableRecord],
  tf1: Inventory,
  tf2: Inventory,
  looked_for: dict[str, str],
) -> Iterable[Difference]:
  hint = ''
  if left_tf1 and left_tf2:
    hint = _rename_hint(rename_suggestions(left_tf1, left_tf2))
  untracked = {variable.name for variable in tf2.untracked}
  for variable in left_tf1:
    expected = looked_for.get(variable.name)
    yield Difference(
      _QUANTITY,
      variable.name,
      Aspect.PRESENCE,
      _describe(variable),
      f'missing: variable_names gives it the tf2 name {expected!r}' if expected else 'missing',
      hint=_missing_hint(variable, tf1, tf2, untracked) or hint,
    )
  for variable in left_tf2:
    yield Difference(
      _QUANTITY, variable.name, Aspect.PRESENCE, 'missing', _describe(variable), hint=hint
    )


def _rename_hint(suggestion: RenameSuggestion) -> str:
  if not suggestion.renames:
    return ''
  shown = ', '.join(f'{tf1!r}: {tf2!r}' for tf1, tf2 in suggestion.renames[:4])
  more = len(suggestion.renames) - 4
  shown += f', … {more} more' if more > 0 else ''
  reason = f'{suggestion.explanation}; ' if suggestion.explanation else ''
  return f'{reason}renamed? Then declare variable_names = {{{shown}}}'


def _missing_hint(
  variable: VariableRecord, tf1: Inventory, tf2: Inventory, untracked: set[str]
) -> str:
  if variable.name in untracked:
    return 'the port creates it, but layer.variables does not hold it: see the untracked variables'
  if not tf2.variables:
    return (
      'layer.variables is empty after a call: decorate the method that creates the variables with '
      'tf.compat.v1.keras.utils.track_tf1_style_variables'
    )
  owner, _, slot = variable.name.rpartition('/')
  if slot in _SLOTS and owner in by_name(tf1):
    return (
      f"{variable.name} is an optimizer's slot: leave the optimizer and the train op out of "
      'build_tf1_graph'
    )
  return ''


def _duplicates(alignment: Alignment) -> Iterable[Difference]:
  for side, duplicates in (('tf1', alignment.duplicates_tf1), ('tf2', alignment.duplicates_tf2)):
    for name in duplicates:
      text = {'tf1': 'one', 'tf2': 'one', side: 'several variables of this name'}
      yield Difference(
        _QUANTITY,
        name,
        Aspect.PRESENCE,
        text['tf1'],
        text['tf2'],
        hint=f'{name} names several variables on the {side} side, so they cannot be told apart: '
        'give the layers that make them different names',
      )


def _untracked(tf2: Inventory) -> Iterable[Difference]:
  for variable in tf2.untracked:
    yield Difference(
      _QUANTITY,
      variable.name,
      Aspect.PRESENCE,
      '',
      f'untracked: {_describe(variable)}; the calls create or read it, but layer.variables does '
      'not hold it, so it is neither trained nor saved',
      hint='keep the variable, or the layer that owns it, in an attribute of the layer (a closure, '
      'a Lambda or a plain object hides it), or decorate the method with '
      'track_tf1_style_variables',
    )
