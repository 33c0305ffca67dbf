"""Moving averages of another pace, of another variance, or updated more often."""

import math

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, StateEvidence
from tf2verify.diagnosis.patterns.numbers.states import batch_factor
from tf2verify.diagnosis.patterns.operations.several_writes import (
  are_of_same_values,
  lines_of_writes,
)
from tf2verify.diagnosis.rules.variances import biased_variance_text
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import OpGraph, OpRecord

# Of a batch with more values, float32 does not show N / (N - 1).
_MOST = 20000
# Of the step towards the batch: as close as that, another momentum explains a moving average whole.
_PREDICTED = 1e-3
# Operations between the statistics of a batch and the update of their averages.
_NEAR = 6
# What a fused batch norm hands on to be averaged, by its number.
_FUSED_MEAN, _FUSED_VARIANCE = 1, 2
# What may differ for another reason, and changes no average of a run from the same values.
_STATE, _INFERENCE = 'state after the call', 'inference'
_BESIDE = (_STATE, 'initial value', 'regularization loss')
# By which a number of values, taken from N / (N - 1), may be off.
_OFF = 0.05
# Of the difference that a factor explains.
_LEFT = 0.05
_UPDATE = 'update of '
# Likewise, of 1/N: nothing else may be hidden in it.
_PREDICTED_SHARE = 0.01
_LEAST_ELEMENTS = 4


def biased_variance(evidence: FailedStage) -> Cause | None:
  """Fused batch norm hands on N/(N-1) times the variance that it normalizes by.

  Looks for a state that follows N/(N-1) times what the other side's does.
  """
  # The outputs would be the same: where they are not, a whole number may be there by chance.
  is_alone = all(d.quantity in _BESIDE for d in evidence.differences)
  for state in evidence.states:
    number = _values(state, evidence)
    output, values = _fused(state.name, evidence)
    if number is None or not _is_of_bias(number, output, values):
      continue
    if not is_alone and (output != _FUSED_VARIANCE or values is None):
      continue
    tf1_is_unbiased = number > 0
    unbiased, biased = ('tf1', 'the port') if tf1_is_unbiased else ('the port', 'tf1')
    share = f'{abs(number)}/{abs(number) - 1}'
    return Cause(
      biased_variance_text(tf1_is_unbiased),
      f'{state.name}: what is averaged in {unbiased} is {share} times that in {biased}, for '
      'every element',
      change=_biased_in_tf1(evidence) if tf1_is_unbiased else None,
      numbers=_numbers_of_bias(evidence),
    )
  return None


def _numbers_of_bias(evidence: FailedStage) -> str:
  """Returns what the count of values of tf1's fused batch norms predicts, if it is all states."""
  known = 0
  for state in evidence.states:
    factor = _factor(state)
    output, values = _fused(state.name, evidence)
    if factor is None or output != _FUSED_VARIANCE or not values:
      return ''
    if abs((1 - factor) * values - 1) > _PREDICTED_SHARE:
      return ''
    known += state.tf1.size
  states = len(evidence.states)
  if known < _LEAST_ELEMENTS:
    return ''
  named = f'all {states} states that differ come' if states > 1 else 'the state that differs comes'
  return f'with it {named} out as in tf1'


def variance_count(evidence: FailedStage) -> Cause | None:
  """A variance that is made unbiased with another number of values than the batch has.

  Looks for a state that follows M/(M-1) times the biased variance, where the fused batch norm of
  tf1 hands on N/(N-1) times it.
  """
  for state in evidence.states:
    factor = _factor(state)
    output, values = _fused(state.name, evidence)
    if factor is None or output != _FUSED_VARIANCE or values is None or values < 2:
      continue
    of_biased = factor * values / (values - 1)
    # What is left of the difference by rounding is no share of the batch.
    least = max(1 / _MOST, _LEFT * abs(factor - 1))
    number = None if of_biased - 1 < least else _whole(of_biased / (of_biased - 1))
    if number is None or _is_near(number, values):
      continue
    return Cause(
      f'the port makes the variance that it averages unbiased as if a channel had {number} values, '
      f'{number}/{number - 1} of the biased one; it has {values} (batch, height and width, not the '
      f'batch alone), and tf1 averages {values}/{values - 1} of it: count all values that are '
      'averaged',
      f'{state.name}: what is averaged is {number}/{number - 1} of the biased variance in the '
      f'port, {values}/{values - 1} in tf1',
    )
  return None


