"""Comparisons of inputs that have one result for all elements, where not all is proven."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1


class Tagger(tf2verify.EquivalenceCase, abc.ABC):
  """Tags of words of one length, and a loss of which the lengths of all rows are full.

  The sum of squares is written in another way by the port, which no rule knows.
  """

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('table', [9, 4])
    words = tf.nn.embedding_lookup(table, inputs['words'])
    known = tf.cast(tf.not_equal(inputs['words'], 0), tf.float32)
    words *= known[:, :, None]
    spread = tf.reduce_sum(tf.square(words - tf.reduce_mean(words, 1, keepdims=True)), 1)
    return v1.layers.dense(words, 3, name='tags') + tf.reduce_sum(spread, 1)[:, None, None]

  def is_word(self, words):
    return tf.cast(words != 0, tf.float32)

  def make_tf2_layer(self):
    case = self

    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.table = self.add_weight(shape=(9, 4), name='table')
        self.tags = keras.layers.Dense(3, name='tags')

      def call(self, inputs):
        words = tf.gather(self.table, inputs['words'])
        words *= case.is_word(inputs['words'])[:, :, None]
        n = tf.cast(tf.shape(words)[1], tf.float32)
        apart = words[:, :, None] - words[:, None]
        spread = tf.einsum('bijk,bijk->b', apart, apart) / (2.0 * n)
        return self.tags(words) + spread[:, None, None]

    return Port()

  def make_inputs(self):
    return {'words': np.random.RandomState(0).randint(1, 9, (3, 6)).astype(np.int32)}

  def make_labels(self):
    ids = np.random.RandomState(1).randint(0, 3, (3, 6)).astype(np.int32)
    return {'ids': ids, 'length': np.full(3, 6, np.int32)}

  def tf1_loss(self, outputs, labels):
    each = v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels['ids'], logits=outputs)
    mask = tf.sequence_mask(labels['length'], tf.shape(outputs)[1], dtype=tf.float32)
    mask *= tf.cast(labels['ids'] >= 0, tf.float32)
    return tf.reduce_sum(each * mask) / tf.reduce_sum(mask)

  def is_counted(self, labels, outputs):
    is_within = tf.range(tf.shape(outputs)[1])[None] < labels['length'][:, None]
    return is_within & (labels['ids'] > -1)

  def tf2_loss(self, outputs, labels):
    each = -tf.nn.log_softmax(outputs) * tf.one_hot(labels['ids'], 3)
    mask = tf.cast(self.is_counted(labels, outputs), tf.float32)
    return tf.reduce_sum(tf.reduce_sum(each, -1) * mask) / tf.reduce_sum(mask)


def _stage(case, stage):
  verdict = tf2verify.verify(case, [stage])
  return next(one for one in verdict.stages if one.stage == stage)


class UniformDecisionsTest(parameterized.TestCase):
  def _said(self, stage, **hooks):
    found = _stage(type('Case', (Tagger,), hooks), stage)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    return ' '.join(found.blind_spots)

  @parameterized.parameters('zero_randomness', 'loss')
  def test_a_right_port(self, stage):
    said = self._said(stage)
    self.assertNotIn('with one result for all elements', said)
    self.assertNotIn('no operation of the port reads', said)

  def test_an_identifier_that_is_never_the_padding(self):
    said = self._said(
      'zero_randomness', is_word=lambda self, words: tf.ones(tf.shape(words), tf.float32)
    )
    self.assertIn("tf1 compares ['words'] (NotEqual at uniform_decisions_test.py:", said)
    self.assertIn('with 0 in some of them the sides differ', said)

  def test_a_label_that_the_port_does_not_read(self):
    said = self._said('loss', is_counted=lambda self, labels, outputs: labels['ids'] > -1)
    self.assertIn("tf1 reads labels['length'], and no operation of the port reads its", said)

  def test_a_comparison_that_the_port_alone_has(self):
    def is_counted(self, labels, outputs):
      return Tagger.is_counted(self, labels, outputs) & (labels['ids'] < 3)

    # Three is no label that tf1 takes, and tells nothing.
    self.assertNotIn('compares', self._said('loss', is_counted=is_counted))

    def without_first(self, labels, outputs):
      return Tagger.is_counted(self, labels, outputs) & (labels['length'][:, None] > 2)

    said = self._said('loss', is_counted=without_first)
    self.assertIn("the port compares labels['length'] (Greater at", said)

  def test_a_loss_that_the_step_tells_in_another_form(self):
    """It differs at the case's own inputs too, so that it tells nothing of other ones."""

    def parts(loss):
      def found(self, outputs, labels):
        return {'tags': loss(self, outputs, labels), 'size': tf.reduce_mean(tf.square(outputs))}

      return found

    def weighted(loss):
      return loss['tags'] + 0.1 * loss['size']

    def train_op(self, loss):
      return v1.train.GradientDescentOptimizer(0.1).minimize(weighted(loss))

    def step(self, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = weighted(self.tf2_loss(layer(inputs), labels))
      variables = layer.trainable_variables
      optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
      return loss

    def is_word(self, words):
      return tf.cast(tf.exp(tf.cast(words, tf.float32)) > 1.0, tf.float32)

    said = self._said(
      'training_steps',
      is_word=is_word,
      tf1_loss=parts(Tagger.tf1_loss),
      tf2_loss=parts(Tagger.tf2_loss),
      make_tf1_train_op=train_op,
      make_tf2_optimizer=lambda self: keras.optimizers.SGD(0.1),
      tf2_train_step=step,
    )
    self.assertNotIn('with one result for all elements', said)


class Branches(tf2verify.EquivalenceCase, abc.ABC):
  """A condition of which the inputs take one branch."""

  of_variable = False
  of_both = False

  def decided(self, inputs):
    found = tf.reduce_sum(inputs) > -100.0
    # True wherever the first one is false, for what is tried.
    return found | (tf.reduce_max(inputs) > -50.0) if self.of_both else found

  def build_tf1_graph(self, inputs, training):
    found = v1.layers.dense(inputs, 4, name='d')
    limit = v1.get_variable('limit', [], initializer=v1.zeros_initializer(), trainable=False)
    decided = limit < 5.0 if self.of_variable else self.decided(inputs)
    return tf.cond(decided, lambda: tf.tanh(found), lambda: tf.nn.relu6(found)) + limit

  def other(self, found):
    return tf.minimum(tf.nn.relu(found), 6.0)

  def make_tf2_layer(self):
    case = self

    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.d = keras.layers.Dense(4, name='d')
        self.limit = self.add_weight(shape=(), initializer='zeros', trainable=False, name='limit')

      def call(self, inputs):
        limit = tf.convert_to_tensor(self.limit)
        decided = limit < 5.0 if case.of_variable else case.decided(inputs)
        found = self.d(inputs)
        return tf.cond(decided, lambda: tf.tanh(found), lambda: case.other(found)) + limit

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))


