"""Which random numbers the two sides draw."""

import dataclasses

from tf2verify.diagnosis.patterns.numbers.known_values import known_value
from tf2verify.diagnosis.patterns.operations.op_text import SILENT_ATTRIBUTES, op_text, value_text
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.reference.random_ops import is_random_op

# Names without `Stateless` or `Stateful`, by which the first form of a draw is not known.
_FORMS = {
  'RandomNormal': 'RandomStandardNormal',
  'StandardNormal': 'RandomStandardNormal',
  'Uniform': 'RandomUniform',
  'UniformInt': 'RandomUniformInt',
  'Shuffle': 'RandomShuffle',
}
_OF_FORM = ('Stateless', 'Stateful')
# How much is drawn, and by which seeds, is no part of the distribution.
_APART = frozenset(('shape', 'seed', 'key', 'counter', 'alg', 'resource', 'algorithm'))
_VERSION = 'V2'


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
  """Operations that draw alike, more of them than on the other side.

  Attributes:
    ops: all of them.
    text: how reports show one.
    more: by how many they are more.
    position: of the first one in its graph; None in a loop.
  """

  ops: tuple[OpRecord, ...]
  text: str
  more: int
  position: int | None


_Kind = tuple[str, tuple[tuple[str, str], ...]]


def drawn_otherwise(tf1: OpGraph, tf2: OpGraph) -> tuple[Draws, Draws] | None:
  """Returns what tf1 draws more often, and what the port draws more often in place of it.

  None unless that is as many operations more on either side, of one distribution each: what one
  side draws besides is missing or extra.
  """
  ones, others = _by_kind(tf1), _by_kind(tf2)
  own, its = _more(tf1, ones, others), _more(tf2, others, ones)
  if len(own) != 1 or len(its) != 1 or own[0].more != its[0].more:
    return None
  return own[0], its[0]


_Drawn = dict[_Kind, list[tuple[OpGraph, int]]]


def _more(graph: OpGraph, ones: _Drawn, others: _Drawn) -> list[Draws]:
  """Returns what one side draws more often than the other one."""
  found = []
  for kind, places in ones.items():
    more = len(places) - len(others.get(kind, ()))
    if more > 0:
      first, position = places[0]
      ops = tuple(one.ops[n] for one, n in places)
      in_graph = position if first is graph else None
      found.append(Draws(ops, op_text(first, position), more, in_graph))
  return found


def _by_kind(graph: OpGraph) -> _Drawn:
  """Returns what a graph draws, loops included."""
  found: _Drawn = {}
  for one, position in _positions(graph):
    op = one.ops[position]
    found.setdefault((distribution(op.op_type), _settings(one, op)), []).append((one, position))
  return found


def _positions(graph: OpGraph) -> list[tuple[OpGraph, int]]:
  own = [(graph, n) for n, op in enumerate(graph.ops) if is_random_op(op.op_type)]
  inner = (one for op in graph.ops for _, function in op.functions for one in _positions(function))
  return [*own, *inner]


def distribution(op_type: str) -> str:
  """Returns what an operation that draws is called without how its seeds are kept."""
  name = op_type
  for form in _OF_FORM:
    name = name.removeprefix(form)
  name = name.removesuffix(_VERSION) if name != op_type else name
  return _FORMS.get(name, name)


def _settings(graph: OpGraph, op: OpRecord) -> tuple[tuple[str, str], ...]:
  """Returns attributes and numbers that are a part of what is drawn."""
  found = [
    (name, value_text(value))
    for name, value in op.attributes
    if name not in SILENT_ATTRIBUTES and name not in _APART and not name.startswith('_')
  ]
  for name, (producer, _) in zip(op.input_names, op.inputs, strict=False):
    value = None if name in _APART else known_value(graph, producer)
    if value is not None and value.size == 1:
      found.append((name, value_text(value)))
  return tuple(sorted(found))
