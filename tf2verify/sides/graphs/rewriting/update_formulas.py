"""What TensorFlow's fused updates compute, as operations one by one.

The formulas are those of the documentation of `tf.raw_ops`. Where a term of a formula goes
through `1 - beta`, it is formed as the kernel forms it, in the dtype of the variable.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

# Takes the inputs of an operation and the current values of the variables it writes, by the names
# of its arguments, and its attributes; returns the new values of what it writes.
Formula = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def _gradient_descent(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
  return {'var': given['var'] - given['alpha'] * given['delta']}


def _momentum(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
  rate, momentum, gradient = given['lr'], given['momentum'], given['grad']
  accumulated = given['accum'] * momentum + gradient
  step = accumulated * rate
  if attributes['use_nesterov']:
    step = gradient * rate + accumulated * momentum * rate
  return {'accum': accumulated, 'var': given['var'] - step}


def _keras_momentum(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
  rate, momentum, gradient = given['lr'], given['momentum'], given['grad']
  velocity = given['accum'] * momentum - rate * gradient
  step = velocity
  if attributes['use_nesterov']:
    step = velocity * momentum - rate * gradient
  return {'accum': velocity, 'var': given['var'] + step}


def _adam(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
  beta1, beta2, gradient = given['beta1'], given['beta2'], given['grad']
  rate = given['lr'] * tf.sqrt(1 - given['beta2_power']) / (1 - given['beta1_power'])
  first = given['m'] + (gradient - given['m']) * (1 - beta1)
  second = given['v'] + (tf.square(gradient) - given['v']) * (1 - beta2)
  moment = first
  if attributes.get('use_nesterov'):
    moment = first * beta1 + (1 - beta1) * gradient
  found = {'m': first, 'v': second}
  greatest = second
  if 'vhat' in given:
    greatest = found['vhat'] = tf.maximum(given['vhat'], second)
  found['var'] = given['var'] - moment * rate / (tf.sqrt(greatest) + given['epsilon'])
  return found


def _ada_max(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
  beta1, gradient = given['beta1'], given['grad']
  first = given['m'] + (gradient - given['m']) * (1 - beta1)
  norm = tf.maximum(given['beta2'] * given['v'], tf.abs(gradient))
  rate = given['lr'] / (1 - given['beta1_power'])
  return {'m': first, 'v': norm, 'var': given['var'] - first * rate / (norm + given['epsilon'])}


def _rms_prop(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
  rate, rho, gradient = given['lr'], given['rho'], given['grad']
  found = {'ms': given['ms'] + (tf.square(gradient) - given['ms']) * (1 - rho)}
  under_root = found['ms'] + given['epsilon']
  if 'mg' in given:
    found['mg'] = given['mg'] + (gradient - given['mg']) * (1 - rho)
    under_root = found['ms'] - tf.square(found['mg']) + given['epsilon']
  step = gradient * rate * tf.math.rsqrt(under_root)
  found['mom'] = given['mom'] * given['momentum'] + step
  return {**found, 'var': given['var'] - found['mom']}


def _adagrad(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
  rate, gradient = given['lr'], given['grad']
  updates = attributes.get('update_slots', True)
  squares = given['accum'] + tf.square(gradient) if updates else given['accum']
  if 'epsilon' in given:
    step = gradient * rate / (tf.sqrt(squares) + given['epsilon'])
  else:
    step = gradient * rate * tf.math.rsqrt(squares)
  return {'accum': squares, 'var': given['var'] - step}


def _adadelta(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
  rho, epsilon, gradient = given['rho'], given['epsilon'], given['grad']
  squares = given['accum'] * rho + tf.square(gradient) * (1 - rho)
  roots = tf.sqrt(given['accum_update'] + epsilon) * tf.math.rsqrt(squares + epsilon)
  step = roots * gradient
  updates = given['accum_update'] * rho + tf.square(step) * (1 - rho)
  return {'accum': squares, 'accum_update': updates, 'var': given['var'] - step * given['lr']}


def _ftrl(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
  rate, power, gradient, var = given['lr'], given['lr_power'], given['grad'], given['var']
  squares = given['accum'] + tf.square(gradient)
  root, root_before = tf.pow(squares, -power), tf.pow(given['accum'], -power)
  shrunk = gradient
  if 'l2_shrinkage' in given:
    shrunk = gradient + 2 * given['l2_shrinkage'] * var
  l1, l2 = given['l1'], given['l2']
  if attributes.get('multiply_linear_by_lr'):
    linear = given['linear'] + shrunk * rate - (root - root_before) * var
    l1, quadratic = l1 * rate, root + 2 * l2 * rate
  else:
    linear = given['linear'] + shrunk - (root - root_before) / rate * var
    quadratic = root / rate + 2 * l2
  left = (tf.clip_by_value(linear, -l1, l1) - linear) / quadratic
  return {'accum': squares, 'linear': linear, 'var': left}


def _shrunk(moved: Any, rate: Any, given: Mapping[str, Any]) -> Any:
  """Returns values that an L1 and an L2 penalty bring nearer to zero, in steps of a rate."""
  near = tf.maximum(tf.abs(moved) - rate * given['l1'], 0.0)
  return tf.sign(moved) * near / (1 + given['l2'] * rate)


def _proximal_gradient_descent(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
  delta = given['grad'] if 'grad' in given else given['delta']  # of rows
  moved = given['var'] - given['alpha'] * delta
  return {'var': _shrunk(moved, given['alpha'], given)}


def _proximal_adagrad(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
  squares = given['accum'] + tf.square(given['grad'])
  rate = given['lr'] * tf.math.rsqrt(squares)
  return {'accum': squares, 'var': _shrunk(given['var'] - rate * given['grad'], rate, given)}


def _adagrad_da(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
  dtype = given['var'].dtype
  lr, step = given['lr'], tf.cast(given['global_step'], dtype)
  gradients = given['gradient_accumulator'] + given['grad']
  squares = given['gradient_squared_accumulator'] + tf.square(given['grad'])
  shrunk = tf.sign(gradients) * tf.maximum(tf.abs(gradients) - given['l1'] * step, 0)
  return {
    'var': -lr * shrunk / (given['l2'] * step * lr + tf.sqrt(squares)),
    'gradient_accumulator': gradients,
    'gradient_squared_accumulator': squares,
  }


def _by_sign(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
  grad, beta = given['grad'], given['beta']
  mean = beta * given['m'] + (1 - beta) * grad
  agreeing = given['sign_decay'] * tf.sign(grad) * tf.sign(mean)
  powers = tf.exp(given['logbase'] * agreeing) if 'logbase' in given else given['alpha'] + agreeing
  return {'var': given['var'] - given['lr'] * powers * grad, 'm': mean}


_DENSE: dict[str, Formula] = {
  'ApplyGradientDescent': _gradient_descent,
  'ApplyMomentum': _momentum,
  'ApplyKerasMomentum': _keras_momentum,
  'ApplyAdam': _adam,
  'ApplyAdamWithAmsgrad': _adam,
  'ApplyAdaMax': _ada_max,
  'ApplyRMSProp': _rms_prop,
  'ApplyCenteredRMSProp': _rms_prop,
  'ApplyAdagrad': _adagrad,
  'ApplyAdagradV2': _adagrad,
  'ApplyAdadelta': _adadelta,
  'ApplyFtrl': _ftrl,
  'ApplyFtrlV2': _ftrl,
  'ApplyProximalAdagrad': _proximal_adagrad,
  'ApplyProximalGradientDescent': _proximal_gradient_descent,
  'ApplyAdagradDA': _adagrad_da,
  'ApplyAddSign': _by_sign,
  'ApplyPowerSign': _by_sign,
}


def _of_rows(dense: Formula) -> Formula:
  """Returns the formula of the sparse form of an update, which leaves other rows alone."""

  def rows(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    indices = given['indices']
    whole = {name: value for name, value in given.items() if name in _WRITTEN}
    taken = {name: tf.gather(value, indices) for name, value in whole.items()}
    found = dense({**given, **taken}, attributes)
    places = tf.expand_dims(indices, -1)
    return {
      name: tf.tensor_scatter_nd_update(whole[name], places, value) for name, value in found.items()
    }

  return rows


def _scattered(scatter: Callable[..., Any], along_rows: bool, var: str) -> Formula:
  def formula(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
    places = tf.expand_dims(given['indices'], -1) if along_rows else given['indices']
    return {var: scatter(given[var], places, given['updates'])}

  return formula


def _multiplied(divides: bool) -> Formula:
  def formula(given: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
    whole, indices = given['resource'], given['indices']
    # A row may be given several times.
    factors = tf.math.unsorted_segment_prod(given['updates'], indices, tf.shape(whole)[0])
    return {'resource': whole / factors if divides else whole * factors}

  return formula


def _slice(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
  masks = {name: attributes.get(name, 0) for name in _MASKS}
  bounds = {name: given[name] for name in ('begin', 'end', 'strides')}
  update = tf.raw_ops.TensorStridedSliceUpdate
  return {'ref': update(input=given['ref'], **bounds, value=given['value'], **masks)}


_MASKS = ('begin_mask', 'end_mask', 'ellipsis_mask', 'new_axis_mask', 'shrink_axis_mask')
_DENSE_ONLY = ('ApplyAdaMax', 'ApplyGradientDescent', 'ApplyAddSign', 'ApplyPowerSign')
# Arguments of updates that are variables.
_WRITTEN = (
  *('var', 'accum', 'accum_update', 'linear', 'm', 'v', 'vhat', 'ms', 'mg', 'mom', 'resource'),
  *('ref', 'gradient_accumulator', 'gradient_squared_accumulator'),
)
_SCATTERS = {
  'Add': tf.tensor_scatter_nd_add,
  'Sub': tf.tensor_scatter_nd_sub,
  'Update': tf.tensor_scatter_nd_update,
  'Max': tf.tensor_scatter_nd_max,
  'Min': tf.tensor_scatter_nd_min,
}
# By the type of an operation, what it makes of the variables that it writes.
FORMULAS: dict[str, Formula] = {
  'AssignVariableOp': lambda given, _: {'resource': tf.identity(given['value'])},
  'AssignAddVariableOp': lambda given, _: {'resource': given['resource'] + given['value']},
  'AssignSubVariableOp': lambda given, _: {'resource': given['resource'] - given['value']},
  **{f'Resource{kind}': formula for kind, formula in _DENSE.items()},
  **{
    f'ResourceSparse{kind}': _of_rows(formula)
    for kind, formula in _DENSE.items()
    if 'Adam' not in kind and kind not in _DENSE_ONLY
  },
  **{
    f'ResourceScatter{how}': _scattered(scatter, True, 'resource')
    for how, scatter in _SCATTERS.items()
  },
  **{
    f'ResourceScatterNd{how}': _scattered(scatter, False, 'ref')
    for how, scatter in _SCATTERS.items()
  },
  'ResourceScatterMul': _multiplied(divides=False),
  'ResourceScatterDiv': _multiplied(divides=True),
  'ResourceStridedSliceAssign': _slice,
}