class ConditionsTest(absltest.TestCase):
  def _said(self, **hooks):
    found = _stage(type('Case', (Branches,), hooks), 'zero_randomness')
    self.assertIs(found.status, Status.PASSED, found.to_text())
    return ' '.join(found.blind_spots)

  def test_branches_that_are_the_same(self):
    self.assertNotIn('branch', self._said())

  def test_branch_with_another_operation_that_is_not_taken(self):
    said = self._said(other=lambda self, found: tf.nn.elu(found))
    self.assertIn('the operation is Relu6 in tf1', said)
    self.assertNotIn('takes one branch', said)

  def test_branch_of_which_no_rule_knows_that_it_is_another(self):
    said = self._said(other=lambda self, found: tf.sort(found, axis=-1))
    self.assertRegex(said, r'the condition at uniform_decisions_test.py:\d+ takes one branch; with')
    self.assertIn(
      'in some elements of the input it takes the other one, and the sides differ', said
    )

  def test_spelling_that_no_rule_knows(self):
    def other(self, found):
      ordered = tf.sort(found, axis=-1)  # neither proven nor different
      return tf.nn.relu6(found) + tf.reduce_max(found) - tf.reduce_max(ordered)

    self.assertNotIn('branch', self._said(other=other))

  def test_comparison_that_does_not_decide_alone(self):
    """With another result of it, the same branch is taken: that both agree says nothing."""
    said = self._said(other=lambda self, found: tf.sort(found, axis=-1), of_both=True)
    self.assertIn('branch of the condition at uniform_decisions_test.py:', said)

  def test_branch_of_which_a_variable_decides(self):
    said = self._said(other=lambda self, found: tf.sort(found, axis=-1), of_variable=True)
    self.assertIn('tf1 takes one branch of the condition at uniform_decisions_test.py:', said)
    self.assertNotIn('branch', self._said(of_variable=True))

  def test_branch_that_a_constant_chooses(self):
    """As the placeholder of the mode is written into a builder."""

    def build(self, inputs, training):
      found = v1.layers.dense(inputs, 4, name='d')
      limit = v1.get_variable('limit', [], initializer=v1.zeros_initializer(), trainable=False)
      mode = tf.constant(training)
      return tf.cond(mode, lambda: tf.nn.relu6(found), lambda: tf.tanh(found)) + limit

    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.d = keras.layers.Dense(4, name='d')
        self.limit = self.add_weight(shape=(), initializer='zeros', trainable=False, name='limit')

      def call(self, inputs, training=False):
        found = self.d(inputs)
        found = tf.minimum(tf.nn.relu(found), 6.0) if training else tf.tanh(found)
        return found + tf.reduce_max(found) - tf.reduce_max(tf.sort(found)) + self.limit

    said = self._said(build_tf1_graph=build, make_tf2_layer=lambda _: Port())
    self.assertNotIn('branch', said)


if __name__ == '__main__':
  absltest.main()
