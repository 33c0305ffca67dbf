"""Tests of tf2verify.relation.names.roles."""

from absl.testing import absltest, parameterized

from tf2verify.relation.names import roles


class RoleTest(parameterized.TestCase):
  @parameterized.parameters(
    ('conv/weights', 'kernel'),
    ('conv/depthwise_weights', 'depthwise_kernel'),
    ('fc/biases', 'bias'),
    ('bn/scale', 'gamma'),
    ('BatchNorm/beta', 'beta'),
    ('bn/var', 'moving_variance'),
    ('bias_1', 'bias'),
    ('step', ''),
    ('kernel/part_0', ''),
  )
  def test_role(self, name, expected):
    self.assertEqual(roles.role(name), expected)

  @parameterized.parameters(
    ('wide/bias', 'offset', True),
    ('bn/beta', 'norm/offset', True),
    ('norm/gamma', 'weight', True),
    ('norm/beta', 'b', True),
    ('k/kernel', 'embeddings', True),
    ('w', 'scale', True),
    ('step', 'bias', True),
    ('bn/gamma', 'bn/beta', False),
    ('scale', 'offset', False),
    ('scale', 'bias', False),
    ('w', 'b', False),
    ('l/kernel', 'l/gamma', False),
  )
  def test_may_be_one(self, one, other, expected):
    self.assertEqual(roles.may_be_one(one, other), expected)
    self.assertEqual(roles.may_be_one(other, one), expected)

  def test_words(self):
    self.assertEqual(
      roles.words('Net/BatchNorm_1/offset'), ('net', 'batch_normalization_1', 'beta')
    )

  def test_counters(self):
    self.assertEqual(roles.counters('dense_12/kernel'), (12, 0))
    self.assertEqual(roles.without_counters('dense_12/w'), ('dense', 'kernel'))

  def test_owner(self):
    self.assertEqual(roles.owner('net/fc/kernel'), 'net/fc')
    self.assertEqual(roles.owner('kernel'), '')


if __name__ == '__main__':
  absltest.main()
