"""Kernels that are not those of a cell: what they multiply is not put together of inputs and state,
or nothing divides what they yield into gates."""

from tf2verify.records.op_graph import TARGET, OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.operations.variable_uses import MAIN_OPS, VariableUses

# What leaves the columns of a kernel, and of a product, together: activations, sums, other shapes.
KEEPING = ('Reshape', 'Transpose', 'Identity', 'Cast', 'ExpandDims', 'Squeeze', 'ReadVariableOp')
ACTIVATIONS = ('Tanh', 'Sigmoid', 'Relu', 'Relu6', 'Elu', 'Selu', 'LeakyRelu', 'Softplus')
# What takes a part of a tensor.
SPLITS, SLICES = ('Split', 'SplitV', 'Unpack'), ('Slice', 'StridedSlice')
_LOOP, _JOINING = 'While', 'ConcatV2'
_MOST_STEPS = 40


def undivided(uses: VariableUses) -> frozenset[str]:
  """Returns the variables whose product meets the next one, or is a result, as a whole.

  An attention reads a query as a whole, and a cell divides what it multiplies into its gates.

  Args:
    uses: of the variables of a side.
  """
  graph = uses.graph
  consumers = graph.consumers()
  kernels = {
    name: reader
    for name, reader in uses.readers.items()
    if family(graph.ops[reader].op_type) in MAIN_OPS - {_LOOP}
    and all(family(step) in KEEPING for step in uses.paths.get(name, ()))
  }

  def is_whole(reader: int) -> bool:
    """Returns whether nothing divides what an operation yields before the next product."""
    left, seen = [reader], {reader}
    while left:
      for follower, _ in consumers[left.pop()]:
        kind = family(graph.ops[follower].op_type)
        if kind == _LOOP or len(seen) > _MOST_STEPS:
          return False
        if kind in MAIN_OPS or kind == TARGET or follower in seen:
          continue
        if kind in SPLITS or (kind in SLICES and _takes_part(graph, graph.ops[follower])):
          return False
        seen.add(follower)
        left.append(follower)
    return True

  return frozenset(name for name, reader in kernels.items() if is_whole(reader))


def undivided_inputs(uses: VariableUses) -> frozenset[str]:
  """Returns the variables whose product takes what others compute, with nothing put together.

  The layer behind a cell, in each round, may have the shape of a cell of its own.

  Args:
    uses: of the variables of a side.
  """
  ops = uses.graph.ops

  def is_whole(reader: int) -> bool:
    left, seen = uses.data_of(ops[reader]), {reader}
    products = 0
    while left:
      position = left.pop()
      kind = family(ops[position].op_type)
      if kind in (_JOINING, _LOOP) or len(seen) > _MOST_STEPS:
        return False
      if kind in MAIN_OPS:
        products += 1
      elif position not in seen:
        seen.add(position)
        left += uses.data_of(ops[position])
    return products > 0

  return frozenset(
    name
    for name, reader in uses.readers.items()
    if family(ops[reader].op_type) in MAIN_OPS - {_LOOP} and is_whole(reader)
  )


def _takes_part(graph: OpGraph, op: OpRecord) -> bool:
  """Returns whether a slice leaves elements out; one that adds an axis, `[:, None]`, does not."""
  producer, number = op.inputs[0]
  shapes = graph.ops[producer].outputs[number][1], op.outputs[0][1]
  one, other = ([size or 0 for size in shape or (0,) if size != 1] for shape in shapes)
  return one != other
