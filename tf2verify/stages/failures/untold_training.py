"""A port whose call has no argument `training`, where the model computes something else in it."""

import inspect
from typing import Any

from tf2verify.environment.case_files import shown_path
from tf2verify.records.diagnosis import Cause
from tf2verify.sides.side import training_name
from tf2verify.sides.tf2.layers.call_arguments import passes_training, takes_training
from tf2verify.stages.stage import CaseUnderTest, Findings

_RULE = 'untold_training'
_STAGES = ('seeded_constant', 'seeded_num_random_ops')
_ALIKE = ('is_training', 'train', 'is_train', 'training_mode', 'mode', 'trainable', 'deterministic')


def untold_training_cause(case: CaseUnderTest, stage: str, findings: Findings) -> Cause | None:
  """Returns that the port is not told that it trains, where only its training runs differ.

  Such a port computes the same in both modes, and agrees in inference: so TF1 does not.
  """
  declared = case.declaration
  runs = {difference.run.partition(',')[0] for difference in findings.differences}
  both = len(set(declared.training_modes)) > 1
  if stage not in _STAGES or not both or runs != {training_name(True)}:
    return None
  if not passes_training(declared.call_tf2_layer):
    return None
  layer = case.tf2.fresh_port().layer
  if takes_training(layer):
    return None
  call = inspect.unwrap(getattr(type(layer), 'call', type(layer).__call__))
  names = list(inspect.signature(call).parameters)
  near = next((name for name in names if name in _ALIKE), None)
  fix = 'add it, def call(self, inputs, training=False), and pass it on to the layers that need it'
  if near is not None:
    fix = f'its {near} has another name: rename it to training'
  text = (
    f"the port's call{_place(call)} has no argument training, so it is called without it, also "
    f'where TF1 is in training mode; {fix}, or override call_tf2_layer'
  )
  return Cause(text, rule=_RULE)


def _place(call: Any) -> str:
  code = getattr(call, '__code__', None)
  return '' if code is None else f' ({shown_path(code.co_filename)}:{code.co_firstlineno})'
