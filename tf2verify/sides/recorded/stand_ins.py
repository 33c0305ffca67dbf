"""Placeholders in the place of operations that are not to be run, or are not known here."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import tensorflow as tf

from tf2verify.tensorflow_internals import graphs

v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True, eq=False)
class StoodIn:
  """A GraphDef some of whose operations are replaced."""

  graph_def: Any  # every node has the name that it had
  # From the tensor that an operation yielded (`x:0`) to the placeholder to feed in its place.
  placeholders: Mapping[str, str]


def with_stand_ins(graph_def: Any, names: Collection[str]) -> StoodIn:
  """Replaces operations by placeholders for those of their outputs that others read.

  Control edges to and from them stay as far as they can: an operation that nothing reads
  becomes one that does nothing.

  Args:
    graph_def: is left as it is.
    names: of the operations; not of those within functions.
  """
  replaced = v1.GraphDef()
  replaced.CopyFrom(graph_def)
  replaced.ClearField('node')
  nodes = {node.name: node for node in graph_def.node}
  read = _outputs_read(graph_def, names)
  placeholders: dict[str, str] = {}
  for node in graph_def.node:
    if node.name not in names:
      replaced.node.add().CopyFrom(node)
      continue
    outputs = read.get(node.name, {})
    known = _dtypes(nodes[node.name], inputs=False)
    dtypes = [
      outputs.get(n) or (known[n] if n < len(known) else tf.float32.as_datatype_enum)
      for n in range(max(outputs, default=-1) + 1)
    ]
    _add_stand_in(replaced, node.name, dtypes, placeholders)
  return StoodIn(replaced, placeholders)


def _add_stand_in(
  graph_def: Any, name: str, dtypes: list[int], placeholders: dict[str, str]
) -> None:
  if not dtypes:
    graph_def.node.add(name=name, op='NoOp')
  elif len(dtypes) == 1:
    _add_placeholder(graph_def, name, dtypes[0])
    placeholders[f'{name}:0'] = f'{name}:0'
  else:
    parts = [f'{name}/output_{n}' for n in range(len(dtypes))]
    for n, (part, dtype) in enumerate(zip(parts, dtypes, strict=True)):
      _add_placeholder(graph_def, part, dtype)
      placeholders[f'{name}:{n}'] = f'{part}:0'
    node = graph_def.node.add(name=name, op='IdentityN', input=parts)
    node.attr['T'].list.type.extend(dtypes)


def _add_placeholder(graph_def: Any, name: str, dtype: int) -> None:
  node = graph_def.node.add(name=name, op='Placeholder')
  node.attr['dtype'].type = dtype
  node.attr['shape'].shape.unknown_rank = True


def _outputs_read(graph_def: Any, names: Collection[str]) -> dict[str, dict[int, int]]:
  """Returns the outputs of operations that are read, with the dtype that the reader wants.

  The dtype is 0 where the reader does not tell.
  """
  read: dict[str, dict[int, int]] = {}
  for node in graph_def.node:
    wanted: list[int] | None = None
    for place, text in enumerate(node.input):
      producer, _, number = text.partition(':')
      if text.startswith('^') or producer not in names:
        continue
      if wanted is None:
        wanted = _dtypes(node, inputs=True)
      dtype = wanted[place] if place < len(wanted) else 0
      outputs = read.setdefault(producer, {})
      outputs[int(number or 0)] = outputs.get(int(number or 0)) or dtype
  return read


def _dtypes(node: Any, inputs: bool) -> list[int]:
  """Returns the dtypes of a node's inputs or outputs as TensorFlow's enum; [] if not known."""
  definition = graphs.op_definition(node.op)
  if definition is None:
    return []
  arguments = definition.input_arg if inputs else definition.output_arg
  return [dtype for argument in arguments for dtype in _of_argument(argument, node.attr)]


def _of_argument(argument: Any, attributes: Any) -> Iterator[int]:
  if argument.type_list_attr:
    yield from attributes[argument.type_list_attr].list.type
    return
  count = attributes[argument.number_attr].i if argument.number_attr else 1
  dtype = argument.type or attributes[argument.type_attr].type
  yield from [dtype] * count
