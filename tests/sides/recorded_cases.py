"""Cases whose reference is recorded, in this process, and replayed."""

import contextlib
import io
import os
from typing import Any

import tf2verify
from tf2verify.hooks import OF_REFERENCE
from tf2verify.reference import recording


def record(
  case_class: type[tf2verify.EquivalenceCase], folder: str, **options: Any
) -> type[tf2verify.EquivalenceCase]:
  """Records the reference of a case by `tf.compat.v1`.

  Args:
    case_class: with a reference of its own.
    folder: to record to; it must not exist.
    **options: of the recorder, in place of what the case declares.

  Returns:
    The same case with the recording for its reference.
  """
  case = case_class()

  def declared(hook: str) -> Any:
    return getattr(case, hook) if case.declares(hook) else None

  given = {
    'training_modes': case.training_modes,
    'labels': case.make_labels(),
    'loss': declared('tf1_loss'),
    'total_loss': declared('tf1_total_loss'),
    'optimizer': declared('make_tf1_optimizer'),
    'train_op': declared('make_tf1_train_op'),
    'run_update_ops': case.run_update_ops,
    'steps': case.training_steps_to_take,
    'fill': case.fill_values,
    'noise_runs': 8,
  }
  if given['train_op'] is not None:
    del given['optimizer']
  with contextlib.redirect_stderr(io.StringIO()):
    recording.record(case.build_tf1_graph, case.make_inputs(), folder, **{**given, **options})
  return replayed(case_class, folder)


def replayed(
  case_class: type[tf2verify.EquivalenceCase], folder: str
) -> type[tf2verify.EquivalenceCase]:
  """Returns a case with a recording for its reference."""
  base, case = tf2verify.EquivalenceCase, case_class()
  body = {hook: getattr(base, hook) for hook in OF_REFERENCE}
  if case.declares('make_tf2_optimizer'):  # which may be made by a hook of the reference
    body['make_tf2_optimizer'] = lambda _: case.make_tf2_optimizer()
  body['tf1_recording'] = os.path.abspath(folder)
  return type(f'Recorded{case_class.__name__}', (case_class,), body)
