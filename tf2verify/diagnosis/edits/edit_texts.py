"""What an edit of the port's graph changes, in the model's own terms."""

import dataclasses
import re
from collections.abc import Sequence

from tf2verify.diagnosis.edits.exchanged_texts import exchanged_text
from tf2verify.diagnosis.patterns.operations.op_text import SHAPING, only_shapes
from tf2verify.records import rounds
from tf2verify.records.diagnosis import GraphAspect, GraphDifference, Source
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import INPUT, STOPS, TARGET
from tf2verify.relation.operations.gradient_names import differentiated

# 1 - 0.9 is 0.1 in float32 up to rounding.
_DIGITS = 6
MOST_SAID = 5
# Operations that a reader takes in at one place.
READABLE = 6
_THEN = ' → '
_OF_ONE_SIDE = (GraphAspect.EXTRA, GraphAspect.MISSING)
_OF_OPERATIONS = (*_OF_ONE_SIDE, GraphAspect.REPLACED)
_OF_SETTINGS = (GraphAspect.ATTRIBUTE, GraphAspect.CONSTANT)
_MOST_LINES = 2
_OF = ' of '
_KEPT_AXES = 'keep_dims'
_LIST = 'TensorList'
_MASK = '_mask'
# What inputs and attributes are called by which tensors are held in other shapes.
_LAYOUTS = frozenset(('shape', 'axis', 'reduction_indices', 'dim', 'perm', 'multiples'))
_LONGEST_CODE = 120
# As TensorFlow 1 computes a convolution with dilation.
_SHAPE = re.compile(r'\bshape=\[[-\d, ]*\]')
_COUNTER = re.compile(r'_\d+$')
_NEW_AXES = re.compile(r'StridedSlice\[(?:None|:|\.\.\.|, )+\]')
_DILATION = re.compile(r'^SpaceToBatchND\(.*?\bblock_shape=(\[[\d, ]+\]).*')


def edit_text(sources: Sequence[Source]) -> str:
  """Returns what is different in the port at the places of an edit; '' if it is not known."""
  groups: dict[object, list[Source]] = {}
  for source in _without_needless(sources):
    groups.setdefault(_kind_of(source), []).append(source)
  said = []
  moved = exchanged_text(list(groups.values()))
  if moved:
    return moved
  for alike in groups.values():
    ends = {rounds.without(source.tf1_op) for source in alike}
    more = f'; the same at {len(ends) - 1} more' if len(ends) > 1 else ''
    text = _source_text(alike[0])
    said += [text + more] if text else []
  return '; '.join(said[:3])


def _is_of_layout(known: GraphDifference) -> bool:
  """Returns whether a difference is one of shapes and axes, or of their order."""
  return known.what in _LAYOUTS or known.op_type in SHAPING


def _without_needless(sources: Sequence[Source]) -> list[Source]:
  """Returns the places of an edit without what others say better.

  What one side lacks at a place, and has at another one, is told by a third place that has both. A
  list with all operations of another place among its own is the same with more around it.
  """
  known = [one for source in sources for one in source.differences]
  left = [one for one in known if not any(_tells_both(other, one, known) for other in known)]
  left = [one for one in left if not any(_holds(one, other) for other in left)]
  left = [one for one in left if not any(_is_told_by(one, other) for other in left)]
  # How a loop keeps what it has computed is no part of what it computes.
  left = [one for one in left if not (_LIST in one.tf1 or _LIST in one.tf2)] or left
  # In a round in which what is read starts with a constant, only its values tell of it.
  told = {rounds.without(source.tf1_op) for source in sources if source.differences}
  found = []
  for source in sources:
    kept = tuple(one for one in source.differences if any(one is other for other in left))
    if kept or (not source.differences and rounds.without(source.tf1_op) not in told):
      found.append(dataclasses.replace(source, differences=kept))
  return found


def _tells_both(
  known: GraphDifference, one: GraphDifference, others: Sequence[GraphDifference]
) -> bool:
  """Returns whether a difference has on both sides what one is missing, and another one extra."""
  if known.aspect is not GraphAspect.REPLACED or one.aspect not in _OF_ONE_SIDE:
    return False
  text = one.tf1 or one.tf2
  has_mate = any(
    other.aspect in _OF_ONE_SIDE
    and other.aspect is not one.aspect
    and text in (other.tf1, other.tf2)
    for other in others
  )
  return has_mate and {(0, text), (1, text)} <= _listed(known)


