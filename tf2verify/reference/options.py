"""What is asked for beyond the builder and its inputs."""

from typing import Any, Dict, Optional, Tuple

from .errors import RecorderError
from .fill_values import Fill, distinct_values
from .functions import function_name
from .user_code import check_call

LEVELS = ('none', 'summary', 'full')  # of tensors on the way
MOST_NOISE_RUNS = 32

# How the user's functions are called; and what may have been meant where one cannot be.
_CALLS: Dict[str, Tuple[Tuple[str, ...], str]] = {
  'loss': (('outputs', 'labels'), 'without labels it is called with None'),
  'total_loss': (('outputs', 'labels'), 'without labels it is called with None'),
  'optimizer': ((), 'a function of the loss that returns the train op is given with --train_op'),
  'train_op': (
    ('loss',),
    'a function that takes nothing and returns a tf.train.Optimizer is given with --optimizer',
  ),
  'fill': (('name', 'shape', 'dtype'), ''),
}


class Options:
  """What besides the builder and its inputs is asked for; see `record`."""

  def __init__(self, **options: Any) -> None:
    self.training_modes: Tuple[bool, ...] = tuple(options['training_modes'])
    self.labels = options['labels']
    self.loss = options['loss']
    self.total_loss = options['total_loss']
    self.optimizer = options['optimizer']
    self.train_op = options['train_op']
    self.run_update_ops = bool(options['run_update_ops'])
    self.steps = int(options['steps'])
    self.checkpoint = options['checkpoint']
    self.intermediates = options['intermediates']
    self.noise_runs = int(options['noise_runs'])
    self.largest_array: Optional[int] = options['largest_array']
    self.fill: Fill = options['fill'] or distinct_values
    self._check()

  def _check(self) -> None:
    modes = self.training_modes
    if not modes or len(set(modes)) != len(modes) or any(type(mode) is not bool for mode in modes):
      raise RecorderError(
        'the training modes are {!r}; give False (inference), True (training), or both'.format(
          modes
        )
      )
    if self.intermediates not in LEVELS:
      raise RecorderError(
        'intermediates is {!r}; allowed are {}'.format(self.intermediates, ', '.join(LEVELS))
      )
    if self.optimizer is not None and self.train_op is not None:
      raise RecorderError('both an optimizer and a train op are given; give the one that trains')
    for name, (arguments, slip) in _CALLS.items():
      function = getattr(self, name)
      if function is not None:
        check_call('the function of --' + name, function, arguments, slip)
    if self.train_op is not None and self.loss is None and self.total_loss is None:
      raise RecorderError(
        'a train op is made of a loss (--train_op), and none is given: add --loss, the function of '
        'outputs and labels that training minimizes (with --labels, where it takes some)'
      )
    least = {'steps': 1, 'noise_runs': 0, 'largest_array': 1}
    for name, smallest in least.items():
      if getattr(self, name) is not None and getattr(self, name) < smallest:
        raise RecorderError(
          '{} is {}; it must be at least {}'.format(name, getattr(self, name), smallest)
        )

  def functions(self) -> Dict[str, Any]:
    """Returns the user's functions that are given, by option."""
    names = ('loss', 'total_loss', 'optimizer', 'train_op')
    found = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
    if self.fill is not distinct_values:
      found['fill'] = self.fill
    return found

  def manifest(self) -> Dict[str, Any]:
    """Returns the entry of the manifest, for a reader."""
    found: Dict[str, Any] = {name: function_name(f) for name, f in self.functions().items()}
    for name in ('run_update_ops', 'steps', 'noise_runs'):
      found[name] = getattr(self, name)
    return found
