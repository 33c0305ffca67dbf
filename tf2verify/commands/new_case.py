"""`python -m tf2verify new`: writes the first case for a TF1 function."""

import os
import shlex
import textwrap
from collections.abc import Sequence

from tf2verify.commands.tf1_code.inputs import Input, inputs_of
from tf2verify.commands.tf1_code.modules import can_be_written, shown_file
from tf2verify.commands.tf1_code.replacements import Replacement, replacements_of
from tf2verify.commands.tf1_code.shapes import placeholders_inside
from tf2verify.commands.tf1_code.source import Parameter, Tf1Source, read_source
from tf2verify.commands.tf1_code.training import called_by_hooks, optional_hooks_of
from tf2verify.environment.case_files import shown_path
from tf2verify.errors import UsageError
from tf2verify.hooks import PLACEHOLDER

_SHOWN = 20
_COLUMNS = 100
# Sizes that fit each other: heads divide units.
_SIZES = (('head', '2'), ('layer', '2'), ('block', '2'), ('class', '10'))
_SHARES = (
  ('keep_prob', '1.0'),
  ('rate', '0.1'),
  ('dropout', '0.1'),
  ('prob', '0.9'),
  ('epsilon', '1e-5'),
)
_FURTHER = (('momentum', '0.9'), ('decay', '1e-4'), ('scale', '1.0'), ('factor', '1.0'))
_TEXTS = {'reuse': 'None', 'data_format': "'channels_last'"}


def new_case(target: str) -> str:
  """Returns the text of a first case for a TF1 function.

  The port in it is the TF1 code itself, under the modeling shim: the case passes what it can
  pass, and the code is replaced piece by piece.

  Args:
    target: MODULE:FUNCTION or FILE.py:FUNCTION.

  Raises:
    UsageError: there is no such function, or it cannot be read.
  """
  return _text(read_source(target))


def _text(source: Tf1Source) -> str:
  if not any(one.role == 'input' for one in source.taken):
    raise UsageError(_without_inputs(source))
  inputs = inputs_of(source)
  head = _head(source, replacements_of(source))
  body = '\n'.join([*_outputs(source), *_port(source), '', '', *_case(source, inputs)])
  # Of the hooks that are comments, too: they run as soon as they are none.
  names = sorted({source.owner or source.function.name, *called_by_hooks(source)})
  by_import = can_be_written(source.module)
  libraries = [] if by_import else ['import importlib']
  libraries += ['import types'] if 'types.' in body else []
  statement = [f'from {source.module} import {", ".join(names)}']
  return '\n'.join(
    [
      *head,
      *([*libraries, ''] if libraries else []),
      'import numpy as np',
      'import tensorflow as tf',
      '',
      'import tf2verify',
      *(statement if by_import else _imported_by_function(source.module, names)),
      '',
      '',
      body,
      '',
    ]
  )


def _imported_by_function(module: str, names: Sequence[str]) -> list[str]:
  """Returns the import of a module that the statement `import` cannot name."""
  return [
    '',
    f'_module = importlib.import_module({module!r})  # `import` takes no such name',
    *(f'{name} = _module.{name}' for name in names),
  ]


def _without_inputs(source: Tf1Source) -> str:
  """Returns what is wrong with a function that has no inputs, and what to do."""
  name = source.function.name
  name = f'{source.owner}.{name}' if source.owner else name
  line = source.function.lineno
  wrong = f'{name} ({shown_path(source.path)}, line {line}) has no parameter that takes tensors'
  made = ', '.join(f'{one} (line {line})' for one, line in placeholders_inside(source))
  if not made:
    return (
      f'{wrong}; a case feeds the model its inputs: give the function that builds the outputs from '
      'them'
    )
  return (
    f'{wrong}, but placeholders inside: {made}; a case feeds the model its inputs: turn the '
    f'placeholders into parameters of {name}, then run this command again'
  )


