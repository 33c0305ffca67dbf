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
    help='verify and convert a TF1 checkpoint for the port, or back',
    epilog='exit status: 0 written, 1 refused, nothing written, 2 usage or environment',
  )
  convert.add_argument('target', metavar='PATH::Case', help='as for run; a single case')
  source = convert.add_mutually_exclusive_group(required=True)
  source.add_argument(
    '--tf1_checkpoint', metavar='PREFIX', help='the TF1 checkpoint, as passed to Saver.restore'
  )
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
    help='convert the EMA (moving averages) of the weights instead of the weights',
  )
  convert.add_argument(
    '--no_optimizer',
    action='store_true',
    help="leave out the optimizer's slots and step count, even if both sides have an optimizer",
  )
  convert.add_argument(
    '-v', '--verbose', action='store_true', help='list every key that is left out'
  )


def _add_map(commands: Any) -> None:
  derived = commands.add_parser(
    'map',
    help='derive the variable map of a native port from how the variables are used',
    description='Derives the variable map of a native port, whose variables have different names '
    'and shapes, with the evidence for each entry.',
    epilog='exit status: 0 the outputs agree through the map, 1 they do not, 2 usage or '
    'environment',
  )
  derived.add_argument('target', metavar='PATH::Case', help='as for run; a single case')
  derived.add_argument(
    '--out', metavar='FILE', help='write the map to FILE, for the attribute variable_map'
  )


def _add_inspect(commands: Any) -> None:
  inspect = commands.add_parser(
    'inspect',
    help='list the keys of a checkpoint, next to the variables of a case if one is given',
    epilog='exit status: 0 listed, and with --case a key fits every variable of the port, 1 some '
    'variable has none, 2 a checkpoint that cannot be read, usage or environment',
  )
  inspect.add_argument(
    'prefix', metavar='PREFIX', help='the checkpoint, as passed to Saver.restore'
  )
  inspect.add_argument('--case', metavar='PATH::Case', help='as for run; a single case')
