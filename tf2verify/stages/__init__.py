"""The rungs of the ladder: one file a stage, one stage a test."""

from tf2verify.stages.checkpoints.checkpoint import Checkpoint
from tf2verify.stages.losses.loss import Loss
from tf2verify.stages.modes.execution_modes import ExecutionModes
from tf2verify.stages.passes.gradients import Gradients
from tf2verify.stages.passes.no_new_variables import NoNewVariables
from tf2verify.stages.passes.seeded_constant import SeededConstant
from tf2verify.stages.passes.seeded_num_random_ops import SeededNumRandomOps
from tf2verify.stages.passes.variable_inventory import VariableInventory
from tf2verify.stages.passes.zero_randomness import ZeroRandomness
from tf2verify.stages.repetition.determinism import Determinism
from tf2verify.stages.stage import Stage
from tf2verify.stages.training.training_steps import TrainingSteps

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