def _holds(known: GraphDifference, other: GraphDifference) -> bool:
  """Returns whether a difference lists all that another one does, and more."""
  if known.aspect is not GraphAspect.REPLACED or other.aspect not in _OF_OPERATIONS:
    return False
  return _listed(other) < _listed(known)


def _is_told_by(known: GraphDifference, other: GraphDifference) -> bool:
  """Returns whether what tf1 has at one place is what the port has moved to another one."""
  both = bool(known.elsewhere and other.elsewhere)
  is_pair = known.aspect is GraphAspect.MISSING and other.aspect is GraphAspect.EXTRA
  return both and is_pair and known.tf1_value == other.tf2_value


def _listed(known: GraphDifference) -> set[tuple[int, str]]:
  """Returns the operations that a difference lists, with the side of each."""
  paths = enumerate((known.tf1, known.tf2))
  return {(side, step) for side, path in paths if path for step in path.split(_THEN)}


def marks(source: Source) -> tuple[tuple[object, ...], ...]:
  """Returns what is different at a place, without where it is, the same in all rounds."""
  return tuple(
    (d.aspect, d.op_type, _what(d), rounds.without(d.tf1), _in_any_round(d))
    for d in source.differences
  )


def _in_any_round(known: GraphDifference) -> str:
  """Returns what the port has; a tensor that it reads by a name without the round's number."""
  name = rounds.without(known.tf2)
  return _COUNTER.sub('', name) if known.aspect is GraphAspect.WIRING else name


def _what(known: GraphDifference) -> str:
  """Returns what is different, without what an operation brings in: it has a name of its own."""
  return '' if known.aspect in _OF_ONE_SIDE else known.what


def _kind_of(source: Source) -> object:
  """Returns what sources have in common that say the same of several places.

  Layers that one line calls read the same of each other, by names of their own.
  """
  lines = source.tf1_source, source.tf2_source
  wiring = [
    (d.op_type, d.what, _last(d.tf1), _last(d.tf2))
    for d in source.differences
    if d.aspect is GraphAspect.WIRING
  ]
  if wiring and len(wiring) == len(source.differences) and None not in lines:
    return (*wiring, *(line.at for line in lines if line is not None))
  return _of_any_size(source) or source.tf1_op


def _last(name: str) -> str:
  """Returns what a tensor is called without where: of `variable momentum of a/kernel`, the role."""
  role, of, _ = name.partition(_OF)
  return role if of else _COUNTER.sub('', name.rpartition('/')[2])


def _of_any_size(source: Source) -> tuple[tuple[str, ...], ...]:
  """Returns the marks without shapes: a line makes the same operations for every width."""
  return tuple(tuple(_SHAPE.sub('', str(part)) for part in one) for one in marks(source))


def numbers_of(source: Source) -> set[tuple[float, float]]:
  """Returns the constants of both sides that differ at a place, tf1 before tf2.

  A decay enters formulas as itself and as what it is short of 1: of these the greater is meant.
  """
  found = set()
  for known in source.differences:
    one, other = known.tf1_value, known.tf2_value
    if known.aspect is GraphAspect.CONSTANT and isinstance(one, float) and isinstance(other, float):
      found.add((_greater(one), _greater(other)))
  return found


def repeats(ones: Sequence[Source], others: Sequence[Source]) -> bool:
  """Returns whether the port computes again, with its setting, what tf1 computes once.

  All that it has more than tf1 at the places of one edit holds a number that is a wrong
  setting at those of the other one.
  """
  return _repeats(ones, others) or _repeats(others, ones)


def _repeats(sources: Sequence[Source], settings: Sequence[Source]) -> bool:
  numbers = [
    f'={known.tf2}'
    for source in settings
    for known in source.differences
    if known.aspect is GraphAspect.CONSTANT
  ]
  extra = [known for source in sources for known in source.differences]
  return bool(extra) and all(
    known.aspect is GraphAspect.EXTRA and any(number in known.tf2 for number in numbers)
    for known in extra
  )


def _greater(number: float) -> float:
  return round(1.0 - number if 0.0 < number < 0.5 else number, _DIGITS)


def _gradient_text(op: str) -> str:
  """Returns whose gradient an operation belongs to, as an addition to a text; '' for none."""
  forward = differentiated(op)
  return f' in the gradient of {forward}' if forward else ''


