"""Two logical CPU devices, which have to be asked for before TensorFlow starts."""

import tensorflow as tf

from tf2verify.tensorflow_internals import eager

WANTED = 2


def ask_for_two_cpus() -> bool:
  """Splits the CPU into two logical devices, unless this process has begun to compute.

  For programs that own their process, at their very start: the devices stay for as long
  as it lives. Results and speed on one of the two are those of an undivided CPU. A
  division that is there already stays.

  Returns:
    Whether the process has two logical CPU devices, or will have.
  """
  physical = tf.config.list_physical_devices('CPU')
  if not physical:
    return False
  started = eager.has_started()
  configured = tf.config.get_logical_device_configuration(physical[0])
  if configured is None and not started:
    divided = [tf.config.LogicalDeviceConfiguration() for _ in range(WANTED)]
    tf.config.set_logical_device_configuration(physical[0], divided)
    return True
  return len(configured or ()) >= WANTED if not started else two_cpus()


def two_cpus() -> bool:
  """Returns whether the process has two logical CPU devices; starts TensorFlow."""
  return len(tf.config.list_logical_devices('CPU')) >= WANTED
