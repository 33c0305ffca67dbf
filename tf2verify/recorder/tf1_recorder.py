#!/usr/bin/env python3
"""Records what a TensorFlow 1.x model computes, so that a TF2 port can be verified against it.

This one file is copied to where the model runs: Python 3.6 or newer, numpy 1.14 or
newer, TensorFlow 1.13 to 1.15 (or `tf.compat.v1` of any TensorFlow 2). It needs
nothing else, and changes nothing there.

    python tf1_recorder.py --builder my_model:build --inputs inputs.npz --out recording

The builder is a function of your own, of a file that can be imported from where the
command runs. It is called inside a fresh graph and returns the output tensors:

    def build(inputs, training):
      logits, end_points = nets.my_net(inputs, num_classes=10, is_training=training)
      return logits

`inputs` are placeholders for the arrays of inputs.npz: one array (`arr_0` or `inputs`)
comes as the tensor itself, `arr_0`, `arr_1`, ... as a tuple, other keys as a dictionary.
`training` is False or True; a builder without such an argument is called without. The
outputs may be any nest of tensors. The builder makes no session and no graph.

From a script of your own:

    import tf1_recorder
    tf1_recorder.record(build, {'images': images}, 'recording')

What it does: it builds the graph for inference and for training, with every random op
seeded, and runs it in fresh sessions: from its own initial values; with every variable
set to values that its name gives; with the gradients of a loss. Each run is repeated,
and repeated with all values moved by one unit in the last place, which tells how far
rounding alone moves each result. What it finds is written to the folder that `--out`
names: `manifest.json` and `.npz` files. Copy that folder to where TensorFlow 2 is, and
write `tf1_recording = 'recording'` into the case of the port.

The folder appears when all is done, and not before. It holds no code, but the graph, the
inputs, and names and lines of your source files.
"""

import argparse
import collections.abc
import concurrent.futures
import contextlib
import hashlib
import importlib
import inspect
import io
import json
import linecache
import math
import numbers
import os
import platform
import random
import shutil
import sys
import sysconfig
import time
import traceback
import types
import warnings
import zipfile
import zlib
from typing import (
  Any,
  Callable,
  Dict,
  FrozenSet,
  Iterable,
  Iterator,
  List,
  Optional,
  Sequence,
  Set,
  Tuple,
)
from unittest import mock

if __name__ == '__main__':
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
try:
  import numpy as np

  with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # TensorFlow 1.x warns of newer numpy versions
    import tensorflow as tf
    from tensorflow.python.client import session as client_session
    from tensorflow.python.framework import random_seed, tensor_shape
    from tensorflow.python.framework.tensor_util import constant_value
    from tensorflow.python.util import nest as tf_nest

    try:
      from tensorflow.python.ops import gradients_util
    except ImportError:  # before TensorFlow 1.14
      from tensorflow.python.ops import gradients_impl as gradients_util
except (ImportError, TypeError) as _error:  # a TypeError: protobuf is too new for it
  if __name__ != '__main__':
    raise
  sys.stderr.write(
    'tf1_recorder: error: TensorFlow cannot be imported by {} (Python {}): {}: {}; run the '
    'recorder with the Python in which the model runs: /path/to/its/python tf1_recorder.py ...\n'
    ''.format(
      sys.executable or 'this Python',
      platform.python_version(),
      type(_error).__name__,
      (str(_error).strip().splitlines() or [''])[0].rstrip('.'),
    )
  )
  sys.exit(2)


class RecorderError(Exception):
  """What keeps a recording from being made, and what to do, on one line."""


SCHEMA = 1
KIND = 'tf2verify recording'
VERSIONS = {'recorder': 1, 'fill': 1, 'seeds': 1, 'loss': 1, 'sampling': 1, 'noise': 1}
LARGEST_ARRAY = 65536
LARGE_MODEL = 10 * 2**20  # elements of all variables; of a larger model less is stored:
LARGEST_ARRAY_OF_LARGE_MODEL = 4096
STEP_SAMPLES = 256  # and no means, of each large array of each training step
DISTINCT_VALUES = 'distinct values'
GUIDE_CONSTANT = 0.001
LEVELS = ('none', 'summary', 'full')  # of tensors on the way
CONSTANT_VALUES = "the guide's constant 0.001"

_SEED = 42
_CONSTANT = 'constant'
_NUM_RANDOM_OPS = 'num_random_ops'
_FEWEST_NOISE_RUNS = 4
_FEWEST_LONG_RUNS = 2  # where one takes more than 5 seconds
_MOST_NOISE_RUNS = 32
_REPEATED_RUNS = 6
_NOISE_SHARE = 0.25  # of the time that all else takes
_NOISE_SECONDS = 5.0  # or this, if it is more
_FEW_SAMPLES = 64  # of a tensor on the way
_LARGEST_FILE = 48 * 2**20  # bytes of arrays in one .npz
_PORTION = 256 * 2**20  # bytes of variables that are fed at once

v1 = getattr(tf.compat, 'v1', None)  # type: Any
_Array = Any  # numpy.ndarray, of which old versions have no type
_Key = Tuple[str, str]  # a quantity ('gradient') and a name or path


# ---------------------------------------------------------------------------------------
# Digests and moved, sampled, coded arrays: the same numbers as in tf2verify.


def _is_bfloat16(dtype: Any) -> bool:  # Python 2 stops here: use Python 3.6 or newer
  return str(getattr(dtype, 'name', dtype)) == 'bfloat16'


def _is_string(array: _Array) -> bool:
  return array.dtype.kind in 'OSU'


def _is_inexact(dtype: Any) -> bool:
  return np.dtype(dtype).kind in 'fc' or _is_bfloat16(dtype)


def _bytes_of(array: _Array) -> Any:
  """Returns the C-order little-endian bytes of a numeric array."""
  if not _is_bfloat16(array.dtype):
    array = array.astype(array.dtype.newbyteorder('<'), copy=False)
  array = np.asarray(array, order='C')
  return array.reshape(-1).view(np.uint8) if array.size else b''


def digest(array: _Array) -> str:
  """Returns the SHA-256 of dtype, shape and bytes; of strings, lengths come before the bytes."""
  name = 'string' if _is_string(array) else array.dtype.name
  shape = ','.join(str(size) for size in array.shape)
  found = hashlib.sha256('{}|{}|'.format(name, shape).encode())
  if name == 'string':
    for part in _encoded_strings(array):
      found.update(_bytes_of(part))
  else:
    found.update(_bytes_of(array))
  return found.hexdigest()


def _encoded_strings(array: _Array) -> Tuple[_Array, _Array]:
  """Returns the lengths of the strings, and their bytes one after the other."""
  texts = [
    t.encode('utf-8', 'surrogatepass') if isinstance(t, str) else bytes(t)
    for t in array.reshape(-1).tolist()
  ]
  lengths = np.array([len(text) for text in texts], np.int64).reshape(array.shape)
  return lengths, np.frombuffer(b''.join(texts), np.uint8)


def pairs(*sequences: Any) -> Iterator[Any]:
  """Returns `zip` of sequences of one length, which newer versions of Python know as strict."""
  if len({len(sequence) for sequence in sequences}) > 1:
    raise AssertionError('of lengths {}'.format([len(sequence) for sequence in sequences]))
  return zip(*sequences)  # noqa: B905


_SAMPLES = 1024
_BLOCK = 64
_PATTERNS = 16


def sample_positions(size: int, samples: int = _SAMPLES) -> _Array:
  """Returns which elements are kept of an array: one, at random, of each equal part."""
  count = min(samples, size)
  starts = np.arange(count + 1, dtype=np.int64) * size // max(count, 1)
  widths = np.maximum(starts[1:] - starts[:-1], 1)
  return starts[:-1] + _hashed_words('positions {}'.format(size), count) % widths


