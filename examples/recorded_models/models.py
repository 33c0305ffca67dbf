"""What is recorded of every model in `tf1`: inputs, labels, how it is trained."""

from typing import Any

import numpy as np

from examples.recorded_models.recording_run import Model

_FOLDER = 'examples/recorded_models'


def _normal(*shape: int) -> np.ndarray:
  # The stream of RandomState is frozen: a recording made anew has the same inputs.
  return np.random.RandomState(0).standard_normal(shape).astype(np.float32)


def _integers(*values: Any) -> np.ndarray:
  return np.array(values, np.int32)


def _model(name: str, inputs: Any, labels: Any = None, steps: int = 3, **functions: str) -> Model:
  options = {'steps': str(steps)}
  return Model(name, _FOLDER, f'tf1.{name}', 'build', inputs, labels, functions, options)


MODELS = (
  _model(
    'slim_conv_net',
    _normal(4, 8, 8, 3),
    _integers(0, 4, 2, 2),
    loss='loss',
    train_op='train_op',
  ),
  _model(
    'layers_conv_net',
    _normal(4, 7, 7, 3),
    _integers(0, 3, 2, 1),
    loss='loss',
    train_op='train_op',
  ),
  _model(
    'lstm',
    {'steps': _normal(3, 5, 4), 'lengths': _integers(5, 2, 4)},
    _integers(0, 2, 1),
    steps=2,
    loss='loss',
    train_op='train_op',
  ),
  _model('gru', (_normal(3, 5, 4), _integers(5, 2, 4))),
  _model('attention', _integers([1, 3, 0, 10, 2], [5, 2, 2, 7, 9])),
  _model(
    'bag_of_words',
    {
      'words': np.array([[1, 4, -1], [3, -1, -1], [0, 19, 7], [4, 4, 2]], np.int64),
      'prices': np.abs(_normal(4, 1)),
    },
    {
      'clicked': np.array([1, 0, 0, 1], np.float32),
      'weights': np.array([1, 0.5, 2, 0], np.float32),
    },
    steps=2,
    loss='loss',
    optimizer='optimizer',
  ),
)
# Too large to be committed.
FLAGSHIP = _model('inception_resnet_v2', _normal(1, 299, 299, 3))
