"""What a loss hook may return: one tensor, or a nest of the parts of a loss."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.errors import CaseDefinitionError
from tf2verify.reference.graph_ops import ops_behind
from tf2verify.sides import side

_MAIN = 'loss'


def is_nest(loss: Any) -> bool:
  """Returns whether a hook returned several parts."""
  return isinstance(loss, (Mapping, list, tuple))


def parts_of(loss: Any, path: str = '') -> dict[str, Any]:
  """Returns the parts of a nest by their place: `['generator']`; none for one tensor."""
  if not is_nest(loss):
    return {path: loss} if path and loss is not None else {}
  return {
    name: part
    for key, child in _children(loss)
    for name, part in parts_of(child, path + key).items()
  }


def _children(nest: Any) -> Iterator[tuple[str, Any]]:
  """Yields place and part; a namedtuple is read as a dictionary of its fields."""
  if isinstance(nest, Mapping):
    yield from ((f'[{key!r}]', nest[key]) for key in sorted(nest, key=str))
  elif hasattr(nest, '_fields'):
    yield from ((f'[{name!r}]', getattr(nest, name)) for name in sorted(nest._fields))
  else:
    yield from ((f'[{number}]', part) for number, part in enumerate(nest))


def _main_key(nest: Any) -> Any:
  """Returns the key of the entry that is the loss itself; None where all together are."""
  if isinstance(nest, Mapping):
    return _MAIN if _MAIN in nest else None
  if hasattr(nest, '_fields'):
    return _MAIN if _MAIN in nest._fields else None
  return 0


def main_of(loss: Any, hook: str) -> Any:
  """Returns the scalar that stands for a loss: what is compared first, and minimized.

  Of a dictionary (or a namedtuple) the entry `loss`, without one the sum of all floating
  parts; of a tuple or list the first item. Anything but a nest as it is.

  Raises:
    CaseDefinitionError: the nest has no tensor to take.
  """
  if not is_nest(loss):
    return loss
  key = _main_key(loss)
  parts = parts_of(loss)
  for name, part in parts.items():
    if not isinstance(part, (tf.Tensor, tf.Variable, int, float)):
      raise CaseDefinitionError(
        f'{hook} returned {part!r:.80} of type {type(part).__name__} for its part {name}; each '
        'part of a loss is a tensor'
      )
  if key is not None and len(loss):
    return main_of(getattr(loss, key) if hasattr(loss, '_fields') else loss[key], hook)
  floating = [tf.convert_to_tensor(part) for part in parts.values()]
  floating = [part for part in floating if part.dtype.is_floating]
  if not floating:
    raise CaseDefinitionError(
      f'{hook} returned {loss!r:.80}, which has no floating tensor: return the loss, or its parts '
      "in a dictionary (with the one to minimize under 'loss', if there is one)"
    )
  return tf.add_n([tf.cast(tf.reduce_sum(part), floating[0].dtype) for part in floating])


def plus(loss: Any, terms: Sequence[Any]) -> Any:
  """Returns a loss with further terms added to its main entry.

  A nest without one is returned as it is: to which part they belong is the case's to say.
  """
  if not terms:
    return loss
  if not is_nest(loss):
    own = tf.convert_to_tensor(loss)
    return own + tf.cast(tf.add_n(list(terms)), own.dtype)
  return _with_main(loss, lambda main: plus(main, terms))


def _with_main(nest: Any, change: Callable[[Any], Any]) -> Any:
  key = _main_key(nest)
  if key is None or not len(nest):
    return nest
  if isinstance(nest, Mapping):
    return {**nest, key: change(nest[key])}
  if hasattr(nest, '_fields'):
    return nest._replace(**{key: change(getattr(nest, key))})
  return type(nest)([change(nest[0]), *nest[1:]])


# The sign of each input of operations that add up; the last one is that of all further inputs.
_SIGNS = {
  'Add': (1,), 'AddV2': (1,), 'AddN': (1,), 'Sub': (1, -1), 'Neg': (-1,), 'Identity': (1,),
}  # fmt: skip
# Of a sum so many terms are taken apart.
_MOST_TERMS = 10_000


def regularization_of(graph: tf.Graph, loss: Any) -> list[Any]:
  """Returns the REGULARIZATION_LOSSES of a graph that a loss is not computed from already."""
  losses = graph.get_collection(tf.compat.v1.GraphKeys.REGULARIZATION_LOSSES)
  tensors = [
    part for part in (parts_of(loss) or {'': loss}).values() if isinstance(part, tf.Tensor)
  ]
  names = frozenset(known.op.name for known in losses)
  return [] if any(_contains(tensor, names) for tensor in tensors) else list(losses)


def _contains(loss: tf.Tensor, names: frozenset[str]) -> bool:
  """Returns whether a loss is computed from operations, what cancels in a sum aside.

  `loss - tf.losses.get_regularization_loss()` takes out again what the loss has.
  """
  times: Counter[str] = Counter()
  pending = {loss.ref(): 1}
  for _ in range(_MOST_TERMS):
    if not pending:
      return any(times.values())
    known, factor = pending.popitem()
    op = known.deref().op
    if op.name in names:
      times[op.name] += factor
    elif op.type in _SIGNS:
      signs = _SIGNS[op.type]
      for number, term in enumerate(op.inputs):
        sign = signs[min(number, len(signs) - 1)]
        pending[term.ref()] = pending.get(term.ref(), 0) + sign * factor
    elif names & ops_behind([known.deref()]).keys():
      return True
  return bool(names & ops_behind([loss]).keys())


def tf1_total(case: side.Declaration, outputs: Any, labels: Any) -> Any:
  """Returns what the reference minimizes by default, in the default graph."""
  own = case.declares('tf1_loss')
  loss = case.tf1_loss(outputs, labels) if own else case.loss(outputs)
  return plus(loss, regularization_of(tf.compat.v1.get_default_graph(), loss))


def tf2_total(case: side.Declaration, layer: Any, outputs: Any, labels: Any) -> Any:
  """Returns what the port minimizes by default, of a layer that was just called."""
  own = case.declares('tf2_loss')
  loss = case.tf2_loss(outputs, labels) if own else case.loss(outputs)
  return plus(loss, list(case.tf2_regularization_losses(layer)))
