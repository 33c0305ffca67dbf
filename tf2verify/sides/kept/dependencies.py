"""What a reference depends on: its own code and values, and the process that it runs in."""

import contextlib
import decimal
import importlib
import logging
import os
import platform
import sys
import types
import unittest
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify import hooks
from tf2verify.sides.kept.fingerprint import Fingerprint, fingerprint
from tf2verify.sides.kept.installed import bindings, is_installed, own_digest, versions
from tf2verify.tensorflow_internals.process_globals import PROCESS_GLOBALS

# Of the hooks those that make the graph of the model, with its gradients.
OF_GRAPH = ('build_tf1_graph', 'loss')
# Those that add losses and train op to it.
OF_TRAINING = tuple(name for name in hooks.OF_REFERENCE if name not in OF_GRAPH)
# Attributes of a case that say how the port is judged, run or paired.
_OF_JUDGEMENT = frozenset(
  (
    'accepted_causes',
    'evaluate_with_ema',
    'fresh_processes',
    'gradient_tolerance',
    'modes_to_run',
    'regularization_tolerance',
    'resources',
    'slot_names',
    'stages',
    'tf1_only_variables',
    'tf2_only_variables',
    'tolerance',
    'training_tolerance',
    'variable_map',
    'variable_names',
  )
)
_OF_CLASS = frozenset(
  (
    '__dict__',
    '__doc__',
    '__module__',
    '__weakref__',
    '_classSetupFailed',
    '_class_cleanups',
    '_ladder',
    '_shown',
  )
)
_TEST = 'test_'
# Process globals that a build starts from; the others are set for it, or say how things look.
_GLOBALS = frozenset(
  (
    'working folder',
    'recursion limit',
    'numpy error handling',
    'eager execution',
    'TF2 behavior',
    'soft device placement',
    'op determinism',
    'TensorFloat-32',
    'XLA',
    'grappler options',
    'eager functions',
    'resource variables',
    'control flow v2',
    'Keras floatx',
    'Keras epsilon',
    'Keras image data format',
    'Keras v2 dtype behavior',
    'Keras dtype policy',
    'Keras 3 settings',
    'mixed precision',
    'Keras random generator type',
  )
)
_VARIABLES = ('TF_', 'XLA_', 'KERAS', 'CUDA_', 'OMP_', 'MKL_', 'KMP_', 'ONEDNN', 'PYTHONHASHSEED')
_CPU = '/proc/cpuinfo'
_MODULE = 'module '


def code_of(case: Any, wanted: Iterable[str] = OF_GRAPH) -> Fingerprint:
  """Returns the digest of what some hooks of a case may read.

  Args:
    case: an instance.
    wanted: names of the hooks. Others, and what says how the port is judged, count where the code
      of these names them.
  """
  wanted = frozenset(wanted)
  known = frozenset(hook.name for hook in hooks.HOOKS)
  own = [cls for cls in type(case).__mro__ if not is_installed(sys.modules.get(cls.__module__))]
  roots: list[tuple[str, Any]] = []
  left_out: dict[str, list[tuple[str, Any]]] = {}
  for label, name, value in _members(case, own):
    apart = (name in known and name not in wanted) or name in _OF_JUDGEMENT
    if apart:
      left_out.setdefault(name, []).append((label, value))
    else:
      roots.append((label, value))
  return fingerprint(roots, own, left_out)


def _members(case: Any, classes: Iterable[type]) -> Iterator[tuple[str, str, Any]]:
  for cls in classes:
    yield f'bases of {cls.__qualname__}', '', tuple(base.__qualname__ for base in cls.__mro__)
    for name, value in list(vars(cls).items()):
      made = name.startswith(_TEST) and isinstance(value, (types.FunctionType, type(None)))
      if name not in _OF_CLASS and not name.startswith('_abc_') and not made:
        yield f'{cls.__module__}.{cls.__qualname__}.{name}', name, value
  of_unittest = vars(unittest.TestCase()).keys()
  for name, value in list(vars(case).items()):
    if name not in of_unittest and not name.startswith('_TestCase__'):
      yield f'self.{name}', name, value


