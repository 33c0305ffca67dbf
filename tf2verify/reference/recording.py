"""A whole recording."""

import hashlib
import json
import os
import platform
import sys
import time
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from .checkpoint import record_checkpoint
from .errors import RecorderError
from .fill_values import Fill
from .functions import function_name, source_files
from .inputs import checked_arrays
from .losses import record_losses
from .messages import say
from .model_runs import record_training_mode
from .new_folder import new_folder
from .options import MOST_NOISE_RUNS, Options
from .private_tensorflow import v1
from .recorder import Recorder
from .step_entries import record_steps
from .train_op import TrainOp
from .training import TrainingGraph
from .versions import KIND, SCHEMA, VERSIONS
from .writer import Writer


def _record_training(recorder: Recorder) -> Tuple[Any, Any]:
  """Records losses and training steps, as far as they are asked for; None for each that is not."""
  options = recorder.options
  with_steps = options.optimizer is not None or options.train_op is not None
  if options.loss is None and not with_steps:
    return None, None
  if options.loss is None and options.total_loss is None:
    say(
      'note: no --loss is given: the training steps minimize the default loss, a weighted sum of '
      'all outputs, and the regularization losses'
    )
  training = TrainingGraph(recorder)
  with recorder.step('adding losses{}'.format(' and the train op' if with_steps else '')):
    train = TrainOp(training) if with_steps else None
    training.describe()
  losses = record_losses(recorder, training)
  steps = None if train is None else record_steps(recorder, training, train)
  if steps is not None:
    # The model's with the lines that the entry of its graph has for them.
    steps['random_draws'][:0] = losses['graph']['random_draws']
  return losses, steps


def _environment() -> Dict[str, str]:
  return {
    'tensorflow': tf.__version__,
    'python': platform.python_version(),
    'numpy': np.__version__,
    'platform': platform.platform(),
    'onednn': os.environ.get('TF_ENABLE_ONEDNN_OPTS', 'not set'),
  }


def check_versions() -> None:
  """Raises `RecorderError` under versions that are too old."""
  if v1 is None or tuple(int(n) for n in tf.__version__.split('.')[:2]) < (1, 13):
    raise RecorderError(
      'this is TensorFlow {}; the recorder runs under 1.13 and newer'.format(tf.__version__)
    )
  if tuple(int(n) for n in np.__version__.split('.')[:2]) < (1, 14):
    raise RecorderError('this is numpy {}; the recorder needs 1.14'.format(np.__version__))


def canonical(manifest: Dict[str, Any]) -> bytes:
  """Returns the manifest as the bytes that its digest is of."""
  text = json.dumps(
    manifest, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(',', ':')
  )
  return text.encode('utf-8')


