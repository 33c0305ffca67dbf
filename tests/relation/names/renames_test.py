"""Tests of tf2verify.relation.names.renames."""

from absl.testing import absltest, parameterized

from tests.counting import calls_of
from tf2verify.records.observation import VariableRecord
from tf2verify.relation.names.renames import rename_suggestions


def _variables(*names, shape=(3, 4), dtype='float32'):
  return [VariableRecord(name, shape, dtype, trainable=True, trainable_flag=True) for name in names]


def _renames(tf1, tf2):
  return dict(rename_suggestions(_variables(*tf1), _variables(*tf2)).renames)


class OnePairTest(parameterized.TestCase):
  @parameterized.parameters(
    ('conv/weights', 'conv/kernel'),
    ('conv/biases', 'conv/bias'),
    ('bn/moving_mean', 'bn/mean'),
    ('bn/gamma', 'bn/scale'),
    ('bn/beta', 'bn/offset'),
    ('conv/BatchNorm/beta', 'conv/batch_normalization/beta'),
    ('dense/kernel', 'dense_1/kernel'),
    ('net/dense_2/kernel', 'net/dense/kernel'),
    ('Logits/weights', 'logits_layer/kernel'),
    ('encoder/layer_0/kernel', 'model/encoder/layer_0/kernel'),
  )
  def test_suggests(self, tf1, tf2):
    self.assertEqual(_renames([tf1], [tf2]), {tf1: tf2})

  @parameterized.parameters(
    ('conv/weights', 'conv/bias'),
    ('bn/gamma', 'bn/beta'),
    ('bn/moving_mean', 'bn/moving_variance'),
    ('bn/gamma', 'dense/bias'),
  )
  def test_does_not_suggest(self, tf1, tf2):
    self.assertEqual(_renames([tf1], [tf2]), {})

  def test_the_only_one_of_each_side(self):
    one, other = 'encoder/attention/query', 'decoder/mixer/output'
    found = rename_suggestions(_variables(one), _variables(other))
    self.assertEqual(found.renames, ((one, other),))
    self.assertStartsWith(found.explanation, 'each side has one variable that the other lacks')
    self.assertEqual(_renames([one], [other, 'decoder/mixer/scores']), {})
    self.assertEqual(
      rename_suggestions(_variables(one), _variables(other, shape=(4, 3))).renames, ()
    )

  def test_shape_and_dtype_have_to_be_equal(self):
    tf1 = _variables('conv/weights')
    self.assertEqual(rename_suggestions(tf1, _variables('conv/kernel', shape=(4, 3))).renames, ())
    self.assertEqual(rename_suggestions(tf1, _variables('conv/kernel', dtype='half')).renames, ())

  def test_nothing_left_over(self):
    self.assertEqual(rename_suggestions([], []).renames, ())
    self.assertEqual(rename_suggestions(_variables('a'), []).renames, ())


class PrefixTest(absltest.TestCase):
  def test_missing(self):
    found = rename_suggestions(_variables('net/a/w', 'net/b/w'), _variables('b/w', 'a/w'))
    self.assertEqual(found.renames, (('net/a/w', 'a/w'), ('net/b/w', 'b/w')))
    self.assertEqual(found.explanation, '2 names: the tf2 side lacks the prefix "net/"')

  def test_extra(self):
    found = rename_suggestions(_variables('a/w', 'b/w'), _variables('net/a/w', 'net/b/w', 'net/c'))
    self.assertLen(found.renames, 2)
    self.assertIn('the tf2 side has the prefix "net/", which', found.explanation)

  def test_another(self):
    found = rename_suggestions(_variables('x/a/w', 'x/b/w'), _variables('y/a/w', 'y/b/w'))
    self.assertIn('begin with "x/" on the tf1 side, with "y/" on', found.explanation)

  def test_together_with_other_words(self):
    found = rename_suggestions(
      _variables('net/conv/weights', 'net/conv_1/weights'),
      _variables('conv/kernel', 'conv_1/kernel'),
    )
    self.assertEqual(found.renames[1], ('net/conv_1/weights', 'conv_1/kernel'))
    self.assertIn('lacks the prefix "net/"', found.explanation)

  def test_needs_all_of_the_shorter_side(self):
    tf1, tf2 = _variables('net/a/w', 'net/b/w'), _variables('a/w', 'q/z')
    self.assertEqual(rename_suggestions(tf1, tf2).explanation, '')


