"""Training runs made by update rules, without TensorFlow."""

import dataclasses

import numpy as np

from tf2verify.diagnosis.formulas.update_rules import UpdateInputs
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import OptimizerRecord, Slot, TrainingRun, TrainingStep

NAMES = ('bias', 'kernel')
PAIRS = tuple((name, name) for name in NAMES)
_START = {
  'bias': np.array([0.3, -0.2], np.float32),
  'kernel': np.array([[0.5, -1.0], [0.25, 0.75], [-0.5, 0.125]], np.float32),
}
_TARGETS = {'bias': np.zeros(2), 'kernel': np.full((3, 2), 0.1)}


def gradient(name, value):
  """Of half the sum of squared distances, small in the first column of the kernel."""
  found = value - _TARGETS[name]
  return found * [1e-6, 1.0] if name == 'kernel' else found


def record(form, name='tf.compat.v1.train.SomeOptimizer', **settings):
  """Returns the record of an optimizer of a rule, under the names of TF1."""
  return OptimizerRecord(name, (*form.settings, *settings.items()), form.rule)


def run(side, form, count=3, optimizer=None, rates=None, slots=None, decay=0.0, clip=None):
  """Returns a run of steps by an update rule.

  Args:
    side: 'tf1' or 'tf2'.
    form: the rule and its settings.
    count: of steps.
    optimizer: its record; by default as `record` makes it.
    rates: a learning rate for each step.
    slots: what every element of a role is before the first step.
    decay: the share of the weights that each step takes beside the rule.
    clip: from the gradients by name to those that are applied.
  """
  values = {name: value.copy() for name, value in _START.items()}
  known = {
    name: {r: np.full(v.shape, s) for r, s in (slots or {}).items()} for name, v in values.items()
  }
  before, slots_before, steps = tensors(values), slot_records(known), []
  for number in range(1, count + 1):
    rate = rates[number - 1] if rates else form.setting('learning_rate')
    raw = {name: gradient(name, value).astype(np.float32) for name, value in values.items()}
    applied = clip(raw) if clip else raw
    loss = sum(float(np.sum((value - _TARGETS[name]) ** 2)) for name, value in values.items())
    for name, value in values.items():
      moment = UpdateInputs(value, applied[name], known[name], number)
      stepped = form.replaced(learning_rate=rate).step(moment)
      values[name] = (value + stepped.update - decay * value).astype(np.float32)
      known[name] = {role: slot.astype(np.float32) for role, slot in stepped.slots.items()}
    steps.append(
      TrainingStep(
        number,
        np.float32(loss),
        rate,
        number,
        tensors(raw),
        tensors(applied),
        tensors(values),
        slot_records(known),
      )
    )
  return TrainingRun(
    side, 'simulated', (optimizer or record(form),), before, slots_before, tuple(steps)
  )


def tensors(values):
  return tuple(TensorRecord(name, np.array(value)) for name, value in values.items())


def slot_records(known):
  return tuple(
    Slot(role, name, f'{name}/{role}', value)
    for name, slots in known.items()
    for role, value in slots.items()
  )


def with_steps(training_run, **fields):
  """Returns a run whose steps have other fields: a sequence each, one value a step."""
  steps = tuple(
    dataclasses.replace(step, **{name: values[number] for name, values in fields.items()})
    for number, step in enumerate(training_run.steps)
  )
  return dataclasses.replace(training_run, steps=steps)
