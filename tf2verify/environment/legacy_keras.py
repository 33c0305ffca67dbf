"""The environment that TF1-style code needs on a current TensorFlow.

Since TensorFlow 2.16 `tf.keras` is Keras 3, which has no `tf.compat.v1.layers`, no
`track_tf1_style_variables` and no `DeterministicRandomTestTool`: only the tf-keras
package (Keras 2) has them. And two names that tf-slim 1.1.0 relies on have moved.
`prepare` puts that right where it can, and says what it cannot put right.
"""

import dataclasses
import importlib
import importlib.util
import os
import sys
import types

from tf2verify import errors
from tf2verify.environment import collection, import_order, installed
from tf2verify.tensorflow_internals import keras_loaders

OLDEST_TENSORFLOW = (2, 15)
NEWEST_TENSORFLOW = (2, 21)  # the newest that the suite has run on
FIRST_TENSORFLOW_WITH_KERAS_3 = (2, 16)

FLAG = 'TF_USE_LEGACY_KERAS'
# Set beside the flag where tf2verify set that, and not the user; processes started inherit both.
CHOSEN = 'TF2VERIFY_CHOSE_KERAS_2'
# Classes that tf-slim 1.1.0 looks for in tensorflow.python.framework.ops: name, the
# module that has it now, and what of tf-slim fails without.
_MOVED_CLASSES = (
  ('Tensor', 'tensor', 'slim.batch_norm'),
  ('IndexedSlices', 'indexed_slices', 'slim.learning.create_train_op'),
)
# TensorFlow takes these three as "on", and anything else as "off"; of that only these are meant.
_FLAG_ON = ('1', 'true', 'True')
_FLAG_OFF = ('0', 'false', 'False')

_OLD_LAYERS = 'tf_keras.legacy_tf_layers'
_LAYER_MODULES = (
  'base',
  'convolutional',
  'core',
  'migration_utils',
  'normalization',
  'pooling',
  'variable_scope_shim',
)


@dataclasses.dataclass(frozen=True)
class Problem:
  """Why TF1-style code cannot run in this process.

  Attributes:
    what: what is wrong, with the value that was found.
    fix: one shell command, or the line to move.
  """

  what: str
  fix: str


@dataclasses.dataclass(frozen=True)
class Preparation:
  """What `prepare` found and put right.

  Attributes:
    mends: what differs in this process from a bare `import tensorflow`.
    problems: what is wrong and has to be put right outside of tf2verify. Nothing is
      fixed unless this is empty.
    notes: what is worth knowing, and is not in the way.
  """

  mends: tuple[str, ...]
  problems: tuple[Problem, ...]
  notes: tuple[str, ...] = ()


def prepare() -> Preparation:
  """Makes TF1-style code run on the installed TensorFlow, as far as possible.

  Imports TensorFlow. Sets TF_USE_LEGACY_KERAS=1 in `os.environ` for TensorFlow 2.16
  and newer, unless it is set: with 0, `tf.keras` stays Keras 3, and what only Keras 2 has comes
  from tf-keras anyway. And installs two aliases where they are missing. A second call changes
  nothing and returns the same record, unless the process has changed in between.

  Returns:
    The mends in force and the problems left. Problems are returned, not raised, so that
    the doctor can report them.
  """
  # Ahead of the import, since it spares TensorFlow the import of Keras 3.
  if _has_keras_3(installed.minor(installed.version('tensorflow'))):
    _choose_keras_2()
  release = _import_tensorflow()
  if isinstance(release, Problem):
    return Preparation((), (release,))
  if _has_keras_3(release):
    _choose_keras_2()
  notes = _notes(release)
  problems = (*_flag_problems(release), *_keras_problems(release), *_order_problems(release))
  if problems:
    return Preparation((), problems, notes)
  try:
    return Preparation(_mend(release), (), notes)
  except ImportError as error:
    package = keras_package(release)
    what = f'{_pip_name(package)} cannot be imported: {error}'
    return Preparation((), (Problem(what, reinstall_command(release)),), notes)