def _biased_in_tf1(evidence: FailedStage) -> Change:
  """Returns what predicts the port: the biased variance where it shows, and in averages like it."""
  numbers = {state.name: _values(state, evidence) for state in evidence.states}
  shown = tuple(name for name, number in numbers.items() if number)
  # Those of larger batches differ by less than is allowed here, and by more in another run.
  targets = () if evidence.tf1_graph is None else evidence.tf1_graph.targets()
  averages = (name.removeprefix(_UPDATE) for name in targets if name.startswith(_UPDATE))
  further = (name for name in averages if _fused(name, evidence)[0] == _FUSED_VARIANCE)
  return Change(Changed.VARIANCE, places=tuple(dict.fromkeys((*shown, *further))))


def _values(state: StateEvidence, evidence: FailedStage) -> int | None:
  """Returns N of N/(N-1), negative where the port has it; None where no whole number fits."""
  factor = _factor(state)
  if factor is None or _fused(state.name, evidence)[0] == _FUSED_MEAN:
    return None  # a mean is 1 % off as easily as a variance of 101 values
  number = _whole(1 / abs(1 - min(factor, 1 / factor)))
  return None if number is None else (number if factor < 1 else -number)


def _factor(state: StateEvidence) -> float | None:
  """Returns how many times the port averages what tf1 averages; None for once, or no number."""
  tf1, tf2 = state.momenta
  if tf1 is None or tf2 is None:
    return None
  factor = batch_factor(state, tf1, tf2)
  return None if factor is None or factor <= 0 or abs(factor - 1) < 1 / _MOST else factor


def _whole(number: float) -> int | None:
  """Returns a number of values; None for none."""
  whole = round(number)
  return whole if whole >= 2 and abs(whole / number - 1) <= 0.02 else None


def _is_near(number: int, values: int) -> bool:
  return abs(number - values) <= 1 + _OFF * values


def _is_of_bias(number: int, output: int | None, values: int | None) -> bool:
  """Returns whether N/(N-1), negative where the port has it, is that of what tf1 averages."""
  if output != _FUSED_VARIANCE:
    return True
  # That variance is unbiased: the port can only have the biased one of as many values.
  return number > 0 and (values is None or _is_near(number, values))


def _fused(name: str, evidence: FailedStage) -> tuple[int | None, int | None]:
  """Returns which output of a fused batch norm of tf1 a variable averages, and of how many values.

  None for none, and where the number is not known.
  """
  graph = evidence.tf1_graph
  target = None if graph is None else graph.targets().get(f'update of {name}')
  if graph is None or target is None:
    return None, None
  pending = [(key, 0) for key in graph.ops[target].inputs]
  while pending:
    (position, output), depth = pending.pop(0)
    op = graph.ops[position]
    if op.op_type.startswith('FusedBatchNorm'):
      return output, _values_of_a_channel(graph, op)
    if depth < _NEAR:
      pending += [(key, depth + 1) for key in op.inputs]
  return None, None


def _values_of_a_channel(graph: OpGraph, op: OpRecord) -> int | None:
  shapes = [graph.ops[n].outputs[k][1] for n, k in op.inputs[:2]]
  if len(shapes) < 2 or any(shape is None or None in shape for shape in shapes):
    return None
  values, channels = (math.prod(size for size in shape or () if size) for shape in shapes)
  return values // channels


def moving_average_momentum(evidence: FailedStage) -> Cause | None:
  """A moving average that forgets faster or slower.

  Looks for momenta that make the port's state out of that of tf1.
  """
  for state in evidence.states:
    momenta = other_momenta(state)
    if momenta is None or batch_factor(state, *momenta) is None:
      continue
    tf1, tf2 = (f'{momentum:.7g}' for momentum in momenta)
    factors = [batch_factor(one, *momenta) for one in evidence.states]
    predicted = [
      one.before.size > 1
      for one, f in zip(evidence.states, factors, strict=True)
      if f is not None and abs(f - 1) < _PREDICTED
    ]
    known = len(predicted)
    return Cause(
      f'the moving average keeps {tf2} of its value per step in the port, {tf1} in tf1: pass '
      f'momentum={tf1} (slim calls it decay, 0.999 by default; tf.layers and Keras default to '
      '0.99)',
      f'{state.name}: momentum {tf1} (tf1), {tf2} (tf2); with that of tf1, {known} of '
      f'{len(factors)} states that differ come out as in tf1',
      numbers=f'with it all {known} states that differ come out as in tf1'
      if 1 < known == len(factors)
      else '',
      by_itself=any(predicted),
    )
  return None


def other_momenta(state: StateEvidence) -> tuple[float, float] | None:
  """Returns the momenta of both sides where they are known, and not the same."""
  tf1, tf2 = state.momenta
  if tf1 is None or tf2 is None or math.isclose(tf1, tf2, rel_tol=1e-5):
    return None
  return tf1, tf2


