"""Two functions called hard_sigmoid, and gates that have it on one side only."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.operations.hard_sigmoids import (
  hard_sigmoid_slopes,
  plain_sigmoids,
)
from tf2verify.records.diagnosis import Cause


def hard_sigmoid_slope(evidence: FailedStage) -> Cause | None:
  """That of Keras 2 has a slope of 0.2, that of Keras 3 one of 1/6.

  Looks for hard sigmoids of one slope on each side, and not the same.
  """
  graphs = evidence.tf1_graph, evidence.tf2_graph
  if graphs[0] is None or graphs[1] is None or not evidence.sources:
    return None
  tf1, tf2 = (hard_sigmoid_slopes(graph) for graph in (graphs[0], graphs[1]))
  if len(tf1) != 1 or len(tf2) != 1 or tf1 == tf2:
    return None
  slopes = f'{tf1.pop():.4g} (tf1), {tf2.pop():.4g} (tf2)'
  return Cause(
    'the two sides have different hard_sigmoids: that of Keras 2 and TF1 is 0.2 x + 0.5, that of '
    'Keras 3 is relu6(x + 3) / 6: use tf_keras.activations.hard_sigmoid, or write out '
    'tf.clip_by_value(0.2 * x + 0.5, 0, 1)',
    f'slope of the hard sigmoid {slopes}',
  )


def recurrent_activation(evidence: FailedStage) -> Cause | None:
  """Keras layers of TF1 gate with `hard_sigmoid`, those of TF2 with `sigmoid`.

  Looks for hard sigmoids on one side only, where the other has sigmoids.
  """
  graphs = evidence.tf1_graph, evidence.tf2_graph
  if graphs[0] is None or graphs[1] is None or not evidence.sources:
    return None
  tf1, tf2 = (
    (bool(hard_sigmoid_slopes(graph)), plain_sigmoids(graph) > 0)
    for graph in (graphs[0], graphs[1])
  )
  names = {(True, False): 'hard_sigmoid', (False, True): 'sigmoid'}
  if tf1 not in names or tf2 not in names or tf1 == tf2:
    return None
  seen = '0.2 x + 0.5, clipped to 0 and 1, on one side; Sigmoid on the other'
  return Cause(
    f'tf1 gates with {names[tf1]} and the port with {names[tf2]} (keras.layers.LSTM and GRU of '
    'TF1 have hard_sigmoid by default, those of TF2 and all cells of tf.nn.rnn_cell sigmoid): '
    f"pass recurrent_activation='{names[tf1]}' to a recurrent layer, activation= to any other "
    'layer',
    seen,
  )
