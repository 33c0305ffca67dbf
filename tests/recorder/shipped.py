"""The recorder as it is handed out: one file, in a folder of its own, and imported from there."""

import importlib.util
import pathlib
import sys
import tempfile

from tf2verify.commands.recorder import recorder_text

# Gone when the process ends.
_FOLDER = tempfile.TemporaryDirectory()
PATH = pathlib.Path(_FOLDER.name) / 'tf1_recorder.py'


def _imported():
  PATH.write_text(recorder_text(), encoding='utf-8')
  spec = importlib.util.spec_from_file_location('tf1_recorder', PATH)
  module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


tf1_recorder = _imported()
