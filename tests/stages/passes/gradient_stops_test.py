"""Tests of tf2verify.diagnosis.gradients.stops: stops of the gradient where no pair is near."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tf2verify.records.experiment import Edit, Outcome

v1 = tf.compat.v1
stop = tf.stop_gradient
_PARTS, _SIZE = 3, 2


def kernel():
  return v1.get_variable('kernel', [4, _PARTS * _SIZE])


class Routed(tf2verify.EquivalenceCase, abc.ABC):
  """Votes are weighed by how they agree, without a gradient; the last round has one.

  Rounds that TF1 writes out, in a loop of the port; votes in another shape.
  """

  in_loop = staticmethod(stop)
  at_last = staticmethod(lambda votes: votes)

  def build_tf1_graph(self, inputs, training):
    votes = tf.reshape(inputs @ kernel(), [-1, _PARTS, _SIZE, 1])
    logits = tf.zeros_like(votes[:, :, :1])
    for number in range(3):
      read = votes if number == 2 else stop(votes)
      net = tf.tanh(tf.reduce_sum(tf.nn.softmax(logits, 1) * read, 1, keepdims=True))
      logits += tf.reduce_sum(read * net, 2, keepdims=True)
    return net

  def make_tf2_layer(self):
    return tiny_models.ShimLayer(self.port)

  def port(self, inputs, training):
    matrix = tf.reshape(kernel(), [4, _PARTS, _SIZE])
    votes = tf.einsum('bi,ipo->bpo', inputs, matrix)
    read = self.in_loop(votes)

    def agree(number, logits):
      net = tf.tanh(tf.einsum('bp,bpo->bo', tf.nn.softmax(logits), read))
      return number + 1, logits + tf.einsum('bpo,bo->bp', read, net)

    start = 0, tf.zeros(tf.shape(votes)[:2])
    _, logits = tf.while_loop(lambda number, _: number < 2, agree, start)
    weighed = tf.nn.softmax(logits)[..., None] * self.at_last(votes)
    return tf.tanh(tf.reduce_sum(weighed, 1))[:, None, :, None]

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))


class GradientStopsTest(parameterized.TestCase):
  def test_right_port_passes(self):
    class Case(Routed):
      pass

    verdict = tf2verify.verify(Case, stages=['gradients'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())

  @parameterized.parameters(
    ('in_loop', lambda votes: votes, ('tf1 stops the gradient', 'where it is read by Einsum')),
    ('at_last', stop, ('the port stops the gradient', 'Mul (gradient_stops_test.py:')),
  )
  def test_one_of_a_loop(self, name, fault, words):
    class Case(Routed):
      pass

    setattr(Case, name, staticmethod(fault))
    verdict = tf2verify.verify(Case, stages=['gradients'])
    failed = verdict.first_failure
    self.assertEqual(failed.stage, 'gradients')
    text = verdict.to_text()
    [cause] = failed.diagnosis.causes
    experiment = cause.experiment
    self.assertEqual((experiment.edit, experiment.outcome), (Edit.SETTING, Outcome.PROVEN), text)
    for word in words:
      self.assertIn(word, cause.text, text)
    self.assertIn("votes = tf.einsum('bi,ipo->bpo', inputs, matrix)", text)


if __name__ == '__main__':
  absltest.main()
