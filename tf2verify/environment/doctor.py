"""Says what the environment is, what was patched in it, and how to fix the rest.

`python -m tf2verify doctor` prints the report. It also works where TensorFlow is absent.
"""

import dataclasses
import os
import platform
import sys
import warnings
from collections.abc import Callable
from typing import Any

from tf2verify.environment import installed, legacy_keras
from tf2verify.safe_text import say

_ONEDNN_VARIABLE = 'TF_ENABLE_ONEDNN_OPTS'
# Import name and name to show, in the order of the report.
_PACKAGES = (
  ('tensorflow', 'TensorFlow'),
  ('tf_keras', 'tf-keras'),
  ('keras', 'keras'),
  ('tf_slim', 'tf-slim'),
  ('numpy', 'numpy'),
  ('absl', 'absl-py'),
)


@dataclasses.dataclass(frozen=True)
class Fact:
  """One line of the report: a name and its value."""

  name: str
  value: str


@dataclasses.dataclass(frozen=True)
class DoctorReport:
  """The environment as found."""

  versions: tuple[Fact, ...]  # of Python and of the packages that matter
  mends: tuple[str, ...]  # what tf2verify changed in this process
  # What can move results in the last digits. Empty without TensorFlow.
  numerics: tuple[Fact, ...]
  # TensorFlow's global behaviour switches. Empty without TensorFlow.
  switches: tuple[Fact, ...]
  # What TF1-style code did when it was run. Empty where a problem forbids it.
  probes: tuple[Fact, ...]
  problems: tuple[legacy_keras.Problem, ...]  # what is wrong, each with one fix
  notes: tuple[str, ...]  # what is worth knowing, and is not in the way

  def to_text(self) -> str:
    """The report as aligned plain text, without a final newline."""
    sections = [
      _section('versions', _aligned(self.versions)),
      _section('patched', self.mends),
      _section('numerics', _aligned(self.numerics)),
      _section('switches', _aligned(self.switches)),
      _section('probes', _aligned(self.probes)),
      _section('notes', self.notes),
    ]
    problems = [line for each in self.problems for line in (each.what, f'  fix: {each.fix}')]
    sections.append(_section('problems', problems))
    count = len(self.problems)
    if count:
      sections.append(f'{count} problem{"s" if count > 1 else ""}: TF1-style code cannot run here.')
    else:
      sections.append('No problems: TF1-style code runs here.')
    return '\n\n'.join(section for section in sections if section)


def report() -> DoctorReport:
  """Prepares the environment, tries it out, and reports. Builds a few tiny graphs."""
  preparation = legacy_keras.prepare()
  problems = preparation.problems
  release = installed.minor(installed.version('tensorflow'))
  imported = sys.modules.get('tensorflow') is not None
  supported = release is not None and release >= legacy_keras.OLDEST_TENSORFLOW
  probes: tuple[Fact, ...] = ()
  if release is not None and not problems:
    probes, problems = _probe(release)
  notes = preparation.notes
  if installed.version('tf_slim') is None:
    notes += ('tf-slim is not installed; only models that use it need it: pip install tf-slim',)
  return DoctorReport(
    versions=_versions(),
    mends=preparation.mends,
    numerics=_numerics() if imported and supported else (),
    switches=_switches() if imported and supported else (),
    probes=probes,
    problems=problems,
    notes=notes,
  )


def main() -> int:
  """Prints the report; returns the exit code: 0 when all is well, 2 otherwise."""
  found = report()
  say(found.to_text())
  return 2 if found.problems else 0


def _versions() -> tuple[Fact, ...]:
  facts = [Fact('Python', platform.python_version())]
  for package, name in _PACKAGES:
    facts.append(Fact(name, installed.version(package) or 'not installed'))
  return tuple(facts)


def _numerics() -> tuple[Fact, ...]:
  import tensorflow as tf

  from tf2verify.tensorflow_internals import eager

  devices = tf.config.list_physical_devices()
  listed = ', '.join(device.name.removeprefix('/physical_device:') for device in devices)
  facts = [
    Fact('oneDNN', _onednn()),
    Fact('op determinism', _on_off(eager.is_op_determinism_enabled())),
    Fact('devices', listed),
  ]
  if any(device.device_type == 'GPU' for device in devices):
    facts.append(Fact('TF32', _on_off(tf.config.experimental.tensor_float_32_execution_enabled())))
  return tuple(facts)


