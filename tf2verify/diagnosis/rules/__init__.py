"""Known porting mistakes, one per file; `RULES` is the only registry."""

from tf2verify.diagnosis.rules.activation import Activation
from tf2verify.diagnosis.rules.activation_order import ActivationOrder
from tf2verify.diagnosis.rules.batch_norm_mode import BatchNormMode
from tf2verify.diagnosis.rules.biased_variance import BiasedVariance
from tf2verify.diagnosis.rules.fixed_padding import FixedPadding
from tf2verify.diagnosis.rules.moving_average_momentum import MovingAverageMomentum
from tf2verify.diagnosis.rules.normalization_epsilon import NormalizationEpsilon
from tf2verify.diagnosis.rules.padding_default import PaddingDefault
from tf2verify.diagnosis.rules.reduction_axes import ReductionAxes
from tf2verify.diagnosis.rules.resize_sampling import ResizeSampling
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.diagnosis.rules.strides import Strides
from tf2verify.diagnosis.rules.update_count import UpdateCount

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
)

__all__ = ['RULES', 'Rule']
