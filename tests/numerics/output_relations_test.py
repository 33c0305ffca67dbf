import numpy as np
from absl.testing import absltest

import tf2verify
from tf2verify.numerics import output_relations
from tf2verify.numerics.output_relations import (
  ARGMAX,
  LOG_SOFTMAX,
  SAME,
  SIGMOID,
  SOFTMAX,
  Relation,
)

LOGITS = tf2verify.normal_inputs((4, 3)).astype(np.float64)
FUNCTIONS = {
  SOFTMAX: output_relations.softmax,
  LOG_SOFTMAX: output_relations.log_softmax,
  SIGMOID: output_relations.sigmoid,
}


def relations(outputs):
  return output_relations.relations(outputs, outputs)


class RelationsTest(absltest.TestCase):
  def test_functions_of_logits(self):
    for kind, function in FUNCTIONS.items():
      with self.subTest(kind):
        found = relations({'a': function(LOGITS).astype(np.float32), 'z': LOGITS})
        self.assertEqual(found, (Relation('a', 'z', kind),))

  def test_copies_follow_from_the_first(self):
    outputs = {'z': LOGITS, 'again': LOGITS.reshape(2, 2, 3), 'p': FUNCTIONS[SOFTMAX](LOGITS)}
    self.assertEqual(
      relations(outputs), (Relation('again', 'z', SAME), Relation('p', 'z', SOFTMAX))
    )

  def test_copy_of_a_softmax(self):
    p = FUNCTIONS[SOFTMAX](LOGITS)
    found = relations({'p': p, 'again': p.copy(), 'z': LOGITS})
    self.assertEqual(found, (Relation('p', 'z', SOFTMAX), Relation('again', 'z', SOFTMAX)))

  def test_argmax(self):
    found = relations({'class': np.argmax(LOGITS, -1).astype(np.int32), 'z': LOGITS})
    self.assertEqual(found, (Relation('class', 'z', ARGMAX),))
    made = output_relations.follow(found[0], -LOGITS, np.zeros(4, np.int32))
    np.testing.assert_array_equal(made, np.argmin(LOGITS, -1))
    self.assertEqual(made.dtype, np.int32)
    self.assertEqual(relations({'class': np.argmin(LOGITS, -1), 'z': LOGITS}), ())

  def test_only_among_those_that_are_asked_for(self):
    outputs = {'z': LOGITS, 'p': FUNCTIONS[SOFTMAX](LOGITS)}
    self.assertEqual(output_relations.relations(outputs, ['z']), ())

  def test_unrelated(self):
    self.assertEqual(relations({'z': LOGITS, 'cube': LOGITS**3, 'row': LOGITS[:1]}), ())

  def test_neither_integers_nor_empty_arrays(self):
    whole = np.arange(3)
    self.assertEqual(relations({'a': whole, 'b': whole, 'c': np.zeros(0), 'd': np.zeros(0)}), ())


class FollowTest(absltest.TestCase):
  def test_other_logits(self):
    relation = Relation('p', 'z', SOFTMAX)
    made = output_relations.follow(relation, LOGITS[:1], np.zeros((4, 3), np.float32))
    self.assertEqual((made.shape, made.dtype), ((1, 3), np.float32))
    np.testing.assert_allclose(made.sum(), 1.0, 1e-6)

  def test_saturated(self):
    made = output_relations.softmax(np.float32([[200.0, 0.0]]))
    np.testing.assert_array_equal(made, [[1.0, 0.0]])
    np.testing.assert_array_equal(
      output_relations.log_softmax(np.array([[200.0, 0.0]])), [[0, -200]]
    )


class PulledBackTest(absltest.TestCase):
  def test_is_the_derivative(self):
    weights = np.arange(12.0).reshape(4, 3) ** 2
    for kind, function in FUNCTIONS.items():
      with self.subTest(kind):
        found = output_relations.pulled_back(Relation('a', 'z', kind), LOGITS, weights)
        moved = LOGITS.copy()
        moved[1, 2] += 1e-6
        change = np.sum(weights * (function(moved) - function(LOGITS))) / 1e-6
        np.testing.assert_allclose(found[1, 2], change, 1e-4, 1e-4)

  def test_copy_of_another_shape(self):
    gradient = np.arange(12.0)
    found = output_relations.pulled_back(Relation('a', 'z', SAME), LOGITS, gradient)
    np.testing.assert_array_equal(found, gradient.reshape(4, 3))


if __name__ == '__main__':
  absltest.main()
