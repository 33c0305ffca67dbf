"""Training steps, recorded."""

import math
from typing import Any, Dict, List

from .fill_values import DISTINCT_VALUES
from .messages import training_name
from .optimizers import optimizer_entry
from .recorder import Recorder
from .train_op import TrainOp
from .training import TrainingGraph
from .training_steps import StepsRun


def record_steps(recorder: Recorder, training: TrainingGraph, train: TrainOp) -> Dict[str, Any]:
  """Records training steps."""
  options, count = recorder.options, recorder.options.steps
  run = StepsRun(training, train, count)
  name = '{}, {}'.format(training_name(training.built.training), DISTINCT_VALUES)
  text = '{}, {} training step{}'.format(name, count, 's' if count > 1 else '')
  tensors, runs = recorder.measured(text, run.evaluate, lambda _: False, of_steps=True)

  def named(quantity: str) -> List[List[Any]]:
    return [[key, tensor] for (kind, key), tensor in tensors.items() if kind == quantity]

  def slots(number: int) -> List[Dict[str, Any]]:
    values = dict(named('slot {}'.format(number)))
    return [
      {'role': role, 'variable': variable, 'name': state.name, 'value': values[str(position)]}
      for position, (role, variable, state) in enumerate(run.slots)
    ]

  steps = [
    {
      'number': number,
      'loss': tensors['loss {}'.format(number), ''],
      'learning_rate': run.rates[number - 1],
      'global_step': run.counts[number - 1],
      'gradients': named('gradient {}'.format(number)),
      'applied_gradients': named('applied {}'.format(number)),
      'variables': named('variable {}'.format(number)),
      'slots': slots(number),
    }
    for number in range(1, count + 1)
  ]
  own, rate = options.train_op is not None, train.rate
  return {
    'run': name,
    'training': training.built.training,
    'made_by': 'train_op' if own else 'optimizer',
    'run_update_ops': None if own else options.run_update_ops,
    'train_op': train.name,
    'learning_rate': rate if rate is None or isinstance(rate, str) or math.isfinite(rate) else None,
    'global_step': None if run.counter is None else run.counter.name,
    'added': [dict(variable.manifest(), source=None) for variable in training.later.variables],
    'gradients': train.gradients,
    'applied_gradients': train.applied,
    'trained': train.trained,
    'optimizers': [optimizer_entry(optimizer) for optimizer in train.optimizers],
    'values_before': named('variable 0'),
    'slots_before': slots(0),
    'steps': steps,
    'updates_left_out': train.left_out,
    'regularization_total': tensors['regularization total', ''],
    'random_draws': [dict(draw, source=None) for draw in training.later.random_draws],
    'noise_runs': runs,
  }
