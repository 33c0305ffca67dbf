"""Losses, recorded."""

from typing import Any, Dict, Iterator, Optional, Tuple

import numpy as np
import tensorflow as tf

from .arrays import Array
from .errors import RecorderError
from .fill_values import DISTINCT_VALUES
from .graph_entry import graph_entry
from .loss_alone import loss_alone, loss_of_first
from .messages import training_name
from .nests import leaves_by_path, map_leaves
from .perturbation import Perturber
from .private_tensorflow import v1
from .recorder import Recorder
from .run import Key, total_of
from .sequences import pairs
from .sessions import fetch
from .training import TrainingGraph


def record_losses(recorder: Recorder, training: TrainingGraph) -> Dict[str, Any]:
  """Records the losses within the model, and the loss alone on what the model gives."""
  built = training.built
  kinds = (tf.Tensor, tf.Variable, tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices)
  places = leaves_by_path(built.output_nest)
  symbolic = {path: leaf for path, leaf in places.items() if isinstance(leaf, kinds)}
  values: Dict[str, Any] = {}

  def evaluate(perturber: Optional[Perturber]) -> Iterator[Tuple[Key, Optional[Array]]]:
    names = [training.loss, training.total_loss]
    names += [name for _, name in built.regularization_losses]
    outputs = list(symbolic) if perturber is None else []
    draws = training.draws()
    known = draws is not None and all(name in training.drawn for name in draws)
    session = training.session(fresh=not (known and values))
    training.start(session, perturber)
    wanted = [] if known else draws or []
    feeds = dict(training.feeds(perturber), **(training.drawn if known else {}))
    found = fetch(session, [*names, *wanted, *(symbolic[path] for path in outputs)], feeds)
    training.drawn.update(pairs(wanted, found[len(names) :][: len(wanted)]))
    values.update(pairs(outputs, found[len(names) + len(wanted) :]))
    losses = [np.asarray(value) for value in found[2 : len(names)]]
    yield ('loss', ''), np.asarray(found[0])
    yield ('total loss', ''), np.asarray(found[1])
    yield ('regularization total', ''), total_of(losses[::-1])

  run = '{}, {}'.format(training_name(built.training), DISTINCT_VALUES)
  tensors, runs = recorder.measured(run + ', losses', evaluate, lambda _: True)
  outputs = map_leaves(lambda path, leaf: _stored(values.get(path, leaf)), built.output_nest)
  alone: Optional[Dict[str, Any]] = None
  alone_error = ''
  first: Optional[Dict[str, Any]] = None
  if recorder.options.loss is not None:
    try:
      alone = loss_alone(recorder, outputs, recorder.options.labels, with_values=True)
      first = loss_of_first(recorder, outputs, alone)
    except RecorderError as error:
      alone_error = str(error)
  return {
    'run': run,
    'training': built.training,
    'graph': graph_entry(recorder, built),
    'label_placeholders': [list(pair) for pair in training.label_placeholders],
    'loss': training.loss,
    'total_loss': training.total_loss,
    'own_loss': recorder.options.loss is not None,
    'own_total_loss': recorder.options.total_loss is not None,
    'output_nest': recorder.writer.nest(outputs),
    'observation': {
      'loss': tensors['loss', ''],
      'total_loss': tensors['total loss', ''],
      'regularization_total': tensors['regularization total', ''],
    },
    'alone': alone,
    'alone_one': first,
    'alone_error': alone_error,
    'noise_runs': runs,
  }


def _stored(leaf: Any) -> Any:
  """Returns a leaf of the outputs as it is stored: an array, a sparse value's parts, or None."""
  if isinstance(leaf, (v1.SparseTensorValue, np.ndarray)) or leaf is None:
    return leaf
  if isinstance(leaf, (np.generic, bool, int, float, complex, str, bytes)):
    return np.asarray(leaf)
  return None  # a ragged value, which no loss is given alone