def _onednn() -> str:
  from tf2verify.tensorflow_internals import eager

  setting = os.environ.get(_ONEDNN_VARIABLE)
  shown = f'{_ONEDNN_VARIABLE} is not set' if setting is None else f'{_ONEDNN_VARIABLE}={setting}'
  if eager.is_onednn_enabled():
    return f'on ({shown})'
  if setting == '0':
    return f'off ({shown})'
  return f'off: not in this build, or not for this processor ({shown})'


def _switches() -> tuple[Fact, ...]:
  import tensorflow as tf

  # No public getter exists for the second and third, so that behaviour tells. `==` of two
  # tensors is a bool, their identity, where tensor equality is off; it is off in graphs.
  equality = tf.executing_eagerly() and not isinstance(tf.constant(1) == tf.constant(1), bool)
  return (
    Fact('eager execution', _on_off(tf.executing_eagerly())),
    Fact('tensor equality', _on_off(equality)),
    Fact('v2 tensor shapes', _on_off(isinstance(tf.TensorShape([1])[0], int))),
    Fact('v2 control flow', _on_off(tf.compat.v1.control_flow_v2_enabled())),
    Fact('resource variables', _on_off(tf.compat.v1.resource_variables_enabled())),
  )


def _probe(
  release: tuple[int, int],
) -> tuple[tuple[Fact, ...], tuple[legacy_keras.Problem, ...]]:
  """Runs TF1-style code; a fact per probe, and a problem per probe that failed."""
  probes: list[tuple[str, Callable[[], None], str]] = [
    (
      'tf.compat.v1.layers under the shim',
      _run_shimmed_layer,
      legacy_keras.reinstall_command(release),
    ),
  ]
  if installed.version('tf_slim') is not None:
    fix = 'pip install --force-reinstall --no-deps tf-slim==1.1.0'
    probes += [
      ('slim.batch_norm, rank 2', lambda: _run_slim_batch_norm((2, 3)), fix),
      ('slim.batch_norm, rank 4', lambda: _run_slim_batch_norm((2, 4, 4, 3)), fix),
    ]
  facts, problems = [], []
  for name, run, fix in probes:
    try:
      run()
    # Whatever a probe raises is its result.
    except Exception as error:  # noqa: BLE001
      facts.append(Fact(name, 'FAILED'))
      what = f'{name} failed: {type(error).__name__}: {error}'
      problems.append(legacy_keras.Problem(what, fix))
    else:
      facts.append(Fact(name, 'works'))
  return tuple(facts), tuple(problems)


def _run_slim_batch_norm(shape: tuple[int, ...]) -> None:
  import tensorflow as tf
  import tf_slim as slim

  # Rank 2, and updates in place, take the path of tf-slim that needs ops.Tensor; rank 4
  # takes the one that needs the old layers.
  with tf.Graph().as_default():
    inputs = tf.compat.v1.placeholder(tf.float32, shape)
    outputs = slim.batch_norm(inputs, is_training=True)
    slim.batch_norm(inputs, is_training=True, updates_collections=None, scope='in_place')
  if outputs.shape.as_list() != list(shape):
    raise ValueError(f'output shape {outputs.shape}, expected {shape}')


def _run_shimmed_layer() -> None:
  import tensorflow as tf
  import tf_keras

  def call(layer: Any, inputs: Any) -> Any:
    return tf.compat.v1.layers.dense(inputs, 2, name='dense')

  layer = tf_keras.layers.Layer()
  shimmed = tf.compat.v1.keras.utils.track_tf1_style_variables(call)
  with tf.init_scope(), warnings.catch_warnings():
    warnings.simplefilter('ignore')  # that tf.compat.v1.layers is deprecated is known here
    shimmed(layer, tf.ones((1, 3)))
    shimmed(layer, tf.ones((1, 3)))
  names = sorted(variable.name for variable in layer.variables)
  if names != ['dense/bias:0', 'dense/kernel:0']:
    raise ValueError(f'variables {names}, expected dense/bias:0 and dense/kernel:0')


def _on_off(value: bool) -> str:
  return 'on' if value else 'off'


def _aligned(facts: tuple[Fact, ...]) -> list[str]:
  width = max((len(fact.name) for fact in facts), default=0)
  return [f'{fact.name:<{width}}  {fact.value}' for fact in facts]


def _section(title: str, lines: tuple[str, ...] | list[str]) -> str:
  return '\n'.join([title, *(f'  {line}' for line in lines)]) if lines else ''
