"""What Keras has for a loss, or an optimizer, that the code of a TF1 module calls."""

import ast
from collections.abc import Iterator

_LOSSES = {
  'sparse_softmax_cross_entropy': 'SparseCategoricalCrossentropy(from_logits=True)',
  'sparse_softmax_cross_entropy_with_logits': 'SparseCategoricalCrossentropy(from_logits=True)',
  'softmax_cross_entropy': 'CategoricalCrossentropy(from_logits=True)',
  'softmax_cross_entropy_with_logits': 'CategoricalCrossentropy(from_logits=True)',
  'softmax_cross_entropy_with_logits_v2': 'CategoricalCrossentropy(from_logits=True)',
  'sigmoid_cross_entropy': 'BinaryCrossentropy(from_logits=True)',
  'sigmoid_cross_entropy_with_logits': 'BinaryCrossentropy(from_logits=True)',
  'log_loss': 'BinaryCrossentropy()',
  'hinge_loss': 'Hinge()',
  'huber_loss': 'Huber()',
  'mean_squared_error': 'MeanSquaredError()',
  'squared_difference': 'MeanSquaredError()',
  'absolute_difference': 'MeanAbsoluteError()',
}
# With what TF1's have by default, where Keras has another default.
_OPTIMIZERS = {
  'AdamOptimizer': 'Adam({}, epsilon=1e-8)',
  'AdagradOptimizer': 'Adagrad({}, initial_accumulator_value=0.1, epsilon=0.0)',
  'AdadeltaOptimizer': 'Adadelta({}, rho=0.95, epsilon=1e-8)',
  'FtrlOptimizer': 'Ftrl({})',
  'GradientDescentOptimizer': 'SGD({})',
  'MomentumOptimizer': 'SGD({}, momentum=0.9)',
  'RMSPropOptimizer': 'RMSprop({}, rho=0.9, epsilon=1e-10)',
}
_DEFAULT_RATE = '1e-3'


def loss_like(code: ast.AST) -> str:
  """Returns the loss of Keras that is nearest to the first one that code calls; '' without one."""
  found = (name for name, _ in _calls(code))
  return next((f'tf.keras.losses.{_LOSSES[name]}' for name in found if name in _LOSSES), '')


def optimizer_like(code: ast.AST) -> tuple[str, str]:
  """Returns the first optimizer of TF1 that code makes, and that of Keras; '' without one."""
  for name, call in _calls(code):
    if name in _OPTIMIZERS:
      rate = _rate(call)
      tf1 = f'tf.compat.v1.train.{name}({rate}{", momentum=0.9" if "Momentum" in name else ""})'
      return tf1, f'tf.keras.optimizers.{_OPTIMIZERS[name].format(rate)}'
  return '', ''


def _calls(code: ast.AST) -> Iterator[tuple[str, ast.Call]]:
  """Yields what is called, by the last part of its name, in the order of the lines."""
  calls = [node for node in ast.walk(code) if isinstance(node, ast.Call)]
  for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, 'id', '')
    yield name, call


def _rate(call: ast.Call) -> str:
  """Returns the learning rate that is written there, or one to be replaced."""
  named = [one.value for one in call.keywords if one.arg == 'learning_rate']
  given = (*named, *call.args[:1])
  return ast.unparse(given[0]) if given and isinstance(given[0], ast.Constant) else _DEFAULT_RATE
