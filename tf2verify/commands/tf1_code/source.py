"""What a TF1 function shows of itself: read from its source, which is not imported."""

import ast
import dataclasses
import difflib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from tf2verify.commands.tf1_code.classes import (
  is_decorated,
  kept_as,
  methods_of,
  returns_something,
  sets,
)
from tf2verify.commands.tf1_code.modules import module_name
from tf2verify.commands.tf1_code.roles import role_of
from tf2verify.commands.tf1_code.syntax import (
  called,
  inner_function,
  last_word,
  passed,
  plain_parameters,
  text_of,
)
from tf2verify.errors import UsageError

_DEEPEST = 3


@dataclasses.dataclass(frozen=True)
class Parameter:
  """A parameter of a TF1 function.

  Attributes:
    name: its name.
    role: `input`, `labels`, `training`, `object` (settings with attributes or keys), `number`
      or `text`.
    has_default: whether it may be left out.
    by_name: whether it has to be passed by name.
    fields: of an object, the attributes or keys that the function reads.
    by_key: of an object, whether it is read as a mapping.
    whole: of a number, whether an annotation says that it is an integer.
    parts: of an input that is unpacked into several, their names.
  """

  name: str
  role: str
  has_default: bool = False
  by_name: bool = False
  fields: tuple[str, ...] = ()
  by_key: bool = False
  whole: bool = False
  parts: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Tf1Source:
  """A function of TF1, and the module that it is in.

  Attributes:
    path: of its file.
    module: the name to import it by.
    function: its definition; of a method without `self`; of a class that builds the model when it
      is made, its constructor.
    tree: the module.
    parameters: of the function, in order.
    functions: what the function may call: functions of the module, methods of its class.
    owner: the class of a method; '' for none.
    made_with: the parameters of the constructor of the class, in order.
    kept: what the constructor keeps each of them in: `self.x`.
    is_attribute: whether the method is read as an attribute (a property).
    attributes: where nothing is returned, what is set, the likely output first.
  """

  path: str
  module: str
  function: ast.FunctionDef
  tree: ast.Module
  parameters: tuple[Parameter, ...]
  functions: Mapping[str, ast.FunctionDef]
  owner: str = ''
  made_with: tuple[Parameter, ...] = ()
  kept: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
  is_attribute: bool = False
  attributes: tuple[str, ...] = ()

  @property
  def taken(self) -> tuple[Parameter, ...]:
    """All parameters, those of the constructor first."""
    return (*self.made_with, *self.parameters)

  def uses_of(self, name: str) -> list[tuple[ast.FunctionDef, str]]:
    """Returns where to look for uses of a parameter: functions, and its name in them."""
    if any(one.name == name for one in self.parameters):
      return [(self.function, name)]
    constructor = self.functions['__init__']
    others = [one for one in self.functions.values() if one is not constructor]
    kept = [(one, place) for place in self.kept[name] for one in (self.function, *others)]
    return [(constructor, name), *kept]


def read_source(target: str) -> Tf1Source:
  """Returns a function as its file has it.

  Args:
    target: MODULE:FUNCTION or FILE.py:FUNCTION.

  Raises:
    UsageError: there is no such file or function, or it cannot be parsed.
  """
  place, colon, name = target.rpartition(':')
  if not colon or not place or not name:
    raise UsageError(f'{target} names no function; give MODULE:FUNCTION, such as model.py:network')
  path = _path_of(place)
  try:
    with open(path, 'rb') as file:
      tree = ast.parse(file.read())
  except OSError as error:
    raise UsageError(f'{path} cannot be read: {error.strerror}') from error
  except (SyntaxError, ValueError) as error:
    line = f', line {error.lineno}' if isinstance(error, SyntaxError) else ''
    said = error.msg if isinstance(error, SyntaxError) else str(error)  # without its own line
    raise UsageError(
      f'{path}{line} is not Python {sys.version_info[0]}: {said}; code of Python 2 has to be '
      'converted first (python 2to3, or the package modernize)'
    ) from error
  functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
  classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
  first, _, method = name.partition('.')
  if first in classes:
    return _of_class(path, tree, functions, classes, classes[first], method)
  if name not in functions:
    known = [*functions, *classes]
    close = difflib.get_close_matches(name, known, 1)
    guess = f' (did you mean {close[0]}?)' if close else ''
    raise UsageError(
      f'{path} has no function or class {name} outside of other ones{guess}; it has '
      f'{", ".join(known) or "none"}'
    )
  function = functions[name]
  parameters = tuple(_parameters(functions, function))
  return Tf1Source(path, module_name(path), function, tree, parameters, functions)


