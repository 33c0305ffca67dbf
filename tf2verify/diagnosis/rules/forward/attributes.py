"""Mistakes that are one attribute, or one constant, of an operation: a row each."""

import dataclasses
import fnmatch
from collections.abc import Callable

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, SourceEvidence, Standing
from tf2verify.diagnosis.patterns.operations.windows import WINDOWED
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import Cause, GraphAspect, GraphDifference

_WINDOWED = tuple(f'{known}*' for known in WINDOWED)
_REDUCTIONS = ('Mean', 'Sum', 'Max', 'Min', 'Prod', 'All', 'Any', 'EuclideanNorm')
_ALONE = (GraphAspect.EXTRA, GraphAspect.MISSING, GraphAspect.REPLACED)
_ANY_BUT_REFUTED = (Standing.SOLE, Standing.JOINT, Standing.UNTRIED)


@dataclasses.dataclass(frozen=True)
class AttributeRule:
  """A value that the same operation has differently on the two sides."""

  what: str  # the attribute's or input's name; '' for a constant input of any name
  types: tuple[str, ...]  # of the operations, or glob patterns of them; ('*',) for all
  text: Callable[[GraphDifference], str]  # the sentence, of a difference
  aspect: GraphAspect | None = None  # where the value stands; None for either
  shown: str = ''  # what the evidence calls the value; '' for the attribute's own name
  standings: tuple[Standing, ...] = _ANY_BUT_REFUTED  # what a trial of it may have shown
  changes: Changed | None = None  # what to change of TF1 to predict the port; None where it cannot
  # Types of operations which, on one side alone, are why the value differs.
  unless_beside: tuple[str, ...] = ()
  # The sentence of a port that is a layer of Keras 3; None for the same.
  text_of_keras3: Callable[[GraphDifference], str] | None = None

  def __call__(self, evidence: FailedStage) -> Cause | None:
    """Looks for the operation whose value differs."""
    for source, difference in evidence.graph_differences():
      is_meant = self._is_meant(difference) and not self._has_beside(source)
      if is_meant and source.standing(difference) in self.standings:
        shown = self.shown or self.what
        seen = f'{shown} {difference.tf1} (tf1), {difference.tf2} (tf2)'
        change = self._change(difference)
        text = self.text_of_keras3 if evidence.of_keras3 and self.text_of_keras3 else self.text
        return Cause(text(difference), f'{difference.op}: {seen}', change=change)
    return None

  def _has_beside(self, found: SourceEvidence) -> bool:
    """Returns whether a side alone has an operation there that the value goes with."""
    alone = [d for d in found.source.differences if d.aspect in _ALONE]
    types = {kind for d in alone for side in (d.tf1_value, d.tf2_value) for kind in side or ()}
    return bool(types & set(self.unless_beside))

  def _change(self, found: GraphDifference) -> Change | None:
    numbers = isinstance(found.tf1_value, float) and isinstance(found.tf2_value, float)
    if self.changes is None or not numbers:
      return None
    return Change(self.changes, found.tf1_value, found.tf2_value, (found.op,))

  def _is_meant(self, difference: GraphDifference) -> bool:
    return (
      any(fnmatch.fnmatchcase(difference.op_type, known) for known in self.types)
      and self.aspect in (None, difference.aspect)
      and (difference.what == self.what if self.what else bool(difference.what))
    )


def batch_norm_mode_text(tf1_by_batch: bool, in_inference: bool = False) -> str:
  """Returns the sentence on a batch norm in two modes.

  Args:
    tf1_by_batch: whether it is tf1 that normalizes by the batch, and not the port.
    in_inference: whether the run is known to be one in inference.
  """
  if tf1_by_batch:
    return (
      'batch norm uses its moving averages in the port and the batch statistics in tf1: '
      'either the layer is called without training=True, or it has trainable=False, which '
      'in Keras (not in tf.layers) also switches it to inference'
    )
  remedy = (
    'pass training=training to the layer (the argument of call), not training=True'
    if in_inference
    else (
      'pass training=False to the layer, or check whether the reference never passes its training '
      'mode on (tf.layers: training=False by default)'
    )
  )
  return (
    f'batch norm uses the batch statistics in the port and its moving averages in tf1: {remedy}'
  )


# One side normalizes by the batch's own statistics, the other by the moving averages.
BATCH_NORM_MODE = AttributeRule(
  'is_training', ('FusedBatchNorm*',), lambda found: batch_norm_mode_text(bool(found.tf1_value))
)
# What is added to the variance before its root is taken.
NORMALIZATION_EPSILON = AttributeRule(
  'epsilon',
  ('*',),
  lambda found: (
    f'the normalization adds epsilon {found.tf2} to the variance where tf1 adds '
    f"{found.tf1}: pass epsilon={found.tf1} to the port's layer; defaults differ "
    'between slim, tf.layers and Keras'
  ),
  GraphAspect.ATTRIBUTE,
  changes=Changed.EPSILON,
)
REDUCTION_AXES = AttributeRule(
  '',
  _REDUCTIONS,
  lambda found: (
    f'{found.op_type} reduces over the axes {found.tf1} in tf1 and over {found.tf2} in the port: '
    f'pass axis={found.tf1} (slim.layer_norm normalizes over all axes but the batch, '
    'Keras LayerNormalization over the last)'
  ),
  GraphAspect.CONSTANT,
  'axes',
  unless_beside=_REDUCTIONS,
)
STRIDES = AttributeRule(
  'strides',
  _WINDOWED,
  lambda found: (
    f'the strides are {found.tf1} in tf1 and {found.tf2} in the port: pass strides; slim pools '
    'with stride 2 by default, Keras with the size of the pool'
  ),
  GraphAspect.ATTRIBUTE,
  standings=(Standing.SOLE, Standing.JOINT),
)
PADDING_DEFAULT = AttributeRule(
  'padding',
  _WINDOWED,
  lambda found: (
    f'the padding is {found.tf1} in tf1 and {found.tf2} in the port: pass '
    f'padding={found.tf1.lower()!r}; slim convolves with SAME and pools with VALID by '
    'default, tf.layers and Keras use valid'
  ),
  GraphAspect.ATTRIBUTE,
  standings=(Standing.SOLE,),
)
LEAKY_RELU_SLOPE = AttributeRule(
  'alpha',
  ('LeakyRelu',),
  lambda found: (
    f'the slope of the leaky relu is {found.tf1} in tf1 and {found.tf2} in the port '
    '(tf.nn.leaky_relu has 0.2 by default, keras.layers.LeakyReLU 0.3): pass '
    f'alpha={found.tf1}'
  ),
  text_of_keras3=lambda found: (
    f'the slope of the leaky relu is {found.tf1} in tf1 and {found.tf2} in the port '
    '(tf.nn.leaky_relu has 0.2 by default, keras.layers.LeakyReLU 0.3): pass '
    f'negative_slope={found.tf1} (tf.nn.leaky_relu: alpha)'
  ),
  changes=Changed.SLOPE,
)
ARG_AXIS = AttributeRule(
  'dimension',
  ('ArgMax', 'ArgMin'),
  lambda found: (
    f'{found.op_type.lower()} runs along axis {found.tf1} in tf1 and along axis {found.tf2} in the '
    f'port (tf.{found.op_type.lower()} has axis 0 by default, keras.backend.'
    f'{found.op_type.lower()} -1): pass axis={found.tf1}'
  ),
  shown='axis',
)