def write_new(target: str, out: str | None) -> str:
  """Writes a first case, or returns its text.

  Args:
    target: as of `new_case`.
    out: the file; None to write none.

  Returns:
    What to print.

  Raises:
    UsageError: the file exists already, is no Python file or cannot be written, or as of
      `new_case`.
  """
  source = read_source(target)
  if out is not None:
    _require_case_file(out)
  text = _text(source)
  if out is None:
    return text.removesuffix('\n')
  try:
    with open(out, 'x', encoding='utf-8') as file:
      file.write(text)
  except FileExistsError as error:
    raise UsageError(
      f'{out} exists already; name a different file, nothing is overwritten'
    ) from error
  except OSError as error:
    raise UsageError(f'could not write {out}: {error.strerror}; name a file in a folder') from error
  marks = text.count('# CHECK')
  lines = f'{marks} line{"" if marks == 1 else "s"} to check (# CHECK)'
  # Those of the port, too: until there is one, the TF1 code runs as the port.
  first = replacements_of(source)
  if first:
    places = ', '.join(dict.fromkeys(one.place for one in first[:3]))
    more = ', …' if len(first) > 3 else ''
    lines += f', {len(first)} to replace first ({places}{more}, listed at its top)'
  return f'wrote {out}: {lines}, then: python -m tf2verify run {shlex.quote(out)}'


def _require_case_file(out: str) -> None:
  """Raises `UsageError` for a file that the command `run` could not import."""
  stem, suffix = os.path.splitext(os.path.basename(out))
  if suffix == '.py' and '.' not in stem:
    return
  name = f'{(stem if suffix else os.path.basename(out)).replace(".", "_") or "model"}'
  name += '' if name.endswith(('_case', '_test')) else '_case'
  suggested = os.path.join(os.path.dirname(out), f'{name}.py')
  raise UsageError(
    f'could not write {out}: a case is run as a Python module, so its file ends in .py and has no '
    f'other dot in its name; such as --out {shlex.quote(suggested)}'
  )


def _head(source: Tf1Source, replacements: Sequence[Replacement]) -> list[str]:
  file, name = shown_file(source.path, source.path), source.function.name
  if source.owner:
    name = source.owner if name.startswith('__') else f'{source.owner}.{name}'
  # In a string, a backslash or quote of a file name would be one of Python.
  title = file.replace('\\', '/').replace('"', "'")
  lines = [f'"""Compares {name} of {title} with its port."""', '']
  groups = (
    (False, f'To be replaced before {file} runs under TensorFlow 2:'),
    (True, 'To be replaced before it runs as the port, which is this code until you write one:'),
  )
  for in_port, title in groups:
    found = [one for one in replacements if one.in_port is in_port]
    lines += [f'# {title}'] if found else []
    for one in found[:_SHOWN]:
      lines += _comment(f'{one.place}: {one.code} -> {one.advice}')
    if len(found) > _SHOWN:
      files = ', '.join(dict.fromkeys(one.file for one in found[_SHOWN:]))
      lines += _comment(f'and {len(found) - _SHOWN} more in {files}')
    lines += [''] if found else []
  return lines


def _comment(text: str, start: str = '#   ') -> list[str]:
  return textwrap.wrap(
    text, _COLUMNS, initial_indent=start, subsequent_indent=f'{start}  ', break_long_words=False
  )


def _class_name(function: str) -> str:
  return ''.join(word[:1].upper() + word[1:] for word in function.split('_') if word) or 'Model'


def _name(source: Tf1Source) -> str:
  return _class_name(source.owner or source.function.name)


def _port_name(source: Tf1Source) -> str:
  """Returns the name of the port's class, which is not that of a class or function of TF1."""
  name = _name(source)
  return f'{name}Port' if name in (source.owner, source.function.name) else name


def _outputs(source: Tf1Source) -> list[str]:
  """Returns a function that makes the object of a class, and the outputs with it."""
  if not source.owner:
    return []
  lines = ['def _outputs(inputs, training):']
  name = source.function.name
  made = _call(source, source.owner, source.made_with, '  ')
  if name == '__call__':
    called = _call(source, 'model', source.parameters, '  ')
  elif source.is_attribute:
    called = f'model.{name}'
  else:
    called = _call(source, f'model.{name}', source.parameters, '  ')
  lines.append(f'  model = {made}')
  if not source.attributes and name != '__init__':
    return [*lines, f'  return {called}', '', '']
  lines += [f'  {called}'] if name != '__init__' else []
  attributes = source.attributes or ('outputs',)
  lines += _comment(f'CHECK: the outputs; it sets {", ".join(attributes)}', '  # ')
  return [*lines, f'  return model.{attributes[0]}', '', '']


