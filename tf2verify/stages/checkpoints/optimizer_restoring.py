"""Whether the state of a TF1 optimizer arrives in the port's."""

import numpy as np

from tf2verify.numerics.relayout import without_ones
from tf2verify.numerics.restored_values import proportional
from tf2verify.records.checkpoint import KeyAccount, KeyKind
from tf2verify.records.difference import Aspect, Difference
from tf2verify.relation import checkpoint_keys
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.sides.tf2.files.checkpoint import OptimizerState
from tf2verify.stages.comparison.comparing import Comparison

_BETA_1 = 0.9


def compare(
  file: CheckpointFile, account: KeyAccount, optimizer: OptimizerState, into: Comparison
) -> None:
  """Compares step count and slots of a checkpoint with what an optimizer holds.

  A slot counts as restored where some variable of the optimizer is equal to it, or
  proportional: Keras' momentum is TF1's times -learning_rate.
  """
  done, said = steps(file, account, optimizer.beta_1)
  if done is not None and optimizer.iterations is not None:
    if optimizer.iterations == done:
      into.agreed(np.asarray(done))
    else:
      into.lost(
        Difference(
          'optimizer state',
          'step count',
          Aspect.PRESENCE,
          said,
          f'iterations {optimizer.iterations}',
          hint=f'step count t: TF1 {done}, TF2 {optimizer.iterations}: bias correction and '
          'schedule start again; assign optimizer.iterations',
        )
      )
  for slot in account.unread(KeyKind.SLOT):
    value = file.value(slot.key.name)
    if any(proportional(_as(value, kept), value) for kept in optimizer.values):
      into.agreed(value)
      continue
    into.lost(
      Difference(
        'optimizer state',
        slot.key.name,
        Aspect.PRESENCE,
        f'a slot of {slot.variable}, {slot.key}',
        'not restored: no variable of the optimizer has it',
        hint='load_tf1_checkpoint takes an optimizer and drops its slots: assign each to the '
        'variable of the same meaning (Adam: m/..., v/...)',
      )
    )


def _as(value: np.ndarray, kept: np.ndarray) -> np.ndarray:
  """Returns what an optimizer keeps in the shape of a slot, where axes of length 1 differ."""
  alike = without_ones(kept.shape) == without_ones(value.shape)
  return kept.reshape(value.shape) if alike else kept


def steps(
  file: CheckpointFile, account: KeyAccount, beta_1: float | None = None
) -> tuple[int | None, str]:
  """Returns the number of steps behind a checkpoint, and how it is known."""
  for key in account.unread(KeyKind.OPTIMIZER):
    if key.key.name.endswith('beta1_power'):
      beta = _BETA_1 if beta_1 is None else beta_1
      power = float(file.value(key.key.name))
      done = checkpoint_keys.steps_done(power, beta)
      if done is not None:
        return done, f'{key.key.name} {power:.4g} = {beta}^{done + 1}: {done} steps'
  for key in account.unread(KeyKind.GLOBAL_STEP):
    if not key.key.shape:
      done = int(file.value(key.key.name))
      return done, f'{key.key.name} {done}'
  return None, ''


def note(file: CheckpointFile, account: KeyAccount) -> str:
  """Returns what a port that continues training would have to load; '' for nothing."""
  slots = account.unread(KeyKind.SLOT)
  if not slots:
    return ''
  done, _ = steps(file, account)
  behind = '' if done is None else f' after {done} steps'
  return (
    f'{len(slots)} optimizer slots{behind} are in the checkpoint and not in the port: to continue '
    'training with them, load them in load_tf1_checkpoint(self, layer, path, optimizer)'
  )