def _named(found: re.Match[str]) -> str:
  return f'the dilation {found[1]} ({found[0]})'


def _replaced(tf1: str, tf2: str) -> str:
  """Returns what the port computes in place of other operations; a shape alone is nothing."""
  if _only_shapes(tf2) and not _only_shapes(tf1):
    return f'the port lacks {tf1}'
  if _only_shapes(tf1) and not _only_shapes(tf2):
    return f'the port has {tf2}, which tf1 does not have'
  if tf1 != tf2 and sorted(tf1.split(_THEN)) == sorted(tf2.split(_THEN)):
    return f'the port computes {tf2}, tf1 the same in a different order: {tf1}'
  return f'the port computes {tf2}, tf1 computes {tf1}'


def _without_new_axes(path: str) -> str:
  """Returns the operations without slices that only add axes, if others are left."""
  steps = [step for step in path.split(_THEN) if not _NEW_AXES.fullmatch(step)]
  return _THEN.join(steps) or path


def _only_shapes(path: str) -> bool:
  return only_shapes(step.partition('(')[0] for step in path.split(_THEN))


def _path_text(known: GraphDifference) -> str:
  """Returns how a gradient passes differently."""
  place = f'{known.what} of {known.op}' if known.op_type != TARGET else known.op
  place = place if known.what != 'gradient' else known.op
  both = [set(side or ()) for side in (known.tf1_value, known.tf2_value)]
  if not both[1]:
    does = 'stops the gradient' if both[0] & STOPS else f'has a {known.tf1}'
    return f'tf1 {does} at {place} and the port does not'
  if not both[0]:
    does = 'stops the gradient' if both[1] & STOPS else f'has a {known.tf2}'
    return f'the port {does} at {place} and tf1 does not'
  return f'the {known.tf2} of the port at {place} differs from that of tf1'


def _source_text(source: Source) -> str:
  if source.differences and all(known.respelled for known in source.differences):
    return ''  # the same may be computed with variables in another layout
  # The axis of size 1 that a reduction keeps is no value: what else differs there is meant.
  values = [known for known in source.differences if known.what != _KEPT_AXES]
  # What is held in another shape is often no mistake.
  known_first = sorted(
    values or source.differences, key=lambda known: (known.op_type != INPUT, _is_of_layout(known))
  )
  texts = (difference_text(known) for known in known_first)
  said = list(dict.fromkeys(text for text in texts if text))  # of a slice: one for all its masks
  steps = max((steps_of(known) for known in source.differences), default=0)
  if source.values and (steps > READABLE or not said):
    # What makes a mask, or fills a loop's list, says less than what becomes of the values.
    return '; '.join([f'{source.tf1_op}: {source.values}', *said[:2]])
  if not said:
    paths = ' → '.join(source.tf2_path), ' → '.join(source.tf1_path)
    if paths[0] == paths[1]:
      return ''  # the same of something else: what differs is at another place of the mistake
    said = [f'the port computes {paths[0]} where tf1 computes {paths[1]}']
  return '; '.join(said[:3])


def values_text(sources: Sequence[Source]) -> str:
  """Returns how the values at the places of an edit are related; '' if that is not known."""
  said = {source.values: f'{source.tf1_op}: {source.values}' for source in sources if source.values}
  return '; '.join([*said.values()][:MOST_SAID])


def number_text(source: Source) -> str:
  """Returns what one number is on either side at a place; '' for more than one number."""
  one, other = source.tf1_output, source.tf2_output
  if one is None or other is None or one.shape != () or other.shape != ():
    return ''
  line = source.tf2_source
  place = '' if line is None else f' ({line.short})'
  both = (f'{known.mean:.6g}' for known in (other, one))
  return '{}{} yields {} in the port, {} in tf1'.format(source.tf2_op, place, *both)


def lines_text(sources: Sequence[Source]) -> str:
  """Returns which lines of the port compute something else than which of tf1; '' if unknown."""
  said = []
  for source in sources:
    one, other = source.tf1_source, source.tf2_source
    if one is None or other is None or not one.code or not other.code:
      continue
    both = _from_to(source.tf2_start, other), _from_to(source.tf1_start, one)
    if source.tf2_start is None:
      lines = (line for line in source.tf2_lines if line.path == other.path)
      further = [line.short for line in lines if line.line != other.line]
      also = f', with {", ".join(further[:MOST_SAID])}' if further else ''
      both = f'{other.short} ({_in_quotes(other.code)}{also})', both[1]
    said.append(f'{both[0]} computes something other than {both[1]}')
  text = '; '.join(list(dict.fromkeys(said))[:_MOST_LINES])
  return f'at these lines (the operation was not identified): {text}' if text else ''