class CounterTest(absltest.TestCase):
  def _explanation(self, tf1, tf2):
    return rename_suggestions(_variables(*tf1), _variables(*tf2)).explanation

  def test_names_that_count_on(self):
    text = self._explanation(['dense/w', 'dense_1/w'], ['dense_2/w', 'dense_3/w'])
    self.assertIn('differ in their counters only (dense → dense_2)', text)
    self.assertIn('Keras counts on after a second instance', text)

  def test_scopes_that_count_on(self):
    text = self._explanation(['model/a/w', 'model/b/w'], ['model_1/a/w', 'model_1/b/w'])
    self.assertIn('"model/" on the tf1 side, with "model_1/" on the tf2 side, which count', text)

  def test_other_names(self):
    self.assertNotIn('count', self._explanation(['a/x/w', 'a/y/w'], ['b/x/w', 'b/y/w']))
    self.assertEqual(self._explanation(['fc/weights'], ['fc/kernel']), '')


class ScopeTest(absltest.TestCase):
  TF1 = tuple(f'net/block17_{n}/{end}' for n in (1, 2, 3) for end in ('a/w', 'b/w'))

  def test_one_scope_called_otherwise(self):
    tf2 = [name.replace('block17', 'b17') for name in self.TF1]
    self.assertEqual(_renames(self.TF1, tf2), dict(zip(self.TF1, tf2, strict=True)))

  def test_two_scopes_called_otherwise_are_no_one_change(self):
    tf2 = [name.replace('block17', 'b17' if name.endswith('a/w') else 'c17') for name in self.TF1]
    suggestion = rename_suggestions(_variables(*self.TF1), _variables(*tf2))
    self.assertNotIn('a scope is called', suggestion.explanation)


class ManyTest(parameterized.TestCase):
  def test_ambiguous_names_are_left_out(self):
    self.assertEqual(_renames(['dense/kernel'], ['dense_1/kernel', 'dense_2/kernel']), {})
    tf1 = ['dense_1/kernel', 'dense_2/kernel']
    self.assertEqual(_renames(tf1, ['dense_3/kernel', 'dense_7/kernel']), {})

  def test_series_that_counts_on(self):
    found = _renames(['c/w', 'c_1/w', 'c_2/w'], ['c_4/w', 'c_3/w', 'c_5/w'])
    self.assertEqual(found, {'c/w': 'c_3/w', 'c_1/w': 'c_4/w', 'c_2/w': 'c_5/w'})

  def test_one_to_one(self):
    found = _renames(['a/conv/weights', 'b/conv/weights'], ['a/conv/kernel', 'conv/kernel'])
    self.assertEqual(found['a/conv/weights'], 'a/conv/kernel')
    self.assertLen(set(found.values()), len(found))

  @parameterized.parameters(True, False)
  def test_the_work_grows_with_the_leftovers_and_not_with_their_square(self, unlike):
    def suggested(blocks):
      roles = ('weights', 'biases', 'gamma', 'moving_mean')
      tf1 = [f'Net/Block_{i}/Branch_{i % 4}/{role}' for i in range(blocks) for role in roles]
      if unlike:
        tf2 = [f'port/stage{i * 7 % 500}/{role}' for i in range(blocks) for role in roles]
      else:
        tf2 = [name.removeprefix('Net/') for name in tf1]
      _renames(tf1, tf2)

    self.assertLess(calls_of(lambda: suggested(500)), 5.5 * calls_of(lambda: suggested(100)))


if __name__ == '__main__':
  absltest.main()
