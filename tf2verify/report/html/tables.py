"""The tables of a case: every difference, every tensor that is not the same, every variable."""

import collections
import difflib
from collections.abc import Iterator

from tf2verify.numerics.frontier import (
  greatest_absolute,
  greatest_relative,
  greatest_share,
  required_atol,
)
from tf2verify.records.diagnosis import Diagnosis
from tf2verify.records.difference import ArrayDifference, Deviation, Difference, Judgement
from tf2verify.records.side_by_side import UNTRACKED, RandomOps, VariablePair, VariableSummary
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.report.html.packing import Cell, Column, PackedTable
from tf2verify.report.html.words import KEEPS_ALL_PAIRS

# The column of tensors by which they are sorted at first.
_SHARE = 7
# The remark on variables that is less urgent than the others.
_RENAMED = 'renamed'


def case_tables(case: CaseVerdict) -> dict[str, PackedTable]:
  """Returns the tables of a case that have rows, by their names in the page."""
  tables = {
    'differences': _differences(case),
    'inventory': _inventory(case),
    'tensors': _tensors(case),
  }
  for stage in case.stages:
    for position, table in enumerate(stage.tables):
      columns = tuple(Column(head) for head in table.columns)
      tables[f'{stage.stage}-{position}'] = PackedTable(table.title, columns, table.rows)
    for position, ops in enumerate(stage.random_ops):
      tables[f'random-{stage.stage}-{position}'] = random_ops_table(ops)
    if stage.diagnosis is not None and stage.diagnosis.growth:
      tables[f'growth-{stage.stage}'] = _growth(stage.diagnosis)
  return {name: table for name, table in tables.items() if table.rows}


def _label(stage: StageVerdict) -> str:
  return f'{stage.number} {stage.stage}'


def _differences(case: CaseVerdict) -> PackedTable:
  columns = (
    Column('stage', choose=True),
    Column('what', choose=True),
    Column('whose', 'code'),
    Column('run', choose=True),
    Column('aspect', choose=True),
    Column('max absolute difference', 'number'),
    Column('max relative difference', 'number'),
    Column('rounding noise', 'number'),
    Column('elements that differ'),
    Column('tf1', 'code'),
    Column('tf2', 'code'),
    Column('shape, dtype'),
    Column('allowed'),
    Column('would pass with atol', 'number'),
    Column('likely cause'),
  )
  rows = (
    _difference_row(_label(stage), difference)
    for stage in case.stages
    for difference in stage.differences
  )
  return PackedTable('Differences, in the order of the stages, worst first', columns, tuple(rows))


def _difference_row(stage: str, found: Difference) -> tuple[Cell, ...]:
  head = stage, found.quantity, found.subject, found.run, found.aspect.value
  array = found.array
  if array is None:
    return (*head, None, None, None, '', found.tf1, found.tf2, '', '', None, found.hint)
  place = f' at {_shape(array.index)}' if array.index else ''
  return (
    *head,
    array.greatest_absolute,
    array.greatest_relative,
    array.noise,
    f'{array.mismatched:,} of {array.size:,}',
    f'{_scalar(array.tf1)}{place}',
    f'{_scalar(array.tf2)}{place}',
    f'{_shape(array.shape)} {array.dtype}',
    _allowed(array),
    array.required_atol,
    found.hint,
  )


def _scalar(value: object) -> str:
  return f'{value:.8g}' if isinstance(value, float) else str(value)


def _shape(shape: tuple[int | None, ...]) -> str:
  return '(' + ', '.join('?' if size is None else str(size) for size in shape) + ')'


def _allowed(known: ArrayDifference | Deviation) -> str:
  return f'{known.atol:.3g} + {known.rtol:.3g}·|tf1|'


def _tensors(case: CaseVerdict) -> PackedTable:
  columns = (
    Column('stage', choose=True),
    Column('what', choose=True),
    Column('tensor', 'code'),
    Column('run', choose=True),
    Column('dtype', choose=True),
    Column('max absolute difference', 'number'),
    Column('max relative difference', 'number'),
    Column('difference / allowed', 'number'),
    Column('rounding noise', 'number'),
    Column('judged', 'mark', choose=True),
    Column('units in the last place', 'ulps'),
    Column('allowed'),
    Column('would pass with atol', 'number'),
  )
  rows = (_tensor_row(_label(stage), known) for stage in case.stages for known in stage.deviations)
  caption = 'Tensors that are not the same bit by bit'
  return PackedTable(caption, columns, tuple(rows), _SHARE)


def _tensor_row(stage: str, known: Deviation) -> tuple[Cell, ...]:
  failed = known.judgement is Judgement.FAILED
  return (
    stage,
    known.quantity,
    known.subject,
    known.run,
    known.dtype,
    greatest_absolute(known.frontier),
    greatest_relative(known.frontier),
    greatest_share(known.frontier, known.rtol, known.atol),
    known.noise,
    '' if known.judgement is Judgement.PASSED else known.judgement.value,
    known.ulps,
    _allowed(known),
    required_atol(known.frontier, known.rtol) if failed else None,
  )


