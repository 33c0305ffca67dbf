"""What the installed TensorFlow has, looked up in its files: it is not imported."""

import functools
import importlib.machinery
import os
import re

_OLD = 'compat.v1'


@functools.cache
def is_there(module: str) -> bool:
  """Returns whether TensorFlow has a module, or a name in a module; yes where it is not installed.

  Args:
    module: as an import has it, such as `tensorflow.python.ops.rnn`; Keras is taken to be there,
      since it is a package of its own.
  """
  spec = importlib.machinery.PathFinder.find_spec('tensorflow')
  words = module.split('.')[1:]
  if spec is None or not spec.origin or not words or 'keras' in words:
    return True
  folder = os.path.dirname(spec.origin)
  if os.path.isdir(os.path.join(folder, words[0])):
    return _is_in(folder, words)
  public = os.path.join(folder, '_api', 'v2')  # a part of the package's path
  return not os.path.isdir(public) or _is_in(public, words)


def in_compat_v1(module: str) -> str:
  """Returns where a module, or a name in a module, is in `tensorflow.compat.v1`; '' for nowhere."""
  old = '.'.join(['tensorflow', _OLD, *module.split('.')[1:]])
  return old if is_there(old) else ''


def _is_in(folder: str, words: list[str]) -> bool:
  if not words:
    return True
  below = os.path.join(folder, words[0])
  if os.path.isdir(below):
    return _is_in(below, words[1:])
  return os.path.isfile(f'{below}.py') or any(
    # Not in a comment or text: an assignment, or a name that is imported.
    re.search(rf'(?m)^\s*{words[0]}\s*=|\bimport .*\b{words[0]}\b', text)
    for text in map(_text, (os.path.join(folder, name) for name in ('__init__.py', 'v2.py')))
  )


def _text(path: str) -> str:
  try:
    with open(path, encoding='utf-8') as file:
      return file.read()
  except OSError:
    return ''
