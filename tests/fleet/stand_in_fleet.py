"""`python stand_in_fleet.py ARGUMENTS`: `python -m tf2verify fleet` with stand-in cases."""

import sys
from unittest import mock

from tests.fleet import without_tensorflow  # noqa: F401

# isort: split
from tf2verify.commands import cli, fleet

if __name__ == '__main__':
  run = fleet.fleet
  with mock.patch.object(
    fleet, 'fleet', lambda arguments: run(arguments, 'tests.fleet.stand_in_server')
  ):
    sys.exit(cli.main(['fleet', *sys.argv[1:]]))