def update_count(evidence: FailedStage) -> Cause | None:
  """A variable is written more often per call on one side.

  Looks for variables of another state that are not written equally often.
  """
  mode = any(difference.what == 'is_training' for _, difference in evidence.graph_differences())
  predicted = _of_another_momentum(evidence)
  updates = [
    one for one in evidence.updates if one[0] not in predicted and not _is_refuted(evidence, *one)
  ]
  if not updates or mode:  # the mode explains it
    return None
  variable, tf1, tf2 = updates[0]
  more = f' (and {len(updates) - 1} more)' if len(updates) > 1 else ''
  named = f'{variable}{more}'
  seen = f'{named}: {_updates(tf1)} in tf1, {_updates(tf2)} in tf2'
  if _is_of_inference(evidence, variable) and not (tf1 and tf2):
    return _updated_in_inference(evidence, variable, named, seen, by_port=not tf1)
  if not tf1:
    return Cause(
      f'the reference never updates {named}, and the port does: either the update ops of tf1 are '
      'not in UPDATE_OPS (then tf1 trains without them, and a port that does the same freezes '
      'them), or the port updates what it should not',
      seen,
    )
  if not tf2:
    return Cause(
      f'tf1 updates {named} in each call and the port never does: pass training=training to the '
      'layer, and let it own the update',
      seen,
    )
  return _updated_more_often(evidence, updates[0], named, seen)


def _updated_more_often(
  evidence: FailedStage, update: tuple[str, int, int], named: str, seen: str
) -> Cause:
  variable, tf1, tf2 = update
  graph = evidence.tf2_graph if tf2 > tf1 else evidence.tf1_graph
  text = f'the two sides update {named} a different number of times in one call'
  same = None if graph is None else are_of_same_values(graph, variable)
  if same is False:
    return Cause(
      f'{text}: a layer that is called several times (a discriminator, for real and generated '
      'images) updates at every call; tf1 runs what is in UPDATE_OPS, or what its outputs wait for',
      seen,
    )
  side = 'the port' if tf2 > tf1 else 'tf1'
  lines = [] if graph is None else lines_of_writes(graph, variable)
  places = ', then '.join(str(line.short) for line in lines)
  where = f' ({places})' if places else ''
  if same:
    return Cause(
      f'{text}: {side} writes it {max(tf1, tf2)} times from the same values{where}, and each write '
      'moves it on: leave all but one out (call() of a batch norm, which super().call() may be, '
      'updates its averages itself)',
      seen,
    )
  return Cause(
    f'{text}{where and f", in {side}{where}"}: by a layer that is called several times, '
    'or by several assignments in one call; tf1 runs what is in UPDATE_OPS, or what its outputs '
    'wait for',
    seen,
  )


def _is_of_inference(evidence: FailedStage, variable: str) -> bool:
  """Returns whether the calls of inference alone leave a variable in another state."""
  runs = [
    known.run
    for known in evidence.differences
    if known.quantity == _STATE and variable in (known.tf1_subject, known.tf2_subject)
  ]
  return bool(runs) and all(run.startswith(_INFERENCE) for run in runs)


def _updated_in_inference(
  evidence: FailedStage, variable: str, named: str, seen: str, by_port: bool
) -> Cause:
  graph = evidence.tf2_graph if by_port else evidence.tf1_graph
  lines = [] if graph is None else lines_of_writes(graph, variable)
  where = f' (what it writes is computed at {lines[0].short})' if lines else ''
  if by_port:
    return Cause(
      f'the port updates {named} in inference{where}, and tf1 does not: let it do so only where '
      'training is True',
      seen,
    )
  return Cause(
    f'tf1 updates {named} in inference too{where}, and the port does not: update it whatever '
    'training is',
    seen,
  )


def _of_another_momentum(evidence: FailedStage) -> set[str]:
  """Returns the states that a momentum explains, in however many writes the port makes them."""
  for state in evidence.states:
    momenta = other_momenta(state)
    if momenta is None or batch_factor(state, *momenta) is None:
      continue
    factors = {one.name: batch_factor(one, *momenta) for one in evidence.states}
    return {name for name, f in factors.items() if f is not None and abs(f - 1) < _PREDICTED}
  return set()


def _is_refuted(evidence: FailedStage, variable: str, tf1: int, tf2: int) -> bool:
  """Returns whether a side that is said never to write a variable has changed it."""
  for state in evidence.states:
    if state.name == variable:
      moved = [not np.array_equal(state.before, after) for after in (state.tf1, state.tf2)]
      return (not tf1 and moved[0]) or (not tf2 and moved[1])
  return False


def _updates(number: int) -> str:
  return f'{number} update' + ('' if number == 1 else 's')
