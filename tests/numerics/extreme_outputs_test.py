import numpy as np
from absl.testing import absltest

import tf2verify
from tf2verify.numerics import extreme_outputs
from tf2verify.numerics.output_relations import SOFTMAX, Relation, softmax
from tf2verify.records.loss_values import LossExample

LOGITS = tf2verify.normal_inputs((4, 3))
CLASSES = np.array([0, 2, 1, 2], np.int32)


def examples(outputs, labels, related=()):
  model = LossExample('model', outputs, labels, extreme=False)
  derived = {relation.derived for relation in related}
  read = [path for path in outputs if path not in derived]
  return {found.name: found for found in extreme_outputs.extreme_examples(model, read, related)}


class OutputsTest(absltest.TestCase):
  def test_outputs_of_one_shape_are_not_the_same(self):
    outputs = {'log_q': np.zeros((4,), np.float32), 'log_p': np.ones((4,), np.float32)}
    normal = examples(outputs, {})['normal outputs'].outputs
    self.assertGreater(np.min(np.abs(normal['log_q'] - normal['log_p'])), 0.01)

  def test_saturated_logits_by_class(self):
    found = examples({'': LOGITS}, {'': CLASSES})
    right, wrong = (found[f'saturated, {name}'].outputs[''] for name in ('right', 'wrong'))
    np.testing.assert_array_equal(np.argmax(right, -1), CLASSES)
    np.testing.assert_array_equal(np.argmin(wrong, -1), CLASSES)
    np.testing.assert_array_equal(np.abs(right).max(-1), [50, 100, 20, 50])
    self.assertEqual(right.dtype, np.float32)

  def test_labels_in_several_forms(self):
    one_hot = np.eye(3, dtype=np.float32)[CLASSES]
    for labels in (one_hot, one_hot.astype(bool), CLASSES[:, None], one_hot.astype(np.int64)):
      with self.subTest(f'{labels.dtype} {labels.shape}'):
        right = examples({'': LOGITS}, {'': labels})['saturated, right'].outputs['']
        np.testing.assert_array_equal(np.argmax(right, -1), CLASSES)

  def test_labels_that_do_not_fit(self):
    for labels in ({}, {'': LOGITS * 9}, {'': CLASSES + 1}, {'': np.zeros((2, 2), np.int32)}):
      found = examples({'': LOGITS}, labels)
      large = found['large outputs'].outputs['']
      np.testing.assert_array_equal(np.argmax(large, -1), np.argmax(LOGITS, -1))
      self.assertLessEqual(np.abs(large).max(), 20)
      self.assertEqual(np.abs(found['saturated outputs'].outputs['']).max(), 100)
      self.assertEqual(
        [name for name, example in found.items() if example.finite_only], ['saturated outputs']
      )
      self.assertNotIn('saturated, right', found)

  def test_distributions_stay_distributions(self):
    found = examples({'': softmax(LOGITS)}, {'': CLASSES})
    for example in found.values():
      np.testing.assert_allclose(example.outputs[''].sum(-1), 1.0, 1e-6)
    exact = found['probabilities of 0 and 1, wrong'].outputs['']
    np.testing.assert_array_equal(exact[np.arange(4), CLASSES], 0.0)
    least = found['saturated, wrong'].outputs['']
    np.testing.assert_allclose(least[np.arange(4), CLASSES], 1e-9)

  def test_independent_probabilities(self):
    labels = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]], np.float32)
    outputs = 1 / (1 + np.exp(-LOGITS))
    exact = examples({'': outputs}, {'': labels})['probabilities of 0 and 1, right']
    np.testing.assert_array_equal(exact.outputs[''], labels)

  def test_what_follows_from_another_output_follows(self):
    related = (Relation('p', 'z', SOFTMAX),)
    found = examples({'z': LOGITS, 'p': softmax(LOGITS)}, {'': CLASSES}, related)
    wrong = found['saturated, wrong'].outputs
    np.testing.assert_allclose(wrong['p'], softmax(wrong['z']), 1e-6, 1e-40)
    self.assertNotIn('probabilities of 0 and 1, right', found)

  def test_other_outputs_stay(self):
    model = LossExample('model', {'z': LOGITS, 'net': LOGITS}, {})
    for example in extreme_outputs.extreme_examples(model, ['z'], ()):
      self.assertIs(example.outputs['net'], model.outputs['net'])


