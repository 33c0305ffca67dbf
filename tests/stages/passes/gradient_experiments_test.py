"""Tests of tf2verify.diagnosis.gradients.repairing: mistakes that the gradient alone shows."""

import abc
import unittest.mock

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.global_probes import process_state
from tests.stages import tiny_models
from tests.stages.tiny_models import bias, kernel
from tf2verify.diagnosis import causes
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause
from tf2verify.records.experiment import Edit, Outcome
from tf2verify.stages.experiments.gradient_runs import GradientRun

v1 = tf.compat.v1
stop = tf.stop_gradient


def reversal(factor):
  @tf.custom_gradient
  def reverse(net):
    output = tf.identity(net)
    # It reads a tensor of the forward pass, as `gradient_override_map` does not.
    return output, lambda upstream: -factor * upstream * (0.0 * output + 1.0)

  return reverse


def failure(case):
  verdict = tf2verify.verify(case, stages=['gradients'])
  failed = verdict.first_failure
  assert failed is not None, verdict.to_text()
  assert failed.stage == 'gradients' and failed.diagnosis is not None, verdict.to_text()
  return failed.diagnosis, failed.to_text()


class VectorQuantized(tf2verify.EquivalenceCase, abc.ABC):
  """VQ-VAE in `tf.layers` and, in another spelling, in Keras."""

  mistakes: frozenset[str] = frozenset()

  def build_tf1_graph(self, inputs, training):
    code = v1.layers.dense(v1.layers.dense(inputs, 16, tf.nn.relu, name='a'), 4, name='b')
    book = v1.get_variable('book', [8, 4])
    far = tf.reduce_sum(code**2, 1, keepdims=True) - 2 * tf.matmul(code, book, transpose_b=True)
    nearest = tf.gather(book, tf.argmin(far + tf.reduce_sum(book**2, 1), 1))
    book_loss = tf.reduce_mean((stop(code) - nearest) ** 2)
    commitment = tf.reduce_mean((code - stop(nearest)) ** 2)
    net = v1.layers.dense(code + stop(nearest - code), 6, name='c')
    return {'net': net, 'loss': book_loss + 0.25 * commitment}

  def make_inputs(self):
    return tf2verify.normal_inputs((12, 6))

  def variable_names(self, name):
    return f'port/{name}'

  def make_tf2_layer(self):
    return _Quantizer(self.mistakes)


class _Quantizer(tf.keras.layers.Layer):
  def __init__(self, mistakes):
    super().__init__(name='port')
    self.mistakes = mistakes
    self.a = tf.keras.layers.Dense(16, 'relu', name='a')
    self.b = tf.keras.layers.Dense(4, name='b')
    self.c = tf.keras.layers.Dense(6, name='c')

  def build(self, shape):
    self.book = self.add_weight(name='book', shape=[8, 4])

  def call(self, inputs):
    code = self.b(self.a(inputs))
    if 'encoder stopped' in self.mistakes:
      code = stop(code)
    far = tf.reduce_sum(tf.square(code), 1, keepdims=True) - 2 * code @ tf.transpose(self.book)
    chosen = tf.argmin(far + tf.reduce_sum(tf.square(self.book), 1), 1)
    nearest = tf.nn.embedding_lookup(self.book, chosen)
    target = code if 'stop lost' in self.mistakes else stop(code)
    book_loss = tf.reduce_mean(tf.square(target - nearest))
    commitment = tf.reduce_mean(tf.square(code - stop(nearest)))
    if 'stops swapped' in self.mistakes:
      book_loss, commitment = commitment, book_loss
    loss = book_loss + 0.25 * commitment
    through = nearest if 'estimator lost' in self.mistakes else code + stop(nearest - code)
    if 'output stopped' in self.mistakes:
      loss = stop(loss)
    return {'net': self.c(through), 'loss': loss}


def quantized(*mistakes):
  return type('Case', (VectorQuantized,), {'mistakes': frozenset(mistakes)})


class Unrolled(tiny_models.OneModel, abc.ABC):
  """A loop that scales its gradients by hand, and is cut once."""

  def model(self, inputs, training, scale=0.5, cut=1):
    net, found, shift = inputs, [], bias()
    for step in range(3):
      with v1.variable_scope('step', reuse=step > 0):
        net = tf.tanh(net @ kernel())
      if scale:
        net = net * scale + stop(net) * (1 - scale)
      net = stop(net) if step == cut else net
      found.append(net * shift)
    return found


