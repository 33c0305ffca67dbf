"""TensorBoard's event files, written by `tf.summary`."""

import glob
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tf2verify.errors import EnvironmentProblem, UsageError
from tf2verify.records.events import EventFolder, Histogram, Scalar, Text
from tf2verify.tensorflow_internals import eager

# Tells the files written here from all others, which are left alone.
SUFFIX = '.tf2verify'
_FILES = f'events.out.tfevents.*{SUFFIX}'


def require() -> None:
  """Checks that events can be written.

  Raises:
    EnvironmentProblem: TensorFlow finds no usable `tensorboard`.
  """
  if not hasattr(tf.summary, 'scalar'):
    raise EnvironmentProblem(
      'tf.summary has no scalar: TensorFlow could not import tensorboard, which writes it; repair '
      "its installation: pip install 'tf2verify[tensorboard]'"
    )


def write(directory: str, folders: Sequence[EventFolder]) -> None:
  """Writes the events of a case, in place of those that were written there before.

  Files of others stay. Works with eager execution off as well.

  Args:
    directory: of the case; made where it is not there.
    folders: itself and those below it.

  Raises:
    EnvironmentProblem: TensorFlow finds no usable `tensorboard`.
    UsageError: a file cannot be written.
  """
  require()
  try:
    _remove(directory)
    # Code under test may have left a graph, or graph mode, behind.
    with eager.eager_mode():
      for folder in folders:
        _write_folder(os.path.join(directory, folder.name), folder)
  except (OSError, tf.errors.OpError) as error:
    raise UsageError(
      f'could not write events into {directory}: {error}; --tensorboard_dir names a folder that '
      'can be made and written'
    ) from error


def _remove(directory: str) -> None:
  for path in glob.glob(os.path.join(glob.escape(directory), '**', _FILES), recursive=True):
    os.remove(path)


def _write_folder(path: str, folder: EventFolder) -> None:
  writer = tf.summary.create_file_writer(path, filename_suffix=SUFFIX)
  with writer.as_default(), tf.summary.record_if(True):
    for event in folder.events:
      if isinstance(event, Scalar):
        with np.errstate(over='ignore'):  # what float32 cannot hold is infinite
          value = np.float32(event.value)
        tf.summary.scalar(event.tag, value, event.step, event.description or None)
      elif isinstance(event, Text):
        tf.summary.text(event.tag, event.markdown, event.step)
      else:
        _write_histogram(event)
  writer.close()


def _write_histogram(event: Histogram) -> None:
  """Writes buckets as they are; `tf.summary.histogram` would make its own out of elements."""
  metadata = tf.compat.v1.SummaryMetadata(
    summary_description=event.description,
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name='histograms'),
  )
  buckets = tf.constant(event.buckets, tf.float64, (len(event.buckets), 3))
  tf.summary.write(event.tag, buckets, event.step, metadata)
