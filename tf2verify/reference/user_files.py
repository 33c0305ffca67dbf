"""Which files are the user's."""

import os
import sysconfig
from typing import Tuple

FRAMEWORKS = ('tensorflow', 'tensorflow_core', 'tf_keras', 'keras', 'numpy', 'absl')
# Part of the name of the files into which a `tf.function` is rewritten.
AUTOGRAPH = '__autograph_generated_file'


def is_file_of_user(path: str, frameworks: Tuple[str, ...]) -> bool:
  """Returns whether a file belongs to neither a framework nor the standard library.

  TF-Slim's layers are a framework; its `nets` are somebody's models.

  Args:
    path: of the file, as a stack frame has it.
    frameworks: folders of what is nobody's model, each with a separator at its end.
  """
  if path.startswith('<'):
    return path.startswith('<ipython')
  path = os.path.abspath(path)
  slim = '{0}tf_slim{0}'.format(os.sep)
  if slim in path:
    return '{}nets{}'.format(slim, os.sep) in path
  if path.startswith(frameworks) or AUTOGRAPH in path:
    return False
  installed = '{0}site-packages{0}'.format(os.sep) in path
  return installed or not path.startswith(sysconfig.get_path('stdlib') + os.sep)