class WeightsTest(absltest.TestCase):
  def weights_in(self, labels):
    found = examples({'': LOGITS}, labels)
    return {name: example.labels for name, example in found.items() if name.startswith('labels')}

  def test_by_name(self):
    found = self.weights_in({"['y']": CLASSES, "['weights']": np.ones(4, np.float32)})
    values = {name.partition(' ')[2]: labels["['weights']"] for name, labels in found.items()}
    np.testing.assert_array_equal(values['all zero'], np.zeros(4))
    np.testing.assert_array_equal(values['zero for the first example'], [0, 1, 1, 1])
    np.testing.assert_array_equal(values['fractional'], np.float32([0.25, 0, 1.5, 0.5]))

  def test_masks_are_never_fractional(self):
    for mask in (np.ones(4, bool), np.ones(4, np.float32), np.ones((4, 1), np.int32)):
      found = self.weights_in({"['y']": CLASSES, "['mask']": mask})
      self.assertLen(found, 2)
      self.assertTrue(all(labels["['mask']"].dtype == mask.dtype for labels in found.values()))

  def test_without_a_name_beside_labels_that_fit(self):
    self.assertLen(self.weights_in({'[0]': CLASSES, '[1]': np.float32([1, 1, 0, 1])}), 2)

  def test_binary_labels_are_no_weights(self):
    self.assertEmpty(self.weights_in({'': np.float32([1, 1, 0, 1])}))

  def test_other_floats_are_no_weights(self):
    self.assertEmpty(self.weights_in({'[0]': CLASSES, '[1]': np.float32([1, 2, 3, 4])}))


class IgnoredTest(absltest.TestCase):
  def ignored_in(self, outputs, labels):
    found = examples({'': outputs}, {'': labels})
    return [name for name in found if name.startswith('labels all')]

  def test_beyond_the_classes_and_below_zero(self):
    found = examples({'': LOGITS}, {'': np.array([0, 255, 1, -1], np.int32)})
    self.assertEqual(
      [name for name in found if name.startswith('labels')], ['labels all -1', 'labels all 255']
    )
    np.testing.assert_array_equal(found['labels all 255'].labels[''], [255] * 4)
    self.assertEqual(found['labels all -1'].labels[''].dtype, np.int32)

  def test_padding_of_sequences(self):
    words = np.array([[1, 2, 0], [3, 0, 0]])
    self.assertEqual(self.ignored_in(np.zeros((2, 3, 4), np.float32), words), ['labels all 0'])

  def test_below_zero_beside_scores(self):
    grades = np.array([[3, 0, -1], [1, 2, 0]])
    self.assertEqual(self.ignored_in(np.zeros((2, 3), np.float32), grades), ['labels all -1'])

  def test_others(self):
    for labels in (CLASSES, np.array([-1] * 4), np.array([0.0, -1.0, 2.0, 1.0])):
      self.assertEmpty(self.ignored_in(LOGITS, labels))


class AloneTest(absltest.TestCase):
  def test_first_example(self):
    alone = examples({'': LOGITS}, {'': CLASSES})['the first example alone']
    self.assertTrue(alone.other_batch)
    self.assertEqual((alone.outputs[''].shape, alone.labels[''].shape), ((1, 3), (1,)))

  def test_a_number_beside_them(self):
    """The weight of a term: it belongs to no example."""
    weight = np.float32(0.25).reshape(())
    alone = examples({'': LOGITS, 'weight': weight}, {'': CLASSES})['the first example alone']
    self.assertEqual((alone.outputs[''].shape, alone.outputs['weight'].shape), ((1, 3), ()))
    self.assertNotIn('the first example alone', examples({'weight': weight}, {'': CLASSES}))

  def test_other_leading_sizes(self):
    for labels in ({'': CLASSES[:2]}, {'.indices': CLASSES, '.dense_shape': CLASSES}):
      self.assertNotIn('the first example alone', examples({'': LOGITS}, labels))

  def test_batch_of_one(self):
    self.assertNotIn('the first example alone', examples({'': LOGITS[:1]}, {'': CLASSES[:1]}))


if __name__ == '__main__':
  absltest.main()
