"""Tests of stages that are blocked: what they show that no earlier stage has shown."""

import abc
import os
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tf2verify import Status, time_for_diagnosis
from tf2verify.environment import diagnose_option
from tf2verify.stages.failures import failed_stage

v1 = tf.compat.v1
_STAGES = (
  'no_new_variables',
  'variable_inventory',
  'zero_randomness',
  'seeded_constant',
  'gradients',
  'loss',
  'training_steps',
)


class _Trained(tiny_models.OneModel, abc.ABC):
  """An embedding whose rows occur several times, a dense layer, dropout; a loss and Adam."""

  activation = staticmethod(tf.nn.tanh)
  rate = 0.3
  weight = 0.5
  epsilon = 1e-6
  limit = 0.1
  learning_rate = 0.01

  def forward(self, inputs, training, activation, rate):
    table = v1.get_variable('table', [6, 4])
    net = tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), axis=1)
    net = tf.nn.dropout(net, rate=rate) if training else net
    return activation(v1.layers.dense(net, 3, name='hidden'))

  def model(self, inputs, training):
    return self.forward(inputs, training, tf.nn.tanh, 0.3)

  def port(self, inputs, training):
    return self.forward(inputs, training, self.activation, self.rate)

  def make_inputs(self):
    return np.array([[3, 0, 3], [2, 3, 5], [0, 0, 1], [4, 2, 3]], np.int32)

  def make_labels(self):
    return np.array([[0.1, 1.0, -0.5], [0.7, 0.2, 0.3], [1.5, -1.0, 0.4], [0.0, 0.6, -0.2]], 'f')

  def tf1_loss(self, outputs, labels):
    return 0.5 * tf.reduce_mean(tf.square(outputs - labels))

  def tf2_loss(self, outputs, labels):
    return self.weight * tf.reduce_mean(tf.square(outputs - labels))

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.AdamOptimizer(0.01, epsilon=1e-6)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.1)
    pairs = zip(gradients, variables, strict=True)
    return optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adam(self.learning_rate, epsilon=self.epsilon)

  def clipped(self, gradients):
    return tf.clip_by_global_norm(gradients, self.limit)[0]

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    gradients = tape.gradient(loss, layer.trainable_variables)
    optimizer.apply_gradients(zip(self.clipped(gradients), layer.trainable_variables, strict=True))
    return loss


class _Momentum:
  """Momentum and an average of squares, as RMSPropOptimizer has them, written by hand."""

  def __init__(self, decay, momentum):
    self.decay, self.momentum, self.kept = decay, momentum, {}

  def apply(self, pairs):
    for gradient, variable in pairs:
      if variable.ref() not in self.kept:
        starts = tf.ones_like(variable), tf.zeros_like(variable)
        self.kept[variable.ref()] = [tf.Variable(one, trainable=False) for one in starts]
      square, moved = self.kept[variable.ref()]
      square.assign(self.decay * square + (1 - self.decay) * gradient * gradient)
      moved.assign(self.momentum * moved + 0.01 * gradient / tf.sqrt(square + 1e-6))
      variable.assign_sub(moved)


class _Written(_Trained, abc.ABC):
  """A step with an update of its own, and a bias that another variable follows."""

  activation = staticmethod(tf.nn.relu)
  decay, momentum, share = 0.9, 0.8, 0.1

  def forward(self, inputs, training, activation, rate):
    first = v1.zeros_initializer()
    slow = v1.get_variable('slow', [3], trainable=False, initializer=first)
    return super().forward(inputs, training, activation, rate) + 0.5 * slow

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.RMSPropOptimizer(0.01, 0.9, 0.8, 1e-6)
    pairs = [(tf.convert_to_tensor(g), v) for g, v in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())
    known = {v.op.name: v for v in v1.global_variables()}
    with tf.control_dependencies([train]):
      bias = known['hidden/bias'].read_value()
      return known['slow'].assign(0.1 * bias + 0.9 * known['slow'])

  def make_tf2_optimizer(self):
    return _Momentum(self.decay, self.momentum)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    gradients = map(tf.convert_to_tensor, tape.gradient(loss, variables))
    optimizer.apply(zip(self.changed(gradients, variables), variables, strict=True))
    known = {v.name.partition(':')[0]: v for v in layer.variables}
    slow, bias = known['slow'], known['hidden/bias']
    slow.assign(self.share * bias + (1 - self.share) * slow)
    return loss

  def changed(self, gradients, variables):
    return gradients


