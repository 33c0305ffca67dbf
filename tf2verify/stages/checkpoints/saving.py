"""What the port saves, restored into fresh layers."""

import dataclasses
import functools
import gc
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.causes import causes_of, first_cause
from tf2verify.diagnosis.evidence.checkpoint import RestoredValue, UnrestoredVariable
from tf2verify.errors import LayerError, UserCodeError
from tf2verify.numerics import restored_values
from tf2verify.records.difference import Difference
from tf2verify.records.observation import Observation
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.wording import listed
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.files import saved_model
from tf2verify.sides.tf2.files.checkpoint import RestoreCall
from tf2verify.sides.tf2.files.model_files import without_warnings
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.checkpoints.error_line import telling_line
from tf2verify.stages.checkpoints.keras_files import check_keras_files
from tf2verify.stages.checkpoints.loading import Loaded
from tf2verify.stages.checkpoints.restoring import (
  EXACT,
  call_for_variables,
  called_port,
  compare_restored,
  with_hint,
  with_sentinels,
)
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.tensorflow_internals import keras3

_OBJECT_BASED = "the port's checkpoint"
_SAVED_MODEL = "the port's SavedModel (as tf2) against the port (as tf1)"
_SAVED = 'the value that was saved'
_AGAIN = 'restored port (as tf2) against the one that was saved (as tf1)'


def check_saved(case: CaseUnderTest, loaded: Loaded, comparison: Comparison) -> list[str]:
  """Saves the port, restores it into fresh layers and compares values and outputs.

  Returns:
    Notes for a report.
  """
  port = loaded.port
  after = tf2_checkpoint.values_of(port)  # a call may have changed some
  changed = {n: v for n, v in loaded.values.items() if not restored_values.same(after[n], v)}
  tf2_checkpoint.assign(port, changed)
  values = tf2_checkpoint.values_of(port)
  notes: list[str] = []
  by_keras: frozenset[str] = frozenset()
  with tempfile.TemporaryDirectory(prefix='tf2verify_') as folder:
    prefix = tf2_checkpoint.save(case.declaration, port.layer, os.path.join(folder, 'tf2'))
    if loaded.outputs is not None:
      _check_saved_model(case, loaded, os.path.join(folder, 'saved_model'), comparison, notes)
      draws = draws_numbers(loaded)
      by_keras = check_keras_files(case, loaded, values, folder, comparison, with_outputs=not draws)
      gc.collect()  # another set of variables
    known = len(comparison.differences)
    fresh, note = None, ''
    left_out = _unseen_by_tensorflow(case, port, by_keras)
    if left_out:
      comparison.blind_spots.append(_left_out_text(left_out, len(values)))
    if loaded.outputs is not None and not case.declaration.declares('load_tf2_checkpoint'):
      fresh, note = _restored_before_call(case, loaded, after, prefix, left_out)
    check_restored(case, loaded, values, prefix, comparison, fresh, left_out)
    if note and len(comparison.differences) == known:
      comparison.blind_spots.append(note)
  return notes


def _unseen_by_tensorflow(
  case: CaseUnderTest, port: Port, by_keras: frozenset[str]
) -> frozenset[str]:
  """Returns the variables that the files of Keras restore and `tf.train.Checkpoint` never sees.

  Where the case says how it saves, that has to restore them.
  """
  declares = case.declaration.declares
  if not by_keras or declares('save_tf2_checkpoint') or declares('load_tf2_checkpoint'):
    return frozenset()
  seen = tf2_checkpoint.object_paths(port.layer)
  ids = port.identities()
  return frozenset(name for name in by_keras if ids[name] not in seen)


def _left_out_text(names: Collection[str], count: int) -> str:
  return (
    f'tf.train.Checkpoint(model=layer) does not hold {len(names)} of {count} variables, '
    f'{listed(sorted(names))}: Keras {keras3.version()} does not track layers in a list, '
    'dictionary or set for it. The .weights.h5 file restores them: save that, or keep each layer '
    'in an attribute of its own. If production saves by tf.train.Checkpoint, declare '
    'save_tf2_checkpoint, and this becomes a failure'
  )


