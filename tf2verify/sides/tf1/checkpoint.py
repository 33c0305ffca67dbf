"""Name-based checkpoints, as `tf.compat.v1.train.Saver` writes and reads them."""

import glob
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import CheckpointError
from tf2verify.records.checkpoint import CheckpointKey, KeySource
from tf2verify.records.wording import listed
from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import ReferenceGraph
from tf2verify.sides.tf1.sessions import session_values

# The key under which `tf.train.Checkpoint` keeps which object has which attributes.
_OBJECT_GRAPH = '_CHECKPOINTABLE_OBJECT_GRAPH'
_FILE_OF_PREFIX = re.compile(r'(.+)\.(index|meta|data-\d{5}-of-\d{5})')
_SHOWN = 5
# What TensorFlow's reader makes of a damaged file.
_READ_ERRORS = (tf.errors.OpError, ValueError, RuntimeError, IndexError)


class CheckpointFile:
  """A checkpoint on disk, of whose tensors any can be read.

  Attributes:
    path: its prefix.
    keys: every tensor, sorted by name.
    is_object_based: whether `tf.train.Checkpoint` wrote it.
  """

  def __init__(self, path: str) -> None:
    """Opens a checkpoint.

    Raises:
      CheckpointError: there is none of this prefix, or it cannot be read.
    """
    self.path = path
    _check_files(path)
    try:
      self._reader: Any = tf.train.load_checkpoint(path)
    except _READ_ERRORS as error:
      raise CheckpointError(_unreadable(path, error)) from error
    dtypes = self._reader.get_variable_to_dtype_map()
    shapes = self._reader.get_variable_to_shape_map()
    self.is_object_based = _OBJECT_GRAPH in shapes
    self.keys = tuple(
      CheckpointKey(name, tuple(shapes[name]), dtypes[name].base_dtype.name)
      for name in sorted(shapes)
      if name != _OBJECT_GRAPH
    )

  def value(self, key: str) -> np.ndarray:
    """Returns a tensor by its key.

    Raises:
      CheckpointError: the data file is truncated or damaged.
    """
    try:
      return np.asarray(self._reader.get_tensor(key))
    except _READ_ERRORS as error:
      raise CheckpointError(_unreadable(self.path, error, key)) from error

  def value_of(self, source: KeySource, shape: tuple[int | None, ...]) -> np.ndarray:
    """Returns what a variable of this shape is restored to."""
    value = self.value(source.key)
    if source.offset is None:
      return value
    cut = tuple(
      slice(start, start + (size or 0)) for start, size in zip(source.offset, shape, strict=True)
    )
    return np.ascontiguousarray(value[cut])

  def values_like(self, value: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the tensors of one shape and dtype, by key."""
    dtype = tf.as_dtype(value.dtype).name if value.dtype != object else 'string'
    like = [key.name for key in self.keys if (key.shape, key.dtype) == (value.shape, dtype)]
    return {name: self.value(name) for name in like}


def name_based(path: Any, given_by: str) -> CheckpointFile:
  """Opens a TF1 checkpoint.

  Args:
    path: its prefix.
    given_by: who gave the path, for errors: `tf1_checkpoint`, `--tf1_checkpoint`.

  Raises:
    CheckpointError: it cannot be read, or `tf.train.Checkpoint` wrote it.
  """
  if not isinstance(path, (str, os.PathLike)):
    raise CheckpointError(
      f'{given_by} is {path!r:.80} of type {type(path).__name__}; it must be the prefix that '
      '`Saver.save` returned, as text'
    )
  try:
    found = CheckpointFile(os.fspath(path))
  except CheckpointError as error:
    raise CheckpointError(f'{given_by}: {error}') from error.__cause__
  if found.is_object_based:
    shown = ', '.join(key.name for key in found.keys[:_SHOWN])
    raise CheckpointError(
      f'{given_by}: {found.path} is an object-based checkpoint, of `tf.train.Checkpoint` or '
      f'`save_weights` (keys: {shown}); a name-based checkpoint is needed, as '
      '`tf.compat.v1.train.Saver.save` writes it. Maybe this one is already one of the port'
    )
  if not found.keys:
    raise CheckpointError(f'{given_by}: {found.path} holds no tensor')
  return found


def reference_values(tf1: ReferenceGraph, run: RunSpec, modes: tuple[bool, ...]) -> dict[str, Any]:
  """Returns the value of every variable of the reference, by name, as a run gives it.

  Uses the graphs that are there: inference first, then training for what only that has.
  """
  values: dict[str, Any] = {}
  wanted = {variable.name for variable in tf1.inventory().variables}
  for training in sorted(modes):
    if wanted <= values.keys():
      break
    built = tf1.built(training)
    with open_session(built.graph) as session:
      session_values.assign(session, built.variables, run)
      for record in session_values.read_variables(session, built.variables):
        values.setdefault(record.name, record.value)
  return values


def write(path: str, values: Mapping[str, np.ndarray]) -> str:
  """Writes a name-based checkpoint and returns its prefix.

  By the operation that a `Saver` runs: a `Saver` itself would add its operations to the
  reference's graph, which other stages run, or need a copy of it.
  """
  names = list(values)
  tensors = [tf.constant(values[name]) for name in names]
  slices = [''] * len(names)
  tf.raw_ops.SaveV2(prefix=path, tensor_names=names, shape_and_slices=slices, tensors=tensors)
  return path


def _check_files(path: str) -> None:
  match = _FILE_OF_PREFIX.fullmatch(path)
  if match:
    raise CheckpointError(
      f'{path} is one file of a checkpoint; give the prefix of its files, {match[1]}'
    )
  if os.path.isdir(path):
    raise CheckpointError(f'{path} is a folder; give the prefix of a checkpoint{_in_folder(path)}')
  if os.path.isfile(f'{path}.index'):
    shards = sorted(glob.glob(f'{glob.escape(path)}.data-?????-of-?????'))
    total = int(shards[0][-5:]) if shards else 1
    if len(shards) < total:
      raise CheckpointError(
        f'{path}.index is there, but {len(shards)} of {total} data files ({path}.data-…): copy '
        'all files of the prefix'
      )
  elif not os.path.isfile(path):  # the format of before TensorFlow 0.12 is one file
    beside = os.path.dirname(path) or '.'
    raise CheckpointError(f'{path}.index does not exist{_in_folder(beside)}')


def _in_folder(folder: str) -> str:
  if not os.path.isdir(folder):
    return f'; there is no folder {folder}'
  latest = tf.train.latest_checkpoint(folder)
  if latest:
    return f'; tf.train.latest_checkpoint({folder!r}) is {latest}'
  if os.path.isfile(os.path.join(folder, 'saved_model.pb')):
    return (
      f'; it is a SavedModel, whose variables are {os.path.join(folder, "variables")}/variables'
    )
  indices = sorted(glob.glob(os.path.join(glob.escape(folder), '*.index')))
  prefixes = [name.removesuffix('.index') for name in indices]
  if prefixes:
    return f'; {folder} has {listed(prefixes, _SHOWN)}'
  return f'; {folder} has no checkpoint (files *.index with *.data-…)'


def _unreadable(path: str, error: Exception, key: str = '') -> str:
  lines = [line for line in str(error).splitlines() if line.strip()]
  said = lines[0][:200] if lines else type(error).__name__
  what = f'the tensor {key} of {path}' if key else path
  return (
    f'{what} cannot be read: {said}. Usually a file that was not copied whole: compare the sizes '
    f'of {path}.data-… and .index with the original'
  )
