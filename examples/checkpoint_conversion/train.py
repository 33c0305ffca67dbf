"""Trains the TF1 classifier: `python -m examples.checkpoint_conversion.train FOLDER`."""

import sys

import tf2verify  # noqa: F401 (makes TF1-style code run on a current TensorFlow)
from examples.checkpoint_conversion import model

if __name__ == '__main__':
  print(model.train(sys.argv[1]))
