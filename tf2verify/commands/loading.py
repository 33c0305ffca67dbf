"""What commands that run cases import first."""

import importlib

from tf2verify.environment import collection, legacy_keras


def load() -> None:
  """Imports TensorFlow and what runs cases; gives the process the devices for two replicas.

  Raises:
    EnvironmentProblem: TF1-style code cannot run here.
  """
  legacy_keras.require()
  with collection.paused():
    importlib.import_module('tf2verify.case')
    from tf2verify.sides.process import logical_devices

  logical_devices.ask_for_two_cpus()
