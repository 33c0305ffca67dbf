"""Runs a script under a setting; a program of its own, which `repeating_scripts` starts.

    python seeded_script.py [--seed S] [--op_determinism] [--threads N] SCRIPT ...

It is run by its path, not as a module, so that the script's process holds nothing of
tf2verify: neither TensorFlow, before the script itself imports it, nor the choice of
Keras. What is to be set in TensorFlow and numpy is set as soon as the script imports them.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import runpy
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class _AfterImport(importlib.abc.MetaPathFinder):
  """Calls a function with a module as soon as that is imported."""

  def __init__(self, actions: Mapping[str, Callable[[Any], None]]) -> None:
    self._actions = dict(actions)

  def find_spec(
    self,
    fullname: str,
    path: Sequence[str] | None,
    target: types.ModuleType | None = None,
  ) -> importlib.machinery.ModuleSpec | None:
    """Returns the spec that Python finds, with the action after its execution."""
    action = self._actions.pop(fullname, None)
    if action is None:
      return None
    spec = importlib.util.find_spec(fullname)
    loader: Any = None if spec is None else spec.loader
    if loader is None:
      return spec
    execute = loader.exec_module

    def execute_and_act(module: types.ModuleType) -> None:
      execute(module)
      action(module)

    loader.exec_module = execute_and_act
    return spec


def _set_numpy(numpy: Any, options: argparse.Namespace) -> None:
  if options.seed is not None:
    numpy.random.seed(options.seed)


def _set_tensorflow(tensorflow: Any, options: argparse.Namespace) -> None:
  if options.seed is not None:
    tensorflow.random.set_seed(options.seed)
  if options.op_determinism and hasattr(tensorflow.config.experimental, 'enable_op_determinism'):
    tensorflow.config.experimental.enable_op_determinism()
  if options.threads is not None:
    tensorflow.config.threading.set_inter_op_parallelism_threads(options.threads)
    tensorflow.config.threading.set_intra_op_parallelism_threads(options.threads)


def main(argv: Sequence[str]) -> None:
  """Runs the script as `__main__`.

  Args:
    argv: options, script and the script's own arguments.
  """
  parser = argparse.ArgumentParser()
  parser.add_argument('--seed', type=int)
  parser.add_argument('--op_determinism', action='store_true')
  parser.add_argument('--threads', type=int)
  parser.add_argument('script')
  parser.add_argument('arguments', nargs=argparse.REMAINDER)
  options = parser.parse_args(argv)
  if options.seed is not None:
    random.seed(options.seed)
  actions: dict[str, Callable[[Any], None]] = {
    'numpy': lambda module: _set_numpy(module, options),
    'tensorflow': lambda module: _set_tensorflow(module, options),
  }
  sys.meta_path.insert(0, _AfterImport(actions))
  sys.argv[:] = [options.script, *options.arguments]
  # In place of the folder of this file, which holds modules that the script may have as well.
  sys.path[0] = os.path.dirname(os.path.abspath(options.script))
  runpy.run_path(options.script, run_name='__main__')


if __name__ == '__main__':
  main(sys.argv[1:])
