"""Writes a checkpoint with the keys of the public ones, at seeded random values."""

import sys

import numpy as np
import tensorflow as tf

# isort: split
import tf2verify
from examples.inception_resnet_v2 import model

v1 = tf.compat.v1


def write(prefix: str, num_classes: int = 1000) -> str:
  """Builds the TF1 graph, gives its variables values and saves them.

  Args:
    prefix: of the checkpoint.
    num_classes: the number of classes.

  Returns:
    The prefix that `Saver.save` returns.
  """
  random = np.random.default_rng(42)
  with tf.Graph().as_default(), v1.Session() as session:
    images = tf.constant(tf2verify.normal_inputs((1, 299, 299, 3)))
    model.served(images, num_classes)
    v1.train.get_or_create_global_step()
    session.run(v1.global_variables_initializer())
    for variable in v1.global_variables():
      if variable.op.name.endswith(('/moving_mean', '/beta')):
        variable.load(random.normal(0.0, 0.1, variable.shape).astype(np.float32), session)
    return str(v1.train.Saver().save(session, prefix, write_meta_graph=False))


if __name__ == '__main__':
  print(write(sys.argv[1]))
