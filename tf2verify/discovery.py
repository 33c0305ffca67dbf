"""Finding the cases in files, folders and modules."""

import abc
import collections
import contextlib
import dataclasses
import difflib
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterable, Iterator, Mapping

from tf2verify.case import EquivalenceCase, missing_hooks
from tf2verify.environment.case_files import case_files, shown_path
from tf2verify.errors import UsageError
from tf2verify.sides.hooks.user_code import importing


@dataclasses.dataclass(frozen=True)
class FoundCase:
  """A case, and the modules that it was imported with."""

  case: type[EquivalenceCase]  # the class
  folder: str  # what was at the front of `sys.path`
  # The top-level modules that lie in that folder; kept apart from equally named ones of another
  # file.
  modules: tuple[tuple[str, types.ModuleType], ...]
  file: str  # that declares it; the module where there is none
  name: str  # what tells it from the others: the class, after the file where two are alike

  @contextlib.contextmanager
  def importable(self) -> Iterator[None]:
    """Lets the case import from its own folder until exit."""
    with _local_imports(self.folder, dict(self.modules)):
      yield


@contextlib.contextmanager
def _local_imports(folder: str, modules: dict[str, types.ModuleType]) -> Iterator[None]:
  """Puts a folder first on the path; what is imported from it goes to `modules` on exit.

  Two folders may both have a `model.py`: left in `sys.modules`, the first would
  be taken for the second.
  """
  before = list(sys.path)
  hidden = {name: sys.modules[name] for name in modules if name in sys.modules}
  sys.path.insert(0, folder)
  sys.modules.update(modules)
  known = set(sys.modules)
  try:
    yield
  finally:
    sys.path[:] = before
    for name in list(sys.modules):
      module = sys.modules[name]
      path = getattr(module, '__file__', None) or ''
      local = name not in known and os.path.abspath(path).startswith(folder + os.sep)
      if name in modules or (local and 'site-packages' not in path):
        modules[name] = sys.modules.pop(name)
    sys.modules.update(hidden)


def _import_file(
  path: str, loaded: Mapping[str, types.ModuleType]
) -> tuple[types.ModuleType, str, dict[str, types.ModuleType]]:
  """Imports a file as Python would: by its dotted name where it is part of a package."""
  path = os.path.abspath(path)
  root, parts = os.path.dirname(path), [os.path.splitext(os.path.basename(path))[0]]
  while os.path.isfile(os.path.join(root, '__init__.py')):
    root, package = os.path.split(root)
    parts.insert(0, package)
  modules = dict(loaded)
  with _local_imports(root, modules), importing(path):
    module = importlib.import_module('.'.join(parts))
  return module, root, modules


def _cases_of(module: types.ModuleType) -> list[type[EquivalenceCase]]:
  """Returns the cases of a module, also those that lack a hook and will be told so."""
  return [
    item
    for item in vars(module).values()
    if isinstance(item, type)
    and issubclass(item, EquivalenceCase)
    and item.__module__ == module.__name__
    and abc.ABC not in item.__bases__
    and not (missing_hooks(item) and _is_completed(item))
  ]


def _is_completed(incomplete: type[EquivalenceCase]) -> bool:
  """Returns whether a subclass has the hooks that a class lacks: then it is a base of cases."""
  return any(not missing_hooks(one) or _is_completed(one) for one in incomplete.__subclasses__())


def find_cases(
  target: str,
  may_have_none: bool = False,
  loaded: Mapping[str, types.ModuleType] | None = None,
) -> list[FoundCase]:
  """Returns the cases that a command-line argument names.

  Args:
    target: a file, a folder or a module name, `::Case` after it for one case.
    may_have_none: whether a target without any case is no error.
    loaded: modules that were imported with the cases before, and are not to be imported again.

  Raises:
    UsageError: there is no such file, module or case.
    Tf2VerifyError: importing it failed.
  """
  place, _, wanted = target.partition('::')
  imported = []
  if os.path.exists(place):
    imported = [_import_file(path, loaded or {}) for path in case_files(place)]
  else:
    imported = [_import_module(name, loaded or {}) for name in case_files(place)]
  found = [
    FoundCase(
      case,
      root,
      tuple(modules.items()),
      getattr(module, '__file__', None) or module.__name__,
      case.__name__,
    )
    for module, root, modules in imported
    for case in _cases_of(module)
  ]
  if may_have_none:
    return found
  if wanted:
    names = sorted({case.case.__name__ for case in found})
    found = [case for case in found if case.case.__name__ == wanted]
    if not found:
      close = difflib.get_close_matches(wanted, names, 1)
      guess = f' (did you mean {close[0]}?)' if close else ''
      raise UsageError(f'{place} has no case {wanted}{guess}; it has {", ".join(names) or "none"}')
  elif not found:
    raise UsageError(
      f'{place} declares no complete EquivalenceCase: a case overrides build_tf1_graph, '
      'make_tf2_layer and make_inputs; or, with tf1_recording, make_tf2_layer'
    )
  return found


def find_all(
  targets: Iterable[str], loaded: Mapping[str, types.ModuleType] | None = None
) -> list[FoundCase]:
  """Returns the cases that several command-line arguments name, in order, each once.

  Args:
    targets: as of `find_cases`; they may overlap.
    loaded: as of `find_cases`.

  Raises:
    UsageError: as `find_cases` does.
    Tf2VerifyError: likewise.
  """
  unique: dict[tuple[str, str, int], FoundCase] = {}
  for target in targets:
    # Classes that a function makes may be alike in one file, and are not the same.
    alike: dict[tuple[str, str], list[type[EquivalenceCase]]] = collections.defaultdict(list)
    for found in find_cases(target, loaded=loaded):
      file = os.path.realpath(found.file) if os.path.isfile(found.file) else found.file
      classes = alike[file, found.case.__name__]
      if found.case not in classes:
        classes.append(found.case)
      unique.setdefault((file, found.case.__name__, classes.index(found.case)), found)
  return _told_apart([*unique.values()])


def _told_apart(cases: list[FoundCase]) -> list[FoundCase]:
  """Returns the cases, each with a name that those in other files do not have."""
  count = collections.Counter(found.case.__name__ for found in cases)
  return [
    dataclasses.replace(found, name=f'{shown_path(found.file)}::{found.case.__name__}')
    if count[found.case.__name__] > 1
    else found
    for found in cases
  ]


def _import_module(
  name: str, loaded: Mapping[str, types.ModuleType]
) -> tuple[types.ModuleType, str, dict[str, types.ModuleType]]:
  folder = os.getcwd()
  modules = dict(loaded)
  with _local_imports(folder, modules):
    try:
      spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError) as error:
      raise UsageError(f'no module {name}: {error}') from error
    if spec is None:
      raise UsageError(f'{name} is neither a file or folder nor a module that can be imported')
    with importing(name):
      module = importlib.import_module(name)
  return module, folder, modules
