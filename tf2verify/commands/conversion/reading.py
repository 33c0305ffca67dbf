"""The lines of Python that read what a conversion has written: run here before they are printed."""

import ast
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tf2verify.case import EquivalenceCase
from tf2verify.commands.conversion.target import Format
from tf2verify.errors import LayerError, UserCodeError
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.verdict_text import differences_text
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.optimizers.state import is_optimizer
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.files import model_files, printed_lines
from tf2verify.sides.tf2.layers.call_arguments import takes_training
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.checkpoints.error_line import telling_line
from tf2verify.stages.checkpoints.optimizer_transfer import (
  WRITTEN_AND_READ,
  check_written,
  variables_of,
)
from tf2verify.stages.checkpoints.restoring import compare_restored, with_sentinels
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest

_WHY_CALLED = '  # once: this makes the variables that are read'
_READ = 'value read by the printed lines'
# What the lines may name, and what it is.
_NAMES = {
  'case': 'case: {0}()',
  'layer': 'layer: a new one, as {0}.make_tf2_layer returns it',
  'inputs': 'inputs: like those that {0}.make_inputs returns',
  'optimizer': 'optimizer: a new one, as {0}.make_tf2_optimizer returns it',
}
# The second is for files that hold more than the layer, such as the counter of `Checkpoint.save`.
_CHECKS = ('assert_consumed', 'assert_existing_objects_matched')


@dataclasses.dataclass(frozen=True)
class Reading:
  """How a program reads what was written."""

  calls: tuple[str, ...]  # lines that give `layer` its variables; none where it is made with them
  # Lines that read the file; each may have `{path}` in the place of its path.
  reads: tuple[str, ...]

  def lines(self, path: str, case: str) -> tuple[str, ...]:
    """Returns the lines of Python, after a comment that says what their names stand for.

    Args:
      path: of the file.
      case: the name of the case's class.
    """
    first = tuple(line + _WHY_CALLED * (not at) for at, line in enumerate(self.calls))
    lines = (*first, *self.reads_of(path))
    nodes = ast.walk(ast.parse('\n'.join(lines)))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    meant = [text.format(case) for name, text in _NAMES.items() if name in used]
    return (f'# {"; ".join(meant)}', *lines) if meant else lines

  def reads_of(self, path: str) -> tuple[str, ...]:
    """Returns the lines that read the file."""
    return tuple(line.replace('{path}', repr(path)) for line in self.reads)


def model_lines(layer: object) -> tuple[str, ...]:
  """Returns the line that reads a `.keras` file, which makes its own model: see `Reading.reads`."""
  library = model_files.library_of(layer).__name__
  names = ', '.join(f'{name!r}: {name}' for name in sorted(model_files.own_classes(layer)))
  classes = f', {{{names}}}' if names else ''
  return (f'{library}.saving.load_model({{path}}{classes})',)


def verified_reading(
  case: CaseUnderTest,
  format: Format,
  path: str,
  values: Mapping[str, np.ndarray],
  optimizer: Any | None,
) -> tuple[Reading | None, str]:
  """Reads a file by the lines that are printed, in a fresh layer, and compares what it holds.

  A fresh layer of Keras has no variables before its first call, and a checkpoint that is read then
  is lost on those of Keras 3, without an error. So the layer is called first, and the status of the
  read is asked.

  Args:
    case: both sides.
    format: of the file; not `Format.MODEL`.
    path: of the file, or the prefix of the checkpoint.
    values: that were written, by name of the variable, in the shapes of tf1.
    optimizer: that was written; None for none.

  Returns:
    The lines; None and why, where none of them read everything.
  """
  why = ''
  for reads in _alternatives(case, format, optimizer):
    try:
      calls, found = _read(case, path, reads, values, optimizer)
    except (UserCodeError, LayerError) as error:
      why = why or telling_line(error)
      continue
    if not found.differences:
      return Reading(calls, reads), ''
    why = '\n'.join(differences_text(found.differences, WRITTEN_AND_READ))
  return None, why


def _alternatives(
  case: CaseUnderTest, format: Format, optimizer: Any | None
) -> list[tuple[str, ...]]:
  """Returns lines that may read a file, those that say most of what they miss first."""
  if format is Format.WEIGHTS:
    return [('layer.load_weights({path})',)]
  if optimizer is None and case.declaration.declares('load_tf2_checkpoint'):
    return [('case.load_tf2_checkpoint(layer, {path})',)]
  roots = 'model=layer'
  build: tuple[str, ...] = ()
  if optimizer is not None:
    roots += ', optimizer=optimizer'
    # Those of tf.keras.optimizers.legacy have no build; their slots wait for what was read.
    if is_optimizer(optimizer) and hasattr(optimizer, 'build'):
      build = ('optimizer.build(layer.trainable_variables)',)
  return [(*build, f'tf.train.Checkpoint({roots}).read({{path}}).{check}()') for check in _CHECKS]


def _read(
  case: CaseUnderTest,
  path: str,
  reads: tuple[str, ...],
  values: Mapping[str, np.ndarray],
  optimizer: Any | None,
) -> tuple[tuple[str, ...], Comparison]:
  """Runs the lines with a fresh layer; returns those that called it, and how its values compare."""
  found = Comparison()
  with randomness.seeded(randomness.CONSTANT):
    port = case.tf2.fresh_port()
    names = printed_lines.names_for(case.declaration, port.layer, case.inputs)
    calls = _called(case, port, names)
    with_sentinels(port, values)
    if optimizer is not None:
      with user_code(side.TF2, 'make_tf2_optimizer'):
        names['optimizer'] = case.declaration.make_tf2_optimizer()
    printed_lines.run(Reading(calls, reads).reads_of(path), names)
  now = tf2_checkpoint.values_of(port)
  for name, value in values.items():
    compare_restored(found, TensorKey(_READ, name), value, now[name])
  if optimizer is not None:
    tf2_checkpoint.make_slots(names['optimizer'], port.layer)
    check_written(variables_of(optimizer), variables_of(names['optimizer']), found)
  return calls, found


def _called(case: CaseUnderTest, port: Port, names: dict[str, Any]) -> tuple[str, ...]:
  """Calls a layer until it has its variables; returns the lines that have done so."""
  wanted = {variable.name for variable in case.tf2.inventory().variables}
  lines: list[str] = []
  for training in sorted(case.declaration.training_modes):
    if wanted <= port.made_so_far():
      break
    lines.append(_call_line(case, port.layer, training))
    with port.recorder.recording('the call that makes the variables'):
      printed_lines.run(lines[-1:], names)
  return tuple(lines)


def _call_line(case: CaseUnderTest, layer: Any, training: bool) -> str:
  hook = case.declaration.call_tf2_layer
  if getattr(hook, '__func__', hook) is not EquivalenceCase.call_tf2_layer:
    return f'case.call_tf2_layer(layer, inputs, {training})'
  return f'layer(inputs, training={training})' if takes_training(layer) else 'layer(inputs)'