class SafeLogarithm(tiny_models.OneModel, abc.ABC):
  """`tf.where` hides a value that is not finite, and not its gradient."""

  def model(self, inputs, training, safe=True):
    net = tf.nn.relu(inputs @ kernel())
    positive = tf.where(net > 0, net, 1.0) if safe else net
    return tf.where(net > 0, tf.math.log(positive), 0.0) * bias()


REVERSAL = reversal(0.3)


class Reversed(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training, reverse=REVERSAL):
    net = tf.tanh(inputs @ kernel())
    return {'label': net * bias(), 'domain': reverse(net) @ v1.get_variable('domain', [3, 2])}


class MistakesTest(parameterized.TestCase):
  @parameterized.parameters(
    ('stop lost', Edit.SETTING, 'tf1 stops the gradient at x of sub_1 and the port does not'),
    ('output stopped', Edit.SETTING, "stops the gradient at input 0 of the output ['loss']"),
    ('estimator lost', Edit.OPERATIONS, 'the port lacks Sub → AddV2'),
    ('encoder stopped', Edit.SETTING, 'the port stops the gradient at x of sub_2'),
  )
  def test_one_of_a_vector_quantizer(self, mistake, edit, words):
    diagnosis, text = failure(quantized(mistake))
    [cause] = diagnosis.causes
    self.assertEqual((cause.experiment.edit, cause.experiment.outcome), (edit, Outcome.PROVEN))
    self.assertIn(words, cause.text, text)
    self.assertIn('  cause (proven: with ', text)
    self.assertTrue(all(source.experiment is not None for source in diagnosis.sources))

  def test_process_stays_as_it_is(self):
    failure(quantized('stop lost'))  # what is imported at the first one stays
    before = process_state()
    failure(quantized('estimator lost'))
    self.assertEqual(process_state(), before)

  def test_several_in_order(self):
    diagnosis, text = failure(quantized('stop lost', 'estimator lost'))
    experiments = [cause.experiment for cause in diagnosis.causes]
    self.assertEqual([(one.number, one.mistakes) for one in experiments], [(1, 2), (2, 2)], text)
    self.assertEqual({one.outcome for one in experiments}, {Outcome.PROVEN})
    self.assertIn('x of sub_1', diagnosis.causes[0].text)
    self.assertIn('the port lacks Sub → AddV2', diagnosis.causes[1].text)

  def test_stop_of_what_several_operations_read_is_one_mistake(self):
    diagnosis, text = failure(quantized('encoder stopped'))
    self.assertEqual([cause.experiment.mistakes for cause in diagnosis.causes], [1], text)
    self.assertIn('code = stop(code)', text)

  @parameterized.parameters(
    ({'scale': None}, 'the port lacks Mul(y=0.5) → Mul(y=0.5) → AddV2'),
    ({'scale': 0.1}, 'is 0.1 in the port, 0.5 in tf1'),
    ({'cut': 0}, 'the port stops the gradient at', 'tf1 stops the gradient at'),
    ({'cut': None}, 'tf1 stops the gradient at'),
  )
  def test_one_of_a_loop(self, mistake, *words):
    class Case(Unrolled):
      def port(self, inputs, training):
        return self.model(inputs, training, **mistake)

    diagnosis, text = failure(Case)
    for word, cause in zip(words, diagnosis.causes, strict=True):
      self.assertIs(cause.experiment.outcome, Outcome.PROVEN, text)
      self.assertIn(word, cause.text, text)

  def test_gradient_of_what_is_hidden(self):
    class Case(SafeLogarithm):
      def port(self, inputs, training):
        return self.model(inputs, training, safe=False)

    diagnosis, text = failure(Case)
    [cause] = diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, text)
    self.assertIn('SelectV2', cause.text)

  @parameterized.parameters(
    (tf.identity, 'tf1 has a custom gradient at a of matmul_1 and the port does not'),
    (reversal(1.0), 'the custom gradient of the port at a of matmul_1 differs from that of tf1'),
  )
  def test_custom_gradient(self, reverse, words):
    class Case(Reversed):
      def port(self, inputs, training):
        return self.model(inputs, training, reverse)

    diagnosis, text = failure(Case)
    [cause] = diagnosis.causes
    self.assertEqual((cause.experiment.outcome, cause.predicts), (Outcome.PROVEN, True), text)
    self.assertEqual(cause.text, words)

  def test_custom_gradient_that_tf1_has_elsewhere(self):
    """The port reverses what both branches read: for one of them it is right."""

    class Case(Reversed):
      def port(self, inputs, training):
        net = reversal(0.3)(tf.tanh(inputs @ kernel()))
        return {'label': net * bias(), 'domain': net @ v1.get_variable('domain', [3, 2])}

    diagnosis, text = failure(Case)
    [cause] = diagnosis.causes
    self.assertEqual(
      cause.text, 'the port has a custom gradient at x of mul and tf1 does not', text
    )


