"""Which floating formats a graph computes in."""

import tensorflow as tf

from tf2verify.reference.perturbation import fraction_bits


def narrow_bits(graph: tf.Graph) -> int:
  """Returns the fraction bits of the narrowest format below float32 in a graph; 0 for none."""
  kinds = {output.dtype.base_dtype for op in graph.get_operations() for output in op.outputs}
  found = (fraction_bits(kind.name) for kind in kinds if kind in (tf.bfloat16, tf.float16))
  return min((bits for bits in found if bits is not None), default=0)
