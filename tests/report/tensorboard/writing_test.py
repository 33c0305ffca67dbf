import importlib.util
import os
import tempfile
from unittest import mock

import numpy as np
import pytest
from absl.testing import absltest

from tests import console, tensorboard_events
from tests.report.html import made_up
from tf2verify.errors import EnvironmentProblem, UsageError
from tf2verify.report.tensorboard import writing
from tf2verify.report.tensorboard.events import folders_of, run_of_case
from tf2verify.report.tensorboard.names import folder_name

pytestmark = pytest.mark.starts_processes

_EVIL = '<script>alert("ü")</script>'


class RequireTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  def test_without_tensorboard(self):
    absent = mock.patch.object(importlib.util, 'find_spec', return_value=None)
    with absent, self.assertRaisesRegex(EnvironmentProblem, r'pip install .tf2verify\[tensorboard'):
      writing.require(str(self.folder / 'new'))
    self.assertEqual(os.listdir(self.folder), [])

  def test_where_no_folder_can_be(self):
    (self.folder / 'file').touch()
    with mock.patch.object(importlib.util, 'find_spec'):
      for name in ('file', 'file/below'):
        with self.assertRaisesRegex(UsageError, 'could not make the folder .*--tensorboard_dir'):
          writing.require(str(self.folder / name))
      writing.require(str(self.folder / 'new' / 'below'))
    self.assertTrue((self.folder / 'new' / 'below').is_dir())


@tensorboard_events.needs_tensorboard
class WritingTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = folder.name

  def test_number_by_number(self):
    cases = made_up.failed(), made_up.failed('ÜCase', _EVIL), made_up.passed()
    for _ in range(2):  # a second time draws nothing twice
      writing.write_cases(self.folder, cases)
    found = tensorboard_events.read(self.folder)
    expected = {}
    for case in cases:
      name = folder_name(f'{case.module}::{case.case}')
      for folder in folders_of([run_of_case(case, 1)]):
        by_tag = expected.setdefault(os.path.normpath(os.path.join(name, folder.name)), {})
        for event in folder.events:
          by_tag.setdefault(event.tag, {})[event.step] = _as_written(event)
    np.testing.assert_equal(found, expected)
    self.assertIn('ÜCase.ÜCase/tf1', found)

  def test_runs(self):
    runs = [
      (f'{name}.py::{name}', 2 * number, made_up.failed(name)) for number in (1, 2) for name in 'AB'
    ]
    writing.write_runs(self.folder, runs)
    found = tensorboard_events.read(self.folder)
    for name in 'AB':
      self.assertEqual(list(found[f'{name}.{name}']['gradients/rounding_noise']), [2, 4])

  def test_a_tensorboard_shows_it(self):
    writing.write_cases(self.folder, [made_up.failed('WrongCase', _EVIL)])
    server = tensorboard_events.Server(self.folder)
    self.addCleanup(server.close)
    runs = server.wait_for(lambda: len(found := server.ask('runs')) == 3 and found)
    self.assertCountEqual(
      runs, ['WrongCase.WrongCase', 'WrongCase.WrongCase/tf1', 'WrongCase.WrongCase/tf2']
    )
    tags = server.ask('plugin/scalars/tags')
    self.assertIn('gradients/share_of_tolerance', tags['WrongCase.WrongCase'])
    for side in ('tf1', 'tf2'):
      self.assertIn('training_steps/loss', tags[f'WrongCase.WrongCase/{side}'])
    place = {'run': 'WrongCase.WrongCase/tf2', 'tag': 'training_steps/loss'}
    points = server.ask('plugin/scalars/scalars', **place)
    self.assertEqual([point[1:] for point in points], [[1, 2.5], [2, 2.25]])
    failed = f'gradients/failed_tensors/gradient {_EVIL} [training]'
    self.assertIn(failed, server.ask('plugin/histograms/tags')['WrongCase.WrongCase'])
    place = {'run': 'WrongCase.WrongCase', 'tag': failed}
    [[_, step, buckets]] = server.ask('plugin/histograms/histograms', **place)
    self.assertEqual((step, sum(count for _, _, count in buckets)), (1, 9.0))
    place['tag'] = 'summary'
    [text] = server.ask('plugin/text/text', **place)
    self.assertIn('<td>6 gradients</td>', text['text'])
    self.assertIn('the cause is &lt;script&gt;alert', text['text'])
    self.assertNotIn('<script', text['text'])


def _as_written(event):
  if hasattr(event, 'markdown'):
    return event.markdown
  if hasattr(event, 'buckets'):
    return [list(bucket) for bucket in event.buckets]
  return float(np.float32(event.value))


if __name__ == '__main__':
  absltest.main()