class HonestyTest(absltest.TestCase):
  def test_edit_that_mends_nothing_is_no_cause(self):
    """The comparison is the stage's: with one that always finds something, nothing is proven."""

    def judged(self, repairs):
      left, shares = known(self, repairs)
      return left | {('gradient', 'book', 'training, distinct values')}, shares

    known = GradientRun.judged
    with unittest.mock.patch.object(GradientRun, 'judged', judged):
      _, text = failure(quantized('stop lost', 'estimator lost'))
    self.assertNotIn('proven', text)

  def test_rule_that_goes_by_another_place_is_wrong(self):
    """An extra stop that changes nothing: behind it there is no variable."""

    class Case(tiny_models.OneModel):
      def model(self, inputs, training, extra=tf.identity, lost=stop):
        net = extra(inputs * 2.0) @ kernel()
        return net * lost(net)

      def port(self, inputs, training):
        return self.model(inputs, training, stop, tf.identity)

    diagnosis, text = failure(Case)
    [cause] = diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN)
    self.assertIn('tf1 stops the gradient at y of mul_1', cause.text, text)

  def test_rule_that_is_wrong_says_nothing_of_a_proven_edit(self):
    def wrong(evidence):
      known = evidence.gradient_differences and evidence.stage == 'gradients'
      return Cause('the planets stand badly', '', 'wrong') if known else None

    rule = Rule('wrong', FailedStage, wrong)
    with unittest.mock.patch.object(causes, 'RULES', (*causes.RULES, rule)):
      _, text = failure(quantized('estimator lost'))
    self.assertNotIn('planets', text)

  def test_port_that_differs_eagerly_alone_keeps_its_report(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        net = self.model(inputs, training)
        return stop(net) + 0.0 * net if tf.executing_eagerly() else net

    diagnosis, text = failure(Case)
    self.assertNotIn('proven', text)
    self.assertTrue(all(cause.experiment is None for cause in diagnosis.causes))

  def test_body_of_a_loop_is_edited(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, cut=stop):
        weights = kernel()

        def step(n, net):
          return n + 1, tf.tanh(cut(net) @ weights)

        return tf.while_loop(lambda n, _: n < 3, step, [0, inputs])[1]

      def port(self, inputs, training):
        return self.model(inputs, training, tf.identity)

    diagnosis, text = failure(Case)
    (cause,) = diagnosis.causes
    self.assertEqual(
      (cause.rule, cause.experiment.outcome), ('stop_gradient', Outcome.PROVEN), text
    )
    self.assertEqual(diagnosis.sources[0].tf1_op, 'while/round_2/matmul')

  def test_time_that_is_used_up(self):
    with unittest.mock.patch('tf2verify.stages.experiments.stage_bench.StageBench.is_over') as over:
      over.return_value = True
      diagnosis, text = failure(quantized('stop lost'))
    self.assertNotIn('proven', text)
    self.assertEqual([cause.rule for cause in diagnosis.causes], ['stop_gradient'])

  def test_variables_and_layer_stay_as_they_are(self):
    made = []

    class Case(quantized('stop lost')):
      def make_tf2_layer(self):
        made.append(super().make_tf2_layer())
        return made[-1]

    seen = []
    judged = GradientRun.judged

    def watched(self, repairs):
      before = [[v.numpy().tobytes() for v in layer.variables] for layer in made[:-1]]
      found = judged(self, repairs)
      after = [[v.numpy().tobytes() for v in layer.variables] for layer in made[:-1]]
      seen.append(before == after)
      return found

    with unittest.mock.patch.object(GradientRun, 'judged', watched):
      failure(Case)
    self.assertNotEmpty(seen)
    self.assertTrue(all(seen))


class RightPortTest(absltest.TestCase):
  def test_of_the_vector_quantizer(self):
    verdict = tf2verify.verify(quantized(), stages=['gradients'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_reversal_in_another_spelling(self):
    class Case(Reversed):
      def port(self, inputs, training):
        return self.model(inputs, training, lambda net: -0.3 * net + stop(1.3 * net))

    verdict = tf2verify.verify(Case, stages=['gradients'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
