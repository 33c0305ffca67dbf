"""Tests of tf2verify.relation.proof.differences.graph_differences."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related
from tf2verify.relation.proof.differences.graph_differences import unlike
from tf2verify.relation.proof.differences.sizes import unlike_sizes
from tf2verify.relation.proof.proving import prove
from tf2verify.sides.graphs.reading import GraphReader, Target

v1 = tf.compat.v1

X = (4, 6)


def _found(one, other, *shapes):
  return [(one.what, one.values) for one in unlike(related(one, other, shapes), {})[0]]


def _repeated(function, x):
  return tf.while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, function(y)), (0, x))[1]


def _of_counts(function, side, dtype):
  """Returns the graph of a function of a counter, or of an input of its dtype."""
  graph = tf.Graph()
  with graph.as_default():
    step = v1.placeholder(dtype, (), name='step')
    result = tf.identity(function(tf.cast(step, tf.float32)) + 1.0)
  known = {'step': 'global_step'}
  variables, inputs = (known, {}) if dtype == tf.int64 else ({}, known)
  target = Target('output y', (result.name,))
  return GraphReader(graph, variables, inputs, {}).read([target], (), side)


class UnlikeTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'bound',
      lambda x: tf.clip_by_value(x, -20.0, 2.0) + 1.0,
      lambda x: tf.clip_by_value(x, -5.0, 2.0) + 1.0,
      ('constant', ('-20', '-5')),
    ),
    ('activation', tf.nn.relu, tf.nn.relu6, ('operation', ('Relu', 'Relu6'))),
    (
      'epsilon',
      lambda x: tf.nn.l2_normalize(x, -1, 1e-10),
      lambda x: tf.nn.l2_normalize(x, -1),
      ('constant', ('1e-10', '1e-12')),
    ),
    (
      'slope',
      lambda x: tf.nn.leaky_relu(x, 0.2) * x,
      lambda x: tf.nn.leaky_relu(x, 0.3) * x,
      ('alpha', ('0.2', '0.3')),
    ),
  )
  def test_found(self, one, other, wanted):
    self.assertEqual(_found(one, other, X), [wanted])

  @parameterized.named_parameters(
    ('tf1', False, ('missing', ('Minimum with 2 → Maximum with -20', ''))),
    ('the_port', True, ('extra', ('', 'Minimum with 2 → Maximum with -20'))),
  )
  def test_what_both_sides_have_and_one_place_does_not_read(self, is_turned, wanted):
    """An actor and a critic, of which the critic alone has lost its bounds."""

    def bounded(x):
      return tf.clip_by_value(x, -20.0, 2.0)

    def both(x, w, v):
      return tf.tanh(tf.matmul(bounded(x), w)) + tf.exp(tf.matmul(bounded(x), v))

    def one_alone(x, w, v):
      return tf.tanh(tf.matmul(bounded(x), w)) + tf.exp(tf.matmul(x, v))

    sides = (one_alone, both) if is_turned else (both, one_alone)
    self.assertEqual(_found(*sides, X, (6, 3), (6, 3)), [wanted])
    found, _ = unlike(related(*sides, (X, (6, 3), (6, 3))), {})
    self.assertIsNotNone(found[0].named)

  def test_a_factor_before_a_product_and_after_it(self):
    def before(x, w, v):
      return tf.matmul(x * 0.3, w) + tf.matmul(x * 0.3, v)

    def after(x, w, v):
      return tf.matmul(x * 0.3, w) + tf.matmul(x, v) * 0.3

    self.assertEqual(_found(before, after, X, (6, 3), (6, 3)), [])

  @parameterized.named_parameters(
    ('bound', lambda x: tf.tanh(tf.maximum(x, 1.0)), tf.tanh, ('missing', ('Maximum with 1', ''))),
    (
      'clipping',
      lambda x: tf.tanh(tf.clip_by_value(x, -20.0, 2.0)),
      tf.tanh,
      ('missing', ('Minimum with 2 → Maximum with -20', '')),
    ),
    ('activation', lambda x: tf.exp(tf.nn.relu(x)), tf.exp, ('missing', ('Relu', ''))),
    ('rounding', tf.exp, lambda x: tf.exp(tf.floor(x)), ('extra', ('', 'Floor'))),
    (
      'comparison',
      lambda x: tf.cast(tf.not_equal(tf.cast(x, tf.int32), 0), tf.float32),
      lambda x: tf.cast(tf.cast(x, tf.int32) >= 1, tf.float32),
      ('operation', ('NotEqual with 0', 'GreaterEqual with 1')),
    ),
  )
  def test_on_one_side_only(self, one, other, wanted):
    self.assertEqual(_found(one, other, X), [wanted])

  def test_conditions_that_depend_on_each_other(self):
    """Of thresholds of one tensor, only some of them are reached together."""

    def nested(x):
      weight = tf.ones_like(x)
      for limit, own in ((1.0, 2.0), (3.0, 5.0)):
        weight = tf.where(x >= limit, tf.fill(tf.shape(x), own), weight)
      return weight * x

    def steps(last):
      def function(x):
        first, second = (tf.cast(x >= limit, tf.float32) for limit in (1.0, 3.0))
        return x * (1.0 + first + last * second)

      return function

    self.assertEqual(_found(nested, steps(3.0), X), [])
    (found,) = _found(nested, steps(4.0), X)
    self.assertEqual(found[0], 'operation')
    self.assertIn('which gives 5 for ', found[1][0])
    self.assertIn('which gives 6 for ', found[1][1])

  def test_a_bound_chosen_by_a_sign(self):
    """A choice of bounds that is the least of two products, with the sign taken out of the mean."""

    def least(x, y):
      return tf.reduce_mean(tf.maximum(-x * y, -x * tf.clip_by_value(y, 0.8, 1.2)))

    def chosen(low):
      def function(x, y):
        return -tf.reduce_mean(x * tf.where(x >= 0.0, tf.minimum(y, 1.2), tf.maximum(y, low)))

      return function

    self.assertEqual(_found(least, chosen(0.8), X, X), [])
    self.assertNotEqual(_found(least, chosen(0.7), X, X), [])

  @parameterized.named_parameters(
    (
      'strict_comparison',
      lambda x: tf.where(x >= 0.35, x, 0.0),
      lambda x: tf.where(x > 0.35, x, 0.0),
      ('operation', ('GreaterEqual with 0.35', 'Greater with 0.35')),
    ),
    (
      'limit',
      lambda x: tf.where(x < 100.0, tf.tanh(x), x),
      lambda x: tf.where(x < 10.0, tf.tanh(x), x),
      ('operation', ('Less with 100', 'Less with 10')),
    ),
    (
      'division',
      lambda x, y: tf.tanh(tf.math.divide_no_nan(x, y)),
      lambda x, y: tf.tanh(x / y),
      ('operation', ('DivNoNan', 'RealDiv')),
    ),
    (
      'modulus',
      lambda x, y: tf.cast(tf.math.floormod(tf.cast(x, tf.int32), 16), tf.float32) * y,
      lambda x, y: tf.cast(tf.truncatemod(tf.cast(x, tf.int32), 16), tf.float32) * y,
      ('operation', ('FloorMod', 'TruncateMod')),
    ),
    (
      'conversion',
      lambda x, y: tf.cast(tf.cast(x, tf.int32), tf.float32) * y,
      lambda x, y: tf.cast(tf.cast(tf.cast(x, tf.int32), tf.uint8), tf.float32) * y,
      ('extra', ('', 'Cast to uint8')),
    ),
  )
  def test_of_the_same_operands(self, one, other, wanted):
    count = one.__code__.co_argcount
    self.assertEqual(_found(one, other, *[X] * count), [wanted])

  @parameterized.named_parameters(
    (
      'bound',
      lambda x: 2.0 * tf.maximum(x, -7.0),
      lambda x: 2.0 * tf.maximum(x, -6.0),
      ('-7', '-6'),
    ),
    ('slope', tf.nn.leaky_relu, lambda x: tf.nn.leaky_relu(x, 0.3), ('0.2', '0.3')),
    (
      'activation',
      lambda x: tf.nn.relu(x + 1.0),
      lambda x: tf.nn.relu6(x + 1.0),
      ('Relu', 'Relu6'),
    ),
    (
      'two_bounds',
      lambda x: tf.clip_by_value(x, -7.0, 7.0),
      lambda x: tf.clip_by_value(x, -6.0, 5.0),
      ('7', '5'),
      ('-7', '-6'),
    ),
    (
      'in_a_loop',
      lambda x: _repeated(lambda y: tf.minimum(y, 5.0) + 1.0, x),
      lambda x: _repeated(lambda y: tf.minimum(y, 4.0) + 1.0, x),
      ('5', '4'),
    ),
    (
      'strict_comparison',
      lambda x: tf.where(x > tf.reverse(x, [0]), tf.tanh(x), x),
      lambda x: tf.where(x >= tf.reverse(x, [0]), tf.tanh(x), x),
      ('Greater (False for equal values)', 'GreaterEqual (True for equal values)'),
    ),
    ('the_same', lambda x: tf.maximum(x, -7.0), lambda x: tf.maximum(x, -7.0)),
    (
      'operands_in_another_order',
      lambda x: tf.maximum(x, 1.0) * tf.maximum(x + 1.0, 2.0),
      lambda x: tf.maximum(x + 1.0, 2.0) * tf.maximum(x, 1.0),
    ),
    (
      'another_spelling',
      lambda x: tf.maximum(2.0 * x, -6.0),
      lambda x: 2.0 * tf.maximum(x, -3.0),
    ),
    (
      'activation_in_another_spelling',
      tf.nn.relu6,
      lambda x: tf.nn.relu(tf.minimum(x, 6.0)),
    ),
  )
  def test_bounds_of_what_is_not_proven(self, one, other, *wanted):
    def summed(x):
      return one(tf.cumsum(x, 1))

    def multiplied(x):
      return other(tf.matmul(x, np.triu(np.ones((6, 6), np.float32))))

    self.assertCountEqual([values for _, values in _found(summed, multiplied, X)], wanted)

  @parameterized.named_parameters(
    ('subtracted', lambda e, m: e - 1e9 * m[:, None]),
    ('negated', lambda e, m: e + -(m * 1e9)[:, None]),
    ('negated_twice', lambda e, m: e - -1e9 * (-m)[:, None]),
    ('divided_by_the_inverse', lambda e, m: e - m[:, None] / 1e-9),
    ('in_two_factors', lambda e, m: e - ((m * 1e4)[:, None] * 1e5)),
    ('of_the_negated_mask', lambda e, m: 1e9 * (-m)[:, None] + e),
    ('of_the_same_operand', lambda e, m: e - (m * 1e9)[:, None]),
    ('of_the_same_operand_with_the_other_sign', lambda e, m: e + (m * 1e9)[:, None], '-1e+09'),
    ('added_with_the_other_sign', lambda e, m: e + 1e9 * m[:, None], 'Mul with -1e+09'),
    ('another_factor', lambda e, m: e - 1e8 * m[:, None], 'Mul with -1e+09'),
    ('without_the_factor', lambda e, m: e - m[:, None], 'Mul with -1e+09'),
  )
  def test_factor_in_another_place(self, added, *wanted):
    """A mask is added to what is not proven to be the same."""
    triangle = np.triu(np.ones((6, 6), np.float32))

    def one(x, mask):
      return tf.nn.softmax(tf.cumsum(x, 1) + tf.expand_dims((1.0 - mask) * -1e9, 1))

    def other(x, mask):
      return tf.nn.softmax(added(tf.matmul(x, triangle), 1.0 - mask))

    self.assertEqual([values[0] for _, values in _found(one, other, X, (4,))], [*wanted])

  @parameterized.named_parameters(
    ('strict', lambda x, y: x >= y, 'GreaterEqual'),
    ('turned', lambda x, y: y <= x, 'LessEqual'),
  )
  def test_comparison_of_two_tensors(self, condition, operation):
    def one(x, y):
      return tf.where(x > y, tf.tanh(x), y)

    def other(x, y):
      return tf.where(condition(x, y), tf.tanh(x), y)

    wanted = ('Greater (False for equal values)', f'{operation} (True for equal values)')
    self.assertEqual(_found(one, other, X, X), [('operation', wanted)])

  @parameterized.named_parameters(
    ('strict', lambda x, y: x >= y, 1),
    ('the_same', lambda x, y: x > y, 0),
    ('turned', lambda x, y: y < x, 0),
  )
  def test_comparison_of_which_something_else_is_made(self, condition, count):
    triangle = np.triu(np.ones((6, 6), np.float32))

    def one(x, y):
      return tf.cumsum(x * tf.cast(x > y, tf.float32) * tf.cast(x > -y, tf.float32), 1)

    def other(x, y):
      return tf.matmul(tf.where(condition(x, y) & (-y < x), x, 0.0), triangle)

    wanted = ('Greater (False for equal values)', 'GreaterEqual (True for equal values)')
    self.assertEqual(_found(one, other, X, X), [('operation', wanted)] * count)

  def test_comparison_that_is_negated(self):
    def one(x):
      return tf.where(x > tf.reduce_max(x, 1, True) * 0.5, tf.tanh(x), x)

    def other(x):
      return tf.where(tf.logical_not(x < tf.reduce_max(x, 1, True) * 0.5), tf.tanh(x), x)

    ((what, values),) = _found(one, other, X)
    self.assertEqual(what, 'operation')
    self.assertStartsWith(values[0], 'Greater (which gives False')
    self.assertStartsWith(values[1], 'Less → LogicalNot (which gives True')

  @parameterized.named_parameters(
    ('turned', lambda x, y: y < x),
    ('negated', lambda x, y: tf.logical_not(x <= y)),
    ('turned_and_negated', lambda x, y: tf.logical_not(tf.greater_equal(y, x))),
  )
  def test_comparison_in_another_spelling(self, condition):
    def one(x, y):
      return tf.where(x > y, tf.tanh(x), y)

    self.assertEqual(_found(one, lambda x, y: tf.where(condition(x, y), tf.tanh(x), y), X, X), [])

  def test_comparison_with_a_random_number(self):
    def one(x):
      return x * tf.cast(tf.random.uniform(X) >= 0.5, tf.float32)

    def other(x):
      return x * tf.cast(tf.random.uniform(X) > 0.5, tf.float32)

    self.assertEqual(_found(one, other, X), [])

  def test_both_bounds(self):
    found = _found(
      lambda x: tf.tanh(tf.clip_by_value(x, -10.0, 10.0)),
      lambda x: tf.tanh(tf.clip_by_value(x, -5.0, 5.0)),
      X,
    )
    self.assertEqual(found, [('constant', ('10', '5')), ('constant', ('-10', '-5'))])

  def test_in_a_loop(self):
    def looped(bound):
      def body(n, state):
        return n + 1, tf.clip_by_value(tf.tanh(state) * 2.0, -bound, bound)

      def function(x):
        return tf.while_loop(lambda n, _: n < 3, body, (0, x))[1] + 1.0

      return function

    found = _found(looped(1.0), looped(0.5), X)
    self.assertEqual(found, [('constant', ('1, -1', '0.5, -0.5'))])
    self.assertEmpty(_found(looped(50.0), looped(20.0), X))  # never reached

  def test_in_a_loop_that_is_another_one(self):
    def one(x):
      return tf.while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, tf.sin(y) * 0.5), (0, x))[1]

    def other(x):
      return tf.while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, tf.cumsum(y) * 0.4), (0, x))[1]

    self.assertEqual(_found(one, other, X), [])

  def test_of_operations_that_have_nothing_in_common(self):
    def one(x, scale, offset, mean, variance):
      return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)

    def other(x, scale, offset, mean, variance):
      norm = v1.nn.fused_batch_norm(
        x, scale, offset, mean, variance, epsilon=1e-3, is_training=False
      )
      return norm[0]

    found = _found(one, other, (2, 3, 3, 4), (4,), (4,), (4,), (4,))
    self.assertEqual(found, [('constant', ('1e-05', '0.001'))])

  def test_another_rounding(self):
    found = _found(
      lambda x: tf.sin(tf.round(x)) * x, lambda x: tf.sin(tf.floor(x + 0.5)) * x, (8, 8)
    )
    ((what, (one, other)),) = found
    self.assertEqual(what, 'operation')
    self.assertRegex(one, r'^Round \(which gives (\S+) for \S+\)$')
    self.assertRegex(other, r'^AddV2 with 0.5 → Floor \(which gives (\S+) for \S+\)$')

  def test_a_spelling_that_no_rule_knows_is_no_difference(self):
    found = _found(lambda x: tf.sin(tf.abs(x)), lambda x: tf.sin(tf.maximum(x, -x)), (8, 8))
    self.assertEqual(found, [])

  def test_an_operation_more_that_changes_nothing_is_no_difference(self):
    found = _found(
      lambda x, y: tf.where(y > 0.3, tf.pow(x, 6.0), y),
      lambda x, y: tf.where(y > 0.3, tf.pow(-x, 6.0), y),
      X,
      X,
    )
    self.assertEqual(found, [])

  def test_a_difference_beside_another_spelling_is_found(self):
    found = _found(
      lambda x, y: tf.where(y > 0.3, tf.pow(x, 6.0), tf.maximum(y, -3.0)),
      lambda x, y: tf.where(y > 0.3, tf.pow(-x, 6.0), tf.maximum(y, -2.0)),
      X,
      X,
    )
    self.assertEqual(found, [('constant', ('-3', '-2'))])

  def test_a_sign_that_counts_is_a_difference(self):
    found = _found(
      lambda x, y: tf.where(y > 0.3, tf.pow(x, 5.0), y),
      lambda x, y: tf.where(y > 0.3, tf.pow(-x, 5.0), y),
      X,
      X,
    )
    self.assertEqual(found, [('extra', ('', 'Neg'))])

  def test_what_only_negative_values_tell_apart_of_a_sum_of_squares(self):
    def one(x):
      return x * tf.math.rsqrt(tf.maximum(tf.reduce_sum(x * x, 1, keepdims=True), 1e-6))

    def other(bound):
      def function(x):
        return x * tf.minimum(tf.math.rsqrt(tf.reduce_sum(tf.square(x), 1, keepdims=True)), bound)

      return function

    self.assertEqual(_found(one, other(1000.0), (4, 6)), [])
    self.assertNotEqual(_found(one, other(100.0), (4, 6)), [])

  @parameterized.named_parameters(
    ('square', lambda x: x * x, []),
    ('exponential', lambda x: 2.0 * tf.exp(x) + 1.0, []),
    ('less_than_a_square', lambda x: x * x - 1.0, ['missing']),
    ('product', lambda x: x * tf.reverse(x, [1]), ['missing']),
  )
  def test_a_bound_of_0(self, computed, wanted):
    found = _found(
      lambda x: tf.tanh(tf.maximum(computed(x), 0.0)), lambda x: tf.tanh(computed(x)), (4, 6)
    )
    self.assertEqual([what for what, _ in found], wanted)

  def test_sizes(self):
    def places(bound):
      return lambda x: tf.gather(x, tf.minimum(tf.range(tf.shape(x)[0]), bound))

    proof = related(places(63), places(31), [X])
    self.assertFalse(proof.tested)
    found = [(one.what, one.values) for one in unlike_sizes(proof)]
    self.assertEqual(found, [('constant', ('63', '31'))])
    self.assertFalse(list(unlike_sizes(related(places(63), places(63), [X]))))

  def test_bounds_of_two_sizes_that_are_computed_in_another_order(self):
    def two(first, second):
      def function(x):
        places = [tf.minimum(tf.range(tf.shape(x)[0]), bound) for bound in (first, second)]
        return [tf.gather(x, place) for place in places]

      return function

    proof = related(two(63, 31), lambda x: two(31, 63)(x)[::-1], [X])
    self.assertFalse(proof.tested)
    self.assertFalse(list(unlike_sizes(proof)))

  @parameterized.named_parameters(
    (
      'nan',
      lambda x: tf.where(tf.math.is_nan(x), tf.zeros_like(x), x),
      ('missing', ('IsNan → SelectV2 with 0', '')),
    ),
    (
      'finite',
      lambda x: tf.where(tf.math.is_finite(x), x, tf.ones_like(x)),
      ('missing', ('IsFinite → SelectV2 with 1', '')),
    ),
  )
  def test_guards(self, guarded, wanted):
    found = _found(lambda x: tf.tanh(guarded(tf.exp(x))), lambda x: tf.tanh(tf.exp(x)), X)
    self.assertEqual(found, [wanted])

  def test_condition_with_a_branch_that_changes_nothing(self):
    def plain(x):
      return tf.tanh(x) @ tf.ones([6, 2])

    def branched(x):
      y = tf.tanh(x)
      return tf.cond(tf.shape(x)[0] < 2, lambda: y * 2.0, lambda: y) @ tf.ones([6, 2])

    self.assertEqual([what for what, _ in _found(plain, branched, (4, 6))], ['extra'])
    self.assertEqual([what for what, _ in _found(branched, plain, (4, 6))], ['missing'])

  @parameterized.named_parameters(
    ('relu', lambda x: tf.where(x > 0, x, tf.zeros_like(x)), tf.nn.relu),
    ('leaky', lambda x: tf.where(x > 0, x, 0.2 * x), lambda x: tf.nn.leaky_relu(x, 0.2)),
    ('abs', lambda x: tf.where(x < 0, -x, x), tf.abs),
    ('elu', lambda x: tf.where(x > 0, x, tf.exp(x) - 1.0), tf.nn.elu),
    (
      'clip',
      lambda x: tf.where(x > 2.0, tf.fill(tf.shape(x), 2.0), x),
      lambda x: tf.minimum(x, 2.0),
    ),
    (
      'selu',
      lambda x: 1.0507009873554805 * tf.where(x > 0, x, 1.6732632423543772 * (tf.exp(x) - 1.0)),
      tf.nn.selu,
    ),
    ('swish', lambda x: tf.where(x > -1e9, x * tf.sigmoid(x), 0.0), tf.nn.silu),
  )
  def test_choices_that_are_activations(self, one, other):
    def within(function):
      return lambda x: tf.tanh(function(tf.sin(x))) @ tf.ones([6, 2])

    for first, second in ((one, other), (other, one)):
      self.assertEqual(_found(within(first), within(second), X), [])

  def test_slices_with_an_end_that_is_not_reached(self):
    def found(one, other):
      proof = related(one, other, [(4, 6)])
      self.assertFalse(proof.tested)
      return [(unlike.what, unlike.values) for unlike in unlike_sizes(proof)]

    def to(end):
      return lambda x: tf.tanh(tf.exp(x)[:, :end])

    said = 'a slice up to 50 (of 6 elements)'
    whole = lambda x: tf.tanh(tf.exp(x))  # noqa: E731
    self.assertEqual(found(whole, to(50)), [('extra', ('', said))])
    self.assertEqual(found(to(50), whole), [('missing', (said, ''))])
    self.assertEqual(found(to(None), to(50)), [('slice', ('a slice to the end', said))])
    self.assertEqual(found(to(50), to(60)), [('slice', (said, said.replace('50', '60')))])
    last = found(whole, lambda x: tf.tanh(tf.exp(x)[:, -50:]))
    self.assertEqual(last, [('extra', ('', 'a slice from -50 (of 6 elements)'))])
    part = found(lambda x: tf.tanh(x[:, 1:]), lambda x: tf.tanh(x[:, 1:50]))
    self.assertEqual(part, [('slice', ('a slice to the end', said))])
    for same in ((to(50), to(50)), (to(None), to(6)), (to(None), whole)):
      self.assertFalse(found(*same))

  def test_all_axes_squeezed(self):
    proof = related(lambda x: tf.squeeze(x, [1]), tf.squeeze, [(4, 1, 6)])
    found = [(one.what, one.values) for one in unlike_sizes(proof)]
    self.assertEqual(found, [('squeeze_dims', ('some axes', 'all axes of one element'))])
    proof = related(lambda x: tf.squeeze(x, [1]), lambda x: tf.squeeze(x, [-2]), [(4, 1, 6)])
    self.assertFalse(list(unlike_sizes(proof)))

  def test_integers_that_are_greater_than_0_are_at_least_1(self):
    def one(x):
      return tf.cast(tf.cast(x, tf.int32) > 0, tf.float32)

    def other(x):
      return tf.cast(tf.cast(x, tf.int32) >= 1, tf.float32)

    self.assertEqual(_found(one, other, X), [])

  def test_two_after_each_other(self):
    def one(x):
      return tf.nn.leaky_relu(tf.nn.relu(x - 1.0) + x, 0.2)

    def other(x):
      return tf.nn.leaky_relu(tf.nn.relu6(x - 1.0) + x, 0.3)

    self.assertEqual([what for what, _ in _found(one, other, X)], ['operation', 'alpha'])

  @parameterized.parameters(
    (lambda n: tf.clip_by_value(tf.exp(-0.1 * n), 0.5, 1.0),),
    (lambda n: tf.maximum(tf.minimum(tf.exp(n / -10.0), 1.0), 0.5),),
    (lambda n: 0.5 + 0.5 * tf.clip_by_value(2.0 * tf.exp(-0.1 * n) - 1.0, 0.0, 1.0),),
  )
  def test_bounds_that_no_count_reaches(self, other):
    def one(n):
      return tf.maximum(tf.exp(-0.1 * n), 0.5)

    for dtype, is_alike in ((tf.int64, True), (tf.float32, False)):
      graphs = _of_counts(one, 'tf1', dtype), _of_counts(other, 'tf2', dtype)
      variables = {'global_step': ('int64', ())} if dtype == tf.int64 else {}
      self.assertEqual(not unlike(prove(*graphs, variables), variables)[0], is_alike)

  def test_a_bound_that_counts_reach(self):
    def one(n):
      return tf.minimum(0.1 + 0.01 * n, 0.5)

    def other(n):
      return 0.1 + 0.4 * tf.clip_by_value(n / 20.0, 0.0, 1.0)

    variables = {'global_step': ('int64', ())}
    graphs = _of_counts(one, 'tf1', tf.int64), _of_counts(other, 'tf2', tf.int64)
    self.assertNotEmpty(unlike(prove(*graphs, variables), variables)[0])

  def test_strictness_where_both_branches_agree(self):
    def huber(compare):
      def function(x):
        size = tf.abs(x)
        return tf.exp(tf.where(compare(size, 1.0), 0.5 * x * x, size - 0.5))

      return function

    self.assertEqual(_found(huber(tf.less), huber(tf.less_equal), X), [])
    ends = lambda x: tf.exp(tf.where(tf.abs(x) <= 1.0, 0.5 * x * x, tf.abs(x)))  # noqa: E731
    starts = lambda x: tf.exp(tf.where(tf.abs(x) < 1.0, 0.5 * x * x, tf.abs(x)))  # noqa: E731
    self.assertNotEmpty(_found(starts, ends, X))

  @parameterized.parameters((0.0, []), (0.5, ['operation']))
  def test_a_root_that_is_safe_at_zero_in_two_ways(self, other_value, wanted):
    def one(x):
      squares = tf.maximum(x, 0.0)
      is_zero = tf.cast(tf.equal(squares, 0.0), tf.float32)
      return tf.sqrt(squares + is_zero * 1e-16) * (1.0 - is_zero) + 1.0

    def other(x):
      squares = tf.maximum(x, 0.0)
      positive = squares > 0.0
      roots = tf.sqrt(tf.where(positive, squares, tf.ones_like(squares)))
      return tf.where(positive, roots, other_value * tf.ones_like(squares)) + 1.0

    found = _found(one, other, X)
    self.assertEqual([what for what, _ in found][:1], wanted)

  def test_nothing_in_what_is_proven(self):
    self.assertEqual(_found(lambda x: x * 0.5, lambda x: x / 2.0, X), [])

  def test_factors_that_make_up_for_each_other(self):
    # Constants of two operations differ, and the graphs are the same function.
    self.assertEqual(
      _found(lambda x: tf.tanh(x * 2.0 * 3.0), lambda x: tf.tanh(x * 3.0 * 2.0), X), []
    )

  def test_a_factor_that_something_else_makes_up_for(self):
    # Half of the squares, and the squares: what comes of them is unknown on either side.
    def one(x, y):
      return tf.math.cumsum(tf.sqrt(-2.0 * tf.square(x - y)))

    def other(x, y):
      return 3.0 * tf.math.cumprod((x - y) * (0.5 * x - 0.5 * y))

    self.assertEqual(_found(one, other, X, X), [])

  def test_silent_where_the_rest_differs_as_well(self):
    # The constants differ, but what reads them is another computation: nothing is known of it.
    def one(x):
      return tf.math.cumsum(tf.maximum(x, 1.0))

    def other(x):
      return 3.0 * tf.nn.softmax(tf.maximum(x, 2.0))

    self.assertEqual(_found(one, other, X), [])


if __name__ == '__main__':
  absltest.main()
