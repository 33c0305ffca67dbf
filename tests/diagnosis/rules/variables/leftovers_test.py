"""Tests of tf2verify.diagnosis.rules.variables.leftovers."""

from absl.testing import absltest, parameterized

from tests.counting import calls_of
from tf2verify.diagnosis.causes import texts_by_variable
from tf2verify.diagnosis.evidence.variables import extra_variables, missing_variables
from tf2verify.diagnosis.rules.variables import leftovers
from tf2verify.records.observation import VariableRecord


def _variable(name, shape=(3,)):
  return VariableRecord(name, shape, 'float32', trainable=True, trainable_flag=True)


def _pair(tf1, tf2=None, shape=(3,)):
  return _variable(tf1, shape), _variable(tf2 or tf1, shape)


def _both(*found):
  return texts_by_variable(*missing_variables(*found)), texts_by_variable(*extra_variables(*found))


def _missing(pairs, *only_tf1):
  return texts_by_variable(*missing_variables(pairs, only_tf1, ()))


def _extra(pairs, *only_tf2):
  return texts_by_variable(*extra_variables(pairs, (), only_tf2))


class NormalizationTest(parameterized.TestCase):
  @parameterized.parameters(('gamma', 'beta', 'scale'), ('beta', 'gamma', 'center'))
  def test_one_side_has_another_variable(self, left, beside, argument):
    pairs = [_pair(f'conv/BatchNorm/{beside}', f'norm/{beside}')]
    self.assertIn(
      f'pass {argument}=False', _extra(pairs, _variable(f'norm/{left}'))[f'norm/{left}']
    )
    missing = _missing(pairs, _variable(f'conv/BatchNorm/{left}'))
    self.assertIn(f'pass {argument}=True', missing[f'conv/BatchNorm/{left}'])

  def test_default_of_slim_is_named(self):
    text = _extra([_pair('bn/beta', 'norm/beta')], _variable('norm/gamma'))['norm/gamma']
    self.assertIn('tf1 has bn/beta without a gamma, as slim.batch_norm does by default', text)

  def test_many_have_one_text(self):
    pairs = [_pair(f'norm_{n}/beta') for n in range(50)]
    found = _extra(pairs, *(_variable(f'norm_{n}/gamma') for n in range(50)))
    self.assertLen(found, 50)
    (text,) = set(found.values())
    self.assertStartsWith(text, 'norm_0/gamma, and 49 more like it: ')

  def test_nothing_stands_beside_it(self):
    self.assertEqual(_extra([_pair('other/beta')], _variable('norm/gamma')), {})


class BiasTest(absltest.TestCase):
  def test_beside_a_batch_norm_of_slim(self):
    pairs = [
      _pair('conv/weights', 'port/conv/kernel', (3, 3, 3, 2)),
      _pair('conv/BatchNorm/beta', 'port/norm/beta', (2,)),
    ]
    text = _extra(pairs, _variable('port/conv/bias', (2,)))['port/conv/bias']
    self.assertIn('conv/BatchNorm/beta of its shape instead (slim creates no biases', text)
    self.assertIn('pass use_bias=False', text)

  def test_without_a_batch_norm(self):
    text = _extra([_pair('fc/kernel', shape=(3, 2))], _variable('fc/bias', (2,)))['fc/bias']
    self.assertEqual(text, 'fc/bias: tf1 has fc/kernel without a bias: pass use_bias=False')

  def test_lost(self):
    text = _missing([_pair('fc/kernel', shape=(3, 2))], _variable('fc/bias', (2,)))['fc/bias']
    self.assertIn('the port has fc/kernel without a bias: pass use_bias=True', text)

  def test_of_two_layers_that_are_one_on_the_other_side(self):
    pairs = [_pair('shift/kernel', 'port/w', (7, 3)), _pair('scale/kernel', 'port/w', (7, 3))]
    lost = [_variable('shift/bias', (3,)), _variable('scale/bias', (3,))]
    self.assertEqual(_both(pairs, lost, [_variable('port/b_out', (6,))]), ({}, {}))
    missing, _ = _both(pairs, lost, [_variable('port/b_out', (5,))])
    self.assertIn('pass use_bias=True', missing['shift/bias'])

  def test_of_another_name_on_the_other_side(self):
    causes = _both(
      [_pair('fc/kernel', shape=(3, 2))], [_variable('fc/b', (2,))], [_variable('fc/bias', (3,))]
    )
    self.assertEqual(causes, ({}, {}))


