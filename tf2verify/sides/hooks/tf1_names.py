"""Names of TensorFlow 1 that TensorFlow 2 does not have."""

import os
import re
import traceback
import types
from collections.abc import Sequence

import tensorflow as tf

_IMPORT = re.compile(r'\s*import\s+(?:.*,\s*)?tensorflow(?:\s+as\s+(\w+))?\s*(?:[,#].*)?$')
# What TensorFlow and Python say where TF1 code runs eagerly, or asks for what is gone, and the fix.
_OF_MESSAGES = (
  (
    re.compile(r"'(int|NoneType)' object has no attribute 'value'"),
    'a dimension of a shape is a plain number in TensorFlow 2: leave out .value',
  ),
  (
    re.compile(r'Tensor\.(name|op|graph) is undefined when eager execution is enabled'),
    'an eager tensor has no name, operation or graph: write the name yourself, as a key of '
    'end_points for instance',
  ),
  (
    re.compile(r"module '[\w.]*tensorflow[\w.]*' has no attribute 'estimator'"),
    'tf.estimator is gone since TensorFlow 2.16; its ModeKeys.TRAIN, EVAL and PREDICT '
    "are the texts 'train', 'eval' and 'infer'",
  ),
)
# What an AttributeError of a module says where Keras has wrapped it, and only its text is left.
_OF_MODULE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_RECORD = 'record the reference under TensorFlow 1.x, where it runs as it is (docs/recordings.md)'


def hint(error: BaseException, side: str, frames: Sequence[traceback.FrameSummary]) -> str:
  """Returns the fix where code has asked TensorFlow 2 for a name of TensorFlow 1; '' elsewhere.

  Args:
    error: what was raised.
    side: whose code it was; a port has no use for a recording.
    frames: of the user's code, the innermost last.
  """
  if isinstance(error, AttributeError):
    # Keras wraps what a layer raises: of the error itself only the message is left.
    for pattern, fix in _OF_MESSAGES:
      if pattern.search(str(error)):
        return f'; {fix}'
  name, module = getattr(error, 'name', None), getattr(error, 'obj', None)
  if not isinstance(error, AttributeError):
    return ''
  home = module.__name__ if isinstance(module, types.ModuleType) else ''
  wrapped = _OF_MODULE.search(str(error))
  if not name and wrapped is not None:
    home, name = wrapped[1], wrapped[2]
  if not name or not home:
    return ''
  path = _path_in_tensorflow(home)
  if path is None:
    return ''
  if name == 'contrib':
    return '' if side == 'tf2' else f'; or {_RECORD}'
  dotted = '.'.join((*path, name))
  if not _is_in_tf1(dotted):
    return ''
  if side == 'tf2':
    # Where the port calls code of another file, that may be TF1 code under the shim.
    line = _line_of_import(frames) if len({frame.filename for frame in frames}) > 1 else ''
    in_tf1 = f', or, in TF1 code under the shim, `{line}' if line else ''
    return f'; a TF1 name: tf.compat.v1.{dotted} has it{in_tf1}'
  return f'; a TF1 name: `{_import(frames)} gives it, or {_RECORD}'


def _path_in_tensorflow(module: str) -> tuple[str, ...] | None:
  """Returns `('train',)` for `tensorflow._api.v2.train`; None for a module that is another's."""
  parts = module.split('.')
  if parts[0] == 'tensorflow':
    return tuple(parts[3:]) if parts[1:3] == ['_api', 'v2'] else tuple(parts[1:])
  # What `tf.losses`, `tf.metrics`, `tf.initializers` and `tf.optimizers` are in TensorFlow 2.
  if 'keras' in parts[1:] and parts[0] in ('keras', 'tf_keras'):
    return tuple(parts[parts.index('keras', 1) + 1 :])
  return None


def _is_in_tf1(dotted: str) -> bool:
  found: object = tf.compat.v1
  for part in dotted.split('.'):
    if not hasattr(found, part):
      return False
    found = getattr(found, part)
  return True


def _import(frames: Sequence[traceback.FrameSummary]) -> str:
  """Returns the import that is to be written, and where."""
  if not frames:
    return 'import tensorflow.compat.v1 as tf`'
  place = os.path.basename(frames[-1].filename)
  return _line_of_import(frames) or f'import tensorflow.compat.v1 as tf` in {place}'


def _line_of_import(frames: Sequence[traceback.FrameSummary]) -> str:
  """Returns the import that is to be written, and where one is that it replaces; '' without."""
  if not frames:
    return ''
  path = frames[-1].filename
  try:
    with open(path, encoding='utf-8') as file:
      lines = file.read().splitlines()
  except (OSError, UnicodeDecodeError):
    lines = []
  place = os.path.basename(path)
  for number, line in enumerate(lines, 1):
    found = _IMPORT.match(line)
    if found:
      alias = found[1] or 'tensorflow'
      return f'import tensorflow.compat.v1 as {alias}` in {place}:{number}'
  return ''
