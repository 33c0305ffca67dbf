"""The command line, which is that of what runs a model, and not of the model's own code."""

import contextlib
import sys
from typing import Iterator


@contextlib.contextmanager
def hidden_arguments() -> Iterator[None]:
  """Hides the arguments of the command from a model's code; gives flags of absl their defaults.

  TF1 programs read `tf.app.flags.FLAGS`, which takes the arguments of the process for theirs when
  it is first read, or parse them with argparse where they are imported.
  """
  from absl import flags

  arguments, parsed = list(sys.argv), flags.FLAGS.is_parsed()
  del sys.argv[1:]
  if not parsed:
    flags.FLAGS.mark_as_parsed()
  try:
    yield
  finally:
    sys.argv[:] = arguments
    if not parsed:
      flags.FLAGS.unparse_flags()
