"""A checkpoint by reference."""

import os
from typing import Any, Dict, Optional

import numpy as np
import tensorflow as tf

from .arrays import array_digest
from .errors import RecorderError
from .private_tensorflow import v1
from .recorder import Recorder


def record_checkpoint(recorder: Recorder) -> Optional[Dict[str, Any]]:
  """Records which tensors a checkpoint holds, and their digests; None without one.

  Raises:
    RecorderError: it cannot be read, or is not name-based.
  """
  prefix = recorder.options.checkpoint
  if prefix is None:
    return None
  with recorder.step('reading the checkpoint {}'.format(prefix)):
    try:
      reader = v1.train.NewCheckpointReader(str(prefix))
      dtypes, shapes = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
      keys = [
        {
          'name': name,
          'shape': list(shapes[name]),
          'dtype': dtypes[name].base_dtype.name,
          'sha256': array_digest(np.asarray(reader.get_tensor(name))),
        }
        for name in sorted(shapes)
      ]
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
      lines = [line for line in str(error).splitlines() if line.strip()] or ['']
      raise RecorderError(
        '--checkpoint {} cannot be read: {}; give the prefix that Saver.save returned, without '
        '.index or .meta'.format(prefix, lines[0][:200])
      ) from None
  if any(key['name'] == '_CHECKPOINTABLE_OBJECT_GRAPH' for key in keys):
    raise RecorderError(
      '--checkpoint {} was written by tf.train.Checkpoint; a name-based checkpoint is needed, as '
      'tf.train.Saver writes it'.format(prefix)
    )
  return {'path': os.path.abspath(str(prefix)), 'keys': keys}