def _hashed_words(purpose: str, count: int) -> _Array:
  digests = [
    hashlib.sha256('{}:{}:{}'.format(VERSIONS['sampling'], purpose, number).encode()).digest()
    for number in range(-(-count // 8))
  ]
  return np.frombuffer(b''.join(digests), '<u4')[:count].astype(np.int64)


def sample(array: _Array, samples: int = _SAMPLES, block: int = _BLOCK) -> _Array:
  """Returns elements of an array and, for every 64 in a row, the mean of element times sign."""
  flat = array.reshape(-1)
  found = [flat[sample_positions(flat.size, samples)]]
  if block:
    words = _hashed_words('signs 66', 2 * _PATTERNS).astype('<u4')
    bits = np.unpackbits(words.view(np.uint8)).astype(np.float64).reshape(_PATTERNS, block)
    weights = (2 * bits - 1) / block
    with np.errstate(all='ignore'):
      parts = [_signed_means(part, weights) for part in _parts(flat)]
    found.append(np.concatenate(parts)[: -(-flat.size // block)].astype(array.dtype))
  return np.concatenate(found)


def _parts(flat: _Array) -> Iterator[_Array]:
  for start in range(0, flat.size, 2 * _CHUNK):
    yield flat[start : start + 2 * _CHUNK]


def _signed_means(part: _Array, weights: _Array) -> _Array:
  wide = part.astype(np.complex128 if part.dtype.kind == 'c' else np.float64)
  if wide.size % weights.size:
    wide = np.concatenate([wide, np.zeros(-wide.size % weights.size, wide.dtype)])
  return np.einsum('nkj,kj->nk', wide.reshape((-1, *weights.shape)), weights).reshape(-1)


def noise_codes(noise: _Array, value: _Array) -> _Array:
  """Returns one byte for each element: the noise on a scale of the tensor's own size.

  Code c stands for 2**((c - 232) / 4) times the least power of two above the greatest
  |value|, 0 for none, 255 for what is not finite; noise is rounded up.
  """
  sizes = np.abs(value.astype(np.complex128 if value.dtype.kind == 'c' else np.float64))
  greatest = float(sizes[np.isfinite(sizes)].max()) if np.isfinite(sizes).any() else 0.0
  exponent = min(max(math.frexp(greatest)[1], -1000), 1000) if greatest else 0
  table = 2.0 ** ((np.arange(255, dtype=np.float64) - 232) / 4)
  table[0] = 0.0
  ratios = np.asarray(noise, np.float64) / math.ldexp(1.0, exponent)
  codes = np.minimum(np.searchsorted(table, ratios.reshape(-1), side='left'), 254)
  return np.where(np.isfinite(ratios), codes.reshape(ratios.shape), 255).astype(np.uint8)


# By dtype: the unsigned integer of its size, the bits of infinity, the fraction's bits.
_FORMATS = {
  'float64': (np.uint64, 0x7FF0000000000000, 52),
  'float32': (np.uint32, 0x7F800000, 23),
  'float16': (np.uint16, 0x7C00, 10),
  'bfloat16': (np.uint16, 0x7F80, 7),
}
_COMPONENTS = {'complex64': 'float32', 'complex128': 'float64'}
_CHUNK = 2**17


def _fraction_bits(dtype: Any) -> int:
  """Returns the bits of a dtype's fraction; 0 for one that is not moved."""
  found = _FORMATS.get(_COMPONENTS.get(dtype.name, dtype.name))
  return 0 if found is None else found[2]


class Mover:
  """Moves what a run reads by one unit in the last place, each element up or down by a coin."""

  def __init__(self, number: int, least_fraction_bits: int = 0) -> None:
    """Takes the number of the run, and how many bits a dtype has at least that is moved."""
    self.number = number
    self._least = least_fraction_bits

  def variable(self, name: str, value: _Array) -> _Array:
    """Returns the values moved; the same array where its dtype stays."""
    bits = _fraction_bits(value.dtype)
    return value if not bits or bits < self._least else self._moved(name, value)

  def input(self, path: str, value: _Array) -> _Array:
    """Returns the values moved; the same array where it holds integers only (labels, masks)."""
    bits = _fraction_bits(value.dtype)
    return value if not bits or _holds_integers(value) else self.variable('input ' + path, value)

  def _moved(self, name: str, value: _Array) -> _Array:
    kind = _COMPONENTS.get(value.dtype.name, value.dtype.name)
    unsigned, infinity, _ = _FORMATS[kind]
    moved = np.array(value, order='C')
    bits = moved.reshape(-1).view(unsigned)
    seed = hashlib.sha256('{}:{}'.format(self.number, name).encode()).digest()
    generator = np.random.RandomState(np.frombuffer(seed, '<u4'))
    coins = np.unpackbits(np.frombuffer(generator.bytes(bits.size // 8 + 1), np.uint8))
    for start in range(0, bits.size, _CHUNK):
      _move(bits[start : start + _CHUNK], coins[start : start + _CHUNK], infinity)
    return moved


def _move(bits: _Array, coins: _Array, infinity: int) -> None:
  """Adds or subtracts one, in place, where that gives a number of the same sign."""
  one = bits.dtype.type(1)
  step = coins[: bits.size].astype(bits.dtype)
  step += step
  step -= one  # 1, or the greatest integer, which adds up to -1
  before = bits & bits.dtype.type(np.iinfo(bits.dtype).max >> 1)
  after = before + step
  before -= one  # 0 becomes the greatest integer: one comparison for it and infinity
  after -= one
  limit = bits.dtype.type(infinity - 1)
  step[(before >= limit) | (after >= limit)] = 0
  bits += step


def _holds_integers(value: _Array) -> bool:
  if value.dtype.kind == 'c':
    return _holds_integers(value.real) and _holds_integers(value.imag)
  wide = value.astype(np.float64)
  with np.errstate(all='ignore'):
    return bool(np.all(np.floor(wide) == wide))


# ---------------------------------------------------------------------------------------
# Values of variables and inputs, and the loss: the same numbers as in tf2verify.

Fill = Callable[[str, Tuple[int, ...], Any], Any]
_POSITIVE_WORDS = ('variance', 'moving_var', 'running_var', 'stddev', 'sigma')


def _size(shape: Iterable[int]) -> int:
  found = 1
  for size in shape:
    found *= size
  return found


def _fan_in(name: str, shape: Tuple[int, ...]) -> int:
  if 'embedding' in name.lower():
    return shape[-1]  # one row is looked up, no sum over the rows
  return _size(shape[:-2] if 'depthwise' in name.lower() else shape[:-1])


def distinct_values(name: str, shape: Tuple[int, ...], dtype: Any) -> Optional[_Array]:
  """Returns values that differ from variable to variable and from element to element.

  Magnitudes in [0.5, 1.5), scaled by 1 / sqrt(fan-in) where the rank is 2 or more;
  either sign, but where the name says that a variance is meant. None, which keeps the
  initial value, for a dtype that is not floating or complex.
  """
  if not _is_inexact(dtype):
    return None
  seed = hashlib.sha256('{}:{}'.format(VERSIONS['fill'], name).encode()).digest()
  generator = np.random.RandomState(np.frombuffer(seed, dtype='<u4'))
  words = generator.randint(0, 2**32, size=_size(shape), dtype=np.uint32)
  # The lower 23 bits become the fraction of a float32 in [1, 2), the highest the sign.
  fractions = (words & np.uint32(0x007FFFFF)) | np.uint32(0x3F800000)
  values = fractions.view(np.float32)
  values -= np.float32(0.5)
  if not any(word in name.lower() for word in _POSITIVE_WORDS):
    fractions |= words & np.uint32(0x80000000)
    if len(shape) >= 2 and values.size:
      values *= np.float32(1.0 / math.sqrt(_fan_in(name, shape)))
  return values.astype(dtype, copy=False).reshape(shape)


def constant_values(name: str, shape: Tuple[int, ...], dtype: Any) -> Optional[_Array]:
  """Returns 0.001 for every element, as TensorFlow's migration guide has it."""
  return np.full(shape, GUIDE_CONSTANT, dtype) if _is_inexact(dtype) else None


def varied_inputs(inputs: Any) -> Tuple[Any, List[str]]:
  """Replaces floating inputs whose elements are all the same by seeded normal values.

  Returns:
    The nest, and the paths that were replaced.
  """
  replaced = []  # type: List[str]

  def vary(path: str, leaf: _Array) -> _Array:
    if leaf.dtype.kind != 'f' or leaf.size < 2 or np.any(leaf != leaf.flat[0]):
      return leaf
    replaced.append(path or 'the input')
    generator = np.random.RandomState(zlib.crc32(path.encode()))
    normal = generator.standard_normal(leaf.shape).astype(np.float32)
    return (leaf + normal).astype(leaf.dtype)

  return _map_leaves(vary, inputs), replaced


def weighted_sum(outputs: Any) -> Any:
  """Returns the sum over all floating outputs of weight times element; None without one.

  Every element has a weight of its own of magnitude 0.5 to 1, by integer arithmetic on
  its index; each output is divided by the square root of its size.
  """
  leaves = [t for _, t in _flatten(outputs)[1] if isinstance(t, tf.Tensor) and t.dtype.is_floating]
  if not leaves:
    return None
  total = tf.float64 if any(leaf.dtype == tf.float64 for leaf in leaves) else tf.float32
  terms = []
  for position, leaf in enumerate(leaves):
    flat = tf.cast(tf.reshape(leaf, [-1]), total)
    size = tf.size(flat, out_type=tf.int64)
    norm = tf.sqrt(tf.cast(tf.maximum(size, tf.constant(1, tf.int64)), total))
    terms.append(tf.reduce_sum(flat * _weights(size, position, total)) / norm)
  return tf.add_n(terms)


def _weights(size: Any, position: int, dtype: Any) -> Any:
  modulus = 2**31
  index = tf.range(1, size + 1, dtype=tf.int64)
  salt = (position * 1013904223 + 12345) % modulus
  magnitude = v1.floormod(index * 1103515245 + salt, modulus)
  positive = v1.floormod(index * 1664525 + salt, modulus) >= modulus // 2
  weight = 0.5 + tf.cast(magnitude, tf.float64) / (2.0 * modulus)
  return tf.cast(tf.where(positive, weight, -weight), dtype)


# ---------------------------------------------------------------------------------------
# Nests of tensors and arrays.


def _components(leaf: Any) -> Optional[Dict[str, Any]]:
  """Returns the parts of a composite tensor by name; None for any other object."""
  if isinstance(leaf, (tf.SparseTensor, v1.SparseTensorValue)):
    return {'indices': leaf.indices, 'values': leaf.values, 'dense_shape': leaf.dense_shape}
  if isinstance(leaf, tf.RaggedTensor):
    parts = {'flat_values': leaf.flat_values}
    for number, split in enumerate(leaf.nested_row_splits):
      parts['row_splits_{}'.format(number)] = split
    return parts
  if isinstance(leaf, tf.IndexedSlices):
    return {'values': leaf.values, 'indices': leaf.indices}
  return None


def _children(nest: Any, path: str) -> Optional[Tuple[str, List[Tuple[str, Any, str]], str]]:
  """Returns opening, (path, child, label) and closing of a nest; None for a leaf."""
  parts = _components(nest)
  if parts is not None:
    children = [('{}.{}'.format(path, name), parts[name], name + '=') for name in parts]
    return type(nest).__name__ + '(', children, ')'
  if isinstance(nest, collections.abc.Mapping):
    keys = sorted(nest, key=lambda key: (type(key).__name__, key))
    return (
      '{',
      [('{}[{!r}]'.format(path, key), nest[key], '{!r}: '.format(key)) for key in keys],
      '}',
    )
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    fields = nest._fields
    children = [('{}.{}'.format(path, n), getattr(nest, n), n + '=') for n in fields]
    return type(nest).__name__ + '(', children, ')'
  if isinstance(nest, (list, tuple)):
    return '(', [('{}[{}]'.format(path, n), c, '') for n, c in enumerate(nest)], ')'
  return None


def _flatten(nest: Any, path: str = '') -> Tuple[str, List[Tuple[str, Any]]]:
  """Returns the structure as text, and path and leaf in order, dictionaries by sorted key.

  Raises:
    TypeError: a leaf is neither a tensor nor an array, a number, a string or None.
  """
  found = _children(nest, path)
  if found is not None:
    opening, children, closing = found
    texts = []  # type: List[str]
    leaves = []  # type: List[Tuple[str, Any]]
    for child_path, child, label in children:
      text, below = _flatten(child, child_path)
      texts.append(label + text)
      leaves += below
    return opening + ', '.join(texts) + closing, leaves
  place = path or '(the output)'
  if nest is None:
    return 'None', [(place, None)]
  if isinstance(nest, tf.Variable):
    nest = nest.read_value()
  if isinstance(nest, (np.ndarray, np.generic, bool, int, float, complex, str, bytes)):
    return 'Tensor', [(place, np.asarray(nest))]
  if isinstance(nest, tf.Tensor):
    return 'Tensor', [(place, nest)]
  raise TypeError('{} is of type {}'.format(path or 'the result', type(nest).__name__))


def _map_leaves(function: Callable[[str, Any], Any], nest: Any, path: str = '') -> Any:
  """Returns a nest of the same structure with `function(path, leaf)` as its leaves."""
  if isinstance(nest, collections.abc.Mapping):
    items = {key: _map_leaves(function, nest[key], '{}[{!r}]'.format(path, key)) for key in nest}
    return items if type(nest) is dict else type(nest)(items)  # type: ignore[call-arg]
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    fields = nest._fields
    parts = [_map_leaves(function, getattr(nest, n), '{}.{}'.format(path, n)) for n in fields]
    return type(nest)(*parts)
  if isinstance(nest, (list, tuple)):
    return type(nest)(
      _map_leaves(function, child, '{}[{}]'.format(path, n)) for n, child in enumerate(nest)
    )
  return function(path, nest)


def _checked_arrays(nest: Any, what: str) -> Any:
  """Returns the nest with numpy arrays as its leaves, as they are fed.

  Raises:
    RecorderError: a leaf is no array, of dtype object, or holds NaN; or there is none.
  """
  count = [0]

  def check(path: str, leaf: Any) -> _Array:
    place = what + path
    if not isinstance(leaf, (np.ndarray, np.generic)):
      raise RecorderError(
        '{} is of type {}; give numpy arrays, in tuples, lists and dictionaries: np.asarray(x)'
        ''.format(place, type(leaf).__name__)
      )
    array = np.asarray(leaf, order='C')
    if array.dtype == object:
      raise RecorderError(
        '{} has dtype object, which TensorFlow cannot be fed: usually rows of different length, '
        "or strings; pad the rows, or give strings as np.array(..., dtype='S')".format(place)
      )
    if array.dtype.kind in 'fc' and np.isnan(array).any():
      raise RecorderError(
        '{} contains NaN ({} of {} elements): every comparison would compare NaN with NaN; '
        'replace them, as the model in production does'
        ''.format(place, int(np.isnan(array).sum()), array.size)
      )
    count[0] += array.size
    if array.dtype.kind == 'U':
      return np.char.encode(array, 'utf-8')
    return array.astype(array.dtype.newbyteorder('='), copy=False)

  checked = _map_leaves(check, nest)
  if not count[0]:
    raise RecorderError(
      'the {} hold no array with any element; give a batch of at least one'.format(what)
    )
  return checked


# ---------------------------------------------------------------------------------------
# Randomness.

_RANDOM_WORDS = (
  'Random',
  'TruncatedNormal',
  'Multinomial',
  'StatefulUniform',
  'StatefulStandard',
  'CandidateSampler',
  'SampleDistortedBoundingBox',
  'ShuffleV2',
)
_NOT_RANDOM = ('GetKeyCounter', 'GetAlg', 'RandomDataset', 'RandomSeedGenerator')


def _is_random_op(op_type: str) -> bool:
  """Returns whether ops of this type draw random numbers."""
  drawing = any(word in op_type for word in _RANDOM_WORDS)
  return drawing and not any(word in op_type for word in _NOT_RANDOM)


class _OpSeeds:
  """Stands in for TensorFlow's `get_seed`: (42, 0) for every op, or (42, n) for the n-th."""

  def __init__(self, mode: str) -> None:
    self.count = 0
    self._counting = mode == _NUM_RANDOM_OPS

  def __call__(self, op_seed: Optional[int] = None) -> Tuple[int, int]:
    name = getattr(v1.get_default_graph(), 'name', '')
    if name == 'keras_graph' or name.endswith('_scratch_graph'):
      return _SEED, 0  # Keras tries a layer out there; nothing of it is ever run
    number = self.count
    if self._counting:
      self.count += 1
    return _SEED, number


class _KerasSeeds(random.Random):
  """Keras' source of initializer seeds under TensorFlow 2: counted, and constant where asked."""

  def __init__(self, mode: str) -> None:
    super().__init__(_SEED)
    self.draws = 0
    self._constant = mode == _CONSTANT

  def randint(self, a: int, b: int) -> int:
    """Returns the next seed."""
    self.draws += 1
    return _SEED if self._constant else super().randint(a, b)


class _Seeding:
  """What a seeded scope has drawn: seeds of ops, and seeds by Keras."""

  def __init__(self, mode: str) -> None:
    self.ops = _OpSeeds(mode)
    self.keras = _KerasSeeds(mode)


@contextlib.contextmanager
def _seeded(seeding: _Seeding) -> Iterator[None]:
  """Owns every source of randomness of a build until exit."""
  generators = []  # type: List[Any]
  for name in ('tf_keras.src.backend', 'tensorflow.python.keras.backend', 'keras.backend'):
    backend = sys.modules.get(name)  # type: Any
    if hasattr(backend, '_SEED_GENERATOR'):
      generators.append(backend._SEED_GENERATOR)
  python, numpy, get_seed = random.getstate(), np.random.get_state(), random_seed.get_seed
  before = [getattr(generator, 'generator', None) for generator in generators]
  random.seed(_SEED)
  np.random.seed(_SEED)
  random_seed.get_seed = seeding.ops
  for generator in generators:
    generator.generator = seeding.keras
  try:
    yield
  finally:
    random_seed.get_seed = get_seed
    random.setstate(python)
    np.random.set_state(numpy)
    for generator, state in pairs(generators, before):
      generator.generator = state
      if state is None:
        del generator.generator


# ---------------------------------------------------------------------------------------
# The user's code and its lines.

_OWN_FILE = os.path.abspath(__file__)


def _framework_folders() -> Tuple[str, ...]:
  found = []
  for name in ('tensorflow', 'tensorflow_core', 'tf_keras', 'keras', 'numpy', 'absl'):
    module = sys.modules.get(name)
    for folder in getattr(module, '__path__', None) or ():
      found.append(os.path.abspath(folder) + os.sep)
  return tuple(found)


class _SourceLines:
  """The table of the user's lines that the graphs of a recording refer to."""

  def __init__(self) -> None:
    self.table = []  # type: List[List[Any]]
    self._index = {}  # type: Dict[Tuple[str, int, str], int]
    self._user_files = {}  # type: Dict[str, bool]
    self._folders = _framework_folders()

  def of_frames(self, frames: Any) -> int:
    """Returns the number of the innermost user's line of a stack, innermost last; -1: none."""
    for position in range(len(frames) - 1, -1, -1):
      frame = frames[position]
      path, line, function = (
        (frame.filename, frame.lineno, frame.name) if hasattr(frame, 'filename') else frame[:3]
      )
      if self.is_user_file(path):
        return self._number(path, line, function)
      if path.rpartition(os.sep)[2] == os.path.basename(_OWN_FILE):
        return -1  # further out there is whoever records
    return -1

  def of_op(self, op: Any) -> int:
    """Returns the number of the line that made an op."""
    frames = getattr(op, '_traceback', None)  # `op.traceback` of 1.x reads every line's text
    return self.of_frames(op.traceback if frames is None else frames)

  def is_user_file(self, path: str) -> bool:
    """Returns whether a file is neither a framework's, nor Python's, nor this one."""
    if path not in self._user_files:
      self._user_files[path] = self._decide(path)
    return self._user_files[path]

  def _decide(self, path: str) -> bool:
    if path.startswith('<'):
      return path.startswith('<ipython')
    path = os.path.abspath(path)
    slim = '{}tf_slim{}'.format(os.sep, os.sep)
    if slim in path:
      return '{}nets{}'.format(slim, os.sep) in path
    if path == _OWN_FILE or path.startswith(self._folders) or '__autograph_generated' in path:
      return False
    installed = '{}site-packages{}'.format(os.sep, os.sep) in path
    return installed or not path.startswith(sysconfig.get_path('stdlib') + os.sep)

  def _number(self, path: str, line: int, function: str) -> int:
    key = (path, line, function)
    if key not in self._index:
      self._index[key] = len(self.table)
      code = linecache.getline(path, line).strip()
      self.table.append([_shown_path(path), line, function, code])
    return self._index[key]


def _shown_path(path: str) -> str:
  """Returns a path relative to the working folder where it is below."""
  below = path if path.startswith('<') else os.path.relpath(path)
  return path if below.startswith('..') else below


# Returns what is known of an error's cause beyond its message; '' for nothing.
_Hint = Callable[[BaseException], str]


def _no_hint(_: BaseException) -> str:
  return ''


@contextlib.contextmanager
def _user_code(what: str, hint: _Hint = _no_hint) -> Iterator[None]:
  """Turns whatever the user's code raises into a `RecorderError` that shows it."""
  try:
    yield
  except RecorderError:
    raise
  except (Exception, SystemExit) as error:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ['']
    text = '{} raised {}: {}'.format(what, type(error).__name__, lines[0][:300])
    if 'same graph' in lines[0] or 'is not an element of this graph' in lines[0]:
      text += '; maybe since it makes ' + _OTHER_GRAPH
    elif 'tf.reset_default_graph()' in lines[0]:
      text += '; remove that line, each call of the builder gets a fresh graph'
    else:
      text += hint(error)
    raise RecorderError(text) from error


def _input_hint(error: BaseException, inputs: Any) -> str:
  """Returns how the inputs came to be what the builder was given, where that may be the cause."""
  text = str(error)
  if isinstance(inputs, np.ndarray):
    if not isinstance(error, TypeError) or 'valid indices' not in text:
      return ''
    return (
      '; `inputs` was one tensor, since there is one array, without a name of its own: '
      'numpy.savez(FILE, x=array) makes it a dictionary with the key x'
    )
  if not isinstance(inputs, collections.abc.Mapping):
    return ''
  slips = (TypeError, AttributeError, ValueError)
  alone = len(inputs) == 1 and isinstance(error, slips)
  if not (alone or isinstance(error, KeyError) or 'dict' in text):
    return ''
  keys = ', '.join(repr(key) for key in inputs)
  hint = '; `inputs` was a dictionary of tensors with the keys {}, as the arrays are named'.format(
    keys
  )
  if len(inputs) > 1:
    return hint
  return hint + ': to give the tensor itself, save the array as numpy.savez(FILE, inputs=array)'


def _check_call(what: str, function: Any, names: Sequence[str], slip: str = '') -> None:
  """Raises `RecorderError` where a function cannot be called with these arguments."""
  try:
    signature = inspect.signature(function)
  except (TypeError, ValueError):  # of one that is not written in Python
    return
  try:
    signature.bind(*names)
  except TypeError as error:
    raise RecorderError(
      '{} is called as {}({}), which it does not take: {}{}'.format(
        what, _call_name(function), ', '.join(names), error, slip and '; ' + slip
      )
    ) from None


def _call_name(function: Any) -> str:
  return str(getattr(function, '__name__', None) or type(function).__name__)


def _user_traceback(error: BaseException) -> str:
  """Returns the traceback of what the user's code raised, without this file's frames."""
  frames = traceback.extract_tb(error.__traceback__)
  own = [
    frame
    for frame in frames
    if os.path.abspath(frame[0]) != _OWN_FILE and not frame[0].startswith('<frozen')
  ]
  lines = ['Traceback (most recent call last):\n']
  return ''.join(
    lines + traceback.format_list(own) + traceback.format_exception_only(type(error), error)
  )


def load_function(name: str, option: str) -> Callable[..., Any]:
  """Imports `package.module:function`.

  Raises:
    RecorderError: the name is wrong, or the import fails.
  """
  module, _, attribute = name.partition(':')
  if not module or not attribute:
    raise RecorderError(
      '--{} {!r} names no function; write package.module:function, as in my_model:build'.format(
        option, name
      )
    )
  if os.getcwd() not in sys.path:
    sys.path.insert(0, os.getcwd())
  if module.endswith('.py'):
    raise RecorderError(
      '--{0} {1!r} names a file; name the module: --{0} {2}:{3}'.format(
        option, name, module[:-3].replace(os.sep, '.'), attribute
      )
    )
  with _user_code('--{} {}: importing {}'.format(option, name, module)):
    found = importlib.import_module(module)  # type: Any
  for part in attribute.split('.'):
    if not hasattr(found, part):
      known = [n for n, v in vars(found).items() if callable(v) and not n.startswith('_')]
      raise RecorderError(
        '--{} {}: {} has no {!r}; it has {}'.format(
          option, name, module, part, ', '.join(sorted(known)[:12]) or 'no function'
        )
      )
    found = getattr(found, part)
  if not callable(found):
    raise RecorderError(
      '--{} {} is of type {}, which cannot be called'.format(option, name, type(found).__name__)
    )
  return found  # type: ignore[no-any-return]


def _function_name(function: Any) -> str:
  module = getattr(function, '__module__', None) or '?'
  if module == '__main__':
    path = getattr(sys.modules['__main__'], '__file__', None) or '__main__'
    module = os.path.splitext(os.path.basename(path))[0]
  name = getattr(function, '__qualname__', None) or type(function).__name__
  return '{}:{}'.format(module, name)


def _source_files(functions: Iterable[Any], known: FrozenSet[str]) -> List[Dict[str, str]]:
  """Returns path and digest of the user's files that the functions come from.

  Those of the modules that are reached from the functions' own by what these name, and
  of the modules that were imported since: below the working folder, or beside one.
  """
  modules = [sys.modules.get(getattr(f, '__module__', None) or '') for f in functions]  # type: List[Any]
  folders = {os.path.dirname(os.path.abspath(m.__file__)) for m in modules if _is_file(m)}
  folders.add(os.getcwd())
  pending = modules + [m for name, m in list(sys.modules.items()) if name not in known]
  found = {}  # type: Dict[str, str]
  seen = set()  # type: Set[int]
  while pending:
    module = pending.pop()
    if id(module) in seen or not _is_file(module):
      continue
    seen.add(id(module))
    path = os.path.abspath(module.__file__)
    folder = next((f for f in sorted(folders) if path.startswith(f + os.sep)), None)
    installed = any(word in path.split(os.sep) for word in ('site-packages', 'dist-packages'))
    ours = module.__name__.split('.')[0] == 'tf2verify' or path == _OWN_FILE
    if folder is None or installed or ours or path.startswith(sysconfig.get_path('stdlib')):
      continue
    below = os.getcwd() if path.startswith(os.getcwd() + os.sep) else folder
    with open(path, 'rb') as file:
      found[os.path.relpath(path, below)] = hashlib.sha256(file.read()).hexdigest()
    for value in list(vars(module).values()):
      owner = value.__name__ if isinstance(value, types.ModuleType) else _module_of(value)
      pending.append(sys.modules.get(owner))
  return [{'path': path, 'sha256': found[path]} for path in sorted(found)]


def _is_file(module: Any) -> bool:
  path = getattr(module, '__file__', None)
  return isinstance(path, str) and path.endswith('.py') and os.path.isfile(path)


def _module_of(value: Any) -> str:
  name = getattr(value, '__module__', None) if callable(value) else None
  return name if isinstance(name, str) else ''


# ---------------------------------------------------------------------------------------
# Building the graph.


class _Variable:
  """A variable of a graph, by the names of what reads and writes it."""

  def __init__(self, variable: Any, source: int, collections_: List[str], shared: bool) -> None:
    keys = v1.GraphKeys
    self.name = str(variable.name).rsplit(':', 1)[0]
    self.shape = _static_shape(variable.shape)
    self.dtype = variable.dtype.base_dtype
    self.collections = collections_
    self.source = source
    self.trainable = keys.TRAINABLE_VARIABLES in collections_
    self.trainable_flag = bool(getattr(variable, 'trainable', self.trainable))
    self.read = variable._as_graph_element().name
    self.initializer = variable.initializer.name
    self.value = variable.initializer.inputs[1].name
    self.shares_value = shared
    self.local = keys.LOCAL_VARIABLES in collections_ and keys.GLOBAL_VARIABLES not in collections_
    self.global_step = keys.GLOBAL_STEP in collections_
    self.handle = variable.initializer.inputs[0]

  def may_change(self) -> bool:
    """Returns whether any op of the graph but the initializer could write the variable."""
    return any(
      _writes(op, self.handle) for op in self.handle.consumers() if op.name != self.initializer
    )

  def value_by(self, fill: Fill) -> Optional[_Array]:
    """Returns the value that a fill gives; None to keep the initial one."""
    if None in self.shape:
      return None
    shape = tuple(size or 0 for size in self.shape)
    dtype = np.dtype(self.dtype.as_numpy_dtype)
    with _user_code('the fill'):
      value = fill(self.name, shape, dtype)
    if value is None:
      return None
    value = np.asarray(value)
    if value.shape != shape:
      raise RecorderError(
        'the fill gave {} an array of shape {}; the variable has shape {}'.format(
          self.name, value.shape, shape
        )
      )
    return value.astype(dtype, copy=False)

  def manifest(self) -> Dict[str, Any]:
    """Returns the entry of the manifest."""
    return {
      'name': self.name,
      'shape': list(self.shape),
      'dtype': self.dtype.name,
      'trainable': self.trainable,
      'trainable_flag': self.trainable_flag,
      'collections': self.collections,
      'source': None if self.source < 0 else self.source,
      'read': self.read,
      'initializer': self.initializer,
      'value': self.value,
      'shares_value': self.shares_value,
      'may_change': self.may_change(),
      'local': self.local,
      'global_step': self.global_step,
    }


_READS = ('ReadVariableOp', 'VarIsInitializedOp', 'VariableShape', 'ResourceGather')


def _writes(op: Any, handle: Any) -> bool:
  """Returns whether an op may write the variable whose reference or handle it takes."""
  if handle.dtype == tf.resource:
    return op.type not in _READS
  arguments = op.op_def.input_arg
  if len(arguments) != len(op.inputs):  # arguments that are lists of tensors
    return any(argument.is_ref for argument in arguments)
  taken = pairs(arguments, op.inputs)
  return any(argument.is_ref for argument, tensor in taken if tensor is handle)


def _static_shape(shape: Any) -> Tuple[Optional[int], ...]:
  """Returns a `TensorShape` as a tuple; an unknown rank as `(None,)`."""
  shape = tf.TensorShape(shape)
  return (None,) if shape.ndims is None else tuple(shape.as_list())


class BuiltGraph:
  """A graph, and what is known of it by name; the fields are those of the manifest."""

  def __init__(self, graph: Any, training: bool, sources: _SourceLines) -> None:
    self.graph = graph
    self.training = training
    self.sources = sources
    self.placeholders = []  # type: List[Tuple[str, str]]
    self.output_nest = None  # type: Any
    self.structure = ''
    self.outputs = []  # type: List[Tuple[str, Optional[str]]]
    self.variables = []  # type: List[_Variable]
    self.objects = {}  # type: Dict[str, Any]
    self.regularization_losses = []  # type: List[Tuple[List[str], str]]
    self.update_ops = []  # type: List[str]
    self.table_initializers = []  # type: List[str]
    self.random_draws = []  # type: List[Dict[str, Any]]
    self.seed_obstacle = ''
    self.draws_repeat = False
    self.operation_seeds = 0
    self.gradients = []  # type: List[Dict[str, Any]]

  @property
  def draws_in_computation(self) -> bool:
    """Whether a random op serves anything but a variable's initial value."""
    return any(draw['variable'] is None for draw in self.random_draws)

  def targets(self) -> List[str]:
    """Returns the names of outputs, regularization losses and update ops."""
    names = [name for _, name in self.outputs if name is not None]
    names += [name for _, name in self.regularization_losses]
    return names + self.update_ops

  def draws_used(self, gradients: bool) -> Optional[List[str]]:
    """Returns the random tensors behind what is computed; None where they cannot be fed."""
    names = [name for _, name in self.outputs if name is not None]
    names += [name for _, name in self.regularization_losses]
    names += [g['values'] for g in self.gradients if gradients and g['values'] is not None]
    for name in self.update_ops:
      names += [tensor.name for tensor in self.graph.get_operation_by_name(name).inputs]
    return _draws_behind(self.graph, self.random_draws, names)

  def owned(self) -> List[_Variable]:
    """Returns the model's variables, without a metric's counters."""
    return [variable for variable in self.variables if not variable.local]


def _draws_behind(
  graph: Any, random_draws: Sequence[Dict[str, Any]], names: Iterable[str]
) -> Optional[List[str]]:
  """Returns the random tensors behind tensors; None where they cannot be fed."""
  draws = [draw for draw in random_draws if draw['variable'] is None]
  if any(draw['in_loop'] or draw['shape'] == [None] for draw in draws):  # or in a function
    return None
  behind = _ops_behind(graph.get_tensor_by_name(name) for name in names)
  found = [behind[draw['op_name']].outputs[0] for draw in draws if draw['op_name'] in behind]
  inside = any(not graph.is_fetchable(tensor) for tensor in found)  # of a `tf.cond`
  return None if inside else [tensor.name for tensor in found]


class _Creations:
  """Which variables a graph gets, and which of its ops each creation makes."""

  def __init__(self, graph: Any, sources: _SourceLines) -> None:
    self.found = []  # type: List[Tuple[Any, int, int, int]]
    self._graph = graph
    self._sources = sources

  def __call__(self, next_creator: Callable[..., Any], **arguments: Any) -> Any:
    """Creates a variable."""
    first = self._graph.version
    variable = next_creator(**arguments)
    stack = [(f.f_code.co_filename, n, f.f_code.co_name) for f, n in _stack()]
    self.found.append((variable, first, self._graph.version, self._sources.of_frames(stack)))
    return variable

  def variables(self) -> Iterator[Tuple[Any, int]]:
    """Yields each variable of the graph once, with the number of its line."""
    names = set()
    for variable, _, _, source in self.found:
      if variable.graph is self._graph and variable.name not in names:
        names.add(variable.name)
        yield variable, source

  def made_by(self, position: int) -> Optional[str]:
    """Returns the variable in whose creation the op at a position was made; None: in none's."""
    found = [entry for entry in self.found if entry[1] <= position < entry[2]]
    if not found:
      return None
    innermost = min(found, key=lambda entry: entry[2] - entry[1])
    return str(innermost[0].name).rsplit(':', 1)[0]


def _stack() -> List[Tuple[Any, int]]:
  """Returns the frames of the caller's caller, the innermost last, with their lines."""
  found = []
  frame = sys._getframe(2)  # type: Any
  while frame is not None:
    found.append((frame, frame.f_lineno))
    frame = frame.f_back
  return found[::-1]


@contextlib.contextmanager
def _tf1_semantics(v2_tensorshape: bool) -> Iterator[None]:
  """Gives TF1's meaning to `==` on tensors and to the items of a shape, under any version."""
  equality = getattr(tf.Tensor, '_USE_EQUALITY', False)
  shapes = getattr(tensor_shape, '_TENSORSHAPE_V2_OVERRIDE', None)
  try:
    if equality:
      v1.disable_tensor_equality()
    if not v2_tensorshape:
      v1.disable_v2_tensorshape()
    yield
  finally:
    if equality:
      v1.enable_tensor_equality()
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = shapes


_OTHER_GRAPH = (
  'another graph than the one it is called in: usually a `with tf.Graph().as_default():` or '
  '`tf.reset_default_graph()` inside the builder; remove it, each call gets a fresh graph'
)


def build_graph(
  builder: Callable[[Any, bool], Any],
  inputs: Any,
  training: bool,
  mode: str,
  sources: _SourceLines,
) -> BuiltGraph:
  """Builds the graph under TF1's semantics, every random op seeded.

  Under TensorFlow 2 a builder that counts on TF2's shapes is built again with those.

  Raises:
    RecorderError: the builder raised or returned something unusable.
  """
  try:
    return _build(builder, inputs, training, mode, sources, v2_tensorshape=False)
  except RecorderError as error:
    half_ported = isinstance(error.__cause__, (TypeError, AttributeError, ValueError))
    if tf.__version__.startswith('1.') or not half_ported:
      raise
    first = error
  try:
    return _build(builder, inputs, training, mode, sources, v2_tensorshape=True)
  except RecorderError:
    raise first from first.__cause__


def _build(
  builder: Callable[[Any, bool], Any],
  inputs: Any,
  training: bool,
  mode: str,
  sources: _SourceLines,
  v2_tensorshape: bool,
) -> BuiltGraph:
  graph = tf.Graph()
  built = BuiltGraph(graph, training, sources)
  creations = _Creations(graph, sources)
  seeding = _Seeding(mode)

  def placeholder(path: str, leaf: _Array) -> Any:
    dtype = tf.string if _is_string(leaf) else tf.as_dtype(leaf.dtype)
    name = 'tf2verify_input/{}'.format(len(built.placeholders))
    tensor = v1.placeholder(dtype, leaf.shape, name=name)
    built.placeholders.append((path, tensor.name))
    return tensor

  with _tf1_semantics(v2_tensorshape), graph.as_default():
    fed = _map_leaves(placeholder, inputs)
    with contextlib.ExitStack() as stack:
      stack.enter_context(_user_code('the builder', lambda error: _input_hint(error, inputs)))
      stack.enter_context(_seeded(seeding))
      stack.enter_context(v1.variable_creator_scope(creations))
      built.output_nest = builder(fed, training)
    _describe_outputs(built)
    _describe_collections(built, creations)
    _check_runs_alone('the builder', built, built.targets(), _FED_BY_BUILDER)
    if seeding.keras.draws:
      built.seed_obstacle = '{} seeds came from Keras, as constants'.format(seeding.keras.draws)
    built.operation_seeds = seeding.ops.count
    _describe_draws(built, creations)
  return built


def _describe_outputs(built: BuiltGraph) -> None:
  if built.output_nest is None:
    raise RecorderError(
      'the builder returned None: usually a missing `return`; return the output tensors'
    )
  try:
    built.structure, leaves = _flatten(built.output_nest)
  except TypeError as error:
    raise RecorderError(
      'the builder returned something that is not a tensor: {}; return tensors, or tuples, lists '
      'and dictionaries of tensors'.format(error)
    ) from error
  if not any(isinstance(leaf, tf.Tensor) for _, leaf in leaves):
    raise RecorderError(
      'the builder returned {:.80}, which holds no tensor; return the output tensors'.format(
        repr(built.output_nest)
      )
    )
  for path, leaf in leaves:
    if isinstance(leaf, np.ndarray):
      leaf = tf.constant(leaf, name='tf2verify_output')
    if leaf is not None and getattr(leaf, 'graph', None) is not built.graph:
      raise RecorderError('the builder returned {} from {}'.format(path, _OTHER_GRAPH))
    built.outputs.append((path, None if leaf is None else leaf.name))


def _describe_collections(built: BuiltGraph, creations: _Creations) -> None:
  graph, keys = built.graph, v1.GraphKeys
  members = {key: {id(i) for i in graph.get_collection(key)} for key in _collection_keys(graph)}
  used_values = set()  # type: Set[str]
  for variable, source in creations.variables():
    held_by = sorted(key for key, items in members.items() if id(variable) in items)
    value = variable.initializer.inputs[1].name
    built.variables.append(_Variable(variable, source, held_by, value in used_values))
    built.objects[built.variables[-1].name] = variable
    used_values.add(value)
  for loss in graph.get_collection(keys.REGULARIZATION_LOSSES):
    built.regularization_losses.append((_variables_behind(loss), loss.name))
  # What is no operation has one: a tensor, what the update of a variable returns.
  updates = [getattr(update, 'op', update) for update in graph.get_collection(keys.UPDATE_OPS)]
  built.update_ops = [op.name for op in updates]
  built.table_initializers = [op.name for op in graph.get_collection(keys.TABLE_INITIALIZERS)]


def _collection_keys(graph: Any) -> List[str]:
  return [key for key in graph.get_all_collection_keys() if isinstance(key, str)]


def _ops_behind(tensors: Iterable[Any]) -> Dict[str, Any]:
  """Returns the ops that tensors are computed from, by name."""
  found = {}  # type: Dict[str, Any]
  pending = [tensor.op for tensor in tensors]
  while pending:
    op = pending.pop()
    if op.name not in found:
      found[op.name] = op
      pending += [tensor.op for tensor in op.inputs]
  return found


def _ops_run_by(ops: Iterable[Any]) -> Dict[str, Any]:
  """Returns all ops that running some ops runs, by data and by control, by name."""
  found = {}  # type: Dict[str, Any]
  pending = list(ops)
  while pending:
    current = pending.pop()
    if current.name not in found:
      found[current.name] = current
      pending += [tensor.op for tensor in current.inputs]
      pending += current.control_inputs
  return found


# Ops that wait until another thread, or another machine, has put something there.
_WAITING_WORDS = (
  'QueueDequeue',
  'ReaderRead',
  'Unstage',
  'BarrierTakeMany',
  'AccumulatorTakeGradient',
)
_FED_BY_BUILDER = (
  'the tensors that the builder is given as `inputs`: let session.run give you one batch of what '
  'is behind it, numpy.savez that, and give the file with --inputs (labels with --labels)'
)
_FED_BY_LOSS = (
  'the outputs and labels that the function is given: let session.run give you one batch of the '
  'labels, numpy.savez that, and give the file with --labels'
)
_FED_BY_TRAIN_OP = (
  'a train op that waits for no other thread or machine (without SyncReplicasOptimizer), of the '
  'loss that the function is given'
)


def _check_runs_alone(
  what: str, built: 'BuiltGraph', names: Iterable[str], instead: str, fed: Iterable[str] = ()
) -> None:
  """Raises `RecorderError` where a run would wait for a queue, or lacks the value of a placeholder.

  Args:
    what: has made the ops.
    built: the graph, with the placeholders that are fed.
    names: of the ops or tensors that are run.
    instead: what they are to be made of.
    fed: further placeholders, by the names of their tensors.
  """
  graph = built.graph
  known = {name.partition(':')[0] for name in fed}
  known.update(name.partition(':')[0] for _, name in built.placeholders)
  roots = [graph.get_operation_by_name(name.partition(':')[0]) for name in names]
  for op in _ops_run_by(roots).values():
    if any(word in op.type for word in _WAITING_WORDS):
      raise RecorderError(
        '{} reads from a queue, {}; nobody fills it while the model is recorded, so that the run '
        'would wait for ever: use {}'.format(what, _op_text(built, op), instead)
      )
    # One inside of a branch of `tf.cond` may never be run.
    inside = op._get_control_flow_context() is not None
    if op.type == 'Placeholder' and op.name not in known and not inside:
      raise RecorderError(
        '{} uses a placeholder of its own, {}; nothing is fed to it: use {}; in place of one for a '
        'setting, as is_training or keep_prob, what the argument for training says'.format(
          what, _op_text(built, op), instead
        )
      )


def _op_text(built: 'BuiltGraph', op: Any) -> str:
  """Returns type, name, what it yields, and the user's line of an op."""
  made = '{} {!r}'.format(op.type, op.name)
  if op.type == 'Placeholder':
    made = '{!r} ({}, shape {})'.format(op.name, op.outputs[0].dtype.name, op.outputs[0].shape)
  line = built.sources.of_op(op)
  if line < 0:
    return made
  path, number, function, _ = built.sources.table[line]
  return '{} of {}:{}, in {}'.format(made, path, number, function)


def _variables_behind(tensor: Any) -> List[str]:
  """Returns the variables that a tensor is computed from; none if inputs are behind it, too."""
  behind = _ops_behind([tensor]).values()
  if any(op.type == 'Placeholder' for op in behind):
    return []
  kinds = ('VarHandleOp', 'VariableV2', 'Variable', 'AutoReloadVariable')
  return sorted(op.name for op in behind if op.type in kinds)


def _describe_draws(built: BuiltGraph, creations: _Creations) -> None:
  """Fills in the random ops in the order in which they were made."""
  library = {}  # type: Dict[str, Any]
  if getattr(built.graph, '_functions', True):  # none: the graph need not be written out
    library = {f.signature.name: f for f in built.graph.as_graph_def().library.function}
  called = set()  # type: Set[str]
  for position, op in enumerate(built.graph.get_operations()):
    source = built.sources.of_op(op) if _is_random_op(op.type) or library else -1
    if _is_random_op(op.type):
      built.random_draws.append(
        {
          'op_type': op.type,
          'shape': list(_static_shape(op.outputs[0].shape)),
          'variable': creations.made_by(position),
          'source': None if source < 0 else source,
          'in_loop': _is_in_loop(op),
          'op_name': op.name,
          'feeds_outputs': False,
        }
      )
    if library:
      for name, in_loop in _functions_called(op.node_def.attr.items(), op.type, library):
        _describe_draws_inside(built, name, in_loop, library, called, source)
  if built.draws_in_computation:
    tensor = built.graph.get_tensor_by_name
    behind = _ops_behind(tensor(name) for _, name in built.outputs if name is not None)
    for draw in built.random_draws:
      draw['feeds_outputs'] = draw['op_name'] in behind and not draw['in_loop']


def _functions_called(
  attributes: Iterable[Tuple[str, Any]], op_type: str, library: Dict[str, Any]
) -> List[Tuple[str, bool]]:
  found = [(op_type, False)]
  found += [(value.func.name, key == 'body') for key, value in attributes]
  return [(name, in_loop) for name, in_loop in found if name in library]


def _describe_draws_inside(
  built: BuiltGraph,
  function: str,
  in_loop: bool,
  library: Dict[str, Any],
  called: Set[str],
  source: int,
) -> None:
  if function in called:
    return
  called.add(function)
  for node in library[function].node_def:
    if _is_random_op(node.op):
      built.random_draws.append(
        {
          'op_type': node.op,
          'shape': [None],
          'variable': None,
          'source': None if source < 0 else source,
          'in_loop': in_loop,
          'op_name': node.name,
          'feeds_outputs': False,
        }
      )
    for name, inner_loop in _functions_called(node.attr.items(), node.op, library):
      _describe_draws_inside(built, name, in_loop or inner_loop, library, called, source)


def _is_in_loop(op: Any) -> bool:
  context = op._get_control_flow_context()
  while context is not None:
    if context.IsWhileContext():
      return True
    context = context.outer_context
  return False


def add_gradients(built: BuiltGraph, loss: Callable[[Any], Any]) -> None:
  """Adds the gradients of a loss of the outputs for every trainable variable to the graph."""
  trainable = [variable for variable in built.variables if variable.trainable]
  seeding = _Seeding(_NUM_RANDOM_OPS)
  seeding.ops.count = built.operation_seeds
  with _tf1_semantics(v2_tensorshape=True), built.graph.as_default():
    total = loss(built.output_nest)
    if total is None or not trainable:
      return
    with _user_code('the gradient of the loss'), _seeded(seeding):
      found = tf.gradients(total, [built.objects[variable.name] for variable in trainable])
  built.operation_seeds = seeding.ops.count
  for variable, gradient in pairs(trainable, found):
    built.gradients.append(_gradient_entry(variable, gradient))


def _gradient_entry(variable: _Variable, gradient: Any) -> Dict[str, Any]:
  sparse = isinstance(gradient, tf.IndexedSlices)
  values = gradient.values if sparse else gradient
  return {
    'variable': variable.name,
    'values': None if values is None else values.name,
    'indices': gradient.indices.name if sparse else None,
    'shape': [size or 0 for size in variable.shape],
  }


def _constant_obstacle(built: BuiltGraph, graph_def: Any) -> str:
  """Returns why setting `seed2` to 0 does not give the graph of constant mode; '' if it does."""
  if built.seed_obstacle:
    return built.seed_obstacle
  seen = set()  # type: Set[int]
  for node in _random_nodes(graph_def):
    if 'seed2' not in node.attr:
      return '{} {} has no seed attribute'.format(node.op, node.name)
    number = node.attr['seed2'].i
    aligned = node.attr['seed'].i == _SEED and number < built.operation_seeds
    if not aligned or number in seen:
      return '{} {} has seeds of its own'.format(node.op, node.name)
    seen.add(number)
  return ''


def _random_nodes(graph_def: Any) -> Iterator[Any]:
  nodes = [graph_def.node] + [function.node_def for function in graph_def.library.function]
  return (node for part in nodes for node in part if _is_random_op(node.op))


# ---------------------------------------------------------------------------------------
# Running it.


def open_session(graph: Any) -> Any:
  """Opens a session that runs a graph as it was built: without grappler's rewriting."""
  config = v1.ConfigProto()
  options = config.graph_options.rewrite_options
  if hasattr(options, 'disable_meta_optimizer'):
    options.disable_meta_optimizer = True
  config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
  return v1.Session(graph=graph, config=config)


def fetch(session: Any, names: Sequence[str], feeds: Optional[Dict[str, Any]] = None) -> List[Any]:
  """Runs ops and tensors by name; an error is the user's graph's."""
  if not names:
    return []
  with _user_code('running the graph'):
    return list(session.run(list(names), feeds))


def _portions(variables: Sequence[_Variable]) -> Iterator[List[_Variable]]:
  """Splits variables into portions, to bound memory."""
  portion, size = [], 0  # type: List[_Variable], int
  for variable in variables:
    portion.append(variable)
    size += _size(n or 1 for n in variable.shape) * max(variable.dtype.size, 1)
    if size > _PORTION:
      yield portion
      portion, size = [], 0
  if portion:
    yield portion


def write(session: Any, values: Sequence[Tuple[_Variable, _Array]]) -> None:
  """Initializes variables with values of their own, in one run as far as that is possible."""
  together = [(variable, value) for variable, value in values if not variable.shares_value]
  feeds = {variable.value: value for variable, value in together}
  fetch(session, [variable.initializer for variable, _ in together], feeds)
  for variable, value in values:
    if variable.shares_value:
      fetch(session, [variable.initializer], {variable.value: value})


# The values of variables by name; None stands for a variable's own initial value.
Values = Dict[str, Optional[_Array]]


def assign(
  session: Any, variables: Sequence[_Variable], values: Values, mover: Optional[Mover] = None
) -> None:
  """Gives every variable its value, moved if there is a mover (but for a metric's counters)."""

  def moved(variable: _Variable, value: _Array) -> _Array:
    still = mover is None or variable.local
    return value if still or mover is None else mover.variable(variable.name, value)

  given = [variable for variable in variables if values[variable.name] is not None]
  for portion in _portions(given):
    write(session, [(variable, moved(variable, values[variable.name])) for variable in portion])
  others = [variable for variable in variables if values[variable.name] is None]
  fetch(session, [variable.initializer for variable in others])
  if mover is not None:
    initial = fetch(session, [variable.read for variable in others])
    both = [(v, value, moved(v, np.asarray(value))) for v, value in pairs(others, initial)]
    write(session, [(variable, new) for variable, value, new in both if new is not value])


def moved_inputs(inputs: Any, mover: Optional[Mover]) -> Any:
  """Returns the nest with every input moved; the nest itself without a mover."""
  return inputs if mover is None else _map_leaves(mover.input, inputs)


def feeds_of(built: BuiltGraph, inputs: Any) -> Dict[str, _Array]:
  """Returns the arrays of a nest by the names of the placeholders that take them."""
  leaves = {}  # type: Dict[str, _Array]
  _map_leaves(leaves.__setitem__, inputs)
  return {name: leaves[path] for path, name in built.placeholders}


def total_of(losses: Sequence[_Array]) -> Optional[_Array]:
  """Returns the sum of losses as `tf.add_n` adds them up, in this order; None without any."""
  if not losses:
    return None
  if len({(loss.dtype, loss.shape) for loss in losses}) > 1:
    return np.asarray(sum(float(loss.sum()) for loss in losses))
  graph = tf.Graph()
  with graph.as_default():
    terms = [v1.placeholder(tf.as_dtype(loss.dtype), loss.shape) for loss in losses]
    total = tf.reduce_sum(tf.add_n(terms))
  with open_session(graph) as session:
    return np.asarray(session.run(total, dict(pairs(terms, losses))))


def dense_gradient(entry: Dict[str, Any], values: _Array, indices: Optional[_Array]) -> _Array:
  """Returns a gradient, rows of `IndexedSlices` added up in their places."""
  if indices is None:
    return values
  dense = np.zeros(entry['shape'], values.dtype)
  np.add.at(dense, indices, values)
  return dense


def fetch_targets(
  session: Any,
  built: BuiltGraph,
  feeds: Dict[str, _Array],
  gradients: bool = False,
  others: Sequence[str] = (),
) -> Tuple[Dict[_Key, Optional[_Array]], Dict[str, _Array]]:
  """Runs outputs, losses, update ops and gradients together, as one training step would.

  Returns:
    The targets, and the tensors of the names in `others`.
  """
  names = [name for _, name in built.outputs if name is not None]
  names += [name for _, name in built.regularization_losses]
  wanted = built.gradients if gradients else []
  for entry in wanted:
    names += [name for name in (entry['values'], entry['indices']) if name is not None]
  names += others
  found = fetch(session, names + built.update_ops, feeds)[: len(names)]
  values = {name: np.asarray(value) for name, value in pairs(names, found)}
  targets = {}  # type: Dict[_Key, Optional[_Array]]
  for path, name in built.outputs:
    targets['output', path] = None if name is None else values[name]
  losses = [values[name] for _, name in built.regularization_losses]
  for number, loss in enumerate(losses):
    targets['regularization loss', str(number)] = loss
  targets['regularization total', ''] = total_of(losses[::-1])
  for entry in wanted:
    gradient = None
    if entry['values'] is not None:
      rows = None if entry['indices'] is None else values[entry['indices']]
      gradient = dense_gradient(entry, values[entry['values']], rows)
    targets['gradient', entry['variable']] = gradient
  return targets, {name: values[name] for name in others}


class Run:
  """A run of a graph from given or its own initial values, and again from moved ones.

  Only the first evaluation needs a fresh session, where all random ops start anew: later
  ones start from the initial values of that, and are fed what it drew. Where something
  draws without the recorder's seeds, or cannot be fed, every evaluation has its own.
  """

  def __init__(
    self,
    built: BuiltGraph,
    graph: Any,
    inputs: Any,
    values: Optional[Values],
    sessions: 'Sessions',
    gradients: bool = False,
  ) -> None:
    """Takes what to run.

    Args:
      built: what is known of the graph.
      graph: the same, or one of the same names.
      inputs: the nest of arrays to feed.
      values: of the variables; None for their own, seeded initial values, which are
        told, then, as well as their values after the run.
      sessions: gives sessions.
      gradients: whether gradients are wanted.
    """
    self._built = built
    self._graph = graph
    self._inputs = inputs
    self._values = values
    self._sessions = sessions
    self._gradients = gradients
    self._drawn = {}  # type: Dict[str, _Array]
    self._changing = [v for v in built.owned() if values is None and v.may_change()]
    draws = built.draws_used(gradients) if built.draws_repeat else None
    self._draws = draws or []
    self._always_fresh = draws is None
    self._start = None  # type: Optional[Values]

  def evaluate(self, mover: Optional[Mover]) -> Iterator[Tuple[_Key, Optional[_Array]]]:
    """Yields quantity and name of what the run gives, and the array, which a later run may change.

    Args:
      mover: moves variables and inputs; without one it runs in a fresh session, as it was.
    """
    built = self._built
    first = self._start is None
    draws = self._values is None or built.draws_in_computation
    fresh = self._always_fresh or (first and draws)
    session = self._sessions.open(self._graph, built.table_initializers, fresh)
    if self._values is None and (first or (fresh and mover is None)):
      yield from self._initial_values(session)
    else:
      self._start = self._start or self._values
      assign(session, built.variables, self._start or {}, mover)
    feeds = feeds_of(built, moved_inputs(self._inputs, mover))
    feeds.update(self._drawn)
    wanted = self._draws if first else []
    targets, drawn = fetch_targets(session, built, feeds, self._gradients, wanted)
    self._drawn.update(drawn)
    for key, value in targets.items():
      yield key, value
    after = fetch(session, [variable.read for variable in self._changing])
    for variable, value in pairs(self._changing, after):
      yield ('state after', variable.name), value

  def _initial_values(self, session: Any) -> Iterator[Tuple[_Key, _Array]]:
    variables = self._built.variables
    fetch(session, [variable.initializer for variable in variables])
    found = fetch(session, [variable.read for variable in variables])
    for variable, value in pairs(variables, found):
      if not variable.local:
        yield ('initial value', variable.name), value
    self._start = {v.name: np.array(value) for v, value in pairs(variables, found)}

  def tensors(self, names: Sequence[str]) -> Iterator[Tuple[str, _Array]]:
    """Yields tensors of the run by name."""
    built = self._built
    session = self._sessions.open(self._graph, built.table_initializers, fresh=False)
    assign(session, built.variables, self._start or {})
    feeds = feeds_of(built, self._inputs)
    feeds.update(self._drawn)
    for start in range(0, len(names), 256):  # at once they would need gigabytes
      part = names[start : start + 256]
      for name, value in pairs(part, fetch(session, part, feeds)):
        yield name, np.asarray(value)


class Sessions:
  """The one session that is open: runs of one graph share it where they can."""

  def __init__(self) -> None:
    self._session = None  # type: Any

  def open(self, graph: Any, tables: Sequence[str], fresh: bool) -> Any:
    """Returns a session of a graph, its tables initialized."""
    if fresh or self._session is None or self._session.graph is not graph:
      self.close()
      self._session = open_session(graph)
      fetch(self._session, tables)
    return self._session

  def close(self) -> None:
    """Lets go of the session."""
    if self._session is not None:
      self._session.close()
      self._session = None


# ---------------------------------------------------------------------------------------
# Writing.


class _Held:
  """An array as it is stored: whole, or sampled."""

  def __init__(
    self, array: _Array, samples: int = 0, block: int = _BLOCK, with_digest: bool = True
  ) -> None:
    """Takes an array, and how many samples of it are kept; 0 for all of it."""
    array = np.asarray(array, order='C')
    self.digest = digest(array) if with_digest else ''
    self.sampled = None  # type: Optional[Dict[str, Any]]
    if samples:
      self.values = sample(array, samples, block)
      shape = list(array.shape)
      self.sampled = {'shape': shape, 'sha256': self.digest, 'samples': samples, 'block': block}
    else:
      self.values = np.array(array)  # a session's array may share the memory of a variable


class Writer:
  """Writes the arrays of a recording, each set of bytes once."""

  def __init__(self, folder: str, largest_array: Optional[int], compress: bool) -> None:
    self.folder = folder
    self.largest_array = LARGEST_ARRAY if largest_array is None else largest_array
    self.sparing = False
    self.entries = {}  # type: Dict[str, Dict[str, Any]]
    self._compress = compress
    self._may_spare = largest_array is None
    self._known = {}  # type: Dict[str, str]
    self._waiting = []  # type: List[Tuple[str, _Array]]
    self._waiting_bytes = 0
    self._files = 0

  def spare(self) -> None:
    """Stores less of what follows, since the model is large."""
    self.sparing = True
    if self._may_spare:
      self.largest_array = LARGEST_ARRAY_OF_LARGE_MODEL

  def hold(
    self, array: Any, whole: bool = False, with_digest: bool = True, of_step: bool = False
  ) -> _Held:
    """Returns an array as it will be stored."""
    array = np.asarray(array)
    if whole or array.size <= self.largest_array or not _fraction_bits(array.dtype):
      return _Held(array, with_digest=with_digest)
    if of_step and self.sparing:
      return _Held(array, STEP_SAMPLES, 0, with_digest)
    return _Held(array, _SAMPLES, _BLOCK, with_digest)

  def add(self, array: Any, whole: bool = True) -> str:
    """Stores an array, or what `hold` gave, and returns its id."""
    held = array if isinstance(array, _Held) else self.hold(array, whole)
    key = '{} {}'.format(held.digest, held.values.size)  # whole, or of so many samples
    if key not in self._known:
      self._known[key] = self._store(held)
    return self._known[key]

  def nest(self, nest: Any) -> Dict[str, Any]:
    """Stores the arrays of a nest and returns its entry of the manifest."""
    if nest is None:
      return {'none': True}
    if isinstance(nest, collections.abc.Mapping):
      if not all(isinstance(key, str) for key in nest):
        raise RecorderError(
          'a dictionary of arrays has the keys {!r}; use strings'.format(list(nest))
        )
      return {'dict': {key: self.nest(nest[key]) for key in nest}}
    if isinstance(nest, tuple) and hasattr(nest, '_fields'):
      parts = [[name, self.nest(getattr(nest, name))] for name in nest._fields]
      return {'namedtuple': type(nest).__name__, 'fields': parts}
    if isinstance(nest, (list, tuple)):
      return {type(nest).__name__ if type(nest) is list else 'tuple': [self.nest(c) for c in nest]}
    return {'array': self.add(nest)}

  def close(self) -> None:
    """Writes what is still waiting."""
    if self._waiting:
      name = 'arrays-{:03d}.npz'.format(self._files)
      self._files += 1
      with zipfile.ZipFile(os.path.join(self.folder, name), 'w', allowZip64=True) as archive:
        for key, array in self._waiting:
          self._write(archive, key, array)
          if key in self.entries:
            self.entries[key]['file'] = name
      self._waiting, self._waiting_bytes = [], 0

  def _store(self, held: _Held) -> str:
    name = 'a{}'.format(len(self.entries))
    values, encoding = held.values, 'plain'
    dtype, shape = values.dtype.name, list(values.shape)
    parts = [(name, values)]
    if _is_bfloat16(values.dtype):
      encoding, parts = 'bfloat16', [(name, values.view(np.uint16))]
    elif _is_string(values):
      lengths, texts = _encoded_strings(values)
      dtype, encoding, parts = 'string', 'string', [(name, texts), (name + '.lengths', lengths)]
    size = sum(int(part.nbytes) for _, part in parts)
    if self._waiting_bytes + size > _LARGEST_FILE:
      self.close()
    self._waiting += parts
    self._waiting_bytes += size
    self.entries[name] = {
      'file': '',
      'key': name,
      'dtype': dtype,
      'shape': shape,
      'sha256': held.digest if held.sampled is None else digest(values),
      'encoding': encoding,
      'sampled': held.sampled,
    }
    return name

  def _write(self, archive: zipfile.ZipFile, key: str, array: _Array) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order='C'), allow_pickle=False)
    data = buffer.getvalue()
    info = zipfile.ZipInfo(key + '.npy')  # of a fixed date, so that equal arrays give equal files
    info.external_attr = 0o644 << 16
    if self._compress and _compresses(data):
      info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def _compresses(data: bytes) -> bool:
  """Returns whether compressing is worth its time, by a part from the middle."""
  middle = len(data) // 2
  part = data if len(data) < 2**16 else data[middle : middle + 2**15]
  return len(zlib.compress(part, 1)) < 0.95 * len(part)


def canonical(manifest: Dict[str, Any]) -> bytes:
  """Returns the manifest as the bytes that its digest is of."""
  text = json.dumps(
    manifest, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(',', ':')
  )
  return text.encode('utf-8')


def _is_recording(folder: str) -> bool:
  try:
    with open(os.path.join(folder, 'manifest.json'), 'rb') as file:
      return KIND.encode() in file.read()
  except OSError:
    return False


def _partial_of(out: str) -> str:
  """Returns where a recording is written until it is whole."""
  return '{}.partial-{}'.format(os.path.abspath(out), os.getpid())


@contextlib.contextmanager
def _new_folder(out: str, overwrite: bool) -> Iterator[str]:
  """Gives a folder beside `out`, which takes its name when all has gone well.

  Raises:
    RecorderError: `out` exists, or nothing can be written there.
  """
  out = os.path.abspath(out)
  parent, name = os.path.split(out)
  if os.path.lexists(out):
    if not overwrite:
      raise RecorderError(
        '--out {} exists; give another name, or --overwrite to replace it'.format(out)
      )
    if os.path.isdir(out) and os.listdir(out) and not _is_recording(out):
      raise RecorderError(
        '--out {} is a folder, but no recording, and is not overwritten; give another name'.format(
          out
        )
      )
  partial = _partial_of(out)
  try:
    os.makedirs(parent, exist_ok=True)
    left = sorted(n for n in os.listdir(parent) if n.startswith(name + '.partial-'))
    os.mkdir(partial)
  except OSError as error:
    raise RecorderError(
      'cannot write to {}: {}; give an --out where this user may write'.format(parent, error)
    ) from None
  if left:
    _say('note: {} left by an interrupted run; delete it'.format(', '.join(left)))
  try:
    yield partial
    replaced = '{}.replaced-{}'.format(out, os.getpid())
    if os.path.lexists(out):  # it is allowed to be replaced
      os.rename(out, replaced)
    os.rename(partial, out)
    shutil.rmtree(replaced, ignore_errors=True)
  finally:
    shutil.rmtree(partial, ignore_errors=True)


# ---------------------------------------------------------------------------------------
# Recording.


def _say(text: str) -> None:
  sys.stderr.write(text + '\n')
  sys.stderr.flush()


# How the user's functions are called; and what may have been meant where one cannot be.
_CALLS = {
  'loss': (('outputs', 'labels'), 'without labels it is called with None'),
  'total_loss': (('outputs', 'labels'), 'without labels it is called with None'),
  'optimizer': ((), 'a function of the loss that returns the train op is given with --train_op'),
  'train_op': (
    ('loss',),
    'a function that takes nothing and returns a tf.train.Optimizer is given with --optimizer',
  ),
  'fill': (('name', 'shape', 'dtype'), ''),
}  # type: Dict[str, Tuple[Tuple[str, ...], str]]


class Options:
  """What beside the builder and its inputs is asked for; see `record`."""

  def __init__(self, **options: Any) -> None:
    self.training_modes = tuple(options['training_modes'])  # type: Tuple[bool, ...]
    self.labels = options['labels']
    self.loss = options['loss']
    self.total_loss = options['total_loss']
    self.optimizer = options['optimizer']
    self.train_op = options['train_op']
    self.run_update_ops = bool(options['run_update_ops'])
    self.steps = int(options['steps'])
    self.checkpoint = options['checkpoint']
    self.intermediates = options['intermediates']
    self.noise_runs = int(options['noise_runs'])
    self.largest_array = options['largest_array']  # type: Optional[int]
    self.fill = options['fill'] or distinct_values  # type: Fill
    self._check()

  def _check(self) -> None:
    modes = self.training_modes
    if not modes or len(set(modes)) != len(modes) or any(type(mode) is not bool for mode in modes):
      raise RecorderError(
        'the training modes are {!r}; give False (inference), True (training), or both'.format(
          modes
        )
      )
    if self.intermediates not in LEVELS:
      raise RecorderError(
        'intermediates is {!r}; allowed are {}'.format(self.intermediates, ', '.join(LEVELS))
      )
    if self.optimizer is not None and self.train_op is not None:
      raise RecorderError('both an optimizer and a train op are given; one of them trains')
    for name, (arguments, slip) in _CALLS.items():
      function = getattr(self, name)
      if function is not None:
        _check_call('the function of --' + name, function, arguments, slip)
    if self.train_op is not None and self.loss is None and self.total_loss is None:
      raise RecorderError(
        'a train op is made of a loss (--train_op), and none is given: add --loss, the function of '
        'outputs and labels that training minimizes (with --labels, where it takes some)'
      )
    least = {'steps': 1, 'noise_runs': 0, 'largest_array': 1}
    for name, smallest in least.items():
      if getattr(self, name) is not None and getattr(self, name) < smallest:
        raise RecorderError(
          '{} is {}; it is at least {}'.format(name, getattr(self, name), smallest)
        )

  def functions(self) -> Dict[str, Any]:
    """Returns the user's functions that are given, by option."""
    names = ('loss', 'total_loss', 'optimizer', 'train_op')
    found = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
    if self.fill is not distinct_values:
      found['fill'] = self.fill
    return found

  def manifest(self) -> Dict[str, Any]:
    """Returns the entry of the manifest, for a reader."""
    found = {name: _function_name(f) for name, f in self.functions().items()}  # type: Dict[str, Any]
    for name in ('run_update_ops', 'steps', 'noise_runs'):
      found[name] = getattr(self, name)
    return found


# Runs the model, moved or not, and yields what it gives; see `Run.evaluate`.
Evaluate = Callable[[Optional[Mover]], Iterable[Tuple[_Key, Optional[_Array]]]]


def _is_output(key: _Key) -> bool:
  return key[0] == 'output'


class Recorder:
  """One recording while it is made.

  Attributes:
    inputs: the checked nest of arrays.
    varied: the same with constant inputs varied.
    options: what is asked for.
    writer: stores arrays.
    sources: the table of source lines.
  """

  def __init__(
    self, builder: Callable[..., Any], inputs: Any, options: Options, writer: Writer
  ) -> None:
    self.inputs = inputs
    self.varied, self.replaced = varied_inputs(inputs)
    self.options = options
    self.writer = writer
    self.sources = _SourceLines()
    self.sessions = Sessions()
    self.runs = []  # type: List[Dict[str, Any]]
    self.intermediates = []  # type: List[Dict[str, Any]]
    self.fills = {DISTINCT_VALUES: {}, CONSTANT_VALUES: {}}  # type: Dict[str, Dict[str, Any]]
    self._filled = {}  # type: Values
    self._builder = _with_training(builder)
    self._graphs = {}  # type: Dict[Tuple[str, bool], BuiltGraph]
    self._graph_digest = ''  # of the one that was built before
    self._open_line = ''
    self._started = time.time()
    self._noise_seconds = 0.0

  @contextlib.contextmanager
  def step(self, text: str) -> Iterator[None]:
    """Says what is being done and how long it took."""
    start = time.time()
    if self._open_line:
      sys.stderr.write('\n')
    self._open_line = text
    sys.stderr.write(text + ' ... ')
    sys.stderr.flush()
    done = False
    try:
      yield
      done = True
    finally:
      mine = self._open_line == text
      self._open_line = ''
      seconds = '{:.1f} s'.format(time.time() - start) if done else 'stopped'
      _say(seconds if mine else '{}: {}'.format(text, seconds))

  def built(self, training: bool, mode: str = _NUM_RANDOM_OPS) -> BuiltGraph:
    """Returns the graph of a training mode, built for a randomness mode."""
    key = (mode, training)
    if key not in self._graphs:
      again = ' again, for constant mode' if mode == _CONSTANT else ''
      with self.step('building the graph{}, {}'.format(again, training_name(training))):
        built = build_graph(self._builder, self.inputs, training, mode, self.sources)
      self._graphs[key] = built
      if mode == _NUM_RANDOM_OPS:
        self._say_if_same(built)
      if sum(_size(n or 1 for n in variable.shape) for variable in built.variables) > LARGE_MODEL:
        self.writer.spare()
    return self._graphs[key]

  def _say_if_same(self, built: BuiltGraph) -> None:
    """Says so where the second graph is the same as the first."""
    data = built.graph.as_graph_def().SerializeToString(deterministic=True)
    known = hashlib.sha256(data).hexdigest()
    if known == self._graph_digest:
      _say(
        'note: the graphs of inference and training are the same: the model does nothing else in '
        'training (no dropout, no batch statistics), or the builder ignores its argument for it'
      )
    self._graph_digest = known

  def fill_values(self, built: BuiltGraph, description: str) -> Values:
    """Returns the values of a fill for every variable, and notes their digests."""
    constant = description == CONSTANT_VALUES
    known, digests = ({} if constant else self._filled), self.fills[description]
    for variable in built.variables:
      if variable.name not in known:
        value = variable.value_by(constant_values if constant else self.options.fill)
        known[variable.name] = value
        digests[variable.name] = None if value is None else digest(value)
    return {variable.name: known[variable.name] for variable in built.variables}

  def measured(
    self,
    text: str,
    evaluate: Evaluate,
    whole: Callable[[_Key], bool] = _is_output,
    of_steps: bool = False,
  ) -> Tuple[Dict[_Key, Any], int]:
    """Evaluates a run, again, and with moved values.

    Args:
      text: what is run, for the user.
      evaluate: runs it, moved by the mover if there is one, from the same start each time.
      whole: which arrays are stored whole, however large.
      of_steps: whether it takes training steps, of which less is stored.

    Returns:
      The manifest's entry for every tensor, and how many moved runs there were.
    """

    def held(mover: Optional[Mover]) -> Dict[_Key, Optional[_Held]]:
      return {
        key: None if value is None else self.writer.hold(value, whole(key), mover is None, of_steps)
        for key, value in evaluate(mover)
      }

    with self.step('running the graph, ' + text):
      first = held(None)
    with self.step('  moved by rounding'):
      noises, count = self._noises(first, held)
    with self.step('  again'):
      repeating = _which_repeat(first, noises, lambda: held(None))
    tensors = {}  # type: Dict[_Key, Any]
    for key, one in first.items():
      tensors[key] = None
      if one is not None:
        noise = noises.get(key)
        tensors[key] = {
          'value': self.writer.add(one),
          'noise': None if noise is None else self.writer.add(noise_codes(noise, one.values)),
          'repeats': key in repeating,
        }
    return tensors, count

  def _noises(
    self,
    first: Dict[_Key, Optional[_Held]],
    held: Callable[[Mover], Dict[_Key, Optional[_Held]]],
  ) -> Tuple[Dict[_Key, _Array], int]:
    """Returns the noise of each floating tensor, and the number of moved runs.

    What is computed in float64 from float32 variables is not rounded to float32: for it
    only float64 is moved.
    """
    computed = {
      key: (one, _fraction_bits(one.values.dtype))
      for key, one in first.items()
      if one is not None and key[0] != 'initial value' and _fraction_bits(one.values.dtype)
    }
    noises = {}  # type: Dict[_Key, _Array]
    counts = []  # type: List[int]
    for finest in sorted({bits for _, bits in computed.values()}):
      count, seconds = 0, 0.0
      while count < self.options.noise_runs and not self._noise_suffices(count, seconds):
        start = time.time()
        moved = held(Mover(count, finest))
        for key, (one, bits) in computed.items():
          if bits == finest:
            spread = _spread(one, moved.get(key))
            noises[key] = np.maximum(noises[key], spread) if key in noises else spread
        seconds += time.time() - start
        self._noise_seconds += time.time() - start
        count += 1
      counts.append(count)
    return noises, min(counts or [0])

  def _noise_suffices(self, count: int, seconds: float) -> bool:
    """Returns whether a run has been moved often enough for the time that it has taken."""
    others = time.time() - self._started - self._noise_seconds
    allowed = max(_NOISE_SHARE * others, _NOISE_SECONDS)
    fewest = _FEWEST_LONG_RUNS if seconds > _NOISE_SECONDS * count else _FEWEST_NOISE_RUNS
    return count >= fewest and self._noise_seconds > allowed


def _spread(one: _Held, moved: Optional[_Held]) -> _Array:
  """Returns |moved - value|; infinity where a finite element is not finite any more."""
  if moved is None or moved.values.shape != one.values.shape:
    return np.full(one.values.shape, np.inf)
  wide = np.complex128 if one.values.dtype.kind == 'c' else np.float64
  with np.errstate(all='ignore'):
    before, after = one.values.astype(wide), moved.values.astype(wide)
    spread = np.abs(after - before)
  spread = np.where(np.isfinite(spread), spread, np.inf)
  return np.where(np.isfinite(before), spread, 0.0)


def _repeats(one: _Held, again: Optional[_Held], noise: Optional[_Array]) -> bool:
  """Returns whether a run that moved nothing gave the same, or no more than rounding beside it."""
  if again is not None and again.digest == one.digest:
    return True
  if again is None or noise is None:
    return False
  allowed = np.maximum(0.1 * noise, 1e-5 + 1e-6 * np.abs(one.values.astype(np.complex128)))
  return bool(np.all(_spread(one, again) <= allowed))


def training_name(training: bool) -> str:
  """Returns a training mode in words."""
  return 'training' if training else 'inference'


def _which_repeat(
  first: Dict[_Key, Optional[_Held]],
  noises: Dict[_Key, _Array],
  run: Callable[[], Dict[_Key, Optional[_Held]]],
) -> Set[_Key]:
  """Returns which tensors a run that moves nothing gives again, but for rounding.

  One such run is enough where all bits are the same. Where they are not, a draw without a
  seed may have come out close to the first one by luck: it is run again.
  """
  left = {key for key, one in first.items() if one is not None}
  for _ in range(_REPEATED_RUNS):
    again = run()
    same = True
    for key in sorted(left):
      one, other = first[key], again.get(key)
      # An initial value that is not drawn again is drawn by a seed of the recorder's.
      if one is None or (key[0] == 'initial value' and key not in again):
        continue
      if not _repeats(one, other, noises.get(key)):
        left.discard(key)
      elif other is None or other.values.tobytes() != one.values.tobytes():
        same = False
    if same:
      break
  return left


def _with_training(builder: Callable[..., Any]) -> Callable[[Any, bool], Any]:
  """Returns the builder as a function of inputs and training mode."""
  try:
    parameters = list(inspect.signature(builder).parameters.values())
  except (TypeError, ValueError):
    return builder
  for name in ('training', 'is_training'):
    if any(p.name == name and p.kind is not p.POSITIONAL_ONLY for p in parameters):
      _check_builder_call(builder, [], name)
      return lambda inputs, training: builder(inputs, **{name: training})
  required = [p for p in parameters if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
  positional = [p for p in required if p.kind is not p.VAR_KEYWORD]
  if len(positional) > 1 and not any(p.kind is p.VAR_POSITIONAL for p in positional):
    second = positional[1].name
    if not any(word in second.lower() for word in ('train', 'phase')):
      raise RecorderError(
        "the builder's second argument is `{0}`, and would be given False for inference and True "
        'for training; write a function beside it: def build(inputs, training): return {1}(inputs, '
        '...what {0} is then...)'.format(second, getattr(builder, '__name__', 'your_builder'))
      )
  if len(positional) > 1 or any(p.kind is p.VAR_POSITIONAL for p in positional):
    _check_builder_call(builder, ['training'])
    return builder
  _check_builder_call(builder, [])
  return lambda inputs, training: builder(inputs)


def _check_builder_call(builder: Callable[..., Any], further: List[str], keyword: str = '') -> None:
  """Raises `RecorderError` where a builder cannot be called as it will be."""
  try:
    inspect.signature(builder).bind('inputs', *further, **({keyword: False} if keyword else {}))
  except TypeError as error:
    shown = ['inputs', *further, *([keyword + '=False'] if keyword else [])]
    raise RecorderError(
      'the builder is called as {0}({1}), which it does not take: {2}; write a function beside it: '
      'def build(inputs, training): return {0}(...)'.format(
        _call_name(builder), ', '.join(shown), error
      )
    ) from None


def _constant_graph(recorder: Recorder, built: BuiltGraph) -> Tuple[Any, bool]:
  """Returns the graph of constant mode, and whether it is the other one with `seed2` at 0."""
  graph_def = built.graph.as_graph_def()
  obstacle = _constant_obstacle(built, graph_def)
  built.draws_repeat = not obstacle and not any('PyFunc' in node.op for node in graph_def.node)
  if obstacle:
    again = recorder.built(built.training, _CONSTANT)
    if built.gradients:
      add_gradients(again, weighted_sum)
    return again.graph, False
  for node in _random_nodes(graph_def):
    node.attr['seed2'].i = 0
  graph = tf.Graph()
  with graph.as_default():
    tf.import_graph_def(graph_def, name='')
  return graph, True


def _observation(built: BuiltGraph, tensors: Dict[_Key, Any], runs: int) -> Dict[str, Any]:
  """Returns the manifest's entry for what a run yielded."""
  losses = built.regularization_losses

  def all_of(quantity: str) -> List[List[Any]]:
    return [[name, tensor] for (kind, name), tensor in tensors.items() if kind == quantity]

  return {
    'outputs': all_of('output'),
    'regularization_losses': [
      [names, tensors['regularization loss', str(number)]]
      for number, (names, _) in enumerate(losses)
    ],
    'regularization_total': tensors['regularization total', ''],
    'initial_values': all_of('initial value'),
    'state_after': all_of('state after'),
    'gradients': all_of('gradient'),
    'noise_runs': runs,
  }


def _record_filled(
  recorder: Recorder, built: BuiltGraph, graph: Any, description: str, gradients: bool
) -> None:
  """Records a run with given values of the variables."""
  varied = description == DISTINCT_VALUES
  inputs = recorder.varied if varied else recorder.inputs
  values = recorder.fill_values(built, description)
  run = Run(built, graph, inputs, values, recorder.sessions, gradients)
  text = '{}, {}{}'.format(
    training_name(built.training), description, ', gradients' if gradients else ''
  )
  tensors, runs = recorder.measured(text, run.evaluate)
  recorder.runs.append(
    dict(
      _observation(built, tensors, runs),
      kind='filled',
      training=built.training,
      fill=description,
      inputs='varied' if varied else 'given',
      with_gradients=gradients,
    )
  )
  if varied and recorder.options.intermediates != 'none':
    with recorder.step('  tensors on the way'):
      recorder.intermediates.append(_intermediates(recorder, built, run))


def _intermediates(recorder: Recorder, built: BuiltGraph, run: Run) -> Dict[str, Any]:
  """Stores the floating tensors of the forward graph behind what the last run gave."""
  names = [name for _, name in built.outputs if name is not None]
  names += [name for _, name in built.regularization_losses]
  behind = _ops_behind(built.graph.get_tensor_by_name(name) for name in names)
  position = {op.name: n for n, op in enumerate(built.graph.get_operations())}
  wanted = [
    tensor.name
    for op in sorted(behind.values(), key=lambda op: position[op.name])
    if op.type not in _KNOWN_VALUES and not _reads_variable(op) and not _is_in_loop(op)
    for tensor in op.outputs
    if tensor.dtype.is_floating and built.graph.is_fetchable(tensor)
  ]
  full = recorder.options.intermediates == 'full'
  tensors = []
  for name, value in run.tensors(wanted):
    held = _Held(value, 0 if full or value.size <= _FEW_SAMPLES else _FEW_SAMPLES, block=0)
    tensors.append([name, recorder.writer.add(held)])
  return {'run': len(recorder.runs) - 1, 'tensors': tensors}


# What holds a known value, or none outside of its loop.
_KNOWN_VALUES = ('Const', 'Placeholder', 'VariableV2', 'Variable', 'ReadVariableOp', 'Enter')


def _reads_variable(op: Any) -> bool:
  return op.type == 'Identity' and op.inputs[0].op.type in _KNOWN_VALUES


def _record_seeded(recorder: Recorder, built: BuiltGraph, graph: Any, mode: str) -> None:
  """Records a run from the graph's own, seeded initial values."""
  run = Run(built, graph, recorder.inputs, None, recorder.sessions)
  text = '{}, {}'.format(training_name(built.training), mode)
  tensors, runs = recorder.measured(text, run.evaluate)
  entry = _observation(built, tensors, runs)
  # Every variable has a state after the run; most have the one before.
  entry['state_after'] = [
    [v.name, tensors.get(('state after', v.name), tensors['initial value', v.name])]
    for v in built.owned()
  ]
  recorder.runs.append(dict(entry, kind='seeded', mode=mode, training=built.training))


def _record_training_mode(recorder: Recorder, training: bool) -> Dict[str, Any]:
  """Records all runs of one training mode, and returns the entry of its graph."""
  modes = recorder.options.training_modes
  built = recorder.built(training)
  if training is (True in modes):
    with recorder.step('adding gradients, {}'.format(training_name(training))):
      add_gradients(built, weighted_sum)
  with recorder.step('making the graph of constant mode, {}'.format(training_name(training))):
    constant, rewritten = _constant_graph(recorder, built)
  graph = constant if built.draws_in_computation else built.graph
  # Runs of one graph follow each other: a session of a large graph takes seconds to open.
  _record_seeded(recorder, built, built.graph, _NUM_RANDOM_OPS)
  if training is not (False in modes):
    _record_filled(recorder, built, graph, DISTINCT_VALUES, gradients=False)
    _record_filled(recorder, built, graph, CONSTANT_VALUES, gradients=False)
  _record_seeded(recorder, built, constant, _CONSTANT)
  if built.gradients:
    _record_filled(recorder, built, graph, DISTINCT_VALUES, gradients=True)
  return graph_entry(recorder, built, None if rewritten else constant)


def graph_entry(recorder: Recorder, built: BuiltGraph, constant: Any = None) -> Dict[str, Any]:
  """Returns the manifest's entry for a graph.

  Args:
    recorder: stores the graph.
    built: the graph.
    constant: the graph of constant mode where it is not the same with `seed2` at 0.
  """

  def stored(graph: Any) -> str:
    data = graph.as_graph_def().SerializeToString(deterministic=True)
    return recorder.writer.add(np.frombuffer(data, np.uint8))

  lines = [recorder.sources.of_op(op) for op in built.graph.get_operations()]
  used = sorted(
    {n for n in lines if n >= 0}
    | {v.source for v in built.variables if v.source >= 0}
    | {d['source'] for d in built.random_draws if d['source'] is not None}
  )
  number = {line: n for n, line in enumerate(used)}
  number[-1] = -1

  def renumbered(entry: Dict[str, Any]) -> Dict[str, Any]:
    source = entry['source']
    return dict(entry, source=None if source is None else number[source])

  return {
    'training': built.training,
    'graph_def': stored(built.graph),
    'constant_graph_def': None if constant is None else stored(constant),
    'sources': [recorder.sources.table[line] for line in used],
    'op_sources': recorder.writer.add(np.array([number[n] for n in lines], np.int32)),
    'placeholders': [list(pair) for pair in built.placeholders],
    'structure': built.structure,
    'outputs': [list(pair) for pair in built.outputs],
    'variables': [renumbered(variable.manifest()) for variable in built.variables],
    'regularization_losses': [list(pair) for pair in built.regularization_losses],
    'update_ops': built.update_ops,
    'table_initializers': built.table_initializers,
    'random_draws': [renumbered(draw) for draw in built.random_draws],
    'seed_obstacle': built.seed_obstacle,
    'operation_seeds': built.operation_seeds,
    'gradients': built.gradients,
  }


# ---------------------------------------------------------------------------------------
# Optimizers: what they are, keep and are given.

_RULES = {
  'GradientDescentOptimizer': 'sgd',
  'MomentumOptimizer': 'momentum',
  'RMSPropOptimizer': 'rmsprop',
  'RMSprop': 'rmsprop',
  'AdamOptimizer': 'adam',
  'Adam': 'adam',
  'AdagradOptimizer': 'adagrad',
  'Adagrad': 'adagrad',
  'AdadeltaOptimizer': 'adadelta',
  'Adadelta': 'adadelta',
  'FtrlOptimizer': 'ftrl',
  'Ftrl': 'ftrl',
  'AdaMaxOptimizer': 'adamax',
  'Adamax': 'adamax',
  'NadamOptimizer': 'nadam',
  'Nadam': 'nadam',
}
# What a slot means, by rule and the optimizer's own word for it.
_ROLES = {
  ('momentum', 'momentum'): 'momentum',
  ('rmsprop', 'rms'): 'squared gradient',
  ('rmsprop', 'momentum'): 'scaled momentum',
  ('rmsprop', 'mg'): 'mean gradient',
  ('adam', 'm'): 'first moment',
  ('adam', 'v'): 'second moment',
  ('nadam', 'm'): 'first moment',
  ('nadam', 'v'): 'second moment',
  ('adamax', 'm'): 'first moment',
  ('adamax', 'v'): 'infinity norm',
  ('adagrad', 'accumulator'): 'squared gradient',
  ('adadelta', 'accum'): 'squared gradient',
  ('adadelta', 'accum_grad'): 'squared gradient',
  ('adadelta', 'accum_update'): 'squared update',
  ('adadelta', 'accum_var'): 'squared update',
  ('ftrl', 'accum'): 'squared gradient',
  ('ftrl', 'accumulator'): 'squared gradient',
  ('ftrl', 'linear'): 'linear',
}
_SHADOW = 'shadow'
_COMMON_ROLES = {
  'adam_m': 'first moment',
  'adam_v': 'second moment',
  'vhat': 'greatest second moment',
  'model_variables_moving_average': _SHADOW,
  'ExponentialMovingAverage': _SHADOW,
}
_RATES = ('_lr_t', '_learning_rate_tensor', '_learning_rate', '_lr', 'learning_rate')
_NO_SETTINGS = ('_use_locking', '_use_own_namescope_for_non_slot_vars')
_KERAS_SETTINGS = ('epsilon', 'nesterov', 'amsgrad', 'centered')
_KERAS_OPTIMIZERS = (
  'tensorflow.python.keras.optimizer_v2.optimizer_v2',
  'tf_keras.src.optimizers.legacy.optimizer_v2',
)


def _is_keras_optimizer(optimizer: Any) -> bool:
  return any(cls.__name__ == 'OptimizerV2' for cls in type(optimizer).__mro__)


def _rule(optimizer: Any) -> str:
  for cls in type(optimizer).__mro__:
    if cls.__name__ == 'SGD' and _is_keras_optimizer(optimizer):
      return 'momentum' if optimizer._momentum else 'sgd'
    if cls.__name__ in _RULES:
      return _RULES[cls.__name__]
  return ''


def _optimizer_name(optimizer: Any) -> str:
  """Returns an optimizer's class, under the name that it has for a port."""
  cls = type(optimizer)
  if cls.__module__.startswith(('tensorflow.python.keras.', 'tf_keras.')):
    return 'tf.keras.optimizers.legacy.' + cls.__name__
  if cls.__module__.startswith('tensorflow.python.'):
    return 'tf.compat.v1.train.' + cls.__name__
  return '{}.{}'.format(cls.__module__, cls.__qualname__)


def _optimizer_entry(optimizer: Any) -> Dict[str, Any]:
  """Returns an optimizer's class, update rule and numeric settings."""
  if _is_keras_optimizer(optimizer):
    found = {name: getattr(optimizer, name, None) for name in _KERAS_SETTINGS}
    found.update((name, _initial_number(value)) for name, value in optimizer._hyper.items())
  else:
    found = {
      name.lstrip('_'): value
      for name, value in vars(optimizer).items()
      if not name.startswith('_self_') and name not in _NO_SETTINGS
    }
  settings = [
    [name, float(value)]
    for name, value in found.items()
    if isinstance(value, numbers.Real) and math.isfinite(float(value))
  ]
  return {'name': _optimizer_name(optimizer), 'rule': _rule(optimizer), 'settings': settings}


def _initial_number(value: Any) -> Any:
  """Returns the number that a setting of Keras, a variable in a graph, starts with."""
  if isinstance(value, tf.Variable):
    value = constant_value(value.initializer.inputs[1])
  return float(value) if isinstance(value, np.ndarray) and value.size == 1 else value


def _learning_rate(optimizer: Any, graph: Any) -> Any:
  """Returns the name of the tensor that an optimizer's updates use, or the number, or None."""
  names = () if _is_keras_optimizer(optimizer) else _RATES
  found = [getattr(optimizer, name, None) for name in names]
  if not names and not getattr(optimizer, '_initial_decay', 0.0):
    found = [optimizer._hyper.get('learning_rate')]
  rate = next((value for value in found if value is not None and not callable(value)), None)
  if isinstance(rate, tf.Variable):
    rate = rate._as_graph_element()
  if isinstance(rate, tf.Tensor):
    return rate.name if _can_be_fetched(rate, graph) else None
  return float(rate) if isinstance(rate, numbers.Real) else None


def _can_be_fetched(tensor: Any, graph: Any) -> bool:
  known = isinstance(tensor, tf.Tensor) and getattr(tensor, 'graph', None) is graph
  return known and bool(graph.is_fetchable(tensor))


def _slots_of(optimizer: Any, variables: Sequence[Any]) -> Iterator[Tuple[str, str, str]]:
  """Yields role, variable and name of what an optimizer keeps; no variable: of the whole."""
  rule = _rule(optimizer)
  for word in optimizer.get_slot_names():
    role = _ROLES.get((rule, word)) or _COMMON_ROLES.get(word) or word.replace('_', ' ').strip()
    if _is_keras_optimizer(optimizer) and (rule, word) == ('momentum', 'momentum'):
      role = 'velocity'
    for variable in variables:
      try:
        slot = optimizer.get_slot(variable, word)
      except KeyError:  # one of Keras, of a variable that it does not update
        slot = None
      if slot is not None:
        yield role, _variable_name(variable), _variable_name(slot)
  if _is_keras_optimizer(optimizer):
    yield 'step count', '', _variable_name(optimizer.iterations)
    return
  for key, variable in optimizer._non_slot_dict.items():
    word = key[0] if isinstance(key, tuple) else key
    if variable is not None:
      yield str(word).replace('_', ' '), '', _variable_name(variable)


def _slot_by_name(name: str, variables: Iterable[str]) -> Tuple[str, str]:
  """Returns role and variable of what code that keeps slots itself calls `variable/word`."""
  owner = max((known for known in variables if name.startswith(known + '/')), key=len, default='')
  word = name[len(owner) + 1 :] if owner else name
  before, _, last = name.rpartition('/')
  if last in _COMMON_ROLES and not owner:
    return _COMMON_ROLES[last], before
  return _COMMON_ROLES.get(word, word), owner


def _variable_name(variable: Any) -> str:
  return str(variable.name).rsplit(':', 1)[0]


class _Updates:
  """What optimizers are given while a train op is built, and what was differentiated.

  Attributes:
    pairs: optimizer, and its pairs of gradient and variable, update by update; of
      optimizers that wrap another one the inner one's.
    differentiated: gradient by variable name, of all that were differentiated for once.
  """

  def __init__(self) -> None:
    self.pairs = []  # type: List[Tuple[Any, List[Tuple[Any, Any]]]]
    self.differentiated = {}  # type: Dict[str, Any]
    self._twice = set()  # type: Set[str]
    self._open = []  # type: List[bool]
    self._differentiating = False

  @property
  def optimizers(self) -> List[Any]:
    """The optimizers that have updated something, in order."""
    found = []  # type: List[Any]
    for optimizer, _ in self.pairs:
      if not any(optimizer is known for known in found):
        found.append(optimizer)
    return found

  @property
  def applied(self) -> Dict[str, Any]:
    """The gradients as given to the updates, by variable name; of the last update of each."""
    return {_variable_name(v): gradient for _, pairs in self.pairs for gradient, v in pairs}

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Records until exit."""
    families = [(v1.train.Optimizer, 'apply_gradients', 0)]
    loaded = [sys.modules[name] for name in _KERAS_OPTIMIZERS if name in sys.modules]
    families += [(module.OptimizerV2, '_distributed_apply', 1) for module in loaded]
    with contextlib.ExitStack() as stack:
      for family, method, position in families:
        for cls in _overriding(family, method):
          patched = self._update(vars(cls)[method], position)
          stack.enter_context(mock.patch.object(cls, method, patched))
      helper = self._gradients(gradients_util._GradientsHelper)
      stack.enter_context(mock.patch.object(gradients_util, '_GradientsHelper', helper))
      taped = self._tape_gradient(tf.GradientTape.gradient)
      stack.enter_context(mock.patch.object(tf.GradientTape, 'gradient', taped))
      yield

  def _update(self, known: Callable[..., Any], position: int) -> Callable[..., Any]:
    def update(optimizer: Any, *arguments: Any, **keywords: Any) -> Any:
      given = list(arguments)
      if position < len(given):
        pairs = given[position] = list(given[position])
      else:
        pairs = keywords['grads_and_vars'] = list(keywords['grads_and_vars'])
      if self._open:
        self._open[-1] = True
      self._open.append(False)
      try:
        result = known(optimizer, *given, **keywords)
      finally:
        holds_another = self._open.pop()
      if not holds_another:
        self.pairs.append((optimizer, pairs))
      return result

    return update

  def _gradients(self, known: Callable[..., Any]) -> Callable[..., Any]:
    def gradients(ys: Any, xs: Any, *arguments: Any, **keywords: Any) -> Any:
      with self._outermost() as outermost:
        results = known(ys, xs, *arguments, **keywords)
      if outermost:
        self._keep(xs, results)
      return results

    return gradients

  def _tape_gradient(self, known: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(tape: Any, target: Any, sources: Any, *arguments: Any, **keywords: Any) -> Any:
      with self._outermost() as outermost:
        results = known(tape, target, sources, *arguments, **keywords)
      if outermost:
        self._keep(sources, results)
      return results

    return gradient

  @contextlib.contextmanager
  def _outermost(self) -> Iterator[bool]:
    """Yields whether no other differentiation is going on: TensorFlow's calls itself."""
    before, self._differentiating = self._differentiating, True
    try:
      yield not before
    finally:
      self._differentiating = before

  def _keep(self, sources: Any, gradients: Any) -> None:
    for source, gradient in pairs(tf_nest.flatten(sources), tf_nest.flatten(gradients)):
      name = _differentiated_variable(source)
      if name is None or name in self._twice:
        continue
      if name in self.differentiated:  # parts of a gradient, that the user's code puts together
        del self.differentiated[name]
        self._twice.add(name)
      else:
        self.differentiated[name] = gradient


def _overriding(family: Any, method: str) -> List[Any]:
  """Returns the classes of a family that define a method, the family's own among them."""
  pending, seen = [family], []  # type: List[Any], List[Any]
  while pending:
    cls = pending.pop()
    if cls not in seen:
      seen.append(cls)
      pending += cls.__subclasses__()
  return [cls for cls in seen if method in vars(cls)]


def _differentiated_variable(source: Any) -> Optional[str]:
  """Returns the variable that is differentiated for; None for another tensor."""
  if isinstance(source, tf.Variable):
    return _variable_name(source)
  op = getattr(source, 'op', None) if hasattr(source, 'graph') else None
  if op is not None and op.type in ('VarHandleOp', 'VariableV2', 'Variable'):
    return str(op.name)
  return None


# ---------------------------------------------------------------------------------------
# Losses.


class _Training:
  """The graph of a model in constant mode, to which losses and a train op are added.

  Attributes:
    built: the model's.
    later: a description of the same graph: what came with losses and train op.
    values: of the model's variables before the first step.
    label_placeholders: path and name.
    drawn: what random ops drew in a fresh session, by tensor: fed to all later runs.
    loss: name of the tensor.
    total_loss: of what is minimized, likewise.
  """

  def __init__(self, recorder: Recorder) -> None:
    options = recorder.options
    self.recorder = recorder
    self.built = recorder.built(True in options.training_modes, _CONSTANT)
    self.later = BuiltGraph(self.built.graph, self.built.training, recorder.sources)
    self.values = recorder.fill_values(self.built, DISTINCT_VALUES)
    self.label_placeholders = []  # type: List[Tuple[str, str]]
    self.drawn = {}  # type: Dict[str, _Array]
    self._creations = _Creations(self.built.graph, recorder.sources)
    self.loss, self.total_loss = self._add_losses(options)

  def in_graph(self, what: str, make: Callable[[], Any], hint: _Hint = _no_hint) -> Any:
    """Calls what goes on with the graph; under TensorFlow 2 also with the shapes of that."""
    graph, first = self.built.graph, None  # type: Any, Optional[RecorderError]
    collections_ = {key: list(graph.get_collection(key)) for key in _collection_keys(graph)}
    for v2_tensorshape in (False, True):
      try:
        with contextlib.ExitStack() as stack:
          stack.enter_context(_tf1_semantics(v2_tensorshape))
          stack.enter_context(graph.as_default())
          stack.enter_context(_seeded(_Seeding(_CONSTANT)))
          stack.enter_context(v1.variable_creator_scope(self._creations))
          stack.enter_context(_user_code(what, hint))
          return make()
      except RecorderError as error:
        if first is not None:
          raise first from first.__cause__
        half_ported = isinstance(error.__cause__, (TypeError, AttributeError, ValueError))
        if tf.__version__.startswith('1.') or not half_ported:
          raise
        first = error
        for key in _collection_keys(graph):
          graph.get_collection_ref(key)[:] = collections_.get(key, [])
    return None

  def describe(self) -> None:
    """Fills in what was added: variables and random ops."""
    _describe_collections(self.later, self._creations)
    _describe_draws(self.later, self._creations)
    known = {draw['op_name'] for draw in self.built.random_draws}
    self.later.random_draws = [d for d in self.later.random_draws if d['op_name'] not in known]

  def feeds(self, mover: Optional[Mover]) -> Dict[str, _Array]:
    """Returns inputs, moved or not, and labels, by the names of their placeholders."""
    recorder = self.recorder
    feeds = feeds_of(self.built, moved_inputs(recorder.varied, mover))
    leaves = {}  # type: Dict[str, _Array]
    _map_leaves(leaves.__setitem__, recorder.options.labels)
    feeds.update({name: leaves[path] for path, name in self.label_placeholders})
    return feeds

  def draws(self) -> Optional[List[str]]:
    """Returns the random tensors behind the losses; None where they cannot be fed."""
    drawn = self.built.random_draws + self.later.random_draws
    names = [self.loss, self.total_loss, *(name for _, name in self.built.regularization_losses)]
    return _draws_behind(self.built.graph, drawn, names)

  def session(self, fresh: bool) -> Any:
    """Returns a session of the graph."""
    built = self.built
    return self.recorder.sessions.open(built.graph, built.table_initializers, fresh)

  def start(self, session: Any, mover: Optional[Mover]) -> None:
    """Gives every variable its value, moved or not; what was added starts after the model."""
    assign(session, self.built.variables, self.values, mover)
    fetch(session, [variable.initializer for variable in self.later.variables])

  def _add_losses(self, options: Options) -> Tuple[str, str]:
    graph, outputs = self.built.graph, self.built.output_nest
    labels = self._labels(options.labels)

    def hint(_: BaseException) -> str:
      given = options.labels is not None
      return '' if given else '; it was called with None for labels, since --labels is not given'

    if options.loss is None:
      made = self.in_graph('the default loss', lambda: weighted_sum(outputs))
      if made is None:
        raise RecorderError('no output is floating, so there is nothing to train; give --loss')
    else:
      made = self.in_graph('the loss', lambda: options.loss(outputs, labels), hint)
    loss = self._checked(made, 'the loss')

    def total() -> Any:
      if options.total_loss is not None:
        return options.total_loss(outputs, labels)
      losses = graph.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)
      behind = _ops_behind([loss])
      if not losses or any(regularization.op.name in behind for regularization in losses):
        return loss
      return loss + tf.cast(tf.add_n(losses), loss.dtype)

    total_loss = self._checked(self.in_graph('the total loss', total, hint), 'the total loss')
    names = [loss.name, total_loss.name]
    placeholders = [name for _, name in self.label_placeholders]
    _check_runs_alone('the loss', self.built, names, _FED_BY_LOSS, placeholders)
    return loss.name, total_loss.name

  def _labels(self, labels: Any) -> Any:
    def placeholder(path: str, leaf: _Array) -> Any:
      dtype = tf.string if _is_string(leaf) else tf.as_dtype(leaf.dtype)
      name = 'tf2verify_label/{}'.format(len(self.label_placeholders))
      tensor = v1.placeholder(dtype, leaf.shape, name=name)
      self.label_placeholders.append((path, tensor.name))
      return tensor

    with self.built.graph.as_default():
      return None if labels is None else _map_leaves(placeholder, labels)

  def _checked(self, loss: Any, what: str) -> Any:
    if isinstance(loss, (tf.Variable, int, float)):
      with self.built.graph.as_default():
        loss = tf.convert_to_tensor(loss)
    if not isinstance(loss, tf.Tensor) or getattr(loss, 'graph', None) is not self.built.graph:
      slip = 'usually a missing `return`' if loss is None else 'return the tensor to minimize'
      raise RecorderError(
        '{} is {:.80}, which is no tensor of the graph: {}'.format(what, repr(loss), slip)
      )
    return loss


def _record_training(recorder: Recorder) -> Tuple[Any, Any]:
  """Records losses and training steps, as far as they are asked for; None for each that is not."""
  options = recorder.options
  with_steps = options.optimizer is not None or options.train_op is not None
  if options.loss is None and not with_steps:
    return None, None
  if options.loss is None and options.total_loss is None:
    _say(
      'note: no --loss is given: the training steps minimize the default loss, a weighted sum of '
      'all outputs, and the regularization losses'
    )
  training = _Training(recorder)
  with recorder.step('adding losses{}'.format(' and the train op' if with_steps else '')):
    train = _TrainOp(training) if with_steps else None
    training.describe()
  losses = _record_losses(recorder, training)
  steps = None if train is None else _record_steps(recorder, training, train)
  if steps is not None:
    # The model's with the lines that the entry of its graph has for them.
    steps['random_draws'][:0] = losses['graph']['random_draws']
  return losses, steps


def _record_losses(recorder: Recorder, training: _Training) -> Dict[str, Any]:
  """Records the losses within the model, and the loss alone on what the model gives."""
  built = training.built
  places = {}  # type: Dict[str, Any]
  kinds = (tf.Tensor, tf.Variable, tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices)
  _map_leaves(places.__setitem__, built.output_nest)
  symbolic = {path: leaf for path, leaf in places.items() if isinstance(leaf, kinds)}
  values = {}  # type: Dict[str, Any]

  def evaluate(mover: Optional[Mover]) -> Iterator[Tuple[_Key, Optional[_Array]]]:
    names = [training.loss, training.total_loss]
    names += [name for _, name in built.regularization_losses]
    outputs = list(symbolic) if mover is None else []
    draws = training.draws()
    known = draws is not None and all(name in training.drawn for name in draws)
    session = training.session(fresh=not (known and values))
    training.start(session, mover)
    wanted = [] if known else draws or []
    feeds = dict(training.feeds(mover), **(training.drawn if known else {}))
    found = fetch(session, [*names, *wanted, *(symbolic[path] for path in outputs)], feeds)
    training.drawn.update(pairs(wanted, found[len(names) :][: len(wanted)]))
    values.update(pairs(outputs, found[len(names) + len(wanted) :]))
    losses = [np.asarray(value) for value in found[2 : len(names)]]
    yield ('loss', ''), np.asarray(found[0])
    yield ('total loss', ''), np.asarray(found[1])
    yield ('regularization total', ''), total_of(losses[::-1])

  run = '{}, {}'.format(training_name(built.training), DISTINCT_VALUES)
  tensors, runs = recorder.measured(run + ', losses', evaluate, lambda _: True)
  outputs = _map_leaves(lambda path, leaf: _stored(values.get(path, leaf)), built.output_nest)
  alone, alone_error = None, ''  # type: Optional[Dict[str, Any]], str
  first = None  # type: Optional[Dict[str, Any]]
  if recorder.options.loss is not None:
    try:
      alone = _loss_alone(recorder, outputs, recorder.options.labels, with_values=True)
      first = _loss_of_first(recorder, outputs, alone)
    except RecorderError as error:
      alone_error = str(error)
  return {
    'run': run,
    'training': built.training,
    'graph': graph_entry(recorder, built),
    'label_placeholders': [list(pair) for pair in training.label_placeholders],
    'loss': training.loss,
    'total_loss': training.total_loss,
    'own_loss': recorder.options.loss is not None,
    'own_total_loss': recorder.options.total_loss is not None,
    'output_nest': recorder.writer.nest(outputs),
    'observation': {
      'loss': tensors['loss', ''],
      'total_loss': tensors['total loss', ''],
      'regularization_total': tensors['regularization total', ''],
    },
    'alone': alone,
    'alone_one': first,
    'alone_error': alone_error,
    'noise_runs': runs,
  }


def _stored(leaf: Any) -> Any:
  """Returns a leaf of the outputs as it is stored: an array, a sparse value's parts, or None."""
  if isinstance(leaf, (v1.SparseTensorValue, np.ndarray)) or leaf is None:
    return leaf
  if isinstance(leaf, (np.generic, bool, int, float, complex, str, bytes)):
    return np.asarray(leaf)
  return None  # a ragged value, which no loss is given alone


def _array_leaves(nest: Any) -> Dict[str, _Array]:
  found = {}  # type: Dict[str, _Array]
  _map_leaves(found.__setitem__, nest)
  return {path: np.asarray(leaf) for path, leaf in found.items() if leaf is not None}


def _loss_alone(recorder: Recorder, outputs: Any, labels: Any, with_values: bool) -> Dict[str, Any]:
  """Records the graph of the loss and its gradients, of placeholders for outputs and labels.

  Raises:
    RecorderError: the loss cannot be computed without the model.
  """
  graph = tf.Graph()
  tensors = {}  # type: Dict[Tuple[str, str], Any]
  arrays = {}  # type: Dict[str, _Array]

  def placeholders(kind: str, nest: Any) -> Any:
    def placeholder(path: str, leaf: Any) -> Any:
      if leaf is None:
        return None
      array = np.asarray(leaf)
      dtype = tf.string if _is_string(array) else tf.as_dtype(array.dtype)
      name = 'tf2verify_{}/{}'.format(kind, len(tensors))
      tensor = tensors[kind, path] = v1.placeholder(dtype, array.shape, name=name)
      arrays[tensor.name] = array
      return tensor

    return None if nest is None else _with_sparse(_map_leaves(placeholder, nest))

  with _tf1_semantics(v2_tensorshape=False), graph.as_default(), _seeded(_Seeding(_CONSTANT)):
    fed = placeholders('output', outputs), placeholders('label', labels)
    with _user_code('the loss alone'):
      loss = recorder.options.loss(*fed)
    if not isinstance(loss, tf.Tensor) or not loss.dtype.is_floating:
      raise RecorderError('the loss alone is {:.80}, no floating tensor'.format(repr(loss)))
    floating = [(k, t) for k, t in tensors.items() if k[0] == 'output' and t.dtype.is_floating]
    with _user_code('the gradient of the loss'):
      found = tf.gradients(loss, [tensor for _, tensor in floating])
  gradients = [(path, g) for ((_, path), _), g in pairs(floating, found) if g is not None]
  entry = {
    'graph_def': recorder.writer.add(
      np.frombuffer(graph.as_graph_def().SerializeToString(deterministic=True), np.uint8)
    ),
    'outputs': [[path, tensor.name] for (k, path), tensor in tensors.items() if k == 'output'],
    'labels': [[path, tensor.name] for (k, path), tensor in tensors.items() if k == 'label'],
    'initializers': _all_initializers(graph),
    'loss': loss.name,
    'gradients': [[path, *_gradient_names(gradient)] for path, gradient in gradients],
    'value': None,
    'gradient_values': [],
  }  # type: Dict[str, Any]
  if with_values:
    _run_loss_alone(recorder, graph, entry, arrays)
  return entry


def _run_loss_alone(
  recorder: Recorder, graph: Any, entry: Dict[str, Any], arrays: Dict[str, _Array]
) -> None:
  """Fills in the loss, and its gradients, on the model's outputs."""
  names = [name for _, *pair in entry['gradients'] for name in pair if name is not None]
  with open_session(graph) as session:
    fetch(session, entry['initializers'])
    found = fetch(session, [entry['loss'], *names], arrays)
  values = dict(pairs(names, found[1:]))

  def tensor(array: _Array) -> Dict[str, Any]:
    return {'value': recorder.writer.add(np.asarray(array)), 'noise': None, 'repeats': True}

  entry['value'] = tensor(found[0])
  shapes = {path: arrays[name].shape for path, name in entry['outputs']}
  for path, name, indices in entry['gradients']:
    rows = None if indices is None else values[indices]
    gradient = dense_gradient({'shape': shapes[path]}, np.asarray(values[name]), rows)
    entry['gradient_values'].append([path, tensor(gradient)])


def _loss_of_first(
  recorder: Recorder, outputs: Any, alone: Dict[str, Any]
) -> Optional[Dict[str, Any]]:
  """Records the graph of the loss for the first example alone; None where there is none."""
  read = {path for path, _, _ in alone['gradients']}
  leaves, labels = _array_leaves(outputs), _array_leaves(recorder.options.labels)
  sizes = {leaves[path].shape[:1] for path in read}
  sizes |= {label.shape[:1] for label in labels.values() if label.ndim}
  size = next(iter(sizes)) if len(sizes) == 1 else ()
  if not size or size[0] < 2 or any(path.endswith('.dense_shape') for path in labels):
    return None

  def first_output(path: str, leaf: Any) -> Any:
    return leaf[:1] if path in read else leaf

  def first_label(_: str, leaf: Any) -> Any:
    return leaf[:1] if np.ndim(leaf) else leaf

  given = recorder.options.labels
  cut = None if given is None else _map_leaves(first_label, given)
  try:
    return _loss_alone(recorder, _map_leaves(first_output, outputs), cut, with_values=False)
  except RecorderError:  # it is written for one batch size
    return None


def _with_sparse(nest: Any) -> Any:
  """Returns a nest with sparse tensors where the parts of one were."""
  if isinstance(nest, v1.SparseTensorValue):
    return tf.SparseTensor(*nest)
  if isinstance(nest, collections.abc.Mapping):
    return type(nest)({key: _with_sparse(nest[key]) for key in nest})  # type: ignore[call-arg]
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    return type(nest)(*[_with_sparse(part) for part in nest])
  if isinstance(nest, (list, tuple)):
    return type(nest)(_with_sparse(part) for part in nest)
  return nest


def _all_initializers(graph: Any) -> List[str]:
  keys = v1.GraphKeys
  found = {}  # type: Dict[str, None]
  for key in (keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES, keys.METRIC_VARIABLES):
    found.update((variable.initializer.name, None) for variable in graph.get_collection(key))
  return list(found) + [op.name for op in graph.get_collection(keys.TABLE_INITIALIZERS)]


def _gradient_names(gradient: Any) -> List[Optional[str]]:
  if isinstance(gradient, tf.IndexedSlices):
    return [gradient.values.name, gradient.indices.name]
  return [None if gradient is None else gradient.name, None]


# ---------------------------------------------------------------------------------------
# Training steps.


class _TrainOp:
  """The train op, and what it has added, see `_steps_entry`.

  Everything that it adds runs after the losses, so that what is fetched beside it are
  the values before the update.
  """

  def __init__(self, training: _Training) -> None:
    built, options = training.built, training.recorder.options
    graph = built.graph
    names = [training.loss, training.total_loss]
    names += [name for _, name in built.regularization_losses]
    first = [graph.get_tensor_by_name(name) for name in names]
    updates = _Updates()

    def make() -> Any:
      # One op in between: of hundreds of losses each op that follows would hold the names.
      with graph.control_dependencies([tf.group(*first, name='tf2verify_losses')]):
        if options.train_op is not None:
          return _checked_train_op(options.train_op(first[1]), graph)
        return _minimize(options, first[1])

    what = 'the train op' if options.train_op is not None else 'the optimizer'
    with updates.recording():
      train_op = training.in_graph(what, make)
    self.name = train_op.name
    self.optimizers = updates.optimizers
    self.rate = _learning_rate(self.optimizers[0], graph) if self.optimizers else None
    self.gradients = _gradient_entries(updates.differentiated, built)
    self.applied = _gradient_entries(updates.applied, built)
    placeholders = [name for _, name in training.label_placeholders]
    _check_runs_alone(what, built, [train_op.name], _FED_BY_TRAIN_OP, placeholders)
    run = _ops_run_by([train_op])
    self.left_out = [name for name in built.update_ops if name not in run]
    draws = [op for op in run.values() if _is_random_op(op.type)]
    self.drawn = [tensor.name for op in draws for tensor in op.outputs]
    self.draws_inside = any(map(_is_in_loop, draws)) or _draws_in_functions(graph, run.values())

  def entries(self) -> List[str]:
    """Returns the names of the gradients' tensors."""
    tensors = self.gradients + self.applied
    names = [name for entry in tensors for name in (entry['values'], entry['indices'])]
    return [name for name in names if name is not None]


def _minimize(options: Options, total_loss: Any) -> Any:
  step = v1.train.get_or_create_global_step()
  optimizer = options.optimizer()
  if not isinstance(optimizer, v1.train.Optimizer):
    slip = (
      'usually a missing `return`' if optimizer is None else 'for anything else, give a train op'
    )
    if isinstance(optimizer, type):
      slip = 'it is the class: return an instance'
    if isinstance(optimizer, (tf.Operation, tf.Tensor)):
      slip = 'a train op is made by a function of the loss: --train_op'
    raise RecorderError(
      'the optimizer function returned {:.80}, which is no tf.train.Optimizer: {}'.format(
        repr(optimizer), slip
      )
    )
  updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS) if options.run_update_ops else []
  with tf.control_dependencies([tf.group(*updates)] if updates else []):
    return optimizer.minimize(total_loss, global_step=step)


def _checked_train_op(made: Any, graph: Any) -> Any:
  """Returns the op that is to be run, given whatever `session.run` takes; several are grouped."""
  try:
    # What a session itself makes of it: nests, names, and variables that an update returns.
    taken = client_session._FetchHandler(graph, made, {})
    parts = list(taken.fetches()) + list(taken.targets())
  except (TypeError, ValueError, KeyError):
    parts = []
  if len(parts) == 1:
    return parts[0].op if isinstance(parts[0], tf.Tensor) else parts[0]
  if parts:
    return tf.group(*parts)
  slip = 'usually a missing `return`' if made is None else 'return what session.run is given'
  if isinstance(made, v1.train.Optimizer):
    slip = 'a function that returns an optimizer takes nothing: --optimizer'
  raise RecorderError(
    'the train op function returned {:.80}, which is no op of the graph: {}'.format(
      repr(made), slip
    )
  )


def _gradient_entries(found: Dict[str, Any], built: BuiltGraph) -> List[Dict[str, Any]]:
  """Returns the gradients for the model's variables that a session can be asked for."""
  entries = []
  for variable in built.variables:
    gradient = found.get(variable.name)  # type: Any
    sparse = isinstance(gradient, tf.IndexedSlices)
    parts = [gradient.values, gradient.indices] if sparse else [gradient]
    fetchable = all(part is None or _can_be_fetched(part, built.graph) for part in parts)
    if variable.name in found and fetchable:
      entries.append(_gradient_entry(variable, gradient))
  return entries


def _draws_in_functions(graph: Any, run: Iterable[Any]) -> bool:
  """Returns whether a function that one of the ops calls draws random numbers."""
  library = {f.signature.name: f for f in graph.as_graph_def().library.function}
  if not library:
    return False
  pending = [(op.type, op.node_def.attr.items()) for op in run]
  seen = set()  # type: Set[str]
  while pending:
    op_type, attributes = pending.pop()
    for name, _ in _functions_called(attributes, op_type, library):
      if name not in seen:
        seen.add(name)
        nodes = library[name].node_def
        if any(_is_random_op(node.op) for node in nodes):
          return True
        pending += [(node.op, node.attr.items()) for node in nodes]
  return False


def _slots(training: _Training, train: _TrainOp) -> List[Tuple[str, str, _Variable]]:
  """Returns role, variable and state of what optimizers and averages keep."""
  graph = training.built.graph
  model = {variable.name for variable in training.built.variables}
  left = {v.name: v for v in training.later.variables if not v.local and not v.global_step}
  in_graph = graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
  variables = [variable for variable in in_graph if _variable_name(variable) in model]
  found = []
  with graph.as_default():  # `get_slot` asks for it
    for optimizer in train.optimizers:
      for setting in getattr(optimizer, '_hyper', {}).values():
        if isinstance(setting, tf.Variable):
          left.pop(_variable_name(setting), None)
      for role, variable, name in _slots_of(optimizer, variables):
        if name in left:
          found.append((role, variable, left.pop(name)))
  for name, state in left.items():
    role, variable = _slot_by_name(name, model)
    found.append((role, variable, state))
  return found


class _Steps:
  """Training steps in a session.

  A port draws the same numbers at every step, since its seeds start again. A session
  would go on: what it draws first is fed to every step, or, where that cannot be, each
  step has a session of its own.
  """

  def __init__(self, training: _Training, train: _TrainOp, mover: Optional[Mover]) -> None:
    self._training = training
    self._train = train
    self._variables = training.built.variables + training.later.variables
    self.feeds = training.feeds(mover)
    known = all(name in training.drawn for name in train.drawn)
    self.session = training.session(fresh=train.draws_inside or not known)
    training.start(self.session, mover)
    if not train.draws_inside:
      if not known:
        drawn = fetch(self.session, train.drawn, self.feeds)
        training.drawn.update(pairs(train.drawn, drawn))
      self.feeds.update({name: training.drawn[name] for name in train.drawn})

  def update(self) -> Dict[str, _Array]:
    """Takes a step; returns what it used, by tensor name."""
    if self._train.draws_inside:
      self._carry_over()
    names = [self._training.total_loss, *self._train.entries()]
    if isinstance(self._train.rate, str):
      names.append(self._train.rate)
    names = list(dict.fromkeys(names))
    found = fetch(self.session, [*names, self._train.name], self.feeds)
    return {name: np.asarray(value) for name, value in pairs(names, found[: len(names)])}

  def read(self, variables: Sequence[_Variable]) -> List[_Array]:
    """Returns the values that variables have now."""
    return [np.asarray(value) for value in fetch(self.session, [v.read for v in variables])]

  def _carry_over(self) -> None:
    """Goes on in a fresh session, whose random ops start again."""
    values = self.read(self._variables)
    self.session = self._training.session(fresh=True)
    write(self.session, list(pairs(self._variables, values)))


class _StepsRun:
  """Takes the training steps of a recording.

  Attributes:
    slots: role, variable and state of each.
    counter: the global step; None without one.
    rates: the learning rate of each step; None where it is not known.
    counts: the global step after each step.
  """

  def __init__(self, training: _Training, train: _TrainOp, count: int) -> None:
    self._training = training
    self._train = train
    self._count = count
    self._start = {}  # type: Dict[str, _Array]
    self.slots = _slots(training, train)
    every = training.built.variables + training.later.variables
    self.counter = next((variable for variable in every if variable.global_step), None)
    self.rates = []  # type: List[Optional[float]]
    self.counts = []  # type: List[Optional[int]]

  def evaluate(self, mover: Optional[Mover]) -> Iterator[Tuple[_Key, Optional[_Array]]]:
    """Takes all steps, and yields quantity, step and name of what they show, and the array."""
    steps = _Steps(self._training, self._train, mover)
    moved = {}  # type: Dict[str, _Array]
    if mover is None:
      self.rates, self.counts = [], []
    names = [name for _, name in self._training.built.regularization_losses]
    losses = [np.asarray(loss) for loss in fetch(steps.session, names, steps.feeds)]
    yield ('regularization total', ''), total_of(losses[::-1])
    for number in range(self._count + 1):
      if number:
        yield from self._used(steps.update(), number, mover is None)
      yield from self._state(steps, number, moved if mover is not None else None)

  def _used(
    self, used: Dict[str, _Array], number: int, first: bool
  ) -> Iterator[Tuple[_Key, Optional[_Array]]]:
    """Yields the loss and the gradients of a step."""
    yield ('loss {}'.format(number), ''), used[self._training.total_loss]
    for kind, entries in (('gradient', self._train.gradients), ('applied', self._train.applied)):
      for entry in entries:
        gradient = None
        if entry['values'] is not None:
          rows = None if entry['indices'] is None else used[entry['indices']]
          gradient = dense_gradient(entry, used[entry['values']], rows)
        yield ('{} {}'.format(kind, number), entry['variable']), gradient
    if first:
      rate = self._train.rate
      value = float(used[rate]) if isinstance(rate, str) else rate
      self.rates.append(value if value is None or math.isfinite(value) else None)

  def _state(
    self, steps: _Steps, number: int, moved: Optional[Dict[str, _Array]]
  ) -> Iterator[Tuple[_Key, _Array]]:
    """Yields the variables and slots after a step; before the first one for 0.

    Of a moved run a variable is yielded as if it had started where the first run did: a
    step is judged by what it adds, not by where that was moved to.
    """
    model = self._training.built.owned()
    states = model + [state for _, _, state in self.slots]
    values = steps.read(states if self.counter is None else [*states, self.counter])
    owners = [variable.name for variable in model]
    owners += [name if role == _SHADOW else '' for role, name, _ in self.slots]
    starts = self._start if moved is None else moved
    for position, (owner, value) in enumerate(pairs(owners, values[: len(states)])):
      if not number and position < len(model):
        starts[owner] = np.array(value)
      if moved is not None and owner in moved:
        value = _restarted(value, moved[owner], self._start[owner])
      if position < len(model):
        yield ('variable {}'.format(number), owner), value
      else:
        yield ('slot {}'.format(number), str(position - len(model))), value
    if moved is None and number:
      self.counts.append(None if self.counter is None else int(values[-1]))


def _restarted(value: _Array, moved: _Array, start: _Array) -> _Array:
  """Returns what a value would be, had it started elsewhere and changed as it has."""
  if not _fraction_bits(value.dtype) or value.shape != start.shape:
    return value
  wide = value.dtype if value.dtype.itemsize >= 4 else np.float32
  with np.errstate(all='ignore'):
    change = value.astype(wide) - moved.astype(wide)
    change += start.astype(wide)
  return change.astype(value.dtype)


def _record_steps(recorder: Recorder, training: _Training, train: _TrainOp) -> Dict[str, Any]:
  """Records training steps."""
  options, count = recorder.options, recorder.options.steps
  run = _StepsRun(training, train, count)
  name = '{}, {}'.format(training_name(training.built.training), DISTINCT_VALUES)
  text = '{}, {} training step{}'.format(name, count, 's' if count > 1 else '')
  tensors, runs = recorder.measured(text, run.evaluate, lambda _: False, of_steps=True)

  def named(quantity: str) -> List[List[Any]]:
    return [[key, tensor] for (kind, key), tensor in tensors.items() if kind == quantity]

  def slots(number: int) -> List[Dict[str, Any]]:
    values = dict(named('slot {}'.format(number)))
    return [
      {'role': role, 'variable': variable, 'name': state.name, 'value': values[str(position)]}
      for position, (role, variable, state) in enumerate(run.slots)
    ]

  steps = [
    {
      'number': number,
      'loss': tensors['loss {}'.format(number), ''],
      'learning_rate': run.rates[number - 1],
      'global_step': run.counts[number - 1],
      'gradients': named('gradient {}'.format(number)),
      'applied_gradients': named('applied {}'.format(number)),
      'variables': named('variable {}'.format(number)),
      'slots': slots(number),
    }
    for number in range(1, count + 1)
  ]
  own = options.train_op is not None
  rate = train.rate
  return {
    'run': name,
    'training': training.built.training,
    'made_by': 'train_op' if own else 'optimizer',
    'run_update_ops': None if own else options.run_update_ops,
    'train_op': train.name,
    'learning_rate': rate if rate is None or isinstance(rate, str) or math.isfinite(rate) else None,
    'global_step': None if run.counter is None else run.counter.name,
    'added': [dict(variable.manifest(), source=None) for variable in training.later.variables],
    'gradients': train.gradients,
    'applied_gradients': train.applied,
    'optimizers': [_optimizer_entry(optimizer) for optimizer in train.optimizers],
    'values_before': named('variable 0'),
    'slots_before': slots(0),
    'steps': steps,
    'updates_left_out': train.left_out,
    'regularization_total': tensors['regularization total', ''],
    'random_draws': [dict(draw, source=None) for draw in training.later.random_draws],
    'noise_runs': runs,
  }


# ---------------------------------------------------------------------------------------
# A checkpoint by reference.


def _record_checkpoint(recorder: Recorder) -> Optional[Dict[str, Any]]:
  """Records which tensors a checkpoint holds, and their digests; None without one.

  Raises:
    RecorderError: it cannot be read, or is not name-based.
  """
  prefix = recorder.options.checkpoint
  if prefix is None:
    return None
  with recorder.step('reading the checkpoint {}'.format(prefix)):
    try:
      reader = v1.train.NewCheckpointReader(str(prefix))
      dtypes, shapes = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
      keys = [
        {
          'name': name,
          'shape': list(shapes[name]),
          'dtype': dtypes[name].base_dtype.name,
          'sha256': digest(np.asarray(reader.get_tensor(name))),
        }
        for name in sorted(shapes)
      ]
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
      lines = [line for line in str(error).splitlines() if line.strip()] or ['']
      raise RecorderError(
        '--checkpoint {} cannot be read: {}; give the prefix that Saver.save returned, without '
        '.index or .meta'.format(prefix, lines[0][:200])
      ) from None
  if any(key['name'] == '_CHECKPOINTABLE_OBJECT_GRAPH' for key in keys):
    raise RecorderError(
      '--checkpoint {} was written by tf.train.Checkpoint; a name-based one is wanted, as '
      'tf.train.Saver writes it'.format(prefix)
    )
  return {'path': os.path.abspath(str(prefix)), 'keys': keys}


def _environment() -> Dict[str, str]:
  return {
    'tensorflow': tf.__version__,
    'python': platform.python_version(),
    'numpy': np.__version__,
    'platform': platform.platform(),
    'onednn': os.environ.get('TF_ENABLE_ONEDNN_OPTS', 'not set'),
  }


def _check_versions() -> None:
  if v1 is None or tuple(int(n) for n in tf.__version__.split('.')[:2]) < (1, 13):
    raise RecorderError(
      'this is TensorFlow {}; the recorder runs under 1.13 and newer'.format(tf.__version__)
    )
  if tuple(int(n) for n in np.__version__.split('.')[:2]) < (1, 14):
    raise RecorderError('this is numpy {}; the recorder needs 1.14'.format(np.__version__))


def record(
  builder: Callable[..., Any],
  inputs: Any,
  out: str,
  *,
  training_modes: Sequence[bool] = (False, True),
  labels: Any = None,
  loss: Optional[Callable[..., Any]] = None,
  total_loss: Optional[Callable[..., Any]] = None,
  optimizer: Optional[Callable[..., Any]] = None,
  train_op: Optional[Callable[..., Any]] = None,
  run_update_ops: bool = True,
  steps: int = 3,
  checkpoint: Optional[str] = None,
  intermediates: str = 'none',
  noise_runs: int = _MOST_NOISE_RUNS,
  compress: bool = True,
  largest_array: Optional[int] = None,
  fill: Optional[Fill] = None,
  overwrite: bool = False,
) -> str:
  """Records a model.

  Args:
    builder: takes the inputs, as placeholders, and the training mode; returns tensors.
    inputs: a numpy array, or a tuple, list or dictionary of arrays.
    out: the folder to make.
    training_modes: (False, True), or one of them.
    labels: a nest of arrays for the losses.
    loss: takes outputs and labels, returns the loss.
    total_loss: the same with regularization; by default their sum.
    optimizer: takes nothing, returns a `tf.train.Optimizer`.
    train_op: takes the loss, returns the op of a training step; instead of `optimizer`.
    run_update_ops: whether a training step runs the UPDATE_OPS collection.
    steps: how many training steps to record.
    checkpoint: the prefix of a checkpoint of the model.
    intermediates: 'none', 'summary' or 'full': what is stored of every tensor on the way.
    noise_runs: how many moved runs are made of each run at most; fewer of a large model.
    compress: whether arrays are compressed where that makes them smaller.
    largest_array: larger arrays that were computed are stored as samples and means; by
      default 65,536 elements, 4,096 of a model of more than 10 million.
    fill: gives a variable its value, of name, shape and dtype; None keeps the initial one.
    overwrite: whether a recording `out` that exists is replaced.

  Returns:
    The folder's path.

  Raises:
    RecorderError: it could not be made; there is no folder then.
  """
  _check_versions()
  checked = _checked_arrays(inputs, 'inputs')
  options = Options(
    training_modes=training_modes,
    labels=None if labels is None else _checked_arrays(labels, 'labels'),
    loss=loss,
    total_loss=total_loss,
    optimizer=optimizer,
    train_op=train_op,
    run_update_ops=run_update_ops,
    steps=steps,
    checkpoint=checkpoint,
    intermediates=intermediates,
    noise_runs=noise_runs,
    largest_array=largest_array,
    fill=fill,
  )
  if not tf.__version__.startswith('1.'):
    _say(
      'note: this is TensorFlow {}, not 1.x: the recording says what the code computes here, not '
      'what it computes in TensorFlow 1.x'.format(tf.__version__)
    )
  start = time.time()
  with _new_folder(out, overwrite) as folder:
    writer = Writer(folder, options.largest_array, compress)
    recorder = Recorder(builder, checked, options, writer)
    try:
      manifest = _manifest(recorder, builder)
    finally:
      recorder.sessions.close()
    writer.close()
    manifest['arrays'] = writer.entries
    manifest['sha256'] = hashlib.sha256(canonical(manifest)).hexdigest()
    with open(os.path.join(folder, 'manifest.json'), 'wb') as file:
      file.write(canonical(manifest) + b'\n')
    size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
  out = os.path.abspath(out)
  _say(
    'wrote {}: {:.1f} MB, {} arrays, {:.0f} s; copy the folder to where TensorFlow 2 is, and set '
    'tf1_recording = {!r} in the case of the port'.format(
      out, size / 1e6, len(writer.entries), time.time() - start, os.path.basename(out)
    )
  )
  return out


def _manifest(recorder: Recorder, builder: Callable[..., Any]) -> Dict[str, Any]:
  """Records everything, and returns what the manifest says but for the arrays."""
  options, writer = recorder.options, recorder.writer
  known = frozenset(sys.modules)
  given = {
    'inputs': writer.nest(recorder.inputs),
    'varied_inputs': writer.nest(recorder.varied),
    'replaced_inputs': recorder.replaced,
    'labels': None if options.labels is None else writer.nest(options.labels),
  }
  graphs = [_record_training_mode(recorder, training) for training in options.training_modes]
  losses, steps = _record_training(recorder)
  functions = [builder, *options.functions().values()]
  return {
    **given,
    'schema': SCHEMA,
    'kind': KIND,
    'versions': VERSIONS,
    'made': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
    'environment': _environment(),
    'builder': {'name': _function_name(builder), 'sources': _source_files(functions, known)},
    'arguments': dict(options.manifest(), largest_array=writer.largest_array),
    'training_modes': list(options.training_modes),
    'fills': recorder.fills,
    'graphs': graphs,
    'runs': recorder.runs,
    'losses': losses,
    'steps': steps,
    'checkpoint': _record_checkpoint(recorder),
    'intermediates': {'level': options.intermediates, 'runs': recorder.intermediates},
  }


# ---------------------------------------------------------------------------------------
# The command.


def load_arrays(path: str, what: str) -> Any:
  """Reads a .npz or .npy file: one array, a tuple (`arr_0`, ...), or a dictionary."""
  try:
    found = np.load(path, allow_pickle=False)
    if not hasattr(found, 'files'):
      return found
    arrays = {name: found[name] for name in found.files}
  except OSError as error:
    raise RecorderError(
      '--{} {} cannot be read: {}'.format(what, path, error.strerror or error)
    ) from None
  except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
    pickled = 'allow_pickle' in str(error)  # numpy takes any other file for one of objects
    why = 'it is no file of plain arrays' if pickled else str(error).rstrip('.')
    raise RecorderError(
      '--{} {} cannot be read: {}; write it by np.savez, with arrays of numbers'.format(
        what, path, why
      )
    ) from None
  numbered = ['arr_{}'.format(n) for n in range(len(arrays))]
  if set(arrays) in ({'arr_0'}, {'inputs'}, {'labels'}):
    return next(iter(arrays.values()))
  if set(arrays) == set(numbered):
    return tuple(arrays[name] for name in numbered)
  return arrays


# Options that name a function of the user's, with what it does.
_FUNCTIONS = (
  ('builder', 'takes inputs and training, builds the graph, returns the outputs'),
  ('loss', 'takes outputs and labels, returns the loss'),
  ('total_loss', 'the same with regularization; default: loss + regularization losses'),
  ('optimizer', 'takes nothing, returns a tf.train.Optimizer: records training steps'),
  ('train_op', 'takes the loss, returns the train op; instead of --optimizer'),
  ('fill', "takes a variable's name, shape and dtype, returns its value or None"),
)


def _flag(text: str) -> bool:
  if text not in ('true', 'false'):
    raise argparse.ArgumentTypeError('{!r} is neither true nor false'.format(text))
  return text == 'true'


def _training_modes(text: str) -> List[bool]:
  modes = {'inference': False, 'training': True}
  names = [name.strip() for name in text.split(',')]
  if any(name not in modes for name in names):
    raise argparse.ArgumentTypeError(
      '{!r} is not inference, training or inference,training'.format(text)
    )
  return [modes[name] for name in names]


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog='tf1_recorder.py',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  for name, text in _FUNCTIONS:
    add('--' + name, required=name == 'builder', metavar='MODULE:FUNCTION', help=text)
  add('--inputs', required=True, metavar='FILE', help='.npz or .npy file of the inputs')
  add('--labels', metavar='FILE', help='.npz or .npy file of the labels, for the losses')
  add('--out', required=True, metavar='DIR', help='the folder to make')
  add('--overwrite', action='store_true', help='replace the recording if it exists')
  add(
    '--training',
    type=_training_modes,
    default=[False, True],
    metavar='MODES',
    help='inference, training, or inference,training (default)',
  )
  add('--run_update_ops', type=_flag, default=True, help='true (default) or false: in a step')
  add('--steps', type=int, default=3, help='training steps to record (default: %(default)s)')
  add('--checkpoint', metavar='PREFIX', help='a checkpoint of the model, noted by its digests')
  add('--intermediates', choices=LEVELS, default='none', help='tensors on the way that are kept')
  add('--noise_runs', type=int, default=_MOST_NOISE_RUNS, help='moved runs of each run, at most')
  add('--compress', type=_flag, default=True, help='true (default) or false')
  add(
    '--largest_array',
    type=int,
    metavar='N',
    help='arrays of more elements are stored as samples and means (default: 65536, 4096 of a '
    'model of more than 10 million)',
  )
  return parser


def _record_as_told(arguments: argparse.Namespace) -> None:
  given = dict(vars(arguments))
  functions = {}  # type: Dict[str, Any]
  _check_versions()
  if not tf.__version__.startswith('1.'):
    v1.disable_v2_behavior()
  v1.logging.set_verbosity(v1.logging.ERROR)
  inputs = load_arrays(given.pop('inputs'), 'inputs')
  labels = given.pop('labels')
  for name, _ in _FUNCTIONS:
    told = given.pop(name)
    functions[name] = None if told is None else load_function(told, name)
  record(
    functions.pop('builder'),
    inputs,
    given.pop('out'),
    training_modes=given.pop('training'),
    labels=None if labels is None else load_arrays(labels, 'labels'),
    **functions,
    **given,
  )


def _interruptible(work: Callable[[], None], partial: str) -> None:
  """Does the work in a thread, so that Ctrl-C ends the process in the midst of a long run.

  TensorFlow 1.x does not look for it before a run is over.

  Args:
    work: what to do; what it raises is raised here.
    partial: the folder that it may leave half written.
  """
  done = concurrent.futures.ThreadPoolExecutor(1).submit(work)
  try:
    while not done.done():
      concurrent.futures.wait([done], timeout=0.2)
  except KeyboardInterrupt:
    shutil.rmtree(partial, ignore_errors=True)
    _say('tf1_recorder: interrupted; nothing was written')
    sys.stderr.flush()
    os._exit(130)  # the thread would not end
  done.result()


def main(arguments: Optional[Sequence[str]] = None) -> int:
  """Runs the command.

  Returns:
    0; 2 for a mistake, which is told on the last line; 130 where it was interrupted.
  """
  parsed = _parser().parse_args(arguments)
  try:
    _interruptible(lambda: _record_as_told(parsed), _partial_of(parsed.out))
  except RecorderError as error:
    if error.__cause__ is not None:
      sys.stderr.write(_user_traceback(error.__cause__))
    _say('tf1_recorder: error: {}'.format(error))
    return 2
  except KeyboardInterrupt:
    _say('tf1_recorder: interrupted; nothing was written')
    return 130
  return 0


if __name__ == '__main__':
  sys.exit(main())
