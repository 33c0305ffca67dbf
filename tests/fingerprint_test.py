from absl.testing import absltest

from tests import console
from tf2verify.commands import fingerprint
from tf2verify.errors import UsageError
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.repetition import fresh_processes


class FingerprintTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    console.write_files(self.folder, cases_test=console.CASES)

  def digests(self, case, *options):
    path = self.folder / 'digests.json'
    fingerprint.main([*options, f'{self.folder}/cases_test.py::{case}', str(path)])
    return fresh_processes.read(path.read_text())

  def test_the_same_again_and_with_op_determinism(self):
    first = self.digests('RightCase')
    self.assertEqual(set(first), {'tf1', 'tf2'})
    key = TensorKey('initial value', 'scale/factor', 'training, constant')
    self.assertIn(key, first['tf1'])
    self.assertEqual(first['tf1'].keys(), first['tf2'].keys())
    self.assertEqual(first, self.digests('RightCase'))
    self.assertEqual(first, self.digests('RightCase', '--op_determinism'))

  def test_another_port_has_other_digests(self):
    right, wrong = self.digests('RightCase'), self.digests('WrongCase')
    self.assertEqual(right['tf1'], wrong['tf1'])
    self.assertNotEqual(right['tf2'], wrong['tf2'])

  def test_no_such_case(self):
    with self.assertRaisesRegex(UsageError, 'has no case LeftCase'):
      self.digests('LeftCase')


if __name__ == '__main__':
  absltest.main()