def with_settings_text(sources: Sequence[Source]) -> str:
  """Returns the same, with the attributes and constants that differ there."""
  text = lines_text(sources)
  known = [d for source in sources for d in source.differences if d.aspect in _OF_SETTINGS]
  said = dict.fromkeys(difference_text(d) for d in known if d.op_type not in SHAPING)
  shown = list(said)[:_MOST_LINES]
  return f'{text}; among what differs there: {"; ".join(shown)}' if text and shown else text


def _from_to(start: SourceLine | None, end: SourceLine) -> str:
  """Returns the lines between which a part of a model is computed, the first one first."""
  said = f'{end.short} ({_in_quotes(end.code)})'
  if start is None or not start.code or start.at == end.at:
    return said
  return f'{start.short} ({_in_quotes(start.code)}) to {said}'


def _in_quotes(code: str) -> str:
  shown = code if len(code) <= _LONGEST_CODE else code[: _LONGEST_CODE - 1] + '…'
  return f'`{shown}`'


def steps_of(known: GraphDifference) -> int:
  """Returns how many operations a difference lists."""
  if known.aspect not in _OF_OPERATIONS:
    return 0
  return sum(side.count(_THEN) + 1 for side in (known.tf1, known.tf2) if side)


def difference_text(known: GraphDifference) -> str:
  """Returns what the port has at a place, and tf1, as a clause."""
  op = f'{known.op} ({known.op_type})'
  if known.aspect is GraphAspect.GRADIENT:
    return _path_text(known)
  if known.aspect is GraphAspect.CORRECTED:
    return str(known.tf1_value)
  if known.what.endswith(_MASK) and known.tf1.startswith('['):
    return f'{op} takes {known.tf2} in the port, {known.tf1} in tf1'
  if known.aspect in (GraphAspect.ATTRIBUTE, GraphAspect.CONSTANT):
    return f'{known.what} of {op} is {known.tf2} in the port, {known.tf1} in tf1'
  if known.aspect is GraphAspect.MISSING and known.op_type == INPUT:
    return f'the port never reads {known.tf1}'
  if known.elsewhere:
    moved = f'{_without_new_axes(known.tf2 or known.tf1)} ({known.op})'
    if known.aspect is GraphAspect.EXTRA:
      return f'the port has {moved} at another place than tf1, which has it at {known.elsewhere}'
    return f'tf1 has {moved} at another place than the port, which has it at {known.elsewhere}'
  if known.aspect is GraphAspect.MISSING and known.alike:
    return f'tf1 has {known.tf1} here; the port has {known.alike} without a counterpart'
  if known.aspect is GraphAspect.MISSING:
    brings = f', by which tf1 {known.what}' if known.what else ''
    lacking = _DILATION.sub(_named, _without_new_axes(known.tf1))
    return f'the port lacks {lacking}{brings}{_gradient_text(known.op)}'
  if known.aspect is GraphAspect.EXTRA:
    gradient = _gradient_text(known.op)
    return f'the port has {_without_new_axes(known.tf2)}{gradient}, which tf1 does not have'
  if known.aspect is GraphAspect.REPLACED:
    return _replaced(known.tf1, known.tf2)
  if known.aspect is GraphAspect.TYPE and known.tf2_value in SHAPING:
    return f'the port lacks {known.tf1}'
  if known.aspect is GraphAspect.TYPE and known.tf1_value in SHAPING:
    return f'the port has {known.tf2}, which tf1 does not have'
  if known.aspect is GraphAspect.TYPE:
    return f'{known.op} is {known.tf2} in the port, {known.tf1} in tf1'
  assert known.aspect in (GraphAspect.ORDER, GraphAspect.WIRING)
  if known.alike:
    return (
      f'{known.op} is {known.tf2} in the port; in tf1 it is {known.tf1}, which the port computes '
      f'as {known.alike}'
    )
  return f'{op} reads {known.tf2} as {known.what} in the port, {known.tf1} in tf1'