class WrittenUpdatesTest(parameterized.TestCase):
  """Mistakes in updates that a step of the port writes itself, behind a wrong activation."""

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(time_for_diagnosis, '_LEAST_SECONDS', 600.0))

  def found(self, status, **settings):
    verdict = tf2verify.verify(type('Case', (_Written,), settings), stages=_STAGES)
    text = verdict.to_text()
    known = {one.stage: one for one in verdict.stages}
    self.assertIs(known['zero_randomness'].status, Status.FAILED, text)
    self.assertIs(known['training_steps'].status, status, text)
    diagnosis = known['training_steps'].diagnosis
    return ' '.join(cause.text for cause in diagnosis.causes) if diagnosis else '', text

  def test_the_right_update_stays_blocked(self):
    self.found(Status.BLOCKED)

  def test_another_decay(self):
    said, text = self.found(Status.FAILED, decay=0.95)
    self.assertIn('have 0.95 and 0.05 in the port, 0.9 and 0.1 in tf1', said, text)

  def test_another_momentum(self):
    said, text = self.found(Status.FAILED, momentum=0.6)
    self.assertIn('0.6', said, text)
    self.assertIn('0.8', said, text)

  def test_a_variable_that_follows_by_another_share(self):
    said, text = self.found(Status.FAILED, share=0.2)
    self.assertRegex(said, r'0\.2\b.*0\.1\b', text)

  def test_a_penalty_that_the_step_adds_to_gradients(self):
    """The port is right in that: what tf1 minimizes is a part of the gradients that it is given."""

    def tf1_loss(case, outputs, labels):
      penalties = [tf.nn.l2_loss(variable) for variable in v1.trainable_variables()]
      return _Trained.tf1_loss(case, outputs, labels) + 0.05 * tf.add_n(penalties)

    def changed(case, gradients, variables):
      return [g + 0.05 * v for g, v in zip(gradients, variables, strict=True)]

    self.found(Status.BLOCKED, tf1_loss=tf1_loss, changed=changed)


class BeyondFailuresTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    # A machine that is busy gets to as many stages.
    self.enter_context(mock.patch.object(time_for_diagnosis, '_LEAST_SECONDS', 600.0))

  def verified(self, parent=_Trained, stages=_STAGES, **settings):
    verdict = tf2verify.verify(type('Case', (parent,), settings), stages=stages)
    return {one.stage: one for one in verdict.stages}, verdict.to_text()

  def causes(self, verdict):
    known = verdict.diagnosis.causes if verdict.diagnosis else ()
    return ' '.join(f'{cause.text} {cause.evidence}' for cause in known)

  def test_the_right_port_passes(self):
    verdicts, text = self.verified()
    for verdict in verdicts.values():
      self.assertIs(verdict.status, Status.PASSED, text)

  def test_what_is_right_stays_blocked(self):
    verdicts, text = self.verified(activation=staticmethod(tf.nn.relu))
    self.assertIs(verdicts['zero_randomness'].status, Status.FAILED, text)
    for name in _STAGES[3:]:
      self.assertIs(verdicts[name].status, Status.BLOCKED, text)

  def test_what_earlier_edits_correct_is_searched_once(self):
    with mock.patch.object(failed_stage, 'diagnose', wraps=failed_stage.diagnose) as search:
      verdicts, text = self.verified(activation=staticmethod(tf.nn.relu), stages=_STAGES[:5])
    self.assertEqual([call.args[0] for call in search.call_args_list], ['zero_randomness'], text)
    self.assertIs(verdicts['gradients'].status, Status.BLOCKED, text)

  def test_five_mistakes_in_one_run(self):
    verdicts, text = self.verified(
      activation=staticmethod(tf.nn.relu),
      rate=0.6,
      weight=0.25,
      epsilon=1e-3,
      clipped=lambda self, gradients: [tf.clip_by_norm(g, self.limit) for g in gradients],
    )
    for name, words in {
      'zero_randomness': ('tanh', 'Tanh'),
      'seeded_constant': ('0.3', '0.6'),
      'loss': ('0.5', '0.25'),
      'training_steps': ('global norm', 'its own norm', 'epsilon', '0.001'),
    }.items():
      self.assertIs(verdicts[name].status, Status.FAILED, f'{name}: {text}')
      said = self.causes(verdicts[name])
      self.assertTrue(any(word in said for word in words[:2]), f'{name}: {text}')
      for word in words[2:]:
        self.assertIn(word, said, text)
    # What an earlier stage has shown is not shown again.
    self.assertNotIn('Tanh', self.causes(verdicts['seeded_constant']), text)
    self.assertIn('these numbers also show what zero_randomness shows', text)
    self.assertIn('was taken with the gradients of tf1', text)

  @parameterized.named_parameters(
    ('the stage alone', diagnose_option.STAGE), ('the first search', diagnose_option.FIRST)
  )
  def test_only_the_failed_stage(self, wanted):
    with mock.patch.dict(os.environ, {diagnose_option.VARIABLE: wanted}):
      verdicts, text = self.verified(activation=staticmethod(tf.nn.relu), weight=0.25)
    self.assertIs(verdicts['loss'].status, Status.BLOCKED, text)

  def test_one_mistake_that_several_edits_correct(self):
    """A gate and its rest, exchanged: in training the other order of a difference mends it, too."""

    def gated(inputs, training, is_tf1):
      table = v1.get_variable('table', [6, 4])
      net = tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), axis=1)
      net = v1.layers.dense(net, 4, name='hidden')
      slope = v1.get_variable('slope', [4])
      mean = v1.get_variable('mean', [4], trainable=False)
      if training:
        now = tf.reduce_mean(net, axis=0)
        v1.add_to_collection('update_ops', v1.assign(mean, 0.9 * mean + 0.1 * now))
        mean = now
      gate = tf.sigmoid((net - mean) / 0.5)
      if is_tf1:
        return slope * (1.0 - gate) * net + gate * net
      return slope * gate * net + (1.0 - gate) * net

    verdicts, text = self.verified(
      model=lambda self, inputs, training: gated(inputs, training, True),
      port=lambda self, inputs, training: gated(inputs, training, False),
      stages=_STAGES[:5],
    )
    self.assertIn('exchanged', self.causes(verdicts['zero_randomness']), text)
    self.assertIs(verdicts['seeded_constant'].status, Status.BLOCKED, text)

  def test_other_learning_rate(self):
    verdicts, text = self.verified(activation=staticmethod(tf.nn.relu), learning_rate=0.02)
    self.assertIn('0.02', self.causes(verdicts['training_steps']), text)

  def test_a_schedule_that_parts_later(self):
    schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.01, 0.002])
    verdicts, text = self.verified(
      activation=staticmethod(tf.nn.relu), learning_rate=schedule, epsilon=1e-3
    )
    said = self.causes(verdicts['training_steps'])
    self.assertIn('epsilon', said, text)
    self.assertIn('0.002', said, text)

  def test_a_clipping_that_is_tried_leaves_the_schedule(self):
    """The step in which larger gradients are tried counts in the port alone."""

    def train_op(case, loss):
      step = v1.train.get_or_create_global_step()
      rate = v1.train.piecewise_constant(step, [2], [0.5, 0.1])
      optimizer = v1.train.GradientDescentOptimizer(rate)
      gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
      gradients, _ = tf.clip_by_global_norm(gradients, 0.03)
      return optimizer.apply_gradients(zip(gradients, variables, strict=True), step)

    def optimizer(case):
      rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([2], [0.5, 0.1])
      return tf.keras.optimizers.SGD(rate, global_clipnorm=3.0)

    verdicts, text = self.verified(
      activation=staticmethod(tf.nn.relu),
      make_tf1_train_op=train_op,
      make_tf2_optimizer=optimizer,
      clipped=lambda self, gradients: gradients,
      training_steps_to_take=4,
    )
    said = self.causes(verdicts['training_steps'])
    self.assertIn('global norm, to 3', said, text)
    self.assertNotIn('learning rate', said, text)
    self.assertNotIn('abandoned', text)

  def test_a_missing_variable_leaves_the_loss(self):
    def without_bias(case, inputs, training):
      table = v1.get_variable('table', [6, 4])
      net = tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), axis=1)
      net = tf.nn.dropout(net, rate=0.3) if training else net
      return tf.nn.tanh(v1.layers.dense(net, 3, name='hidden', use_bias=False))

    verdicts, text = self.verified(port=without_bias, weight=0.25, epsilon=1e-3)
    self.assertIs(verdicts['variable_inventory'].status, Status.FAILED, text)
    self.assertIs(verdicts['loss'].status, Status.FAILED, text)
    for name in ('zero_randomness', 'seeded_constant', 'gradients', 'training_steps'):
      self.assertIs(verdicts[name].status, Status.BLOCKED, text)

  def test_a_missing_bias_of_zeros_leaves_the_rest(self):
    def without_bias(case, inputs, training):
      table = v1.get_variable('table', [6, 4])
      net = tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), axis=1)
      net = tf.nn.dropout(net, rate=0.6) if training else net
      return tf.nn.relu(v1.layers.dense(net, 3, name='hidden', use_bias=False))

    verdicts, text = self.verified(port=without_bias, epsilon=1e-3)
    self.assertIs(verdicts['variable_inventory'].status, Status.FAILED, text)
    self.assertIn('Tanh', self.causes(verdicts['zero_randomness']), text)
    self.assertIn('0.6', self.causes(verdicts['seeded_constant']), text)
    # TF1 clips by a norm with the gradient of the bias, which the port does not have.
    self.assertIs(verdicts['training_steps'].status, Status.BLOCKED, text)

  def test_updates_without_a_missing_variable(self):
    class Case(_Trained):
      def make_tf1_train_op(self, loss):
        optimizer = v1.train.AdamOptimizer(0.01, epsilon=1e-6)
        return optimizer.minimize(loss, v1.train.get_or_create_global_step())

      def clipped(self, gradients):
        return gradients

      def port(self, inputs, training):
        table = v1.get_variable('table', [6, 4])
        net = tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), axis=1)
        net = tf.nn.dropout(net, rate=0.3) if training else net
        return tf.nn.tanh(v1.layers.dense(net, 3, name='hidden', use_bias=False))

    verdicts, text = self.verified(Case)
    for name in _STAGES[2:]:
      self.assertIs(verdicts[name].status, Status.BLOCKED, text)
    verdicts, text = self.verified(Case, learning_rate=0.02)
    self.assertIn('0.02', self.causes(verdicts['training_steps']), text)

  def test_a_missing_variable_of_other_values_leaves_nothing(self):
    class Case(_Trained):
      def model(self, inputs, training):
        scale = v1.get_variable('scale', [3], initializer=v1.constant_initializer(0.5))
        return scale * super().model(inputs, training)

    class Zeros(_Trained):
      def model(self, inputs, training):
        scale = v1.get_variable('scale', [3], initializer=v1.zeros_initializer())
        return scale * super().model(inputs, training)

    for case in (Case, Zeros):
      verdicts, text = self.verified(case, activation=staticmethod(tf.nn.relu))
      self.assertIs(verdicts['zero_randomness'].status, Status.BLOCKED, text)

  def test_a_gamma_that_the_port_alone_has(self):
    class Case(_Trained):
      def port(self, inputs, training):
        gamma = v1.get_variable('gamma', [3], initializer=v1.ones_initializer())
        return gamma * super().port(inputs, training)

    verdicts, text = self.verified(Case)
    for name in _STAGES[2:]:
      self.assertIs(verdicts[name].status, Status.BLOCKED, text)
    verdicts, text = self.verified(Case, activation=staticmethod(tf.nn.relu))
    self.assertIn('Tanh', self.causes(verdicts['zero_randomness']), text)

  def test_initial_values_and_what_an_average_keeps(self):
    """Neither follows from what the activation before them makes differ."""

    class Case(_Trained):
      momentum, start = 0.9, 0.5

      def normed(self, inputs, training, activation, momentum, start):
        table = v1.get_variable('table', [6, 4])
        net = activation(tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), axis=1))
        net = v1.layers.batch_normalization(net, momentum=momentum, training=training, name='bn')
        first = v1.constant_initializer(start)
        return v1.layers.dense(net, 3, name='hidden', bias_initializer=first)

      def model(self, inputs, training):
        return self.normed(inputs, training, tf.nn.tanh, 0.9, 0.5)

      def port(self, inputs, training):
        return self.normed(inputs, training, self.activation, self.momentum, self.start)

    verdicts, text = self.verified(Case, activation=staticmethod(tf.nn.relu))
    self.assertIs(verdicts['zero_randomness'].status, Status.FAILED, text)
    self.assertIs(verdicts['seeded_constant'].status, Status.BLOCKED, text)
    mistakes = {'activation': staticmethod(tf.nn.relu), 'momentum': 0.99, 'start': 0.0}
    verdicts, text = self.verified(Case, **mistakes)
    said = self.causes(verdicts['seeded_constant'])
    self.assertIn('starts hidden/bias with 0, tf1 with 0.5', said, text)
    self.assertIn('0.01 in the port, 0.1 in tf1', said, text)
    self.assertNotIn('Relu', said, text)

  def test_frozen_variables_leave_the_rest(self):
    class Case(_Trained):
      def make_tf2_layer(self):
        layer = super().make_tf2_layer()
        layer.trainable = False
        return layer

    verdicts, text = self.verified(Case, activation=staticmethod(tf.nn.relu), weight=0.25)
    self.assertIs(verdicts['variable_inventory'].status, Status.FAILED, text)
    self.assertIs(verdicts['zero_randomness'].status, Status.FAILED, text)
    self.assertIs(verdicts['loss'].status, Status.FAILED, text)
    self.assertIs(verdicts['training_steps'].status, Status.BLOCKED, text)