def check_restored(
  case: CaseUnderTest,
  loaded: Loaded,
  values: dict[str, np.ndarray],
  prefix: str,
  comparison: Comparison,
  fresh: Port | None = None,
  left_out: Collection[str] = (),
) -> None:
  """Restores a port's own checkpoint into a fresh layer, and compares values and outputs.

  Args:
    case: the case.
    loaded: what was saved.
    values: that the layer had when it was saved, by name.
    prefix: of the files.
    comparison: takes the findings.
    fresh: another layer that has its variables; None to make one.
    left_out: names of variables that this checkpoint is not expected to hold.
  """
  fresh = called_port(case) if fresh is None else fresh
  before = with_sentinels(fresh, values)
  calls = tf2_checkpoint.load(case.declaration, fresh.layer, prefix)
  reasons = functools.cache(lambda: _explained(fresh, calls, values, before))

  def with_cause(name: str, difference: Difference) -> Difference:
    return reasons()(name, difference)

  now = tf2_checkpoint.values_of(fresh)
  known = len(comparison.differences)
  tf2_checkpoint.assign(fresh, {name: values[name] for name in left_out})
  for name, value in values.items():
    if name in left_out:
      continue
    compare_restored(
      comparison,
      TensorKey(f'value restored from {_OBJECT_BASED}', name),
      value,
      now[name],
      functools.partial(with_cause, name),
    )
  if loaded.outputs is not None and len(comparison.differences) == known:
    check_outputs(case, loaded, values, fresh, comparison)


def check_outputs(
  case: CaseUnderTest,
  loaded: Loaded,
  values: dict[str, np.ndarray],
  fresh: Port,
  comparison: Comparison,
) -> None:
  """Compares the outputs of a restored layer with those of the one that was saved."""
  assert loaded.outputs is not None
  outputs = _outputs(case, loaded, fresh)
  if _identical(loaded.outputs, outputs):
    comparison.outputs(loaded.outputs, outputs, EXACT)
    return
  # Kernels that add up in no fixed order differ from themselves as well.
  tf2_checkpoint.assign(loaded.port, values)
  again = _outputs(case, loaded, loaded.port)
  tolerance = EXACT if _identical(loaded.outputs, again) else case.tolerance
  comparison.outputs(dataclasses.replace(loaded.outputs, run=_AGAIN), outputs, tolerance)


def _outputs(case: CaseUnderTest, loaded: Loaded, port: Port) -> Observation:
  with randomness.seeded(randomness.CONSTANT):
    outputs = case.tf2.call(port, loaded.inputs, loaded.training, 'the call after restoring')
  return tf2_checkpoint.observed(outputs, _AGAIN)


def _identical(one: Observation, other: Observation) -> bool:
  if one.structure != other.structure:
    return False
  pairs = zip(one.outputs, other.outputs, strict=True)
  return all(
    a.value is b.value
    or (a.value is not None and b.value is not None and restored_values.same(a.value, b.value))
    for a, b in pairs
  )


def _explained(
  fresh: Port,
  calls: Sequence[RestoreCall],
  values: dict[str, np.ndarray],
  before: Mapping[str, np.ndarray],
) -> Callable[[str, Difference], Difference]:
  """Returns what says of a variable's difference how it came about."""
  now = tf2_checkpoint.values_of(fresh)
  kept = [name for name in values if restored_values.same(now[name], before[name])]
  count = f'{len(values) - len(kept)} of {len(values)} variables restored'
  ids = fresh.identities()
  said: dict[str, str] = {}

  def with_cause(name: str, difference: Difference) -> Difference:
    value = RestoredValue(name, now[name], values[name], before[name], name, values)
    if not value.kept:
      return with_hint(difference, value, _SAVED, first_cause(value))
    cause = next(causes_of(_unrestored(name, ids[name], fresh, calls)))
    text = said.setdefault(cause.rule, cause.text)
    return with_hint(difference, value, _SAVED, f'{count}: {text}')

  return with_cause


def _unrestored(
  name: str, identity: int, fresh: Port, calls: Sequence[RestoreCall]
) -> UnrestoredVariable:
  """Returns what is known of a variable that was left out, by the object paths looked for."""
  entries = [call.paths[identity] for call in calls if identity in call.paths]
  stored = tf2_checkpoint.stored_paths(calls[-1].path) if entries else ()
  looked_for = set(calls[-1].paths.values()) if entries else set()
  return UnrestoredVariable(
    name,
    type(fresh.layer).__name__,
    tracked=identity in tf2_checkpoint.object_paths(fresh.layer),
    of_keras=keras3.is_layer(fresh.layer)
    and identity in {id(keras3.held(one)) for one in fresh.layer.variables},
    restores=bool(calls),
    waits=all(not call.paths for call in calls),
    entry=entries[-1] if entries else '',
    stored=stored,
    unused=tuple(path for path in stored if path not in looked_for),
  )


