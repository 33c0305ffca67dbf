"""Event files read back, and a TensorBoard asked what it makes of them."""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

needs_tensorboard = unittest.skipIf(
  importlib.util.find_spec('tensorboard') is None,
  "TensorBoard is not installed: pip install 'tf2verify[tensorboard]'",
)
_SECONDS = 120


def read(directory):
  """Returns the events below a directory: by folder, by tag, what was written, by step.

  Scalars as numbers, texts as str, histograms as lists of [left, right, count]; of several
  values of one step a list of all.
  """
  import tensorflow as tf

  found = {}
  for path in sorted(pathlib.Path(directory).rglob('events.out.tfevents.*')):
    folder = found.setdefault(str(path.parent.relative_to(directory)), {})
    for record in tf.compat.v1.io.tf_record_iterator(str(path)):
      event = tf.compat.v1.Event.FromString(record)
      for value in event.summary.value:
        told = tf.make_ndarray(value.tensor).tolist()
        told = told.decode() if isinstance(told, bytes) else told
        steps = folder.setdefault(value.tag, {})
        steps[event.step] = [steps[event.step], told] if event.step in steps else told
  return found


class Server:
  """TensorBoard on a folder.

  Args:
    directory: its --logdir.
    arguments: more of the command line.
  """

  def __init__(self, directory, *arguments):
    self._log = tempfile.TemporaryFile('w+')  # noqa: SIM115
    self._process = subprocess.Popen(
      [
        *(sys.executable, '-m', 'tensorboard.main', '--logdir', str(directory)),
        *('--host', '127.0.0.1', '--port', '0', '--reload_interval', '1', *arguments),
      ],
      stdout=self._log,
      stderr=subprocess.STDOUT,
      env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'},
    )
    self._address = self.wait_for(self._told_address)

  def _told_address(self):
    self._log.seek(0)
    found = re.search(r'http://127\.0\.0\.1:\d+/', self._log.read())
    return found and found[0]

  def wait_for(self, look):
    """Returns what a function returns, as soon as that is true."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and self._process.poll() is None:
      with contextlib.suppress(OSError):
        found = look()
        if found:
          return found
      time.sleep(0.2)
    self._log.seek(0)
    raise AssertionError(f'TensorBoard did not show it within {_SECONDS} s:\n{self._log.read()}')

  @property
  def address(self):
    """Where its page is."""
    return self._address

  def ask(self, path, **arguments):
    """Returns its answer to a request."""
    query = f'?{urllib.parse.urlencode(arguments)}' if arguments else ''
    with urllib.request.urlopen(f'{self._address}data/{path}{query}', timeout=30) as answer:
      return json.load(answer)

  def close(self):
    """Ends it."""
    self._process.terminate()
    self._process.wait(_SECONDS)
    self._log.close()