def tensor_counts(case: CaseVerdict) -> tuple[str, ...]:
  """Returns what the table of tensors holds and what it does not, a line a stage."""
  lines = []
  for stage in case.stages:
    compared = stage.compared
    if compared.noun != 'tensors' or not compared.tensors:
      continue
    if stage.stage not in KEEPS_ALL_PAIRS:
      kept = 'keeps only those that differ beyond its tolerance: see the differences'
      lines.append(f'{_label(stage)}: {compared.tensors:,} compared; {kept}')
      continue
    listed = {(known.quantity, known.subject, known.run) for known in stage.deviations}
    others = sum(
      (found.quantity, found.subject, found.run) not in listed
      for found in stage.differences
      if found.array is not None or found.aspect.value in ('shape', 'dtype')
    )
    same = max(0, compared.tensors - len(stage.deviations) - others)
    lines.append(
      f'{_label(stage)}: {compared.tensors:,} compared; {len(stage.deviations):,} listed here, '
      f'{same:,} the same bit by bit'
      + (f', {others:,} only among the differences' if others else '')
    )
  return tuple(lines)


def _inventory(case: CaseVerdict) -> PackedTable:
  columns = (
    Column('tf1 variable', 'code'),
    Column('tf2 variable', 'code'),
    Column('tf1 shape, dtype'),
    Column('tf2 shape, dtype'),
    Column('tf1 trained', choose=True),
    Column('tf2 trained', choose=True),
    Column('remark', 'mark', choose=True),
  )
  pairs = [pair for stage in case.stages for pair in stage.inventory]
  # What only one side has comes first, then what differs, then what is alike.
  rows = tuple(map(_variable_row, sorted(pairs, key=_urgency)))
  return PackedTable('Variables of both sides', columns, rows)


def _variable_row(pair: VariablePair) -> tuple[Cell, ...]:
  tf1, tf2 = pair.tf1, pair.tf2
  names = tf1.name if tf1 else 'missing', tf2.name if tf2 else 'missing'
  kinds, trained = (_kind(tf1), _kind(tf2)), (_trained(tf1), _trained(tf2))
  return (*names, *kinds, *trained, ' and '.join(_remarks(pair)))


def variable_counts(case: CaseVerdict) -> tuple[str, int]:
  """Returns how many variables of both sides are alike, and how many are not, with reasons."""
  remarks = [' and '.join(_remarks(pair)) for stage in case.stages for pair in stage.inventory]
  counts = collections.Counter(remark for remark in remarks if remark)
  others = ''.join(f', {count:,} {remark}' for remark, count in counts.most_common())
  return f'{remarks.count(""):,} alike{others}', sum(counts.values())


def _urgency(pair: VariablePair) -> int:
  if _is_missing(pair):
    return 0
  remarks = _remarks(pair)
  return 3 if not remarks else 2 if remarks == [_RENAMED] else 1


def _is_missing(pair: VariablePair) -> bool:
  """Returns whether one side lacks a variable that nobody has said it may lack."""
  return (pair.tf1 is None or pair.tf2 is None) and pair.remark in ('', UNTRACKED)


def _kind(variable: VariableSummary | None) -> str:
  return f'{_shape(variable.shape)} {variable.dtype}' if variable else ''


def _trained(variable: VariableSummary | None) -> str:
  return ('yes' if variable.trainable else 'no') if variable else ''


def _remarks(pair: VariablePair) -> list[str]:
  """Returns what a reader has to see in a row; nothing where both sides are alike."""
  tf1, tf2 = pair.tf1, pair.tf2
  remarks = [pair.remark] if pair.remark else []
  if tf1 is None or tf2 is None:
    only = 'only in tf2' if tf1 is None else 'only in tf1'
    return [only, *remarks] if _is_missing(pair) else remarks
  if tf1.name != tf2.name:
    remarks.append(_RENAMED)
  if tf1.shape != tf2.shape:
    remarks.append('different shape')
  if tf1.dtype != tf2.dtype:
    remarks.append('different dtype')
  if tf1.trainable != tf2.trainable:
    remarks.append('trained on one side only')
  return remarks


def _growth(diagnosis: Diagnosis) -> PackedTable:
  columns = Column('operation', 'code'), Column('relative difference', 'number')
  rows = tuple((point.op, point.relative) for point in diagnosis.growth)
  return PackedTable('Relative difference, from the first divergence on', columns, rows)


def random_ops_table(ops: RandomOps) -> PackedTable:
  """Returns the random ops of both sides as a diff: equal ones side by side."""
  columns = (
    Column('tf1 no.', 'number'),
    Column('tf1', 'code'),
    Column('tf2 no.', 'number'),
    Column('tf2', 'code'),
    Column('tf1 line', 'code'),
    Column('tf2 line', 'code'),
    Column('remark', 'mark', choose=True),
  )
  return PackedTable(f'Random ops in their order, {ops.run}', columns, tuple(_diff(ops)))


def _diff(ops: RandomOps) -> Iterator[tuple[Cell, ...]]:
  matcher = difflib.SequenceMatcher(None, ops.tf1, ops.tf2, autojunk=False)
  for tag, start1, end1, start2, end2 in matcher.get_opcodes():
    for offset in range(max(end1 - start1, end2 - start2)):
      one = start1 + offset if start1 + offset < end1 else None
      other = start2 + offset if start2 + offset < end2 else None
      remark = '' if tag == 'equal' else 'different op'
      if one is None or other is None:
        remark = 'only in tf2' if one is None else 'only in tf1'
      yield (
        one,
        '' if one is None else ops.tf1[one],
        other,
        '' if other is None else ops.tf2[other],
        '' if one is None else ops.tf1_lines[one],
        '' if other is None else ops.tf2_lines[other],
        remark,
      )
