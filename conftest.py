"""This repository's own tests run with two logical CPU devices, as the command line does."""

import tf2verify  # noqa: F401 - before TensorFlow: it chooses the Keras

# isort: split
from tf2verify.sides import logical_devices

logical_devices.ask_for_two_cpus()
