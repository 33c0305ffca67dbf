"""What cannot be kept, since what it returns is not known before it is called."""

import types
from collections.abc import Iterable
from typing import Any


def _words(text: str) -> frozenset[str]:
  return frozenset(text.split())


# Modules of Python whose functions ask the system, the clock, chance or the network, and packages
# that read files outside of Python's sight.
_MODULES = _words(
  """
  _io _random _socket _thread _uuid aiohttp asyncio concurrent ctypes fcntl ftplib gc
  getpass glob http httpx importlib inspect io kagglehub mmap multiprocessing nt pickle pkgutil
  linecache locale platform posix psutil pwd queue random requests resource runpy secrets select
  shelve shutil signal socket sqlite3 ssl subprocess sys tempfile tensorflow_datasets tensorflow_hub
  threading time urllib urllib3 uuid
  cv2 duckdb h5py lightgbm lmdb netCDF4 onnx onnxruntime osgeo polars pyarrow rasterio safetensors
  sentencepiece soundfile tables tokenizers torch xgboost zarr
  """
)
_ALLOWED = _words(
  """
 _io.open io.open io.StringIO io.BytesIO _io.StringIO _io.BytesIO
  posix.fspath posix.getcwd pickle.load pickle.loads _pickle.load _pickle.loads
  sys.exc_info sys.getrecursionlimit sys.intern
  inspect.Parameter inspect.Signature inspect._ParameterKind inspect._empty
  """
)
_OS_PATH = _words(
  """
  abspath basename commonpath commonprefix dirname expanduser expandvars isabs join normcase
  normpath relpath split splitdrive splitext
  """
)
_OS = _words('environ fspath getcwd getenv linesep name path pathsep sep')
# Of `os`, where the code has it in a variable; what opens files is seen when it does.
_ASKED = _words(
  """
  access confstr cpu_count environb get_terminal_size getenvb geteuid getloadavg getlogin getpid
  getppid getuid getxattr listxattr pathconf sched_getaffinity sysconf times uname
  """
)
_SYS = _words(
  'argv byteorder float_info maxsize maxunicode platform stderr stdout version version_info'
)
_BUILTINS = _words('__import__ breakpoint compile eval exec globals hash id input locals')
# Modules of TensorFlow that read files outside of Python's sight, and of numpy that draw.
_PREFIXES = (
  'numpy.random',
  'tensorflow.python.checkpoint',
  'tensorflow.python.data',
  'tensorflow.python.lib.io',
  'tensorflow.python.platform.gfile',
  'tensorflow.python.saved_model',
  'tensorflow.python.training.checkpoint_utils',
  'tensorflow.python.training.py_checkpoint_reader',
)
# Methods of objects that are made while the code runs, of which only the name is known, and
# attributes that lead to what is not looked at.
_METHODS = _words(
  """
  __globals__ __subclasses__ exists f_globals f_locals getatime getctime getmtime getsize glob
  is_dir is_file is_mount is_symlink isdir isfile islink ismount iterdir lexists listdir
  load_weights lstat now readlink realpath resolve rglob samefile scandir stat today urandom utcnow
  walk
  """
)
# Numbers of numpy of which a text means the clock: `np.datetime64('now')`.
_NAMES = _words('numpy.datetime64')


def refused_methods(names: frozenset[str]) -> tuple[str, ...]:
  """Returns those of the names that code uses which ask the clock or the file system."""
  return tuple(sorted(names & _METHODS))


def asked_of_system(names: Iterable[str]) -> tuple[str, ...]:
  """Returns those of the names that ask the system where they are of the module `os`."""
  return tuple(sorted(_ASKED & set(names)))


def refused_as_object(module: str) -> bool:
  """Returns whether what is read of a module has to be known, so that it cannot be passed on."""
  return module in ('builtins', 'genericpath', 'ntpath', 'os', 'posixpath')


def refused_attribute(module: str, name: str) -> bool:
  """Returns whether an attribute of a module of Python is such, by its name alone."""
  if module == 'sys':
    return name not in _SYS
  if module == 'os':
    return name not in _OS
  if module in ('os.path', 'posixpath', 'ntpath', 'genericpath'):
    return name not in _OS_PATH
  if module == 'builtins':
    return name in _BUILTINS
  return False


def refused(value: Any) -> bool:
  """Returns whether a function, class or module of an installed package is such."""
  if isinstance(value, types.ModuleType):
    home, name = value.__name__, ''
  else:
    home, name = str(getattr(value, '__module__', '') or ''), str(getattr(value, '__name__', ''))
  if f'{home}.{name}' in _ALLOWED:
    return False
  if f'{home}.{name}' in _NAMES:
    return True
  if home in ('posixpath', 'ntpath', 'genericpath'):
    return bool(name) and name not in _OS_PATH
  if home == 'os' or home == 'builtins':
    return bool(name) and refused_attribute(home, name) and name != 'open'
  if home.partition('.')[0] in _MODULES:
    return True
  return any(home == prefix or home.startswith(f'{prefix}.') for prefix in _PREFIXES)
