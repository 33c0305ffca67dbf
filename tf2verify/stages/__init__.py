"""The rungs of the ladder: one file a stage, one stage a test."""

from tf2verify.stages.checkpoint import Checkpoint
from tf2verify.stages.determinism import Determinism
from tf2verify.stages.execution_modes import ExecutionModes
from tf2verify.stages.gradients import Gradients
from tf2verify.stages.loss import Loss
from tf2verify.stages.no_new_variables import NoNewVariables
from tf2verify.stages.seeded_constant import SeededConstant
from tf2verify.stages.seeded_num_random_ops import SeededNumRandomOps
from tf2verify.stages.stage import Stage
from tf2verify.stages.training_steps import TrainingSteps
from tf2verify.stages.variable_inventory import VariableInventory
from tf2verify.stages.zero_randomness import ZeroRandomness

STAGES: tuple[type[Stage], ...] = (
  NoNewVariables,
  VariableInventory,
  ZeroRandomness,
  SeededConstant,
  SeededNumRandomOps,
  Gradients,
  Loss,
  TrainingSteps,
  Checkpoint,
  ExecutionModes,
  Determinism,
)

__all__ = ['STAGES', 'Stage']
