import os
import pathlib
import subprocess
import sys
from unittest import mock

import pytest
from absl.testing import absltest

from tests import console
from tf2verify.fleet import content
from tf2verify.fleet.content import Digests

pytestmark = pytest.mark.starts_processes

READS = """
import json
import os
import sys
sys.orig_argv = ['python', '-m', 'tf2verify', 'fleet', '']
from tf2verify.fleet.content import FilesRead, files_of_loaded_modules
import numpy as np
known = frozenset(sys.modules)
read = FilesRead(os.path.abspath('late/scratch'))
import model
np.load('data.npz')['x']
open('written', 'w').close()
open('written').read()
open('/proc/self/stat').read()
sys.path.append('late')
import late_model
sys.path.append('late/scratch')
import generated
open('late/scratch/generated.py').read()
modules = files_of_loaded_modules(known, os.path.abspath('late/scratch'))
print(json.dumps([sorted(read.files()), sorted(modules)]))
"""


class ContentTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  def test_files_that_a_process_reads(self):
    import json

    import numpy as np

    console.write_files(self.folder, model='x = 1', reads=READS)
    console.write_files(self.folder / 'late', late_model='y = 2')
    console.write_files(self.folder / 'late' / 'scratch', generated='z = 3')
    np.savez(self.folder / 'data.npz', x=np.ones(3))
    done = subprocess.run(
      [sys.executable, 'reads.py'],
      cwd=self.folder,
      env={**os.environ, 'PYTHONPATH': str(console.REPOSITORY)},
      capture_output=True,
      text=True,
      check=True,
    )
    read, modules = json.loads(done.stdout)
    self.assertIn(str(self.folder / 'data.npz'), read)
    self.assertNotIn(str(self.folder / 'written'), read)
    self.assertEqual(
      modules, [str(self.folder / 'late' / 'late_model.py'), str(self.folder / 'model.py')]
    )
    for path in read:
      self.assertStartsWith(path, str(self.folder))

  def test_digests(self):
    path = self.folder / 'x'
    path.write_text('1')
    files = {str(path): content.sha256_of(str(path))}
    self.assertTrue(Digests().are_unchanged(files))
    os.utime(path, (0, 0))
    self.assertTrue(Digests().are_unchanged(files))
    path.write_text('2')
    self.assertFalse(Digests().are_unchanged(files))
    path.unlink()
    self.assertFalse(Digests().are_unchanged(files))
    # One that could not be read then tells nothing.
    self.assertFalse(Digests().are_unchanged({str(path): ''}))
    self.assertTrue(Digests().are_unchanged({}))

  def test_checkpoints(self):
    prefix = str(self.folder / 'model.ckpt-7')
    self.assertEmpty(content.files_of_checkpoint(prefix))
    for suffix in ('.index', '.data-00000-of-00001'):
      pathlib.Path(prefix + suffix).write_text('x')
    self.assertEqual(list(content.files_of_checkpoint(prefix)), [f'{prefix}.index'])

  def test_versions(self):
    found = content.versions()
    self.assertRegex(found['tf2verify'], r'\+[0-9a-f]{8}$')
    self.assertIn('tensorflow', found)
    self.assertNotIn('XLA_FLAGS', found)
    with mock.patch.dict(os.environ, {'XLA_FLAGS': '--x'}):
      self.assertEqual(content.versions(), {**found, 'XLA_FLAGS': '--x'})


if __name__ == '__main__':
  absltest.main()