def _returned(source: Tf1Source) -> str:
  if source.owner:
    return '_outputs(inputs, training)'
  return _call(source, source.function.name, source.parameters, '    ')


def _port(source: Tf1Source) -> list[str]:
  return [
    f'class {_port_name(source)}(tf.keras.layers.Layer):',
    '  """The TF1 code itself, under the shim: replace it by the port, the whole or by parts."""',
    '',
    f'  {PLACEHOLDER} = True  # delete this line when the port is here',
    '',
    '  @tf.compat.v1.keras.utils.track_tf1_style_variables',
    '  def call(self, inputs, training=False):',
    f'    return {_returned(source)}',
  ]


def _case(source: Tf1Source, inputs: Sequence[Input]) -> list[str]:
  name = _name(source)
  lines = [
    f'class {name}Case(tf2verify.EquivalenceCase):',
    '  def build_tf1_graph(self, inputs, training):',
    f'    return {_returned(source)}',
    '',
    '  def make_tf2_layer(self):  # a fresh, unbuilt one at every call',
    f'    return {_port_name(source)}()',
    '',
    '  def make_inputs(self):  # numpy, the same for both sides',
  ]
  if len(inputs) == 1:
    text = inputs[0].text.replace('\n', '\n    ')
    lines += [*_checked(inputs[0].reason), f'    return {text}']
  else:
    lines.append('    return {')
    for one in inputs:
      lines += [f'  {line}' for line in _checked(one.reason)]
      text = one.text.replace('\n', '\n      ')
      lines.append(f'      {one.name!r}: {text},')
    lines.append('    }')
  lines.append('')
  hooks = optional_hooks_of(source)
  lines += [f'  {line}'.rstrip() for line in hooks.strip().splitlines()]
  return [*lines, '', '', "if __name__ == '__main__':", '  tf2verify.main()']


def _checked(reason: str) -> list[str]:
  return textwrap.wrap(
    f'CHECK: {reason}', _COLUMNS, initial_indent='    # ', subsequent_indent='    #   '
  )


def _call(source: Tf1Source, name: str, parameters: Sequence[Parameter], indent: str) -> str:
  """Returns a call of the function, or of its class, on as many lines as it takes."""
  inputs = [one.name for one in source.taken if one.role == 'input']
  parts = []
  for one in parameters:
    value = f'inputs[{one.name!r}]' if len(inputs) > 1 else 'inputs'
    if one.role != 'input':
      value = _setting(one)
    if not value:
      continue
    # Behind one that is left out, names are needed.
    by_name = one.by_name or one.has_default
    parts.append((f'{one.name}={value}' if by_name else value, _is_to_check(one)))
  together = f'{name}({", ".join(part for part, _ in parts)})'
  if not any(check for _, check in parts) and len(together) < _COLUMNS - 12:
    return together
  lines = []
  for part, check in parts:
    lines += [f'{indent}  # CHECK: set as in production'] * check + [f'{indent}  {part},']
  return '\n'.join([f'{name}(', *lines, f'{indent})'])


def _is_to_check(parameter: Parameter) -> bool:
  return parameter.role in ('number', 'object', 'labels') or (
    parameter.role == 'text' and not parameter.has_default
  )


def _setting(parameter: Parameter) -> str:
  """Returns what to pass for a parameter that is not an input; '' for one that is left out."""
  if parameter.role == 'training':
    return 'training'
  if parameter.role == 'mode':
    return "'train' if training else 'infer'"
  if parameter.has_default:
    return ''
  if parameter.role == 'object':
    fields = parameter.fields
    if parameter.by_key:
      return '{' + ', '.join(f'{name!r}: {_number(name)}' for name in fields) + '}'
    return f'types.SimpleNamespace({", ".join(f"{name}={_number(name)}" for name in fields)})'
  if parameter.role == 'labels':
    return 'None'
  if parameter.role == 'text':
    return _TEXTS.get(parameter.name, repr(parameter.name))
  return _number(parameter.name, parameter.whole)


def _number(name: str, whole: bool = False) -> str:
  low = name.lower()
  for word, value in _SIZES if whole else (*_SHARES, *_SIZES, *_FURTHER):
    if word in low:
      return value
  return '8'
