"""Known porting mistakes, a file or a row of `attributes` each; `RULES` is the only registry."""

from tf2verify.diagnosis.rules import attributes
from tf2verify.diagnosis.rules.activation import Activation
from tf2verify.diagnosis.rules.activation_order import ActivationOrder
from tf2verify.diagnosis.rules.biased_variance import BiasedVariance
from tf2verify.diagnosis.rules.concat_order import ConcatOrder
from tf2verify.diagnosis.rules.depthwise_regularizer import DepthwiseRegularizer
from tf2verify.diagnosis.rules.division_by_zero import DivisionByZero
from tf2verify.diagnosis.rules.dropout_presence import DropoutPresence
from tf2verify.diagnosis.rules.dropout_rate import DropoutRate
from tf2verify.diagnosis.rules.embedding_partition import EmbeddingPartition
from tf2verify.diagnosis.rules.fixed_padding import FixedPadding
from tf2verify.diagnosis.rules.flatten_order import FlattenOrder
from tf2verify.diagnosis.rules.gelu_formula import GeluFormula
from tf2verify.diagnosis.rules.gradient_override import GradientOverride
from tf2verify.diagnosis.rules.hard_sigmoid_slope import HardSigmoidSlope
from tf2verify.diagnosis.rules.initializer_scale import InitializerScale
from tf2verify.diagnosis.rules.integer_division import IntegerDivision
from tf2verify.diagnosis.rules.label_gradient import LabelGradient
from tf2verify.diagnosis.rules.loss_scale import LossScale
from tf2verify.diagnosis.rules.lstm_forget_bias import LstmForgetBias
from tf2verify.diagnosis.rules.lstm_gate_order import LstmGateOrder
from tf2verify.diagnosis.rules.moving_average_momentum import MovingAverageMomentum
from tf2verify.diagnosis.rules.recurrent_activation import RecurrentActivation
from tf2verify.diagnosis.rules.resize_sampling import ResizeSampling
from tf2verify.diagnosis.rules.reversed_padding import ReversedPadding
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.diagnosis.rules.sequence_end import SequenceEnd
from tf2verify.diagnosis.rules.stop_gradient import StopGradient
from tf2verify.diagnosis.rules.update_count import UpdateCount
from tf2verify.diagnosis.rules.weight_decay_factor import WeightDecayFactor

# The most specific first: reports show them in this order.
RULES: tuple[Rule, ...] = (
  ActivationOrder(),
  attributes.BATCH_NORM_MODE,
  BiasedVariance(),
  FixedPadding(),
  MovingAverageMomentum(),
  attributes.NORMALIZATION_EPSILON,
  attributes.REDUCTION_AXES,
  ResizeSampling(),
  attributes.STRIDES,
  attributes.PADDING_DEFAULT,
  UpdateCount(),
  Activation(),
  LstmGateOrder(),
  LstmForgetBias(),
  RecurrentActivation(),
  HardSigmoidSlope(),
  GeluFormula(),
  attributes.LEAKY_RELU_SLOPE,
  FlattenOrder(),
  attributes.ARG_AXIS,
  IntegerDivision(),
  SequenceEnd(),
  ReversedPadding(),
  EmbeddingPartition(),
  WeightDecayFactor(),
  DepthwiseRegularizer(),
  LabelGradient(),
  GradientOverride(),
  LossScale(),
  DropoutRate(),
  DropoutPresence(),
  InitializerScale(),
  ConcatOrder(),
  DivisionByZero(),
  StopGradient(),
)

__all__ = ['RULES', 'Rule']
