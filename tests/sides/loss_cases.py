"""Declarations of losses, without a model."""

import types
from typing import Any

import numpy as np

import tf2verify
from tf2verify.records.loss_values import LossExample

OUTPUTS = tf2verify.normal_inputs((4, 3))
LABELS = np.array([0, 2, 1, 2], np.int32)


def declared(**hooks: Any) -> Any:
  """Returns what has the given functions as its hooks."""
  return types.SimpleNamespace(**hooks)


def example(outputs: Any = OUTPUTS, labels: Any = LABELS) -> LossExample:
  """Returns an example of one output and one label."""
  return LossExample('example', {'': outputs}, {} if labels is None else {'': labels})
