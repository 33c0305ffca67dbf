"""Variables that have a handle and no value, as SavedModels are loaded with.

The public `tf.Variable` computes its initial value where it is made. Run with TensorFlow 2.16 to
2.21.
"""

from typing import Any

from tensorflow.python.ops import resource_variable_ops

# A variable that is never initialized: its handle knows dtype and shape, and nothing is allocated.
UninitializedVariable: Any = resource_variable_ops.UninitializedVariable
