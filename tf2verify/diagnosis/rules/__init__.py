"""Known porting mistakes, one per file; `RULES` is the only registry."""

from tf2verify.diagnosis.rules.activation import Activation
from tf2verify.diagnosis.rules.activation_order import ActivationOrder
from tf2verify.diagnosis.rules.arg_axis import ArgAxis
from tf2verify.diagnosis.rules.batch_norm_mode import BatchNormMode
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
from tf2verify.diagnosis.rules.leaky_relu_slope import LeakyReluSlope
from tf2verify.diagnosis.rules.loss_scale import LossScale
from tf2verify.diagnosis.rules.lstm_forget_bias import LstmForgetBias
from tf2verify.diagnosis.rules.lstm_gate_order import LstmGateOrder
from tf2verify.diagnosis.rules.moving_average_momentum import MovingAverageMomentum
from tf2verify.diagnosis.rules.normalization_epsilon import NormalizationEpsilon
from tf2verify.diagnosis.rules.padding_default import PaddingDefault
from tf2verify.diagnosis.rules.recurrent_activation import RecurrentActivation
from tf2verify.diagnosis.rules.reduction_axes import ReductionAxes
from tf2verify.diagnosis.rules.resize_sampling import ResizeSampling
from tf2verify.diagnosis.rules.reversed_padding import ReversedPadding
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.diagnosis.rules.sequence_end import SequenceEnd
from tf2verify.diagnosis.rules.stop_gradient import StopGradient
from tf2verify.diagnosis.rules.strides import Strides
from tf2verify.diagnosis.rules.update_count import UpdateCount
from tf2verify.diagnosis.rules.weight_decay_factor import WeightDecayFactor

# The most specific first: reports show them in this order.
RULES: tuple[Rule, ...] = (
  ActivationOrder(),
  BatchNormMode(),
  BiasedVariance(),
  FixedPadding(),
  MovingAverageMomentum(),
  NormalizationEpsilon(),
  ReductionAxes(),
  ResizeSampling(),
  Strides(),
  PaddingDefault(),
  UpdateCount(),
  Activation(),
  LstmGateOrder(),
  LstmForgetBias(),
  RecurrentActivation(),
  HardSigmoidSlope(),
  GeluFormula(),
  LeakyReluSlope(),
  FlattenOrder(),
  ArgAxis(),
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
