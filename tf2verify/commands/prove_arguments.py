"""What the command `prove` takes."""

from typing import Any


def add_prove(commands: Any) -> None:
  """Adds the command to those of the command line."""
  prove = commands.add_parser(
    'prove',
    help='prove what is the same for all inputs, by comparing both graphs without running them',
    description='Builds the TF1 graph, traces the port, and compares the two, operation '
    'by operation. If possible, nothing is run and no variable is allocated, so that models '
    'that do not fit this machine can be compared.',
    epilog='exit status: 0 everything is proven, 1 something differs or is not proven, or a case '
    'raises, 2 usage or environment',
  )
  prove.add_argument('targets', nargs='+', metavar='PATH[::Case]', help='as for run')
  prove.add_argument(
    '--report_dir', metavar='DIR', help='write one JSON file per case to this folder'
  )
