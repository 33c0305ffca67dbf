"""The digest of one object, with what it holds; what has a name is left to others."""

import abc
import builtins
import enum
import functools
import hashlib
import logging
import os
import sys
import threading
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.reference.arrays import array_digest
from tf2verify.sides.kept import installed, packages, refusals, states
from tf2verify.sides.kept.code_reads import codes_of, reads_of
from tf2verify.sides.kept.installed import file_digest, is_installed, is_installed_file
from tf2verify.sides.kept.walk import Walk

_NUMBERS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_C_FUNCTIONS = (
  types.BuiltinFunctionType,
  types.WrapperDescriptorType,
  types.MethodDescriptorType,
  types.ClassMethodDescriptorType,
  types.GetSetDescriptorType,
  types.MemberDescriptorType,
  types.MethodWrapperType,
  np.ufunc,
)
_CYTHON = 'cython_function_or_method'
_CONTAINERS = (dict, list, tuple, set, frozenset)
# Of a class: made by Python itself.
_OF_PYTHON = frozenset(
  ('__dict__', '__weakref__', '__module__', '_abc_impl', '__abstractmethods__')
)
_MISSING = object()


class Part:
  """The digest of one object, as far as it is not a part of its own."""

  def __init__(self, walk: Walk, name: str) -> None:
    self._walk = walk
    self._name = name
    self._hash = hashlib.sha256()
    self._seen: dict[int, int] = {}
    self._kept: list[Any] = []

  def digest(self) -> str:
    return self._hash.hexdigest()

  def _say(self, *words: object) -> None:
    for word in words:
      text = str(word).encode('utf-8', 'surrogatepass')
      self._hash.update(f'{len(text)}:'.encode())
      self._hash.update(text)

  def put(self, value: Any) -> None:
    """Adds a value, with what it holds."""
    kind = type(value)
    if kind in _NUMBERS:
      self._say(kind.__name__, value.hex() if kind is float else states.text_of(value))
      if kind is str:
        self._walk.strings.add(value)
    elif kind is np.ndarray and value.dtype.kind not in 'OV':
      self._say('array', value.dtype.str, array_digest(value), value.flags.c_contiguous)
    elif isinstance(value, np.generic):
      self._say(kind.__name__, value.dtype.str, value.tobytes().hex())
    elif kind is types.ModuleType or isinstance(value, types.ModuleType):
      self._module(value)
    elif kind is types.FunctionType:
      self._function(value)
    elif isinstance(value, type):
      self._class(value)
    elif kind in self._walk.known:
      self._say('the case')
    elif kind is types.CodeType:
      self._code(value)
    elif isinstance(value, _C_FUNCTIONS) or kind.__name__ == _CYTHON:
      self._c_function(value)
    elif isinstance(value, _LOCKS):
      self._say('lock')
    elif isinstance(value, logging.Logger):
      self._say('logger', value.name)
    elif value is os.environ:
      self._say('os.environ')  # what is read of it is recorded
    elif isinstance(value, types.GenericAlias) or kind.__module__ == 'typing':
      self._say('type', repr(value))
    elif id(value) in self._seen:
      self._say('seen', self._seen[id(value)])
    elif self._walk.counted(self._name):
      self._seen[id(value)] = len(self._seen)
      self._kept.append(value)
      self._object(value)

  def _object(self, value: Any) -> None:
    kind = type(value)
    if isinstance(value, types.MethodType):
      self._say('method')
      self.put(value.__func__)
      self.put(value.__self__)
    elif isinstance(value, (staticmethod, classmethod)):
      self._say(kind.__name__)
      self.put(value.__func__)
    elif kind is property:
      self._say('property')
      self._all((value.fget, value.fset, value.fdel))
    elif isinstance(value, functools.partial):
      self._say('partial')
      self._all((value.func, value.args, value.keywords, vars(value)))
    elif hasattr(value, 'cache_info') and hasattr(value, '__wrapped__'):
      self._cached(value)
    elif kind is types.CellType:
      self._cell(value)
    elif isinstance(value, enum.Enum):
      self._say('member', value.name)
      self.put(kind)
    elif kind is types.MappingProxyType:
      self._say('mapping')
      self._items(dict(value))
    elif isinstance(value, tf.Variable) or tf.is_tensor(value):
      self._tensor(value)
    elif kind is np.ndarray:
      self._say('array', value.dtype.str, value.shape)
      self._all(value.ravel().tolist())
    else:
      self._instance(value)

  def _all(self, values: Iterable[Any]) -> None:
    found = list(values)
    self._say(len(found))
    for value in found:
      self.put(value)

  def _items(self, values: Mapping[Any, Any]) -> None:
    self._say(len(values))
    for key, value in list(values.items()):
      self.put(key)
      self.put(value)

  def _instance(self, value: Any) -> None:
    kind = type(value)
    if kind not in _CONTAINERS:
      self._say('instance')
      self.put(kind)
    else:
      self._say(kind.__name__)
    content = next((base for base in _CONTAINERS if isinstance(value, base)), None)
    if content is dict:
      self._items(dict(dict.items(value)))
      if kind is not dict:
        self.put(getattr(value, 'default_factory', None))
    elif content in (list, tuple):
      self._all(content.__iter__(value))
    elif content is not None:
      self._set(value)
    elif isinstance(value, _NUMBERS):
      base: Any = next(base for base in _NUMBERS if isinstance(value, base))
      self._say(base.__repr__(value))
    if kind not in _CONTAINERS:
      self._state(value, reduced=content is None and not isinstance(value, _NUMBERS))

  def _set(self, values: Iterable[Any]) -> None:
    """Adds the members of a set, which have no order."""
    digests = []
    for value in values:
      part = Part(self._walk, self._name)
      part.put(value)
      digests.append(part.digest())
    self._say(*sorted(digests))

  def _state(self, value: Any, reduced: bool) -> None:
    """Adds the attributes of an object, and what it holds beyond them."""
    own, slots = states.attributes_of(value)
    self._items(own)
    self._items(slots)
    if not reduced:
      return
    try:
      found = states.beyond(value, bool(own or slots))
    except Exception as error:  # noqa: BLE001 - it runs anybody's code
      kind = type(value)
      self._refuse(f'a {kind.__module__}.{kind.__qualname__} has no digest ({error!s:.80})')
      return
    self.put(found)

  def _cached(self, value: Any) -> None:
    size = value.cache_info().currsize
    if size:
      name = getattr(value, '__qualname__', 'a function')
      self._refuse(f'the cache of {name} holds {size} values, which cannot be looked at')
    self._say('cached', value.cache_info().maxsize)
    self.put(value.__wrapped__)

  def _cell(self, value: types.CellType) -> None:
    self._say('cell')
    try:
      self.put(value.cell_contents)
    except ValueError:
      self._say('empty')

  def _tensor(self, value: Any) -> None:
    self._say('tensor', type(value).__name__, getattr(value, 'dtype', ''))
    try:
      found = np.asarray(value.numpy())
    except Exception as error:  # noqa: BLE001 - a tensor of a graph, a ragged one, ...
      self._refuse(f'a {type(value).__name__} has no value here ({type(error).__name__})')
      return
    self.put(found)

  def _refuse(self, why: str) -> None:
    self._walk.refuse(self._name, why)

  # What has a name.

  def _function(self, value: types.FunctionType) -> None:
    if installed.is_known(value):
      self._installed(value)
      return
    name = f'{value.__module__}.{value.__qualname__}'

    def write(part: 'Part') -> None:
      part._code(value.__code__)
      part._all((value.__defaults__, value.__kwdefaults__, vars(value)))
      part._say(repr(sorted(map(repr, value.__annotations__.items()))))
      part._all(value.__closure__ or ())
      part._uses(str(value.__globals__.get('__name__')))
      if not is_installed_file(value.__code__.co_filename):
        part._reads(value)

    self._say('function', self._walk.label(value, name, write))

  def _code(self, code: types.CodeType) -> None:
    """Adds code with its lines, which reports show."""
    for one in codes_of(code):
      self._say(
        'code',
        one.co_filename,
        one.co_name,
        one.co_firstlineno,
        one.co_code.hex(),
        one.co_argcount,
        one.co_posonlyargcount,
        one.co_kwonlyargcount,
        one.co_flags,
        one.co_names,
        one.co_varnames,
        one.co_freevars,
        one.co_cellvars,
        tuple(one.co_lines()),
        getattr(one, 'co_exceptiontable', b''),
      )
      for constant in one.co_consts:
        if not isinstance(constant, types.CodeType):
          self.put(constant)

  def _reads(self, function: types.FunctionType) -> None:
    """Adds what the code of a function reads of globals."""
    reads = reads_of(function.__code__)
    self._walk.names.update(reads.names)
    for name in refusals.refused_methods(reads.names):
      self._refuse(f'it uses .{name}, whose value cannot be known in advance')
    for level, imported in reads.imports:
      self._import(function, level, imported)
    for chain in reads.chains:
      self._chain(function.__globals__, chain)

  def _import(self, function: types.FunctionType, level: int, imported: str) -> None:
    package = str(function.__globals__.get('__package__') or '')
    if level:
      base = package.split('.')
      imported = '.'.join([*base[: len(base) - level + 1], *([imported] if imported else [])])
    module = sys.modules.get(imported)
    if module is None:
      # An installed one has its version; of any other nothing is known before it is loaded.
      root = sys.modules.get(imported.partition('.')[0])
      if not (is_installed(root) or imported.partition('.')[0] in sys.stdlib_module_names):
        self._refuse(f'it imports {imported} when it is called')
      self._say('import', imported)
      return
    if module is not os:
      self.put(module)
    for name in refusals.asked_of_system(self._walk.names) if module is os else ():
      self._refuse(f'it uses os.{name}')

  def _chain(self, names: dict[str, Any], chain: tuple[str, ...]) -> None:
    """Adds what a global name stands for, or an attribute of the module that it stands for."""
    first, *attributes = chain
    known = names.get(first, _MISSING)
    if known is _MISSING:
      if hasattr(builtins, first) and refusals.refused_attribute('builtins', first):
        self._refuse(f'it uses {first}')
      known = getattr(builtins, first, _MISSING)
    path = [str(names.get('__name__')), first]
    while isinstance(known, types.ModuleType) and attributes:
      if refusals.refused_attribute(known.__name__, attributes[0]):
        self._refuse(f'it uses {known.__name__}.{attributes[0]}')
        return
      if not is_installed(known):
        path = [known.__name__]
      path.append(attributes[0])
      known = getattr(known, attributes.pop(0), _MISSING)
    if known is os.environ and attributes and attributes[0].startswith('_'):
      self._refuse(f'it uses os.environ.{attributes[0]}')
    if known is _MISSING:
      self._say('missing', *path)
    elif isinstance(known, (types.ModuleType, types.FunctionType, type, *_C_FUNCTIONS)):
      self._say('.'.join(path))
      self.put(known)
    else:
      value, name = known, '.'.join(path)
      self._say('global', self._walk.label(value, name, lambda part: part.put(value)))

  def _class(self, value: type) -> None:
    if value in self._walk.known:
      self._say('class of the case', value.__qualname__)
      return
    module = sys.modules.get(value.__module__ or '')
    is_made = installed.is_made_elsewhere(value)
    if value.__module__ == 'builtins' or (is_installed(module) and not is_made):
      self._installed(value)
      return

    def write(part: 'Part') -> None:
      part._all(value.__bases__)
      part.put(type(value))
      if isinstance(value, abc.ABCMeta):
        part._all(states.registered(value))
      members: dict[str, Any] = dict(value.__members__) if isinstance(value, enum.EnumMeta) else {}
      part._items({name: states.of_member(member) for name, member in members.items()})
      for name, member in list(vars(value).items()):
        if not (
          name in _OF_PYTHON or name in members or (members and states.is_of_enum(name, member))
        ):
          part._say(name)
          part.put(repr(member) if name == '__annotations__' else member)

    name = f'{value.__module__}.{value.__qualname__}'
    self._say('class', self._walk.label(value, name, write))

  def _module(self, value: types.ModuleType) -> None:
    name = value.__name__
    if is_installed(value):
      if refusals.refused(value) or refusals.refused_as_object(name):
        self._refuse(f'it uses the module {name}')
      self._uses(name)
      self._say('installed module', name)
      return

    def write(part: 'Part') -> None:
      part._say(name, file_digest(vars(value).get('__file__')))
      for known, member in list(vars(value).items()):
        if not known.startswith('__'):
          part._say(known)
          part.put(member)

    self._say('module', self._walk.label(value, name, write))

  def _c_function(self, value: Any) -> None:
    owner = getattr(value, '__self__', None)
    if owner is not None and not isinstance(owner, (types.ModuleType, type)):
      self._say('bound', getattr(value, '__name__', ''))
      home = type(owner).__module__
      if home.partition('.')[0] in ('numpy', 'random') and refusals.refused(type(owner)):
        self._refuse(f'it draws from the generator of {home}')
      self.put(owner)
      return
    if isinstance(value, np.ufunc) and not installed.is_ufunc(value):
      self._refuse(f'{value.__name__} is made of a Python function that cannot be looked at')
    module = sys.modules.get(str(getattr(value, '__module__', '') or ''))
    path = vars(module).get('__file__') if module is not None else None
    if path and not is_installed(module):
      self._say(file_digest(path))
    self._installed(value)

  def _installed(self, value: Any) -> None:
    """Adds the name of what has a version."""
    home = getattr(value, '__module__', '')
    name = getattr(value, '__qualname__', getattr(value, '__name__', ''))
    if refusals.refused(value):
      self._refuse(f'it uses {home}.{name}, whose value cannot be known in advance')
    self._uses(str(home))
    objclass = getattr(value, '__objclass__', None)
    self._say('installed', home, name, '' if objclass is None else objclass.__qualname__)

  def _uses(self, module: str) -> None:
    """Remembers a package whose settings count."""
    if packages.is_third_party(module):
      self._walk.packages[module.partition('.')[0]] = None
