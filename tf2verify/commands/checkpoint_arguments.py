"""The options of the commands about checkpoints and variable maps."""

from typing import Any


def add_checkpoint_commands(commands: Any) -> None:
  """Adds `convert`, `map` and `inspect`."""
  _add_convert(commands)
  _add_map(commands)
  _add_inspect(commands)


def _add_convert(commands: Any) -> None:
  convert = commands.add_parser(
    'convert',
    help='convert a TF1 checkpoint for the port, or back, if everything about it can be verified',
    epilog='exit status: 0 written, 1 refused, nothing written, 2 usage or environment',
  )
  convert.add_argument('target', metavar='PATH::Case', help='as for run; a single case')
  source = convert.add_mutually_exclusive_group(required=True)
  source.add_argument('--tf1_checkpoint', metavar='PREFIX', help='as passed to Saver.restore')
  source.add_argument(
    '--to_tf1',
    metavar='FILE',
    help="convert back: the port's FILE.keras, FILE.weights.h5 or TF2 checkpoint, converted "
    'to a TF1 checkpoint at --out',
  )
  convert.add_argument(
    '--out',
    required=True,
    metavar='FILE',
    help='where to write: FILE.keras (the whole model), FILE.weights.h5 (its weights), or the '
    'prefix of a TF2 checkpoint',
  )
  convert.add_argument(
    '--format',
    choices=('checkpoint', 'weights', 'keras'),
    help='format, if the suffix of --out does not determine it',
  )
  convert.add_argument('--overwrite', action='store_true', help='replace existing files')
  convert.add_argument(
    '--ema',
    action='store_true',
    help='convert the moving averages of the weights instead of the weights',
  )
  convert.add_argument(
    '--no_optimizer',
    action='store_true',
    help="leave the optimizer's slots and step out, even if both sides have an optimizer",
  )
  convert.add_argument(
    '-v', '--verbose', action='store_true', help='list every key that is left out'
  )


def _add_map(commands: Any) -> None:
  derived = commands.add_parser(
    'map',
    help='derive the variable map of a native port, from how variables are used',
    description='Derives the variable map of a native port, whose variables have different names '
    'and shapes, with the evidence for each entry. The exit code is 1 if the outputs do '
    'not agree through the map.',
  )
  derived.add_argument('target', metavar='PATH::Case', help='as for run; a single case')
  derived.add_argument('--out', metavar='FILE', help='write the map there, for variable_map')


def _add_inspect(commands: Any) -> None:
  inspect = commands.add_parser(
    'inspect',
    help='list the keys of a checkpoint, next to the variables of a case if one is given',
    epilog='exit status: 0 listed, and with --case every variable of the port has a key that fits, '
    '1 one has none, 2 a checkpoint that cannot be read, usage or environment',
  )
  inspect.add_argument('prefix', metavar='PREFIX', help='as passed to Saver.restore')
  inspect.add_argument('--case', metavar='PATH::Case', help='as for run; a single case')