def process_of() -> dict[str, str]:
  """Returns what any reference finds: by name, a text of each that shows a change."""
  found = {f'{name} of this process': repr(_plain(value)) for name, value in _settings()}
  found |= {f'package {name}': version for name, version in versions()}
  found |= {f'{_MODULE}{name}': digest for name, digest in bindings().items()}
  found |= {
    f'environment variable {name}': value
    for name, value in os.environ.items()
    if name.startswith(_VARIABLES)
  }
  found['tf2verify'] = own_digest()
  found['Python'] = sys.version
  found['TensorFlow'] = f'{tf.__version__} {tf.version.GIT_VERSION}'
  found['numpy'] = np.__version__
  found['machine'] = f'{platform.platform()} {platform.machine()} {os.cpu_count()}'
  found['processor'] = _processor()
  found['devices'] = repr([device.name for device in tf.config.list_physical_devices()])
  found['threads'] = repr(
    (
      tf.config.threading.get_inter_op_parallelism_threads(),
      tf.config.threading.get_intra_op_parallelism_threads(),
    )
  )
  found['print options of numpy'] = repr(sorted(np.get_printoptions().items()))
  found['decimal context'] = repr(decimal.getcontext())
  found['logging'] = repr(sorted(_log_levels().items()))
  found['absl flags'] = repr(_absl_flags())
  return found


def with_modules_of(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
  """Returns what `process_of` found, with modules that were loaded then and are not yet now.

  Which are loaded depends on what ran before: another case, or pytest. They are loaded, since only
  then is it known whether they are as they were.
  """
  missing = [
    name.removeprefix(_MODULE) for name in before if name.startswith(_MODULE) and name not in now
  ]
  for module in missing:
    with contextlib.suppress(Exception):  # it stays missing, which is a change
      importlib.import_module(module)
  found = bindings(missing) if missing else {}
  return {**now, **{f'{_MODULE}{name}': digest for name, digest in found.items()}}


def _settings() -> Iterator[tuple[str, Any]]:
  for piece in PROCESS_GLOBALS:
    if piece.name in _GLOBALS:
      yield piece.name, piece.read()


def _plain(value: Any) -> Any:
  """Returns a value whose text is the same in each process: a policy is known by its name."""
  if isinstance(value, (list, tuple)):
    return [_plain(one) for one in value]
  if isinstance(value, dict):
    return {key: _plain(one) for key, one in value.items()}
  return getattr(value, 'name', None) or value if hasattr(value, 'compute_dtype') else value


def _processor() -> str:
  """Returns model and instruction sets, which decide about kernels."""
  try:
    with open(_CPU, encoding='utf-8', errors='replace') as file:
      lines = file.read().split('\n\n')[0].splitlines()
  except OSError:
    return platform.processor()
  wanted = ('model name', 'flags', 'stepping', 'microcode')
  return '\n'.join(line for line in lines if line.startswith(wanted))


def _log_levels() -> dict[str, int]:
  """Returns the levels of loggers that were set; without the root, and installed packages.

  What runs the case sets these.
  """
  known = list(logging.root.manager.loggerDict.items())
  return {
    name: logger.level
    for name, logger in known
    if isinstance(logger, logging.Logger)
    and logger.level
    and not is_installed(sys.modules.get(name.partition('.')[0]))
  }


def _absl_flags() -> list[tuple[str, str]]:
  """Returns the flags of absl that were set, and all of the user's own modules."""
  flags = sys.modules.get('absl.flags')
  if flags is None:
    return []
  values = flags.FLAGS
  found = []
  for module, known in sorted(values.flags_by_module_dict().items()):
    for flag in known:
      if flag.present or not is_installed(sys.modules.get(module)):
        found.append((flag.name, repr(flag.value)))
  return found


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
  """Returns the names of what is different, those that are there in one only too."""
  names = dict.fromkeys((*before, *now))
  return [name for name in names if before.get(name) != now.get(name)]
