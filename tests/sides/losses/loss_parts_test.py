import collections

import tensorflow as tf
from absl.testing import absltest

from tf2verify.errors import CaseDefinitionError
from tf2verify.sides.losses import loss_parts

GanLoss = collections.namedtuple('GanLoss', ['generator', 'discriminator'])
Named = collections.namedtuple('Named', ['aux', 'loss'])


def scalar(value):
  return tf.constant(value, tf.float32)


class MainTest(absltest.TestCase):
  def main(self, loss):
    return float(loss_parts.main_of(loss, 'tf1_loss'))

  def test_one_tensor_is_itself(self):
    loss = scalar(2.0)
    self.assertIs(loss_parts.main_of(loss, 'tf1_loss'), loss)
    self.assertEqual(loss_parts.parts_of(loss), {})

  def test_entry_loss(self):
    self.assertEqual(self.main({'loss': scalar(2.0), 'aux': scalar(5.0)}), 2.0)
    self.assertEqual(self.main(Named(scalar(5.0), scalar(2.0))), 2.0)

  def test_first_of_a_sequence(self):
    self.assertEqual(self.main((scalar(2.0), scalar(5.0))), 2.0)
    self.assertEqual(self.main([{'loss': scalar(3.0), 'x': scalar(1.0)}, scalar(5.0)]), 3.0)

  def test_sum_of_what_has_no_entry_loss(self):
    self.assertEqual(self.main({'d': scalar(2.0), 'g': scalar(5.0)}), 7.0)
    self.assertEqual(self.main(GanLoss(scalar(2.0), scalar(5.0))), 7.0)
    self.assertEqual(self.main({'d': tf.ones(3), 'count': tf.constant(4)}), 3.0)
    self.assertEqual(self.main({'d': {'real': scalar(1.0), 'fake': scalar(2.0)}, 'g': None}), 3.0)

  def test_what_has_no_loss(self):
    for loss, words in (
      ({}, 'no floating tensor'),
      ((), 'no floating tensor'),
      ({'count': tf.constant(4)}, 'no floating tensor'),
      ({'d': 'a', 'g': scalar(1.0)}, r"its part \['d'\]"),
    ):
      with self.subTest(words), self.assertRaisesRegex(CaseDefinitionError, words):
        loss_parts.main_of(loss, 'tf1_loss')


class PartsTest(absltest.TestCase):
  def test_places(self):
    nest = {'d': (scalar(1.0), scalar(2.0)), 'g': scalar(3.0), 'none': None}
    self.assertEqual(list(loss_parts.parts_of(nest)), ["['d'][0]", "['d'][1]", "['g']"])

  def test_a_namedtuple_is_read_as_a_dictionary(self):
    made = GanLoss(scalar(1.0), scalar(2.0))
    self.assertEqual(loss_parts.parts_of(made).keys(), loss_parts.parts_of(made._asdict()).keys())


class RegularizationTest(absltest.TestCase):
  def left(self, make):
    """Returns how many regularization losses are to be added to a loss."""
    with tf.Graph().as_default() as graph:
      own = tf.compat.v1.placeholder(tf.float32, [])
      known = [tf.compat.v1.placeholder(tf.float32, []) * number for number in (2.0, 3.0)]
      for loss in known:
        graph.add_to_collection('regularization_losses', loss)
      return len(loss_parts.regularization_of(graph, make(own, known)))

  def test_of_a_loss_without_them(self):
    self.assertEqual(self.left(lambda own, known: own), 2)

  def test_of_a_loss_with_them(self):
    self.assertEqual(self.left(lambda own, known: own + tf.add_n(known)), 0)
    self.assertEqual(self.left(lambda own, known: tf.reduce_mean([own, known[0]])), 0)

  def test_of_a_loss_that_takes_them_out_again(self):
    def loss(own, known):
      total = own + tf.add_n(known)
      return total - tf.add_n(known)

    self.assertEqual(self.left(loss), 2)
    self.assertEqual(self.left(lambda own, known: tf.negative(loss(own, known))), 2)

  def test_of_a_loss_that_takes_out_too_few_or_too_many(self):
    self.assertEqual(self.left(lambda own, known: own + tf.add_n(known) - known[0]), 0)
    self.assertEqual(self.left(lambda own, known: own - tf.add_n(known)), 0)
    self.assertEqual(self.left(lambda own, known: own + known[0] - 2.0 * known[0]), 0)


class PlusTest(absltest.TestCase):
  def test_added_to_the_main_entry(self):
    more = [scalar(10.0)]
    self.assertEqual(float(loss_parts.plus(scalar(1.0), more)), 11.0)
    self.assertEqual(float(loss_parts.plus({'loss': scalar(1.0)}, more)['loss']), 11.0)
    self.assertEqual(float(loss_parts.plus(Named(scalar(5.0), scalar(1.0)), more).loss), 11.0)
    self.assertEqual(list(map(float, loss_parts.plus((scalar(1.0), scalar(2.0)), more))), [11, 2])

  def test_left_to_the_case_without_one(self):
    nest = {'d': scalar(1.0), 'g': scalar(2.0)}
    self.assertIs(loss_parts.plus(nest, [scalar(10.0)]), nest)


if __name__ == '__main__':
  absltest.main()
