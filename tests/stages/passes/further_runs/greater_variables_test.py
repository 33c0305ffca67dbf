"""Tests of stages.passes.further_runs.greater_variables, by the stage that asks for them."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.tiny_models import OneModel, kernel

v1 = tf.compat.v1
_WORDS, _BEAMS, _STEPS, _END, _NEVER = 6, 2, 4, 2, -1e7
_SAID = "at the case's own values both sides agree, at other ones, times "


def _penalized(first, unused):
  """Beams of which all but the first are unused, in the spelling of the port."""
  batch = tf.shape(first)[0]
  return tf.concat([tf.zeros([batch, 1]), tf.fill([batch, _BEAMS - 1], unused)], 1)


def _taken(values, parents):
  return tf.gather(values, parents, batch_dims=1)


def _picked(values, parents):
  """The same by products."""
  chosen = tf.one_hot(parents, _BEAMS) @ tf.cast(values, tf.float32)[:, :, None]
  return chosen[:, :, 0] > 0.5


class Beams(OneModel, abc.ABC):
  """A beam search over a table of transitions."""

  training_modes = (False,)
  unused, loses_flags = _NEVER, False

  def make_inputs(self):
    return np.array([1, 3, 4, 5], np.int32)

  def model(self, inputs, training):
    start = tf.tile([[0.0] + [_NEVER] * (_BEAMS - 1)], [tf.shape(inputs)[0], 1])
    return self.search(inputs, start, _taken, False)

  def port(self, inputs, training):
    return self.search(inputs, _penalized(inputs, self.unused), _picked, self.loses_flags)

  def search(self, first, scores, take, loses_flags):
    table = v1.get_variable('table', [_WORDS, _WORDS])
    words = tf.tile(first[:, None], [1, _BEAMS])
    done = tf.zeros_like(words) > 0
    for _ in range(_STEPS):
      ends = tf.where(tf.equal(tf.range(_WORDS), _END), 0.0, _NEVER)
      odds = tf.where(done[..., None], ends, tf.nn.log_softmax(tf.gather(table, words)))
      total = tf.reshape(scores[..., None] + odds, [-1, _BEAMS * _WORDS])
      scores, best = tf.math.top_k(total, _BEAMS)
      parents, words = best // _WORDS, best % _WORDS
      done = (done if loses_flags else take(done, parents)) | tf.equal(words, _END)
    return {'words': words, 'scores': scores}


class SmallMask(Beams, abc.ABC):
  unused = -10.0


class LostFlags(Beams, abc.ABC):
  loses_flags = True


class Given(SmallMask, abc.ABC):
  """The values that the variables can have."""

  def fill_values(self, name, shape, dtype):
    return np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype(dtype)


class Cancelling(OneModel, abc.ABC):
  """The nearest of some codes: greater values cancel, and rounding decides in TF1."""

  training_modes = (False,)

  def model(self, inputs, training):
    net, codes = self.far(inputs), v1.get_variable('codes', [8, 3])
    squares = tf.reduce_sum(net**2, 1, keepdims=True) + tf.reduce_sum(codes**2, 1)
    return self.nearest(squares - 2.0 * tf.matmul(net, codes, transpose_b=True), codes)

  def port(self, inputs, training):
    net, codes = self.far(inputs), v1.get_variable('codes', [8, 3])
    return self.nearest(tf.reduce_sum((net[:, None] - codes) ** 2, 2), codes)

  def far(self, inputs):
    for name in 'abcd':
      inputs = inputs @ v1.get_variable(name, [3, 3])
    return inputs

  def nearest(self, distances, codes):
    chosen = tf.argmin(distances, 1)
    return {'codes': chosen, 'values': tf.gather(codes, chosen)}


class Affine(OneModel, abc.ABC):
  """A port that is not proven, and right."""

  training_modes = (False,)

  def model(self, inputs, training):
    return tf.sigmoid(inputs @ kernel())

  def port(self, inputs, training):
    return 0.5 + 0.5 * tf.tanh(0.5 * tf.einsum('bi,io->bo', inputs, kernel()))


class GreaterVariablesTest(parameterized.TestCase):
  @parameterized.parameters((SmallMask, 'in _penalized'), (LostFlags, 'done = (done if'))
  def test_told_apart(self, case, where):
    found = _verdict(case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    (spot,) = (spot for spot in found.blind_spots if _SAID in spot)
    self.assertIn(where, spot)

  @parameterized.parameters(Beams, Given, Cancelling, Affine)
  def test_right_port(self, case):
    found = _verdict(case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertFalse([spot for spot in found.blind_spots if _SAID in spot])


def _verdict(case):
  stages = tf2verify.verify(case, stages=['zero_randomness']).stages
  return next(stage for stage in stages if stage.stage == 'zero_randomness')


if __name__ == '__main__':
  absltest.main()
