import hashlib
import os
import tempfile

from absl.testing import absltest

from tf2verify.errors import RecordingError
from tf2verify.recordings.manifest_entries import BuilderEntry, SourceFile
from tf2verify.sides.recorded import sources as recorded_sources


def _write(folder, name, text):
  path = os.path.join(folder, name)
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'w', encoding='utf-8') as file:
    file.write(text)
  return path


def _builder(*files):
  return BuilderEntry(
    'model:build',
    tuple(SourceFile(name, hashlib.sha256(text.encode()).hexdigest()) for name, text in files),
  )


class RecordedSourcesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    around = tempfile.TemporaryDirectory()
    self.addCleanup(around.cleanup)
    self._root = os.path.join(around.name, 'project')
    os.makedirs(os.path.join(self._root, '.git'))
    self._case = _write(self._root, 'tests/models/net_test.py', '')

  def _check(self, builder):
    return recorded_sources.check(builder, [self._case], 'recording')

  def test_the_same_files_are_well_wherever_they_are(self):
    for place in ('tests/models/model.py', 'tests/model.py', 'model.py'):
      with self.subTest(place):
        path = _write(self._root, place, 'as it was')
        self.assertEqual(self._check(_builder(('model.py', 'as it was'))), ())
        os.remove(path)

  def test_one_of_several_is_enough(self):
    _write(self._root, 'tests/models/model.py', 'the port, of the same name')
    _write(self._root, 'model.py', 'as it was')
    self.assertEqual(self._check(_builder(('model.py', 'as it was'))), ())

  def test_a_changed_file_is_refused(self):
    _write(self._root, 'model.py', 'changed')
    with self.assertRaisesRegex(
      RecordingError,
      r'model\.py has changed since it was recorded: .*model\.py has the sha256 .*record again, or '
      'restore the file',
    ):
      self._check(_builder(('model.py', 'as it was')))

  def test_a_file_that_is_not_here_is_noted(self):
    (note,) = self._check(_builder(('model.py', 'as it was'), ('nets/blocks.py', 'too')))
    self.assertIn('is not checked: model.py, nets/blocks.py of model:build are not here', note)

  def test_a_file_outside_of_the_project_is_none_of_it(self):
    _write(os.path.dirname(self._root), 'model.py', 'of somebody else')
    (note,) = self._check(_builder(('model.py', 'as it was')))
    self.assertIn('is not here', note)


if __name__ == '__main__':
  absltest.main()