def require() -> Preparation:
  """Prepares the environment, or says why it cannot run TF1-style code.

  Returns:
    The preparation, which has no problems.

  Raises:
    errors.EnvironmentProblem: lists every problem with its fix.
  """
  preparation = prepare()
  if preparation.problems:
    count = len(preparation.problems)
    lines = [f'TF1-style code cannot run here: {count} problem{"s" if count > 1 else ""}.']
    for problem in preparation.problems:
      lines += [f'  {problem.what}', f'    fix: {problem.fix}']
    lines.append('  More: python -m tf2verify doctor')
    raise errors.EnvironmentProblem('\n'.join(lines))
  return preparation


def keras_package(release: tuple[int, int]) -> str:
  """The import name of the package that has to be `tf.keras` under this TensorFlow.

  Args:
    release: TensorFlow's major and minor version.

  Returns:
    'tf_keras', or 'keras' under TensorFlow 2.15 without TF_USE_LEGACY_KERAS.
  """
  legacy = _has_keras_3(release) or os.environ.get(FLAG) in _FLAG_ON
  return 'tf_keras' if legacy else 'keras'


def serves_keras_3() -> bool:
  """Returns whether the user wants `tf.keras` to be Keras 3: TF_USE_LEGACY_KERAS is set to 0."""
  return os.environ.get(FLAG) in _FLAG_OFF


def reinstall_command(release: tuple[int, int]) -> str:
  """The shell command that puts a broken Keras 2 package right, and touches no other."""
  name = _pip_name(keras_package(release))
  return f'pip install --force-reinstall --no-deps "{name}=={_dotted(release)}.*"'


def _choose_keras_2() -> None:
  # An empty value counts as unset; any other value is the user's and stays.
  if not os.environ.get(FLAG):
    os.environ.update({FLAG: '1', CHOSEN: '1'})
  if os.environ[FLAG] in _FLAG_ON:
    _mend_paths()


def _mend_paths() -> None:
  """Lets `import tensorflow.keras` find tf-keras, also after `import tensorflow`.

  TensorFlow reads the flag once, at import, and puts the folder of the chosen Keras on
  the `__path__` of its API modules. The lazy loaders, in contrast, read it at first use.
  """
  spec = importlib.util.find_spec('tf_keras')
  if spec is None or not spec.submodule_search_locations:
    return  # a problem, which is found later
  keras_2 = spec.submodule_search_locations[0]
  keras_3_api = os.path.join(os.sep, 'keras', 'api', '')
  for name, module in list(sys.modules.items()):
    if not name.startswith('tensorflow') or not isinstance(module, types.ModuleType):
      continue
    path = vars(module).get('__path__')
    if not isinstance(path, list):
      continue
    for index, folder in enumerate(path):
      # A folder is None where TensorFlow found no Keras at all.
      if folder and keras_3_api in folder:
        path[index] = os.path.join(keras_2, 'api', folder.rpartition(keras_3_api)[2])


def _import_tensorflow() -> tuple[int, int] | Problem:
  """Imports TensorFlow; returns its major and minor version, or what is wrong with it."""
  newest = _dotted(NEWEST_TENSORFLOW)
  install = f'pip install "tensorflow=={newest}.*" "tf-keras=={newest}.*"'
  found = installed.version('tensorflow')
  if found is None:
    return Problem('TensorFlow is not installed', install)
  release = installed.minor(found)
  if release is None or release >= OLDEST_TENSORFLOW:
    try:
      with collection.paused():
        importlib.import_module('tensorflow')
    # A broken installation raises whatever its broken part raises (ImportError,
    # AttributeError from numpy, TypeError from protobuf): all are one problem here.
    except Exception as error:  # noqa: BLE001
      summary = f'TensorFlow {found} cannot be imported: {type(error).__name__}: {error}'
      return Problem(summary, f'{install} --force-reinstall')
    found = installed.version('tensorflow')
    release = installed.minor(found)
  if release is None:
    return Problem('`import tensorflow` finds a package without a version', install)
  if release < OLDEST_TENSORFLOW:
    oldest = _dotted(OLDEST_TENSORFLOW)
    return Problem(f'TensorFlow {found} is older than {oldest}, the oldest supported', install)
  return release