def record(
  builder: Callable[..., Any],
  inputs: Any,
  out: str,
  *,
  training_modes: Sequence[bool] = (False, True),
  labels: Any = None,
  loss: Optional[Callable[..., Any]] = None,
  total_loss: Optional[Callable[..., Any]] = None,
  optimizer: Optional[Callable[..., Any]] = None,
  train_op: Optional[Callable[..., Any]] = None,
  run_update_ops: bool = True,
  steps: int = 3,
  checkpoint: Optional[str] = None,
  intermediates: str = 'none',
  noise_runs: int = MOST_NOISE_RUNS,
  compress: bool = True,
  largest_array: Optional[int] = None,
  fill: Optional[Fill] = None,
  overwrite: bool = False,
) -> str:
  """Records a model.

  Args:
    builder: takes the inputs, as placeholders, and the training mode; returns tensors.
    inputs: a numpy array, or a tuple, list or dictionary of arrays.
    out: the folder to make.
    training_modes: (False, True), or one of them.
    labels: a nest of arrays for the losses.
    loss: takes outputs and labels, returns the loss.
    total_loss: the same with regularization; by default their sum.
    optimizer: takes nothing, returns a `tf.train.Optimizer`.
    train_op: takes the loss, returns the op of a training step; instead of `optimizer`.
    run_update_ops: whether a training step runs the UPDATE_OPS collection.
    steps: how many training steps to record.
    checkpoint: the prefix of a checkpoint of the model.
    intermediates: 'none', 'summary' or 'full': what is stored of every tensor on the way.
    noise_runs: how many moved runs are made of each run at most; fewer of a large model.
    compress: whether arrays are compressed where that makes them smaller.
    largest_array: larger arrays that were computed are stored as samples and means; by
      default 65,536 elements, 4,096 of a model of more than 10 million.
    fill: gives a variable its value, of name, shape and dtype; None keeps the initial one.
    overwrite: whether a recording `out` that exists is replaced.

  Returns:
    The folder's path.

  Raises:
    RecorderError: it could not be made; there is no folder then.
  """
  check_versions()
  checked = checked_arrays(inputs, 'inputs')
  options = Options(
    training_modes=training_modes,
    labels=None if labels is None else checked_arrays(labels, 'labels'),
    loss=loss,
    total_loss=total_loss,
    optimizer=optimizer,
    train_op=train_op,
    run_update_ops=run_update_ops,
    steps=steps,
    checkpoint=checkpoint,
    intermediates=intermediates,
    noise_runs=noise_runs,
    largest_array=largest_array,
    fill=fill,
  )
  if not tf.__version__.startswith('1.'):
    say(
      'note: this is TensorFlow {}, not 1.x: the recording says what the code computes here, not '
      'what it computes in TensorFlow 1.x'.format(tf.__version__)
    )
  start = time.time()
  with new_folder(out, overwrite) as folder:
    writer = Writer(folder, options.largest_array, compress)
    size = _write(Recorder(builder, checked, options, writer), builder, folder)
  out = os.path.abspath(out)
  say(
    'wrote {}: {:.1f} MB, {} arrays, {:.0f} s; copy the folder to where TensorFlow 2 is, and set '
    'tf1_recording = {!r} in the case of the port'.format(
      out, size / 1e6, len(writer.entries), time.time() - start, os.path.basename(out)
    )
  )
  return out


def _write(recorder: Recorder, builder: Callable[..., Any], folder: str) -> int:
  """Records everything into a folder; returns how many bytes that has."""
  try:
    manifest = _manifest(recorder, builder)
  finally:
    recorder.sessions.close()
  recorder.writer.close()
  manifest['arrays'] = recorder.writer.entries
  manifest['sha256'] = hashlib.sha256(canonical(manifest)).hexdigest()
  with open(os.path.join(folder, 'manifest.json'), 'wb') as file:
    file.write(canonical(manifest) + b'\n')
  return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


def _manifest(recorder: Recorder, builder: Callable[..., Any]) -> Dict[str, Any]:
  """Records everything, and returns what the manifest says but for the arrays."""
  options, writer = recorder.options, recorder.writer
  known = frozenset(sys.modules)
  given = {
    'inputs': writer.nest(recorder.inputs),
    'varied_inputs': writer.nest(recorder.varied),
    'replaced_inputs': recorder.replaced,
    'labels': None if options.labels is None else writer.nest(options.labels),
  }
  graphs = [record_training_mode(recorder, training) for training in options.training_modes]
  losses, steps = _record_training(recorder)
  functions = [builder, *options.functions().values()]
  return {
    **given,
    'schema': SCHEMA,
    'kind': KIND,
    'versions': VERSIONS,
    'made': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
    'environment': _environment(),
    'builder': {'name': function_name(builder), 'sources': source_files(functions, known)},
    'arguments': dict(options.manifest(), largest_array=writer.largest_array),
    'training_modes': list(options.training_modes),
    'fills': recorder.fills,
    'graphs': graphs,
    'runs': recorder.runs,
    'losses': losses,
    'steps': steps,
    'checkpoint': record_checkpoint(recorder),
    'intermediates': {'level': options.intermediates, 'runs': recorder.intermediates},
  }
