"""`python -m tf2verify ...`."""

import sys

from tf2verify import cli

if __name__ == '__main__':
  sys.exit(cli.main())