class SharingTest(absltest.TestCase):
  def test_two_objects_for_one(self):
    pairs = [_pair('D/conv/kernel', shape=(3, 2)), _pair('D/conv/bias', shape=(2,))]
    found = _extra(pairs, _variable('D2/conv/kernel', (3, 2)), _variable('D2/conv/bias', (2,)))
    self.assertLen(found, 2)
    (text,) = set(found.values())
    self.assertIn(
      'D2: the port has the variables of D a second time (conv/kernel, conv/bias)', text
    )

  def test_one_object_for_two(self):
    pairs = [_pair('cell_0/gates/kernel'), _pair('cell_0/candidate/kernel')]
    found = _missing(pairs, _variable('cell_1/gates/kernel'), _variable('cell_1/candidate/kernel'))
    (text,) = set(found.values())
    self.assertIn('cell_1: tf1 has it in addition to cell_0, with the same variables', text)

  def test_what_is_left_on_both_sides_is_no_copy(self):
    pairs = [_pair('cell_0/gates/kernel')]
    causes = _both(pairs, [_variable('cell_1/gates/kernel')], [_variable('b/kernel')])
    self.assertEqual(causes, ({}, {}))

  def test_the_most_similar_of_several_is_named(self):
    pairs = [_pair('decoder/fc_1/kernel'), _pair('encoder/fc_1/kernel')]
    text = _extra(pairs, _variable('encoder/fc_2/kernel'))['encoder/fc_2/kernel']
    self.assertIn('the variables of encoder/fc_1 a second time', text)

  def test_other_shapes_are_no_copy(self):
    self.assertEqual(_extra([_pair('a/kernel', shape=(3, 2))], _variable('b/kernel', (3, 4))), {})

  def test_a_scope_that_is_half_paired_is_no_copy(self):
    pairs = [_pair('a/x'), _pair('a/y'), _pair('b/x')]
    self.assertEqual(_extra(pairs, _variable('b/y')), {})

  def test_untied_softmax(self):
    found = _extra([_pair('wte', shape=(5, 4))], _variable('logits/kernel', (4, 5)))
    self.assertIn('the transposed shape of wte (5, 4)', found['logits/kernel'])
    self.assertEqual(_extra([_pair('wte', shape=(4, 4))], _variable('logits/kernel', (4, 4))), {})

  def test_a_layer_that_could_not_be_paired_is_not_untied(self):
    pairs, own = [_pair('wte', shape=(5, 4))], _variable('gru/recurrent_kernel', (4, 5))
    for shape, found in (((9, 5), False), ((5,), True)):
      left = _variable('gru_cell/gates/kernel', shape)
      evidence = next(iter(extra_variables(pairs, [left], [own])))
      self.assertEqual(leftovers.untied_weights(evidence) is not None, found, shape)


class ProjectionTest(absltest.TestCase):
  def test_of_an_attention_mechanism(self):
    found = _missing(
      [_pair('attention_v')],
      _variable('memory_layer/kernel', (3, 3)),
      _variable('decoder/query_layer/kernel', (4, 3)),
    )
    self.assertLen(found, 2)
    self.assertIn('AdditiveAttention of Keras have none', found['memory_layer/kernel'])


class SizeTest(absltest.TestCase):
  def test_nothing_left_over(self):
    causes = _both([_pair('a/kernel')], (), ())
    self.assertEqual(causes, ({}, {}))

  def test_the_work_grows_with_the_leftovers_and_not_with_their_square(self):
    def explained(blocks):
      layers = (f'block_{i}/layer_{j}' for i in range(blocks) for j in range(20))
      names = [f'{layer}/{role}' for layer in layers for role in ('w', 'b')]
      pairs = [_pair(f'net/{name}') for name in names]
      found = _extra(pairs, *(_variable(f'copy/{name}') for name in names))
      self.assertLen(found, 40 * blocks)

    self.assertLess(calls_of(lambda: explained(50)), 5.5 * calls_of(lambda: explained(10)))


if __name__ == '__main__':
  absltest.main()
