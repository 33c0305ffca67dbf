"""Pairs of the suite whose TF1 side was recorded under TensorFlow 1.15.

The TF1 side is written anew in `recorded_tf1`, as code of TensorFlow 1.x;
`python -m tests.port_bugs.record --python PYTHON` records it anew.
"""

import dataclasses
import pathlib
from collections.abc import Mapping

import tensorflow as tf

import tf2verify
from examples.recorded_models.recording_run import Model
from tests.port_bugs import (
  arithmetic,
  batch_norm,
  checkpoints,
  convolution,
  gradients,
  initializers,
  inventory,
  lookups,
  losses,
  normalization,
  optimizers,
  randomness,
  recurrent,
  regularization,
  resizing,
  schedules,
  suite,
  trained_models,
)
from tests.port_bugs.port_bug import PortBug
from tf2verify.hooks import OF_REFERENCE

v1 = tf.compat.v1
FOLDER = pathlib.Path(__file__).parents[1] / 'recorded' / 'port_bugs'
EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples' / 'recorded_models' / 'recordings'


@dataclasses.dataclass(frozen=True)
class RecordedPair:
  """A pair of the suite with a recorded reference.

  Attributes:
    wrong: the suite's wrong port, which tells the pair.
    builder: of the TF1 side in `recorded_tf1`: 'module:function'.
    functions: further functions of that module, by the recorder's option.
    initializers: gives the port the initializers of TensorFlow 1.x, and its names; for
      those whose layers are of Keras, which by default draws initial values otherwise.
  """

  wrong: type[tf2verify.EquivalenceCase]
  builder: str
  functions: Mapping[str, str] = dataclasses.field(default_factory=dict)
  initializers: type | None = None

  @property
  def bug(self) -> PortBug:
    return next(bug for bug in suite.PORT_BUGS if bug.wrong is self.wrong)

  @property
  def name(self) -> str:
    return f'{self.bug.identifier.lower()}_{self.builder.partition(":")[2]}'


class Tf1Initializers:
  """Gives layers of Keras the initializers that TensorFlow 1.x gives them by default."""

  def make_tf2_layer(self):
    layer = super().make_tf2_layer()
    for part in layer.submodules:
      if 'kernel_initializer' in vars(part):
        part.kernel_initializer = v1.glorot_uniform_initializer()
      if 'recurrent_initializer' in vars(part):
        part.recurrent_initializer = v1.orthogonal_initializer()
    return layer


class Tf1CellsOfKeras(Tf1Initializers):
  """Pairs the names that TensorFlow 1.15 gives the variables of a layer: without the cell's."""

  def variable_names(self, name):
    layer, _, kind = name.partition('/')
    return f'{layer}/{layer}_cell/{kind}'


class LstmPort(recurrent.LstmPort):
  """Draws its kernel as TensorFlow 1.x does; named as its base."""

  def add_weight(self, name, shape, initializer=None):
    initializer = initializer or v1.glorot_uniform_initializer()
    return super().add_weight(name, shape, initializer=initializer)


class Tf1InitializersOfLstm:
  """The same for the port of `BasicLSTMCell`."""

  def make_tf2_layer(self):
    return LstmPort(self.gates, self.forget_bias)


def model(pair: RecordedPair) -> Model:
  """Returns what is to be recorded for a pair."""
  case, (module, _, builder) = pair.bug.right(), pair.builder.partition(':')
  options = {'compress': 'true'}
  if 'optimizer' in pair.functions:
    options['steps'] = str(case.training_steps_to_take)
  inputs, labels = case.make_inputs(), case.make_labels()
  module = f'recorded_tf1.{module}'
  return Model(
    pair.name, 'tests/port_bugs', module, builder, inputs, labels, pair.functions, options
  )


def from_recording(
  case: type[tf2verify.EquivalenceCase], pair: RecordedPair
) -> type[tf2verify.EquivalenceCase]:
  """Returns a case with the same port, whose reference is the recording of its pair."""
  members = {'tf1_recording': str(FOLDER / pair.name), '__module__': __name__}
  # The hooks of the reference are as if nobody had overridden them.
  members |= {hook: getattr(tf2verify.EquivalenceCase, hook) for hook in OF_REFERENCE}
  bases = (case,) if pair.initializers is None else (pair.initializers, case)
  if case.make_tf2_optimizer is trained_models.Trained.make_tf2_optimizer:
    members['make_tf2_optimizer'] = case.make_tf1_optimizer
  return type(f'{case.__name__}FromRecording', bases, members)