def _restored_before_call(
  case: CaseUnderTest,
  loaded: Loaded,
  after: dict[str, np.ndarray],
  prefix: str,
  left_out: Collection[str],
) -> tuple[Port | None, str]:
  """Restores a layer before its first call, as many programs do, and looks what it has then.

  A layer that has run before, and raises now, is stopped by the values that wait for its
  variables: Keras 3 catches what they make of its symbolic calls, and marks what it could not build
  as built.

  Returns:
    The layer with all its variables, None where its call raises, and what was found; '' for
    nothing.
  """
  with randomness.seeded(randomness.CONSTANT):
    port = case.tf2.fresh_port()
    port.expect(after)
    try:
      tf2_checkpoint.restore_before_call(port.layer, prefix)
      with without_warnings():  # Keras says that it cannot build a layer whose values wait for it
        case.tf2.call(port, loaded.inputs, loaded.training, 'the first call, after restoring')
      now = tf2_checkpoint.values_of(port)
      if now.keys() != after.keys():
        call_for_variables(case, port)
    except (UserCodeError, LayerError) as error:
      return None, (
        f'a layer that is restored before its first call raises in it: {telling_line(error)}; '
        'call the port once before it is restored'
      )
    port.forget_initial_values(port.variables())
  others = [
    name
    for name in now
    if name not in left_out and not restored_values.same(now[name], after[name])
  ]
  if not others:
    return port, ''
  more = len(port.layer.variables) - len(loaded.port.layer.variables)
  variables = 'variable' if more == 1 else 'variables'
  twice = (
    f' (it builds its layers twice, which creates {more} more {variables})' if more > 0 else ''
  )
  return port, (
    'the port has to be called once before it is restored: where a checkpoint is restored into a '
    'layer that was not called yet, its first call gives these variables initial values '
    f'in place of those of the checkpoint{twice}, and nothing warns: {listed(others)}; call the '
    'port once and then restore'
  )


def _check_saved_model(
  case: CaseUnderTest,
  loaded: Loaded,
  folder: str,
  comparison: Comparison,
  notes: list[str],
) -> None:
  """Saves the port as a SavedModel, loads it and compares its outputs."""
  assert loaded.outputs is not None and loaded.rerun is not None and loaded.reference is not None
  try:
    saved = saved_model.save(
      case.declaration, loaded.port.layer, loaded.inputs, loaded.training, folder
    )
    outputs = saved.loaded()
  except (UserCodeError, LayerError) as error:
    comparison.blind_spots.append(f'no SavedModel was compared: {telling_line(error)}')
    return
  if draws_numbers(loaded):
    comparison.blind_spots.append(
      'the outputs of the SavedModel were not compared: the model draws random numbers in this mode'
    )
    return
  expected = dataclasses.replace(loaded.outputs, run=_SAVED_MODEL)
  part = Comparison()
  part.outputs(expected, outputs, case.tolerance)
  if part.differences:
    traced = saved.traced()
    if _identical(traced, outputs):
      # What a tf.function computes differently than eager execution is no matter of saving.
      notes.append(
        'the SavedModel yields what the port yields as a tf.function, to the bit; how far that is '
        'from eager execution is checked by execution_modes'
      )
      comparison.outputs(traced, outputs, EXACT)
      return
  comparison.outputs(expected, outputs, case.tolerance)
  comparison.excuse_rounding(loaded.reference, loaded.rerun)


def draws_numbers(loaded: Loaded) -> bool:
  """Returns whether the run draws random numbers, besides those that variables start with.

  An initial value that tf1 computes before it makes the variable counts as drawn by the
  model there; a port that draws nothing in its calls shows that it is none.
  """
  assert loaded.reference is not None
  port = loaded.port.recorder.random_draws()
  return any(draw.variable is None for draw in loaded.reference.random_draws) and any(
    draw.variable is None and not draw.before_calls for draw in port
  )
