"""The functions that differentiate, so that it can be seen what an optimizer was given.

`tf.gradients` and `tf.compat.v1.train.Optimizer` both come to one private helper. Run with
TensorFlow 2.16 to 2.21.
"""

from typing import Any

import tensorflow as tf
from tensorflow.python.ops import gradients_util

# Owner and name of the function for graphs; it takes what `tf.gradients` does.
OF_GRAPHS: tuple[Any, str] = (gradients_util, '_GradientsHelper')
OF_TAPES: tuple[Any, str] = (tf.GradientTape, 'gradient')
