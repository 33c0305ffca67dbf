"""How the page calls statuses and stages."""

from tf2verify.records.status import Status

# A sign for each status, so that colour is not needed to tell them apart.
SIGNS = {
  Status.PASSED: '✓',
  Status.NOT_APPLICABLE: '–',
  Status.INCONCLUSIVE: '?',
  Status.BLOCKED: '⊘',
  Status.FAILED: '✗',
  Status.ERROR: '!',
}
NOT_RUN_SIGN = '·'

# What each stage proves, as `Stage.proves` says it. The stages themselves cannot be asked:
# they bring TensorFlow, which a page is made without.
PROVES = {
  'no_new_variables': 'every call after the first, in inference and in training mode, reuses the '
  'variables of the first',
  'variable_inventory': 'both sides have variables of the same names, shapes, dtypes and '
  'trainability',
  'zero_randomness': 'with every variable set to a fixed value of its own, outputs and '
  'regularization losses agree',
  'seeded_constant': 'with one seed for all random ops, initial values, or the distributions that '
  'they are drawn from, outputs, regularization losses and the state after the call agree, in '
  'inference and in training',
  'seeded_num_random_ops': 'the same with one seed per random op: also the order of random ops is '
  'the same',
  'gradients': 'the gradient of the loss agrees for every trainable variable',
  'loss': 'the losses agree, in value and gradient, on the outputs of the model and on extreme '
  'ones',
  'training_steps': 'after each of several training steps, losses, variables and the state of the '
  'optimizers agree',
  'checkpoint': 'a TF1 checkpoint loads into the port completely, and what the port saves restores '
  'it',
  'execution_modes': 'the port computes the same eagerly, in a tf.function, compiled, embedded and '
  'replicated',
  'determinism': 'each side, repeated in fresh state, gives the same bits',
}
# The stages that keep every pair of floating tensors that is not the same bit by bit, the
# others keep those that differ: `Stage.diagnosed`.
KEEPS_ALL_PAIRS = (
  'zero_randomness',
  'seeded_constant',
  'seeded_num_random_ops',
  'gradients',
)


def word(status: Status) -> str:
  """Returns the status in small letters: `not applicable`."""
  return status.value.lower().replace('_', ' ')
