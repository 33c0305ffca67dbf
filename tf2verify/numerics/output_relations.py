"""Outputs of a model that are computed from one another: logits and their softmax.

A loss of one side may read the logits, that of the other side their softmax. Seen as
functions of the logits alone they are comparable: outputs that follow from another are
made from it, and gradients are pulled back to it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]

SAME, SOFTMAX, LOG_SOFTMAX, SIGMOID = 'the same', 'softmax', 'log softmax', 'sigmoid'
ARGMAX = 'argmax'
_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class Relation:
  """An output that follows from another one."""

  derived: str  # its path
  source: str  # the path of the other one
  # `SAME` (but for the shape), `SOFTMAX`, `LOG_SOFTMAX` or `SIGMOID`; `ARGMAX` over the last axis,
  # of integers.
  kind: str


def softmax(logits: _Array) -> _Array:
  """Returns the softmax over the last axis."""
  with np.errstate(all='ignore'):
    powers = np.exp(logits - np.max(logits, -1, keepdims=True))
    found: _Array = powers / np.sum(powers, -1, keepdims=True)
  return found


def log_softmax(logits: _Array) -> _Array:
  """Returns the logarithm of the softmax over the last axis, without the softmax."""
  with np.errstate(all='ignore'):
    shifted = logits - np.max(logits, -1, keepdims=True)
    found: _Array = shifted - np.log(np.sum(np.exp(shifted), -1, keepdims=True))
  return found


def sigmoid(logits: _Array) -> _Array:
  """Returns 1 / (1 + exp(-logits)) without overflow."""
  found: _Array = 0.5 * (1.0 + np.tanh(0.5 * logits))
  return found


_FUNCTIONS = {SOFTMAX: softmax, LOG_SOFTMAX: log_softmax, SIGMOID: sigmoid}


def relations(outputs: Mapping[str, _Array], among: Iterable[str]) -> tuple[Relation, ...]:
  """Returns which outputs follow from others, as their values tell.

  Args:
    outputs: by path.
    among: the paths to look at; where two are the same, the first is the source.
  """
  wanted = set(among)
  paths = [
    path
    for path, output in outputs.items()
    if path in wanted and output.dtype.kind in 'fiu' and output.size
  ]
  found: dict[str, Relation] = {}
  for derived in paths:
    for source in paths:
      if source == derived or source in found or outputs[source].dtype.kind != 'f':
        continue
      kind = _kind(outputs[source], outputs[derived], paths.index(source) < paths.index(derived))
      if kind:
        found[derived] = Relation(derived, source, kind)
        break
  # A source that turned out to follow from a third one.
  return tuple(_from_root(relation, found) for relation in found.values())


def _from_root(relation: Relation, found: Mapping[str, Relation]) -> Relation:
  while relation.source in found and SAME in (relation.kind, found[relation.source].kind):
    further = found[relation.source]
    kind = further.kind if relation.kind == SAME else relation.kind
    relation = Relation(relation.derived, further.source, kind)
  return relation


def _kind(source: _Array, derived: _Array, first: bool) -> str:
  if derived.dtype.kind != 'f':
    return ARGMAX if _is_argmax(source, derived) else ''
  if first and source.size == derived.size and _close(source, derived):
    return SAME
  if source.size != derived.size or source.ndim == 0:
    return ''
  for kind, function in _FUNCTIONS.items():
    if _close(function(source.astype(np.float64)), derived):
      return kind
  return ''


def _is_argmax(source: _Array, derived: _Array) -> bool:
  if source.ndim == 0 or not source.size or source.shape[:-1] != derived.shape:
    return False
  return bool(np.array_equal(np.argmax(source, -1), derived))


def _close(one: _Array, other: _Array) -> bool:
  if one.size == 0 or one.dtype.kind != 'f' or other.dtype.kind != 'f':
    return False
  flat = one.reshape(-1), other.reshape(-1)
  return bool(np.allclose(flat[0], flat[1], _TOLERANCE, _TOLERANCE))


def follow(relation: Relation, source: _Array, like: _Array) -> _Array:
  """Returns what the derived output is for other values of its source.

  Args:
    relation: of the two.
    source: the new values of the source.
    like: gives rank and dtype; its leading size may differ.
  """
  if relation.kind == ARGMAX:
    made = np.argmax(source, -1)
  elif relation.kind == SAME:
    made = source
  else:
    made = _FUNCTIONS[relation.kind](source.astype(np.float64))
  shape = like.shape if like.size == made.size else (-1, *like.shape[1:])
  found: _Array = made.astype(like.dtype).reshape(shape)
  return found


def pulled_back(relation: Relation, source: _Array, gradient: _Array) -> _Array:
  """Returns the gradient with respect to the source that one for the derived output means."""
  given: _Array = gradient.astype(np.float64).reshape(source.shape)
  wide = source.astype(np.float64)
  if relation.kind == SOFTMAX:
    p = softmax(wide)
    given = p * (given - np.sum(given * p, -1, keepdims=True))
  elif relation.kind == LOG_SOFTMAX:
    given = given - softmax(wide) * np.sum(given, -1, keepdims=True)
  elif relation.kind == SIGMOID:
    p = sigmoid(wide)
    given = given * p * (1.0 - p)
  return given
