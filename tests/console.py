"""Case files to run, and programs that run them."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

REPOSITORY = pathlib.Path(__file__).parents[1]

CASES = """
import abc
import os

import numpy as np
import tf2verify
from tf2verify import EquivalenceCase
import tensorflow as tf


def scale(inputs):
  with tf.compat.v1.variable_scope('scale'):
    return inputs * tf.compat.v1.get_variable('factor', (3,))


class Port(tf.keras.layers.Layer):
  def __init__(self, factor):
    super().__init__()
    self.factor = factor

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return self.factor * scale(inputs)


class BaseCase(EquivalenceCase, abc.ABC):
  factor = 1.0

  def build_tf1_graph(self, inputs, training):
    return scale(inputs)

  def make_tf2_layer(self):
    return Port(self.factor)

  def make_inputs(self):
    return np.arange(1, 7, dtype=np.float32).reshape(2, 3)


class RightCase(BaseCase):
  pass


class WrongCase(BaseCase):
  factor = 2.0


if __name__ == '__main__':
  tf2verify.main()
"""
ONE_CASE = """
import tf2verify
from model import scale, Port


class {name}(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    import lazily
    return scale(inputs) + lazily.OFFSET

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3))
"""
MODEL = """
import tensorflow as tf

OFFSET = {offset}


def scale(inputs):
  with tf.compat.v1.variable_scope('scale'):
    return inputs * tf.compat.v1.get_variable('factor', (3,))


class Port(tf.keras.layers.Layer):
  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return scale(inputs) + OFFSET
"""


def own_folder(test: unittest.TestCase) -> pathlib.Path:
  """Returns a folder that is removed after a test."""
  folder = tempfile.TemporaryDirectory()
  test.addCleanup(folder.cleanup)
  return pathlib.Path(folder.name).resolve()


def write_files(folder: pathlib.Path, **texts: str) -> None:
  """Writes Python files, by name without `.py`."""
  folder.mkdir(parents=True, exist_ok=True)
  for name, text in texts.items():
    (folder / f'{name}.py').write_text(text)


# So wide that no line is wrapped: tests look for whole sentences.
_WIDE = '1000'


def wide(test: unittest.TestCase) -> None:
  """Has what a test prints in this process be as wide as it is."""
  patch = mock.patch.dict(os.environ, COLUMNS=_WIDE)
  patch.start()
  test.addCleanup(patch.stop)


def run(
  *arguments: str, folder: pathlib.Path, **environment: str
) -> subprocess.CompletedProcess[str]:
  """Runs `python ARGUMENTS` in a folder, tf2verify importable."""
  inherited = {
    **os.environ,
    'PYTHONPATH': str(REPOSITORY),
    'TF_CPP_MIN_LOG_LEVEL': '3',
    'COLUMNS': _WIDE,
  }
  return subprocess.run(
    [sys.executable, *arguments],
    cwd=folder,
    env={**inherited, **environment},
    capture_output=True,
    text=True,
    check=False,
  )