def _pair(wrong, builder, loss=None, optimizer=None, initializers=None):
  functions = {'loss': loss, 'optimizer': optimizer}
  given = {option: name for option, name in functions.items() if name}
  return RecordedPair(wrong, builder, given, initializers)


def _trained(wrong, optimizer):
  return _pair(wrong, 'training:affine', 'squared_error', optimizer)


def _classified(wrong, loss):
  return _pair(wrong, 'training:affine', loss)


RECORDED_PAIRS = (
  _pair(inventory.TrainedEmbedding, 'layers:frozen_embedding'),
  _pair(batch_norm.DefaultEpsilon, 'layers:resnet_block', initializers=Tf1Initializers),
  _pair(batch_norm.DefaultMomentum, 'layers:slim_norm'),
  _pair(batch_norm.BiasedVariance, 'layers:slim_norm'),
  _pair(normalization.LastAxisOnly, 'layers:layer_norm'),
  _pair(convolution.NoActivation, 'layers:slim_convolution'),
  _pair(convolution.StrideOfThePool, 'layers:pooled'),
  _pair(convolution.SameAtStrideTwo, 'layers:fixed_padding', initializers=Tf1Initializers),
  _pair(resizing.UpSampled, 'layers:resized_bilinear'),
  _pair(arithmetic.LeakyReluByDefault, 'layers:leaky_relu', initializers=Tf1Initializers),
  _pair(arithmetic.GeluByErf, 'layers:bert_intermediate', initializers=Tf1Initializers),
  _pair(recurrent.LstmWithGatesOfKeras, 'recurrent:lstm', initializers=Tf1InitializersOfLstm),
  _pair(recurrent.LstmWithoutForgetBias, 'recurrent:lstm', initializers=Tf1InitializersOfLstm),
  _pair(recurrent.GruWithResetAfter, 'recurrent:keras_gru', initializers=Tf1CellsOfKeras),
  _pair(lookups.ShardedInBlocks, 'layers:sharded'),
  _pair(lookups.BagsWithoutEmptyOnes, 'layers:bags'),
  _pair(regularization.DecayedTwice, 'layers:decayed', initializers=Tf1Initializers),
  _pair(initializers.NormalByDefault, 'layers:started_normal'),
  _pair(initializers.VarianceScalingOfKeras, 'layers:started_by_variance'),
  _pair(randomness.KeepProbAsRate, 'layers:keep_prob', initializers=Tf1Initializers),
  _pair(randomness.PerceptronDrawingInAnotherOrder, 'layers:perceptron'),
  _pair(gradients.DistilledByLabels, 'gradients:distilled'),
  _pair(gradients.GuidedByOverriding, 'gradients:guided', initializers=Tf1Initializers),
  _pair(gradients.QLearningOfBothNetworks, 'gradients:q_learning'),
  _classified(losses.ClassifiedByLogitsAsProbabilities, 'cross_entropy'),
  _classified(losses.WeightedByKeras, 'weighted_cross_entropy'),
  _classified(losses.PerExampleAveraged, 'cross_entropy_per_example'),
  _pair(losses.BinaryByKeras, 'training:probabilities', 'log_loss'),
  _pair(losses.TranscribedWithFirstBlank, 'training:transcribed', 'ctc'),
  _pair(losses.DecayedInVain, 'training:regularized', 'mean_squared_error'),
  _pair(losses.SequencesByKeras, 'training:sequences', 'sequence_loss'),
  _trained(optimizers.RmsPropOfKeras, 'rmsprop'),
  _trained(optimizers.AdamWithEpsilonOfKeras, 'adam'),
  _trained(optimizers.AdamWWithDecayOfTf1, 'adam_with_weight_decay'),
  _trained(schedules.ScheduledMomentumOfKeras, 'scheduled_momentum'),
  _trained(schedules.Slope, 'staircase'),
  _pair(checkpoints.RestoredByMisspeltName, 'training:scaled'),
)
