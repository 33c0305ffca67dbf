"""The port's own checkpoints: saved, restored, and what a restore has done."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.observation import Observation
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.optimizers.parts import parts_of
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.port import Port, array_of
from tf2verify.sides.tf2.layers.port_records import output_records
from tf2verify.tensorflow_internals import keras3

# How the key of a variable's value ends.
_VALUE = '/.ATTRIBUTES/VARIABLE_VALUE'


@dataclasses.dataclass(frozen=True)
class RestoreCall:
  """What user code restored by `tf.train.Checkpoint`."""

  path: str  # of the file
  # From the identity of each variable that was reachable afterwards to its object path.
  paths: dict[int, str]


@contextlib.contextmanager
def recorded_restores() -> Iterator[list[RestoreCall]]:
  """Yields the list of the restores until exit; filled in on exit."""
  calls: list[tuple[Any, str]] = []
  read = tf.train.Checkpoint.read

  def recorded(checkpoint: Any, save_path: Any, *arguments: Any, **keywords: Any) -> Any:
    calls.append((checkpoint, str(save_path)))
    return read(checkpoint, save_path, *arguments, **keywords)

  found: list[RestoreCall] = []
  with mock.patch.object(tf.train.Checkpoint, 'read', recorded):
    yield found
  for checkpoint, path in calls:
    paths = object_paths(checkpoint)
    # Every Checkpoint has a counter of its own.
    kept = {key: below for key, below in paths.items() if below != 'save_counter'}
    found.append(RestoreCall(path, kept))


def object_paths(root: Any) -> dict[int, str]:
  """Returns the object path of every variable below an object, by the variable's identity.

  A checkpoint holds a variable under the shortest path of attributes that leads to it.
  """
  found: dict[int, str] = {}
  seen = {id(root)}
  level = [(root, '')]
  while level:
    following = []
    for parent, path in level:
      for name, child in tf.train.TrackableView.children(parent).items():
        if id(child) in seen:
          continue
        seen.add(id(child))
        below = f'{path}/{name}' if path else name
        following.append((child, below))
        child = keras3.held(child)
        if isinstance(child, tf.Variable):
          found[id(child)] = below
    level = following
  return found


def stored_paths(path: str) -> tuple[str, ...]:
  """Returns the object paths that a file holds values for; names, in one that goes by name."""
  keys = tf.train.load_checkpoint(path).get_variable_to_shape_map()
  found = (key.removesuffix(_VALUE) for key in keys if '/.OPTIMIZER_SLOT/' not in key)
  return tuple(sorted(key for key in found if not key.startswith('_CHECKPOINTABLE')))


def save(declaration: side.Declaration, layer: Any, path: str, optimizer: Any | None = None) -> str:
  """Saves the port's own checkpoint, with its optimizer if one is given; returns its prefix."""
  if not declaration.declares('save_tf2_checkpoint'):
    roots = {'model': layer} if optimizer is None else {'model': layer, 'optimizer': optimizer}
    with user_code(side.TF2, 'tf.train.Checkpoint(model=layer).write'):
      return str(tf.train.Checkpoint(**roots).write(path))
  with user_code(side.TF2, 'save_tf2_checkpoint'):
    written = declaration.save_tf2_checkpoint(layer, path)
  if not isinstance(written, (str, os.PathLike)):
    raise CaseDefinitionError(
      f'save_tf2_checkpoint returned {written!r:.80}; return the prefix that was written, as '
      '`tf.train.Checkpoint.write` and `save` do'
    )
  return os.fspath(written)


def load(declaration: side.Declaration, layer: Any, path: str) -> list[RestoreCall]:
  """Loads the port's own checkpoint into a layer; returns what was restored on the way."""
  with recorded_restores() as calls:
    if declaration.declares('load_tf2_checkpoint'):
      with user_code(side.TF2, 'load_tf2_checkpoint'):
        declaration.load_tf2_checkpoint(layer, path)
    else:
      with user_code(side.TF2, 'tf.train.Checkpoint(model=layer).read'):
        tf.train.Checkpoint(model=layer).read(path).expect_partial()
  return calls


def load_all(layer: Any, optimizer: Any, path: str) -> None:
  """Loads a checkpoint into a layer and an optimizer that have their variables."""
  with user_code(side.TF2, 'tf.train.Checkpoint(model=layer, optimizer=optimizer).read'):
    tf.train.Checkpoint(model=layer, optimizer=optimizer).read(path).expect_partial()


def restore_before_call(layer: Any, path: str) -> None:
  """Restores a layer that has no variables yet: they get their values when they are made."""
  with user_code(side.TF2, 'tf.train.Checkpoint(model=layer).read'):
    tf.train.Checkpoint(model=layer).read(path).expect_partial()


def values_of(port: Port) -> dict[str, np.ndarray]:
  """Returns the values of a layer's variables now, by name, in the shapes of tf1."""
  return {record.name: np.asarray(record.value) for record in port.values()}


def assign(port: Port, values: Mapping[str, np.ndarray]) -> None:
  """Gives variables their values, by name, in the shapes of tf1; the others keep theirs."""
  port.assign(values.items())


def observed(outputs: Any, run: str) -> Observation:
  """Returns a layer's outputs as an observation."""
  return Observation(side.TF2, run, **output_records(outputs))


@dataclasses.dataclass(frozen=True, eq=False)
class OptimizerState:
  """What an optimizer of the port holds."""

  iterations: int | None  # the number of steps that it has taken; None where it does not count
  beta_1: float | None  # Adam's; None for optimizers without it
  values: tuple[np.ndarray, ...]  # of its variables


def made_optimizer(declaration: side.Declaration, layer: Any) -> Any:
  """Returns a fresh optimizer with its slots made, as far as that needs no gradients."""
  with user_code(side.TF2, 'make_tf2_optimizer'):
    optimizer = declaration.make_tf2_optimizer()
    make_slots(optimizer, layer)
  return optimizer


def make_slots(optimizer: Any, layer: Any) -> None:
  """Makes the slots of a layer's optimizer, as far as that needs no gradients."""
  variables = layer_parts.trainable_of(layer)
  for part in parts_of(optimizer).optimizers:
    if hasattr(part, '_create_all_weights'):  # tf.keras.optimizers.legacy
      part._create_all_weights(variables)
    elif hasattr(part, 'build'):
      part.build(variables)
    elif hasattr(part, '_create_slots'):  # tf.compat.v1.train
      part._create_slots(variables)


def optimizer_state(optimizer: Any) -> OptimizerState:
  """Reads what an optimizer holds."""
  parts = parts_of(optimizer)
  variables: list[Any] = [held.variable for held in parts.variables]
  for part in parts.optimizers:
    own = part.variables
    variables += own() if callable(own) else own
  first = parts.optimizers[0] if len(parts.optimizers) == 1 else None
  iterations = parts.count() if first is None else getattr(first, 'iterations', None)
  beta = getattr(first, 'beta_1', None)
  return OptimizerState(
    None if iterations is None else int(iterations),
    None if beta is None or callable(beta) else round(float(array_of(beta)), 6),
    tuple(array_of(variable) for variable in variables),
  )