def _flag_problems(release: tuple[int, int]) -> tuple[Problem, ...]:
  value = os.environ.get(FLAG, '')
  if not _has_keras_3(release) or value in (*_FLAG_ON, *_FLAG_OFF):
    return ()
  what = f'{FLAG} is {value!r}, which TensorFlow takes as 0, so that tf.keras is Keras 3'
  return (Problem(what, f'export {FLAG}=0 if intended, otherwise unset {FLAG}'),)


def _keras_problems(release: tuple[int, int]) -> tuple[Problem, ...]:
  package = keras_package(release)
  found = installed.version(package)
  name, wanted = _pip_name(package), _dotted(release)
  tensorflow = f'TensorFlow {installed.version("tensorflow")}'
  nightly = 'dev' in tensorflow
  if found is None:
    what = f'{name} is not installed; {tensorflow} needs {name} {wanted} for TF1-style code'
  elif found != installed.UNKNOWN and installed.minor(found) != release:
    what = f'{name} {found} does not fit {tensorflow}: both need the same minor version'
  else:
    return ()
  fix = f'pip install {name}-nightly' if nightly else f'pip install "{name}=={wanted}.*"'
  return (Problem(what, fix),)


def _order_problems(release: tuple[int, int]) -> tuple[Problem, ...]:
  places = import_order.keras_3_places()
  if not places or not _has_keras_3(release) or serves_keras_3():
    return ()
  first = places[0] if len(places) == 1 else f'{places[0]} and {len(places) - 1} more'
  what = f'{first} became Keras 3 before tf2verify was imported'
  line = import_order.first_keras_line()
  if line is None:
    where = 'the first import that uses tf.keras'
  else:
    where = f'line {line.number} of {line.path} ({line.text})'
  return (Problem(what, f'move `import tf2verify` above {where}, or export {FLAG}=1'),)


def _notes(release: tuple[int, int]) -> tuple[str, ...]:
  if release <= NEWEST_TENSORFLOW:
    return ()
  newest = _dotted(NEWEST_TENSORFLOW)
  return (f'TensorFlow {_dotted(release)} is newer than {newest}, the newest tested',)


def _mend(release: tuple[int, int]) -> tuple[str, ...]:
  """Installs what is missing; returns the mends in force, also those of an earlier call."""
  mends = []
  package = keras_package(release)
  if _has_keras_3(release) and serves_keras_3():
    keras_loaders.load_tf1_from_keras_2()
    mends.append(
      f'{FLAG}={os.environ[FLAG]} leaves tf.keras to Keras 3; tf.compat.v1.keras, '
      'tf.compat.v1.layers and tf.compat.v1.nn.rnn_cell are those of tf-keras'
    )
  elif package == 'tf_keras':
    mends.append(f'{FLAG}=1: tf.keras is tf-keras (Keras 2)')
  layers = _alias_legacy_layers(package)
  if layers != _OLD_LAYERS:
    mends.append(f'{_OLD_LAYERS} is {layers}: slim.batch_norm imports it under the old name')
  ops = importlib.import_module('tensorflow.python.framework.ops')
  for name, home, user in _MOVED_CLASSES:
    module = importlib.import_module(f'tensorflow.python.framework.{home}')
    if not hasattr(ops, name):
      setattr(ops, name, getattr(module, name))
    # Every supported TensorFlow lacks the names, so that their presence is the mend.
    mends.append(f'{ops.__name__}.{name} is {module.__name__}.{name}: {user} uses it')
  return tuple(mends)


def _alias_legacy_layers(package: str) -> str:
  """Lets the old name of the TF1 layers lead to where they are; returns their true name."""
  try:
    return importlib.import_module(_OLD_LAYERS).__name__
  except ModuleNotFoundError:
    layers = importlib.import_module(f'{package}.src.legacy_tf_layers')
    for name in _LAYER_MODULES:
      module = importlib.import_module(f'{layers.__name__}.{name}')
      sys.modules[f'{_OLD_LAYERS}.{name}'] = module
    sys.modules[_OLD_LAYERS] = layers
    return layers.__name__


def _has_keras_3(release: tuple[int, int] | None) -> bool:
  return release is not None and release >= FIRST_TENSORFLOW_WITH_KERAS_3


def _pip_name(package: str) -> str:
  return package.replace('_', '-')


def _dotted(release: tuple[int, int]) -> str:
  return f'{release[0]}.{release[1]}'
