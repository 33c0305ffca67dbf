"""What the commands about recordings take."""

from typing import Any


def add_recording_commands(commands: Any) -> None:
  """Adds the commands to those of the command line."""
  commands.add_parser(
    'recorder',
    help='print the file that records a reference under TensorFlow 1.x',
    epilog='python -m tf2verify recorder > tf1_recorder.py',
  )
  recording = commands.add_parser(
    'recording',
    help='verify a recording and list its contents',
    epilog='exit status: 0 complete and unchanged, 2 damaged, or not a recording',
  )
  recording.add_argument(
    'folder', metavar='DIR', help='a folder written by tf1_recorder.py --out DIR'
  )
