"""Inputs that reach what the case's own do not: a bound, an epsilon, another activation."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf2verify.records.proven import GraphDifference, Proven
from tf2verify.reference import nests
from tf2verify.sides.hooks import extents
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.passes.further_runs.compared_again import compared_at
from tf2verify.stages.passes.further_runs.greater_variables import first_parting, greater_variables
from tf2verify.stages.stage import CaseUnderTest

# Beyond what bounds stop, and below what an epsilon adds to.
_FACTORS = (100.0, 1e-6, 1e4)
_ALIGNED = (
  'every example of {} is ones and then zeros, and both sides agree; from its end, as zeros and '
  'then ones, they differ: one side may count the ones, where the other one reads which they are; '
  'if other masks can occur, give some'
)
_SYMMETRIC = (
  '{} is symmetric, and both sides agree; with some elements below its diagonal left out they '
  'differ: one side may read columns for rows; if it need not be symmetric, give one that is not'
)
_SHORT = (
  "at the case's own inputs both sides agree, with an example of {} that is {} they differ{}{}: is "
  'a mask applied at another place, such as after a softmax and not before it, or is something '
  'divided by what is zero then? If such examples can occur, give one; if not, ignore this'
)
_UNPROVEN = (
  "at the case's own inputs both sides agree, at {size} their outputs differ; no difference of the "
  'graphs is known, but not all operations are proven{where}; if such inputs can occur, give some'
)
# So many operations run in a moment.
_MOST_OPERATIONS = 1000


def tell_apart(
  case: CaseUnderTest,
  run: RunSpec,
  comparison: Comparison,
  differences: tuple[GraphDifference, ...],
) -> str:
  """Runs both sides with scaled inputs where their graphs are known to differ.

  Only inputs that the model could be given, see `scaled_inputs`. Where the reference raises, or
  yields what is not finite, an input tells nothing, and neither does a difference that is not
  clear.

  Args:
    case: both sides, which agree.
    run: of tf1, at which they do.
    comparison: gets what differs.
    differences: where the graphs differ.

  Returns:
    What to say of it; '' where no input tells the sides apart.
  """
  if not differences or case.tf1.fixed_size:
    return ''
  for factor in _FACTORS:
    inputs = scaled_inputs(run.inputs, factor)
    if inputs is None:
      continue
    scaled = dataclasses.replace(run, inputs=inputs, size=f'floating inputs times {factor:g}')
    trial = compared_at(case, scaled)
    if trial is not None and trial.differences:
      comparison.absorb(trial)
      comparison.repeatable(scaled)
      return (
        f"at the case's own inputs both sides agree, at {scaled.size} they do not: "
        f'{differences[0].to_text()}'
      )
  return ''


def other_inputs(
  case: CaseUnderTest, run: RunSpec, proven: Proven | None, known: Sequence[str], told: str
) -> list[str]:
  """Runs both sides with other inputs where not all is proven; returns what to say of it.

  Args:
    case: both sides, which agree.
    run: of tf1, at which they do.
    proven: what is proven of them.
    known: blind spots of the graphs, which come first.
    told: what `tell_apart` has said: where inputs tell the sides apart, no others are needed.
  """
  if told:
    return list(known)
  greater = [] if known else _greater_inputs(case, run, proven)
  greater = greater or greater_variables(case, run, proven)
  if _is_all(case, proven):
    return [*known, *greater]
  return [*known, *greater, *_other_structure(case, run), *_short_examples(case, run)]


def _is_all(case: CaseUnderTest, proven: Proven | None) -> bool:
  """Returns whether there is nothing that other values of the inputs could show, or no way."""
  is_all = proven is not None and not proven.regions and not proven.reason
  return is_all or bool(case.tf1.fixed_size)


def _greater_inputs(case: CaseUnderTest, run: RunSpec, proven: Proven | None) -> list[str]:
  """Runs both sides with greater inputs where something is not proven; returns what to say of it.

  What is not proven hides whatever differs before it, such as a bound that no input reaches. As
  little is known of it, the difference may also be one of formulas: of a logarithm of a softmax.

  Args:
    case: both sides, which agree, in graphs of which no difference is known.
    run: of tf1, at which they do.
    proven: what is proven of them.
  """
  if proven is None or proven.reason or proven.differences or not proven.regions:
    return []
  if case.tf1.fixed_size or proven.tf1_operations > _MOST_OPERATIONS:
    return []
  inputs = scaled_inputs(run.inputs, _FACTORS[0])
  if inputs is None:
    return []
  size = f'floating inputs times {_FACTORS[0]:g}'
  trial = compared_at(case, dataclasses.replace(run, inputs=inputs, size=size))
  if trial is None or not trial.differences:
    return []
  tested = next((one.tf2[0] for one in proven.regions if one.tf2), '')
  return [_UNPROVEN.format(size=size, where=tested and f', the first is {tested}')]


def _short_examples(case: CaseUnderTest, run: RunSpec) -> list[str]:
  """Runs both sides with an example of no step, or of one, where lengths or masks tell of it.

  What is masked after a softmax in place of before it, or divided by a count that has a bound,
  shows in an empty example alone.

  Args:
    case: both sides, which agree.
    run: of tf1, at which they do.
  """
  said: dict[str, str] = {}  # by path, the emptiest first
  for path, leaf, how in extents.shortest(run.inputs):
    if path in said:
      continue
    inputs = _changed(run.inputs, path, functools.partial(_instead, leaf))
    other = dataclasses.replace(run, inputs=inputs, size=f'an example of inputs{path} {how}')
    trial = compared_at(case, other)
    if trial is not None and trial.differences:
      where = first_parting(case, other, trial) or ''
      named = f'inputs{path}' if path else 'the input'
      said[path] = _SHORT.format(named, how, _values(trial), where)
  return list(said.values())


def _instead(other: np.ndarray, _: np.ndarray) -> np.ndarray:
  return other


def _values(trial: Comparison) -> str:
  """Returns the values that differ most of the first output that differs."""
  first = trial.differences[0]
  array = first.array
  if array is None or not isinstance(array.tf1, int | float):
    return ''
  at = ', '.join(map(str, array.index))
  return f' (output {first.subject}[{at}]: tf1 {array.tf1:.6g}, tf2 {array.tf2:.6g})'


def _other_structure(case: CaseUnderTest, run: RunSpec) -> list[str]:
  """Runs both sides with masks the other way round, and with matrices that are not symmetric.

  Masks often are ones and then zeros in every example: a side that only counts the ones computes
  the same. So does one that reads the columns of a symmetric matrix for its rows.

  Args:
    case: both sides, which agree.
    run: of tf1, at which they do.
  """
  kinds = (
    (_is_aligned, lambda leaf: np.flip(leaf, -1), 'from its end', _ALIGNED),
    (_is_symmetric, _half, 'not symmetric', _SYMMETRIC),
  )
  said = []
  for fits, change, how, text in kinds:
    for path in _paths(run.inputs, fits):
      inputs = _changed(run.inputs, path, change)
      other = dataclasses.replace(run, inputs=inputs, size=f'inputs{path} {how}')
      trial = compared_at(case, other)
      if trial is not None and trial.differences:
        said.append(text.format(f'inputs{path}' if path else 'the input'))
  return said


def _changed(inputs: Any, path: str, change: Callable[[np.ndarray], np.ndarray]) -> Any:
  """Returns the nest with one array changed."""
  return nests.map_leaves(lambda at, leaf: change(leaf) if at == path else leaf, inputs)


def _paths(inputs: Any, fits: Callable[[np.ndarray], bool]) -> list[str]:
  """Returns the places of some arrays."""
  found: list[str] = []

  def look(path: str, leaf: np.ndarray) -> np.ndarray:
    if fits(leaf):
      found.append(path)
    return leaf

  nests.map_leaves(look, inputs)
  return found


def _is_aligned(leaf: np.ndarray) -> bool:
  """Returns whether every row is ones and then zeros, and they are not all the same."""
  is_mask = leaf.dtype.kind in 'bif' and leaf.ndim > 1 and bool(np.isin(leaf, (0, 1)).all())
  if not is_mask or not leaf.any() or leaf.all():
    return False
  steps = np.diff(leaf.astype(np.int8), axis=-1)
  return bool(steps.any()) and bool((steps <= 0).all())


def _is_symmetric(leaf: np.ndarray) -> bool:
  """Returns whether an array has symmetric matrices, from which elements can be left out."""
  if leaf.dtype.kind not in 'bif' or leaf.ndim < 2 or leaf.shape[-1] != leaf.shape[-2]:
    return False
  is_same = bool(np.array_equal(leaf, np.swapaxes(leaf, -1, -2)))
  return is_same and not np.array_equal(_half(leaf), leaf)


def _half(leaf: np.ndarray) -> np.ndarray:
  """Returns matrices without some elements below the diagonal; two of each row stay at least.

  A row of which all is masked is one that nobody gives.
  """
  found: np.ndarray = leaf.copy()
  for matrix in found.reshape(-1, *leaf.shape[-2:]):
    for row, values in enumerate(matrix):
      below = np.flatnonzero(values[:row])
      values[below[: max(np.count_nonzero(values) - 2, 0)]] = 0
  return found


def scaled_inputs(inputs: Any, factor: float) -> Any | None:
  """Returns the nest with its floating arrays scaled; None where there is none.

  Signs stay, integers, texts and masks of zeros and ones stay, and what lies from -1 to 1 is not
  made greater, since it may be bounded.

  Args:
    inputs: the nest.
    factor: of its arrays.
  """
  found = []

  def scale(path: str, leaf: np.ndarray) -> np.ndarray:
    if leaf.dtype.kind != 'f' or bool(np.isin(leaf, (0, 1)).all()):
      return leaf
    if factor > 1 and bool((np.abs(leaf) <= 1).all()):
      return leaf
    found.append(path)
    return np.asarray(leaf * factor).astype(leaf.dtype)

  scaled = nests.map_leaves(scale, inputs)
  return scaled if found else None
