"""Which operations XLA cannot compile for the CPU."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tf2verify.reference.perturbation import fraction_bits
from tf2verify.tensorflow_internals import graphs

_DEVICE = 'XLA_CPU_JIT'
_compiled: set[str] = set()  # types that are known to have a kernel
# They call their body again and again.
_LOOPS = ('While', 'StatelessWhile')
# They are arguments or results of a function, and stand for no kernel.
_NOT_COMPILED = ('Placeholder', '_Arg', '_Retval')

# The oldest TensorFlow whose XLA all examples and tests have been through. That of 2.16.2
# ends the process with a segmentation fault on the transformer block of the examples.
_TRIED = (2, 21)


def untried() -> str:
  """Returns why XLA is left to those who ask for it; '' where it is not."""
  if tuple(int(part) for part in tf.__version__.split('.')[:2]) >= _TRIED:
    return ''
  return (
    f'XLA of TensorFlow before {_TRIED[0]}.{_TRIED[1]} can end the process with a segmentation '
    f"fault (2.16.2 does), and this is {tf.__version__}; name 'jit_compile' in modes_to_run to "
    'have it run'
  )


class GraphOps:
  """The operations of a function graph, and of the functions that it calls.

  Keras puts functions for a GPU into the library, which nothing calls: they are left out.

  Attributes:
    types: of all operations.
    types_in_loops: of those in the body of a loop.
    count: how many operations there are.
    narrow_bits: the fraction bits of the narrowest format below float32; 0 for none.
  """

  def __init__(self, graph: Any) -> None:
    graph_def = graph.as_graph_def()
    functions = {function.signature.name: function for function in graph_def.library.function}
    self.types: set[str] = set()
    self.types_in_loops: set[str] = set()
    self.count = 0
    self.narrow_bits = 0
    called: set[tuple[str, bool]] = set()
    waiting = [(node, False) for node in graph_def.node]
    while waiting:
      node, in_loop = waiting.pop()
      self.count += 1
      for bits in map(_fraction_bits, node.attr.values()):
        self.narrow_bits = min(bits, self.narrow_bits or bits) if bits else self.narrow_bits
      if node.op in functions:
        names = {node.op}
      else:
        self.types.add(node.op)
        if in_loop:
          self.types_in_loops.add(node.op)
        names = {attribute.func.name for attribute in node.attr.values()}
        names |= {item.name for attribute in node.attr.values() for item in attribute.list.func}
      inside = in_loop or node.op in _LOOPS
      for name in names & functions.keys():
        if (name, inside) not in called:
          called.add((name, inside))
          waiting += [(inner, inside) for inner in functions[name].node_def]


def _fraction_bits(attribute: Any) -> int:
  """Returns those of a format below float32 that an operation has; 0 for any other."""
  narrow = attribute.type in (tf.bfloat16.as_datatype_enum, tf.float16.as_datatype_enum)
  return (fraction_bits(tf.as_dtype(attribute.type).name) or 0) if narrow else 0


def without_kernel(op_types: Iterable[str]) -> tuple[str, ...]:
  """Returns the types that XLA has no kernel for.

  To ask XLA itself, by compiling, makes it log a stack for every such operation.
  """
  wanted = sorted(set(op_types) - set(_NOT_COMPILED))
  missing = tuple(op_type for op_type in wanted if not _is_compiled(op_type))
  if missing and not _is_compiled('MatMul'):
    # XLA registers its kernels when it compiles for the first time.
    tf.function(lambda: tf.zeros([]), jit_compile=True)()
    missing = tuple(op_type for op_type in wanted if not _is_compiled(op_type))
  return missing


def _is_compiled(op_type: str) -> bool:
  # A kernel that is registered stays; to ask TensorFlow for it takes half a millisecond.
  if op_type not in _compiled and _DEVICE in graphs.kernel_devices(op_type):
    _compiled.add(op_type)
  return op_type in _compiled