class RightUpdatesTest(parameterized.TestCase):
  """Updates of right ports that are no others only where the gradients are those of the port."""

  def assert_blocked(self, case, stage='training_steps'):
    with mock.patch.object(time_for_diagnosis, '_LEAST_SECONDS', 600.0):
      verdict = tf2verify.verify(case, stages=_STAGES)
    known = {one.stage: one.status for one in verdict.stages}
    self.assertIs(known['zero_randomness'], Status.FAILED, verdict.to_text())
    self.assertIs(known[stage], Status.BLOCKED, verdict.to_text())

  def test_a_penalty_that_the_port_adds_in_its_call(self):
    class Case(_Trained):
      activation = staticmethod(tf.nn.relu)

      def tf1_loss(self, outputs, labels):
        variables = v1.trainable_variables()
        penalties = [tf.nn.l2_loss(variable) for variable in variables]
        return super().tf1_loss(outputs, labels) + 0.05 * tf.add_n(penalties)

      def tf2_regularization_losses(self, layer):
        return [0.05 * tf.nn.l2_loss(variable) for variable in layer.trainable_variables]

    self.assert_blocked(Case, 'loss')

  def test_a_loss_beside_a_penalty_that_the_port_adds(self):
    class Case(_Trained):
      activation = staticmethod(tf.nn.relu)
      weight = 1.0

      def tf1_total_loss(self, outputs, labels):
        penalties = [tf.nn.l2_loss(variable) for variable in v1.trainable_variables()]
        return self.tf1_loss(outputs, labels) + 0.05 * tf.add_n(penalties)

      def tf2_regularization_losses(self, layer):
        return [0.05 * tf.nn.l2_loss(variable) for variable in layer.trainable_variables]

    verdict = tf2verify.verify(Case, stages=_STAGES)
    known = {one.stage: one.status for one in verdict.stages}
    self.assertIs(known['zero_randomness'], Status.FAILED, verdict.to_text())
    # A penalty has no gradient by the outputs.
    self.assertIs(known['loss'], Status.FAILED, verdict.to_text())

  def test_a_constant_where_no_side_adds_anything(self):
    class Case(_Trained):
      activation = staticmethod(tf.nn.relu)

      def tf2_loss(self, outputs, labels):
        return super().tf2_loss(outputs, labels) + 0.5

    verdict = tf2verify.verify(Case, stages=_STAGES)
    known = {one.stage: one.status for one in verdict.stages}
    self.assertIs(known['zero_randomness'], Status.FAILED, verdict.to_text())
    self.assertIs(known['loss'], Status.FAILED, verdict.to_text())

  def test_a_part_that_the_port_adds_in_its_call(self):
    class Case(_Trained):
      activation = staticmethod(tf.nn.relu)

      def tf1_loss(self, outputs, labels):
        return super().tf1_loss(outputs, labels) + 0.1 * tf.reduce_mean(outputs**4)

      def tf2_regularization_losses(self, layer):
        return [0.1 * tf.reduce_mean(layer(self.make_inputs(), training=True) ** 4)]

    self.assert_blocked(Case, 'loss')

  def test_a_penalty_that_is_a_decay_of_the_port(self):
    class Case(_Trained):
      activation = staticmethod(tf.nn.relu)

      def tf1_loss(self, outputs, labels):
        variables = v1.trainable_variables()
        return super().tf1_loss(outputs, labels) + 0.05 * tf.add_n(
          [tf.nn.l2_loss(variable) for variable in variables]
        )

      def make_tf1_train_op(self, loss):
        step = v1.train.get_or_create_global_step()
        return v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.SGD(0.1, weight_decay=0.05)

      def clipped(self, gradients):
        return gradients

    self.assert_blocked(Case)

  def test_a_scale_of_the_loss(self):
    class Case(_Trained):
      activation = staticmethod(tf.nn.relu)

      def make_tf1_train_op(self, loss):
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        pairs = optimizer.compute_gradients(128.0 * loss)
        pairs = [(tf.convert_to_tensor(g) / 128.0, v) for g, v in pairs]
        return optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.SGD(0.1)

      def clipped(self, gradients):
        return gradients

    self.assert_blocked(Case)

  def test_gradients_of_two_parts(self):
    class Case(_Trained):
      activation = staticmethod(tf.nn.relu)

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape(persistent=True) as tape:
          outputs = layer(inputs, training=True)
          parts = [0.5 * part * self.tf2_loss(outputs, labels) for part in (0.5, 1.5)]
        variables = layer.trainable_variables
        ones, others = (tape.gradient(part, variables) for part in parts)
        both = [
          tf.convert_to_tensor(one) + tf.convert_to_tensor(other)
          for one, other in zip(ones, others, strict=True)
        ]
        optimizer.apply_gradients(zip(self.clipped(both), variables, strict=True))
        return tf.add_n(parts)

    self.assert_blocked(Case)


if __name__ == '__main__':
  absltest.main()
