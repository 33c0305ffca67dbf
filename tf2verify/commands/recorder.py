"""What `python -m tf2verify recorder` prints: the package `reference`, as one file.

Every module of the package that its `command` needs stands in the file once, after those
that it imports, under a line with its name; only docstrings and imports of the modules are
left out. So the file reads as the package does, and whoever has to admit it to a machine of
production can read it from top to bottom.
"""

import ast
import dataclasses
import functools
import importlib.resources
import sys
import textwrap
from collections.abc import Iterable, Sequence

from tf2verify.environment.version import VERSION

_PACKAGE = 'tf2verify.reference'
_LAST = 'command'
_RULE = '# ' + '-' * 87
_HEAD = '''#!/usr/bin/env python3
"""{doc}"""

# Printed by `python -m tf2verify recorder` of tf2verify {version}: the modules of its package
# tf2verify/reference, each after those that it needs. To change it, change them.

{standard}

if __name__ == '__main__':
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
try:
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # TensorFlow 1.x warns of newer numpy versions
{installed}
except (ImportError, TypeError) as _error:  # a TypeError: protobuf is too new for it
  if __name__ != '__main__':
    raise
  sys.stderr.write(
    'tf1_recorder: error: TensorFlow cannot be imported by {{}} (Python {{}}): {{}}: {{}}; run the '
    'recorder with the Python in which the model runs: /path/to/its/python tf1_recorder.py ...\\n'
    ''.format(
      sys.executable or 'this Python',
      platform.python_version(),
      type(_error).__name__,
      (str(_error).strip().splitlines() or [''])[0].rstrip('.'),
    )
  )
  sys.exit(2)

_PYTHON: str = platform.python_version()  # Python 2 stops here: use Python 3.6 or newer
'''
_TAIL = """

if __name__ == '__main__':
  sys.exit(main())
"""
# What the head itself uses.
_OF_HEAD = ('import os', 'import platform', 'import sys', 'import warnings')


@dataclasses.dataclass(frozen=True)
class _Module:
  """A module of the package, in parts."""

  name: str  # of the module
  doc: str  # its docstring
  needs: tuple[str, ...]  # the modules of the package that it imports
  imports: tuple[str, ...]  # of anything else, one name each
  names: tuple[str, ...]  # what it defines
  body: str  # the text of all else


def recorder_text() -> str:
  """Returns the recorder, the one file to run where TensorFlow 1.x is."""
  return joined(modules())


@functools.cache
def modules() -> tuple[_Module, ...]:
  """Returns the modules that the command needs, each after those that it imports."""
  folder = importlib.resources.files(_PACKAGE)
  found: dict[str, _Module] = {}

  def add(name: str) -> None:
    if name not in found:
      text = folder.joinpath(f'{name}.py').read_text(encoding='utf-8')
      module = parsed(name, text)
      for needed in module.needs:
        add(needed)
      found[name] = module

  add(_LAST)
  return tuple(found.values())


def parsed(name: str, text: str) -> _Module:
  """Takes the text of a module apart.

  Raises:
    ValueError: an import would not be the same in one file.
  """
  tree = ast.parse(text)
  doc = ast.get_docstring(tree, clean=False)
  if doc is None:
    raise ValueError(f'{name} has no docstring')
  lines: list[str | None] = list(text.splitlines())
  needs: list[str] = []
  imports: list[str] = []
  names: list[str] = []
  for number, node in enumerate(tree.body):
    left_out = number == 0
    if isinstance(node, ast.ImportFrom) and node.level:
      needs.append(_needed(name, node))
      left_out = True
    elif isinstance(node, ast.Import | ast.ImportFrom):
      imports += _single(node)
      left_out = True
    defined = _defined(node)
    if defined == ['__all__']:
      left_out = True
    else:
      names += defined
    if left_out:
      for line in range(node.lineno - 1, node.end_lineno or node.lineno):
        lines[line] = None
  inner = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n not in tree.body]
  if any(node.level for node in inner):
    raise ValueError(f'{name} imports from the package within a function')
  body = '\n'.join(line for line in lines if line is not None)
  return _Module(name, doc, tuple(needs), tuple(imports), tuple(names), body.strip('\n'))


def _needed(name: str, node: ast.ImportFrom) -> str:
  """Returns the module of the package that an import takes names from, as they are."""
  if node.level != 1 or not node.module or any(alias.asname for alias in node.names):
    raise ValueError(
      f'{name}, line {node.lineno}: `{ast.unparse(node)}`: in one file it would have no meaning; '
      'write `from .module import name`'
    )
  return node.module


def _single(node: ast.Import | ast.ImportFrom) -> Iterable[str]:
  """Yields an import, one name each."""
  for alias in node.names:
    taken = f'{alias.name} as {alias.asname}' if alias.asname else alias.name
    yield (
      f'import {taken}' if isinstance(node, ast.Import) else f'from {node.module} import {taken}'
    )


def _defined(node: ast.stmt) -> list[str]:
  if isinstance(node, ast.FunctionDef | ast.ClassDef):
    return [node.name]
  if isinstance(node, ast.Assign | ast.AnnAssign):
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]
  return []


def joined(parts: Sequence[_Module]) -> str:
  """Returns modules as the text of one file.

  Raises:
    ValueError: two of them define one name.
  """
  owners: dict[str, str] = {}
  for module in parts:
    for name in module.names:
      if name in owners:
        raise ValueError(f'{owners[name]} and {module.name} both define {name}')
      owners[name] = module.name
  imports = {*_OF_HEAD, *(line for module in parts for line in module.imports)}
  installed = {line for line in imports if line.split()[1].split('.')[0] not in _STANDARD}
  head = _HEAD.format(
    doc=parts[-1].doc,
    version=VERSION,
    standard=_import_lines(imports - installed),
    installed=textwrap.indent(_import_lines(installed), '    '),
  )
  texts = [_section(module, module.doc) for module in parts[:-1]]
  texts.append(_section(parts[-1], 'what is called.'))  # its docstring is the file's
  return head + ''.join(texts) + _TAIL


def _section(module: _Module, doc: str) -> str:
  """Returns a module under a line with its name and, as comments, its docstring."""
  lines = [_RULE, *(f'# {line}'.rstrip() for line in f'{module.name}: {doc.strip()}'.splitlines())]
  return '\n\n' + '\n'.join(lines) + f'\n\n{module.body}\n'


_STANDARD = sys.stdlib_module_names


def _import_lines(imports: Iterable[str]) -> str:
  """Returns imports in order, what is taken from one module in one line of at most 100."""
  plain = sorted(line for line in imports if line.startswith('import '))
  taken: dict[str, list[str]] = {}
  for line in sorted(set(imports) - set(plain)):
    module, _, name = line.removeprefix('from ').partition(' import ')
    taken.setdefault(module, []).append(name)
  lines = list(plain)
  for module, names in taken.items():
    line = f'from {module} import {", ".join(names)}'
    if len(line) > 90:
      names_in_lines = textwrap.fill(
        ', '.join(names), 90, initial_indent='  ', subsequent_indent='  '
      )
      line = f'from {module} import (\n{names_in_lines},\n)'
    lines.append(line)
  return '\n'.join(lines)
