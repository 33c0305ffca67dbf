import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.conversion_test import BIAS, KERNEL, CommandTestCase

_KEYS = {
  'kernel': KERNEL,
  'kernel/Adam': KERNEL,
  'bias': BIAS[:1],
  'biass': BIAS,
  'global_step': np.array(5),
}


class InspectTest(CommandTestCase):
  def test_keys_alone(self):
    prefix = self.write(**_KEYS)
    status, said, _ = self.run_command('inspect', prefix)
    self.assertEqual(status, 0)
    self.assertEqual(
      said,
      f'{prefix}: 5 keys, name-based (tf.compat.v1.train.Saver)\n'
      '  key          shape   dtype    holds\n'
      '  bias         (1,)    float32  model variable\n'
      '  biass        (2,)    float32  model variable\n'
      '  global_step  ()      int64    global step\n'
      '  kernel       (3, 2)  float32  model variable\n'
      '  kernel/Adam  (3, 2)  float32  optimizer slot of kernel\n',
    )

  def test_beside_a_case(self):
    prefix = self.write(**_KEYS)
    status, said, _ = self.run_command('inspect', prefix, '--case', f'{self.file}::RightCase')
    self.assertEqual(status, 1)
    self.assertEqual(
      said,
      f'{prefix}: 5 keys, name-based (tf.compat.v1.train.Saver)\n'
      'RightCase: 1 of 2 variables have a key that fits\n'
      '  does not fit: bias is (1,) float32, the variable is (2,) float32\n'
      '  key          shape   dtype    holds                     tf2 variable\n'
      '  bias         (1,)    float32  model variable            does not fit: (2,) float32\n'
      '  biass        (2,)    float32  unknown\n'
      '  global_step  ()      int64    global step\n'
      '  kernel       (3, 2)  float32  model variable            kernel\n'
      '  kernel/Adam  (3, 2)  float32  optimizer slot of kernel\n',
    )

  def test_missing_key(self):
    prefix = self.write(kernel=KERNEL, biass=BIAS)
    status, said, _ = self.run_command('inspect', prefix, '--case', f'{self.file}::RightCase')
    self.assertEqual(status, 1)
    self.assertIn('1 of 2 variables have a key that fits\n  no key: bias\n', said)
    self.assertIn('no key (closest: biass)', said)
    self.assertRegex(said, r'biass\) +bias +bias\n')

  def test_all_fit(self):
    prefix = self.write(kernel=KERNEL, bias=BIAS)
    status, said, _ = self.run_command('inspect', prefix, '--case', f'{self.file}::RightCase')
    self.assertEqual(status, 0)
    self.assertIn('2 of 2 variables have a key that fits\n  key ', said)

  def test_object_based(self):
    variable = tf.Variable(KERNEL)
    prefix = tf.train.Checkpoint(net=variable).write(str(self.folder / 'tf2' / 'net'))
    status, said, _ = self.run_command('inspect', prefix)
    self.assertEqual(status, 0)
    self.assertIn('1 keys, object-based (tf.train.Checkpoint)', said)
    self.assertIn('  net          (3, 2)  float32\n', said)
    status, _, complained = self.run_command('inspect', prefix, '--case', f'{self.file}::RightCase')
    self.assertEqual(status, 2)
    self.assertIn('inspect it without --case', complained)

  def test_absent(self):
    status, said, complained = self.run_command('inspect', str(self.folder / 'absent'))
    self.assertEqual((status, said), (2, ''))
    self.assertIn('absent.index does not exist', complained)


if __name__ == '__main__':
  absltest.main()
