"""Mistakes directly one behind the other, of which each is a cause of its own."""

import os
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify import Status, time_for_diagnosis
from tf2verify.environment import diagnose_option

v1 = tf.compat.v1
_STAGES = ('no_new_variables', 'variable_inventory', 'zero_randomness', 'seeded_constant')


def proven(verdict):
  """Returns the causes that experiments have proven, each with what it was seen by."""
  known = verdict.diagnosis.causes if verdict.diagnosis else ()
  return [f'{cause.text} {cause.evidence}' for cause in known if cause.is_proven]


class AdjacentMistakesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(time_for_diagnosis, '_LEAST_SECONDS', 600.0))
    self.enter_context(mock.patch.dict(os.environ, {diagnose_option.VARIABLE: 'all'}))

  def verified(self, model, port):
    """Returns the verdicts by stage, and all of them as text."""

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return model(inputs, training)

      def port(self, inputs, training):
        return port(inputs, training)

      def make_inputs(self):
        return tf2verify.normal_inputs((3, 6, 5))

    verdict = tf2verify.verify(Case, stages=_STAGES)
    return {one.stage: one for one in verdict.stages}, verdict.to_text()

  def assert_each_proven(self, verdict, words, text):
    """Asserts that there is a proven cause for each of some words, and no other cause."""
    found = proven(verdict)
    self.assertLen(found, len(words), text)
    for one, said in zip(words, found, strict=True):
      for word in one:
        self.assertIn(word, said, text)

  def test_a_mean_and_a_number_behind_it(self):
    def pooled(reduce, number):
      def model(inputs, training):
        net = tf.tanh(v1.layers.dense(inputs, 4, name='a'))
        return v1.layers.dense(tf.sigmoid(reduce(net, 1) + number), 3, name='b')

      return model

    verdicts, text = self.verified(pooled(tf.reduce_sum, 0.5), pooled(tf.reduce_mean, 1.5))
    self.assert_each_proven(verdicts['zero_randomness'], (('Mean', 'Sum'), ('1.5', '0.5')), text)

  def test_a_scale_and_the_axis_of_a_softmax_behind_it(self):
    def attention(scale, axis):
      def model(inputs, training):
        queries, keys = (v1.layers.dense(inputs, 4, name=name) for name in 'qk')
        scores = tf.matmul(queries, keys, transpose_b=True) / scale()
        return v1.layers.dense(tf.matmul(tf.nn.softmax(scores, axis), inputs), 2, name='o')

      return model

    verdicts, text = self.verified(attention(lambda: tf.sqrt(4.0), -1), attention(lambda: 4.0, 1))
    words = ('4 in the port, 2 in tf1',), ('axis of Softmax (Softmax) is 1',)
    self.assert_each_proven(verdicts['zero_randomness'], words, text)

  def test_an_activation_and_the_rate_of_a_dropout_on_the_same_line(self):
    def dropped(activation, rate):
      def model(inputs, training):
        rate_now = rate if training else 0.0
        return v1.layers.dense(
          tf.nn.dropout(activation(v1.layers.dense(inputs, 4, name='a')), rate=rate_now),
          3,
          name='b',
        )

      return model

    verdicts, text = self.verified(dropped(tf.nn.relu, 0.3), dropped(tf.nn.gelu, 0.5))
    self.assertIn('Relu', ' '.join(proven(verdicts['zero_randomness'])), text)
    # The activation is told already; with it corrected in inference as well, the rate is proven.
    self.assertIs(verdicts['seeded_constant'].status, Status.FAILED, text)
    self.assert_each_proven(verdicts['seeded_constant'], (('0.3', '0.5'),), text)

  def test_numbers_that_make_up_for_each_other_are_no_mistake(self):
    """The port scales queries and keys, tf1 the scores; the mistake is in the values."""

    def attention(scaled, activation):
      def model(inputs, training):
        queries, keys = (v1.layers.dense(inputs, 4, name=name) for name in 'qk')
        values = activation(v1.layers.dense(inputs, 4, name='v'))
        return tf.matmul(tf.nn.softmax(scaled(queries, keys)), values)

      return model

    def before(queries, keys):
      return tf.matmul(queries / 2.0, keys / 3.0, transpose_b=True)

    def after(queries, keys):
      return tf.matmul(queries, keys, transpose_b=True) / 6.0

    verdicts, text = self.verified(attention(after, tf.nn.relu), attention(before, tf.nn.elu))
    self.assert_each_proven(verdicts['zero_randomness'], (('Elu', 'Relu'),), text)

  def test_one_wrong_number_in_another_spelling(self):
    """First operations with the same inputs and other numbers are no counterparts."""

    def model(inputs, training):
      net = v1.layers.dense(inputs, 4, name='a')
      cubic = net + 0.044715 * net * net * net
      net = 0.5 * net * (1.0 + tf.tanh(0.7978845608 * cubic))
      return v1.layers.dense(net, 3, name='b')

    def port(inputs, training):
      net = v1.layers.dense(inputs, 4, name='a')
      cubic = 0.7978845608 * net * (1.0 + 0.044175 * tf.square(net))
      net = (tf.tanh(cubic) * net + net) * 0.5
      return v1.layers.dense(net, 3, name='b')

    verdicts, text = self.verified(model, port)
    self.assert_each_proven(verdicts['zero_randomness'], (('0.044175', '0.044715'),), text)


if __name__ == '__main__':
  absltest.main()