def _of_class(
  path: str,
  tree: ast.Module,
  functions: Mapping[str, ast.FunctionDef],
  classes: Mapping[str, ast.ClassDef],
  owner: ast.ClassDef,
  name: str,
) -> Tf1Source:
  """Returns a method, or a class that is called, or that builds the model when it is made."""
  methods = methods_of(owner, classes)
  known = {**functions, **methods}
  constructor = methods.get('__init__')
  made_with = tuple(_parameters(known, constructor)) if constructor else ()
  if not name and '__call__' in methods:
    name = '__call__'
  if not name and constructor and _builds(constructor, made_with):
    name = '__init__'
  public = [f'{owner.name}.{one}' for one in methods if not one.startswith('__')]
  if name not in methods:
    asked = f'{owner.name} has no method {name}' if name else f'{owner.name} is a class'
    raise UsageError(
      f'{path}: {asked}; give the method that builds the outputs: {", ".join(public) or "none"}'
    )
  function = methods[name]
  builders = [methods[one] for one in methods if one != '__init__' or name == '__init__']
  returns = name != '__init__' and returns_something(function)
  return Tf1Source(
    path,
    module_name(path),
    function,
    tree,
    () if name == '__init__' else tuple(_parameters(known, function)),
    known,
    owner.name,
    made_with,
    {one.name: kept_as(constructor, one.name) for one in made_with if constructor},
    is_decorated(function, 'property'),
    () if returns else tuple(sets(builders)),
  )


def _builds(constructor: ast.FunctionDef, parameters: Sequence[Parameter]) -> bool:
  """Returns whether a constructor takes tensors, or makes placeholders in their place."""
  makes = any(
    isinstance(node, ast.Call) and called(node).startswith('placeholder')
    for node in ast.walk(constructor)
  )
  return makes or any(one.role == 'input' for one in parameters)


def _path_of(place: str) -> str:
  if place.endswith('.py') or os.sep in place:
    if not os.path.isfile(place):
      raise UsageError(f'{place} does not exist; give MODULE:FUNCTION or FILE.py:FUNCTION')
    return place
  parts = place.split('.')
  for folder in (os.getcwd(), *sys.path):
    for path in (os.path.join(folder, *parts) + '.py', os.path.join(folder, *parts, '__init__.py')):
      if os.path.isfile(path):
        return path
  raise UsageError(
    f'no module {place}: neither in the working folder nor on the path of Python; give its file, '
    'such as models/net.py:FUNCTION'
  )


def _parameters(
  functions: Mapping[str, ast.FunctionDef], function: ast.FunctionDef
) -> Iterator[Parameter]:
  given = function.args
  plain = [*given.posonlyargs, *given.args]
  optional = {one.arg for one in plain[len(plain) - len(given.defaults) :]}
  named = {one.arg for one in given.kwonlyargs}
  optional |= {
    one.arg
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    if default is not None
  }
  for one in (*plain, *given.kwonlyargs):
    fields, by_key = _fields_anywhere(functions, function, one.arg)
    has_default = one.arg in optional
    annotated = last_word(one.annotation)
    yield Parameter(
      one.arg,
      role_of(one.arg, has_default, annotated, _places(functions, function, one.arg), functions),
      has_default,
      one.arg in named,
      tuple(fields),
      by_key,
      annotated == 'int',
      tuple(_unpacked(function, one.arg)),
    )


def _unpacked(function: ast.FunctionDef, name: str) -> Iterator[str]:
  """Yields the names of `a, b = name`."""
  for node in ast.walk(function):
    if isinstance(node, ast.Assign) and _is_name(node.value, name):
      for target in node.targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        if parts and all(isinstance(part, ast.Name) for part in parts):
          yield from (part.id for part in parts if isinstance(part, ast.Name))
          return


def _places(
  functions: Mapping[str, ast.FunctionDef], function: ast.FunctionDef, name: str
) -> Iterator[tuple[ast.FunctionDef, str]]:
  """Yields where a parameter is read; one of a constructor also where methods read it."""
  yield function, name
  if function.name == '__init__':
    for place in kept_as(function, name):
      yield from ((one, place) for one in functions.values())


def _fields_anywhere(
  functions: Mapping[str, ast.FunctionDef], function: ast.FunctionDef, name: str
) -> tuple[list[str], bool]:
  """Returns as `_fields_of`, of a parameter of a constructor also where methods read it."""
  found: list[str] = []
  by_key = False
  for n, (one, place) in enumerate(_places(functions, function, name)):
    more, keys = _fields_of(functions, one, place, _DEEPEST if n else 0)
    found, by_key = list(dict.fromkeys([*found, *more])), by_key or keys
  return found, by_key


def _fields_of(
  functions: Mapping[str, ast.FunctionDef], function: ast.FunctionDef, name: str, depth: int
) -> tuple[list[str], bool]:
  """Returns what is read of a parameter that holds settings, and whether by key.

  Also by other functions of the module that it is passed to.
  """
  attributes: dict[str, None] = {}
  keys: dict[str, None] = {}
  for node in ast.walk(function):
    inner = inner_function(node, functions) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and inner is not None and depth < _DEEPEST:
      for parameter, value in passed(node, plain_parameters(inner)):
        if _is_name(value, name):
          found, by_key = _fields_of(functions, inner, parameter, depth + 1)
          (keys if by_key else attributes).update(dict.fromkeys(found))
    if isinstance(node, ast.Attribute) and _is_name(node.value, name):
      attributes[node.attr] = None
    elif (
      isinstance(node, ast.Subscript)
      and _is_name(node.value, name)
      and isinstance(node.slice, ast.Constant)
      and isinstance(node.slice.value, str)
    ):
      keys[node.slice.value] = None
  return (list(keys), True) if keys else (list(attributes), False)


def _is_name(node: ast.AST, name: str) -> bool:
  """Returns whether it is a name, or `self.x`."""
  return text_of(node) == name
