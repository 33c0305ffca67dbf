"""Records what a TensorFlow 1.x model computes, so that a TF2 port can be verified against it.

This one file is copied to where the model runs: Python 3.6 or newer, numpy 1.14 or
newer, TensorFlow 1.13 to 1.15 (or `tf.compat.v1` of any TensorFlow 2). It needs
nothing else, and changes nothing there.

    python tf1_recorder.py --builder my_model:build --inputs inputs.npz --out recording

The builder is a function of your own, of a file that can be imported from where the
command runs. It is called inside a fresh graph and returns the output tensors:

    def build(inputs, training):
      logits, end_points = nets.my_net(inputs, num_classes=10, is_training=training)
      return logits

`inputs` are placeholders for the arrays of inputs.npz: one array (`arr_0` or `inputs`)
comes as the tensor itself, `arr_0`, `arr_1`, ... as a tuple, other keys as a dictionary.
`training` is False or True; a builder without such an argument is called without. The
outputs may be any nest of tensors. The builder makes no session and no graph.

From a script of your own:

    import tf1_recorder
    tf1_recorder.record(build, {'images': images}, 'recording')

What it does: it builds the graph for inference and for training, with every random op
seeded, and runs it in fresh sessions: from its own initial values; with every variable
set to values that its name gives; with the gradients of a loss. Each run is repeated,
and repeated with all values moved by one unit in the last place, which tells how far
rounding alone moves each result. What it finds is written to the folder that `--out`
names: `manifest.json` and `.npz` files. Copy that folder to where TensorFlow 2 is, and
write `tf1_recording = 'recording'` into the case of the port.

The folder appears when all is done, and not before. It holds no code, but the graph, the
inputs, and names and lines of your source files.
"""

import argparse
import concurrent.futures
import os
import shutil
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence

import tensorflow as tf

from .array_files import load_arrays
from .errors import RecorderError
from .functions import load_function
from .hidden_arguments import hidden_arguments
from .messages import say
from .new_folder import partial_of
from .options import LEVELS, MOST_NOISE_RUNS
from .private_tensorflow import v1
from .recording import check_versions, record
from .user_code import user_traceback

# Options that name a function of the user's, with what it does.
_FUNCTIONS = (
  ('builder', 'takes inputs and training, builds the graph, returns the outputs'),
  ('loss', 'takes outputs and labels, returns the loss'),
  ('total_loss', 'the same with regularization; default: loss + regularization losses'),
  ('optimizer', 'takes nothing, returns a tf.train.Optimizer: records training steps'),
  ('train_op', 'takes the loss, returns the train op; instead of --optimizer'),
  ('fill', "takes a variable's name, shape and dtype, returns its value or None"),
)


def _flag(text: str) -> bool:
  if text not in ('true', 'false'):
    raise argparse.ArgumentTypeError('{!r} is neither true nor false'.format(text))
  return text == 'true'


def _training_modes(text: str) -> List[bool]:
  modes = {'inference': False, 'training': True}
  names = [name.strip() for name in text.split(',')]
  if any(name not in modes for name in names):
    raise argparse.ArgumentTypeError(
      '{!r} is not inference, training or inference,training'.format(text)
    )
  return [modes[name] for name in names]


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog='tf1_recorder.py',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  for name, text in _FUNCTIONS:
    add('--' + name, required=name == 'builder', metavar='MODULE:FUNCTION', help=text)
  add('--inputs', required=True, metavar='FILE', help='.npz or .npy file of the inputs')
  add('--labels', metavar='FILE', help='.npz or .npy file of the labels, for the losses')
  add('--out', required=True, metavar='DIR', help='the folder to create')
  add('--overwrite', action='store_true', help='replace the recording if it exists')
  add(
    '--training',
    type=_training_modes,
    default=[False, True],
    metavar='MODES',
    help='inference, training, or inference,training (default)',
  )
  add(
    '--run_update_ops',
    type=_flag,
    default=True,
    help='run UPDATE_OPS in a step: true (default) or false',
  )
  add('--steps', type=int, default=3, help='training steps to record (default: %(default)s)')
  add(
    '--checkpoint',
    metavar='PREFIX',
    help='a checkpoint of the model; its keys and digests are recorded',
  )
  add('--intermediates', choices=LEVELS, default='none', help='intermediate tensors to store')
  add('--noise_runs', type=int, default=MOST_NOISE_RUNS, help='max perturbed runs per run')
  add('--compress', type=_flag, default=True, help='compress the arrays: true (default) or false')
  add(
    '--largest_array',
    type=int,
    metavar='N',
    help='arrays of more elements are stored as samples and means (default: 65536, 4096 of a '
    'model of more than 10 million)',
  )
  return parser


def _record_as_told(arguments: argparse.Namespace) -> None:
  given = dict(vars(arguments))
  functions: Dict[str, Any] = {}
  check_versions()
  if not tf.__version__.startswith('1.'):
    v1.disable_v2_behavior()
  v1.logging.set_verbosity(v1.logging.ERROR)
  inputs = load_arrays(given.pop('inputs'), 'inputs')
  labels = given.pop('labels')
  for name, _ in _FUNCTIONS:
    told = given.pop(name)
    functions[name] = None if told is None else load_function(told, name)
  record(
    functions.pop('builder'),
    inputs,
    given.pop('out'),
    training_modes=given.pop('training'),
    labels=None if labels is None else load_arrays(labels, 'labels'),
    **functions,
    **given,
  )


def _interruptible(work: Callable[[], None], partial: str) -> None:
  """Does the work in a thread, so that Ctrl-C ends the process in the midst of a long run.

  TensorFlow 1.x does not look for it before a run is over.

  Args:
    work: what to do; what it raises is raised here.
    partial: the folder that it may leave half written.
  """
  done = concurrent.futures.ThreadPoolExecutor(1).submit(work)
  try:
    while not done.done():
      concurrent.futures.wait([done], timeout=0.2)
  except KeyboardInterrupt:
    shutil.rmtree(partial, ignore_errors=True)
    say('tf1_recorder: interrupted; nothing was written')
    sys.stderr.flush()
    os._exit(130)  # the thread would not end
  done.result()


def main(arguments: Optional[Sequence[str]] = None) -> int:
  """Runs the command.

  Returns:
    0; 2 for a mistake, which is told on the last line; 130 where it was interrupted.
  """
  parsed = _parser().parse_args(arguments)
  try:
    with hidden_arguments():
      _interruptible(lambda: _record_as_told(parsed), partial_of(parsed.out))
  except RecorderError as error:
    if error.__cause__ is not None:
      sys.stderr.write(user_traceback(error.__cause__))
    say('tf1_recorder: error: {}'.format(error))
    return 2
  except KeyboardInterrupt:
    say('tf1_recorder: interrupted; nothing was written')
    return 130
  return 0
