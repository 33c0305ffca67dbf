from absl.testing import absltest, parameterized

from tf2verify.records.checkpoint import CheckpointKey, KeyKind, KeySource
from tf2verify.records.observation import VariableRecord
from tf2verify.relation import checkpoint_keys


def key(name, shape=(3,), dtype='float32'):
  return CheckpointKey(name, shape, dtype)


def variable(name, shape=(3,), dtype='float32'):
  return VariableRecord(name, shape, dtype, trainable=True, trainable_flag=True)


class AccountTest(parameterized.TestCase):
  def test_every_key_is_read(self):
    found = checkpoint_keys.account([key('b'), key('a')], [variable('a'), variable('b')])
    self.assertEqual([each.key.name for each in found.keys], ['a', 'b'])
    self.assertEqual(found.sources, (KeySource('a', 'a'), KeySource('b', 'b')))
    self.assertEqual(found.missing, ())
    self.assertEqual(found.counts(), (('model variable', 2, 2),))

  @parameterized.parameters(
    ('w/Adam', KeyKind.SLOT, 'w'),
    ('w/Adam_1', KeyKind.SLOT, 'w'),
    ('train/scope/w/Momentum', KeyKind.SLOT, 'w'),
    ('w/my_average', KeyKind.SLOT, 'w'),
    ('w/ExponentialMovingAverage', KeyKind.SHADOW, 'w'),
    ('beta1_power', KeyKind.OPTIMIZER, ''),
    ('train/beta2_power_1', KeyKind.OPTIMIZER, ''),
    ('global_step', KeyKind.GLOBAL_STEP, ''),
    ('counted', KeyKind.GLOBAL_STEP, ''),
    ('v', KeyKind.UNKNOWN, ''),
    ('v/Adam', KeyKind.UNKNOWN, ''),
  )
  def test_kinds(self, name, kind, owner):
    found = checkpoint_keys.account(
      [key('w'), key(name)], [variable('w')], global_steps=('counted',)
    )
    [other] = [each for each in found.keys if each.key.name != 'w']
    self.assertEqual((other.kind, other.variable, other.read), (kind, owner, False))
    self.assertEqual(found.unread(kind), (other,))

  def test_a_key_below_a_variable_of_another_shape_is_unknown(self):
    found = checkpoint_keys.account([key('w'), key('w/other', (4,))], [variable('w')])
    self.assertLen(found.unread(KeyKind.UNKNOWN), 1)

  def test_shadows_are_read_instead_where_they_are(self):
    keys = [key('a'), key('b'), key('a/ExponentialMovingAverage')]
    found = checkpoint_keys.account(keys, [variable('a'), variable('b')], evaluate_with_ema=True)
    self.assertEqual([source.key for source in found.sources], ['a/ExponentialMovingAverage', 'b'])
    self.assertEqual([each.key.name for each in found.unread(KeyKind.MODEL)], ['a'])

  def test_missing_with_the_closest(self):
    keys = [key('c1/BatchNorm/gama'), key('fc/weights')]
    found = checkpoint_keys.account(keys, [variable('c1/BatchNorm/gamma'), variable('x')])
    self.assertEqual(
      [(each.variable, each.closest) for each in found.missing],
      [('c1/BatchNorm/gamma', 'c1/BatchNorm/gama'), ('x', '')],
    )

  @parameterized.parameters(((4,), 'float32'), ((3, 1), 'float32'), ((3,), 'float64'))
  def test_changed(self, shape, dtype):
    found = checkpoint_keys.account([key('w', shape, dtype)], [variable('w')])
    [changed] = found.changed
    self.assertEqual((changed.key.shape, changed.shape), (shape, (3,)))
    self.assertEqual(found.sources, ())

  @parameterized.parameters((None, 3), (2, None), (None,))
  def test_unknown_dimensions_fit(self, *shape):
    found = checkpoint_keys.account([key('w', (2, 3))], [variable('w', shape)])
    self.assertLen(found.sources, 1)

  def test_parts_of_a_partitioned_variable(self):
    parts = [variable(f'w/part_{n}', (2, 5)) for n in (0, 1)] + [variable('w/part_2', (1, 5))]
    found = checkpoint_keys.account([key('w', (5, 5))], parts)
    self.assertEqual([source.offset for source in found.sources], [(0, 0), (2, 0), (4, 0)])
    self.assertEqual(found.missing, ())
    self.assertEqual(found.counts(), (('model variable', 1, 1),))

  def test_parts_that_do_not_make_the_whole_are_missing(self):
    parts = [variable(f'w/part_{n}', (2, 5)) for n in (0, 1)]
    self.assertLen(checkpoint_keys.account([key('w', (5, 5))], parts).missing, 2)


class NamesAloneTest(absltest.TestCase):
  def test_kinds(self):
    keys = [key('w'), key('w/Adam'), key('w/ExponentialMovingAverage'), key('global_step', ())]
    found = {each.key.name: each.kind for each in checkpoint_keys.kinds(keys)}
    self.assertEqual(
      list(found.values()), [KeyKind.GLOBAL_STEP, KeyKind.MODEL, KeyKind.SLOT, KeyKind.SHADOW]
    )


class OtherScopeTest(absltest.TestCase):
  def test_keys_have_a_scope_more(self):
    said = checkpoint_keys.other_scope(['a/w', 'b'], {'net/a/w', 'net/b', 'step'})
    self.assertIn("'net/' in front", said)

  def test_keys_have_a_scope_less(self):
    self.assertIn("lack 'net/'", checkpoint_keys.other_scope(['net/a', 'net/b'], {'a', 'b'}))

  def test_other_names(self):
    self.assertEqual(checkpoint_keys.other_scope(['a/w', 'b'], {'net/a/w', 'c'}), '')
    self.assertEqual(checkpoint_keys.other_scope([], {'a'}), '')


class StepsDoneTest(parameterized.TestCase):
  @parameterized.parameters((0.9, 0), (0.9**6, 5), (0.9**101, 100))
  def test_a_power(self, power, steps):
    self.assertEqual(checkpoint_keys.steps_done(power, 0.9), steps)

  @parameterized.parameters(0.95, 0.0, 1.0, float('nan'))
  def test_no_power(self, power):
    self.assertIsNone(checkpoint_keys.steps_done(power, 0.9))


if __name__ == '__main__':
  absltest.main()
