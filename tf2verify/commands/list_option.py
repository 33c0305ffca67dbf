"""An option that takes a list."""

import argparse
import re
from typing import Any

# No name of a stage, and no number, has one of these.
_OF_A_PATH = re.compile(r'[./\\:]')
HOW_TO_END = (
  '--stages takes every word up to the next option; give the path before it, as in `PATH --stages '
  'STAGE`, or after `--`'
)


class Add(argparse.Action):
  """Takes a list in one option or several; of stages `a b`, `a,b` and `a --stages b`."""

  def __call__(
    self,
    parser: argparse.ArgumentParser,
    namespace: argparse.Namespace,
    values: Any,
    option_string: str | None = None,
  ) -> None:
    given = getattr(namespace, self.dest)
    # The default is replaced, not added to.
    before = () if given is self.default else given
    if self.dest == 'stages':  # a metric's name may have a comma
      values = [name for value in values for name in str(value).split(',') if name]
      for value in values:
        if _OF_A_PATH.search(value):
          raise argparse.ArgumentError(
            self, f'{value} is not a stage, but was read as one: {HOW_TO_END}'
          )
    setattr(namespace, self.dest, [*before, *values])
