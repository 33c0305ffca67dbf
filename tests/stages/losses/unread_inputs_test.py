"""Labels that the loss of tf1 reads, and that of the port does not."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_LENGTH = 4


class Advantages(tf2verify.EquivalenceCase, abc.ABC):
  """Advantages of a sequence of rewards: unrolled in tf1, scanned in the port."""

  shifted = True  # whether the port takes whether the next step is the first one of an episode

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 1, name='value')

  def make_tf2_layer(self):
    return keras.layers.Dense(1, name='value')

  def make_inputs(self):
    return tf2verify.normal_inputs((_LENGTH, 3))

  def make_labels(self):
    rewards = np.linspace(-1, 1, _LENGTH).astype(np.float32)
    dones = np.array([0, 0, 1, 0], np.float32)
    return {'rewards': rewards, 'dones': dones, 'last_done': np.float32(1.0)}

  def tf1_loss(self, outputs, labels):
    total, found = tf.zeros([]), []
    for t in reversed(range(_LENGTH)):
      done = labels['last_done'] if t == _LENGTH - 1 else labels['dones'][t + 1]
      total = labels['rewards'][t] + 0.9 * (1.0 - done) * (total + 0.5)
      found.append(total)
    return tf.reduce_mean(tf.square(outputs[:, 0] - tf.stack(found[::-1])))

  def tf2_loss(self, outputs, labels):
    dones = labels['dones']
    if self.shifted:
      dones = tf.concat([dones[1:], labels['last_done'][None]], 0)
    found = tf.scan(
      lambda total, x: x[0] + 0.9 * x[1] * (total + 0.5),
      (labels['rewards'], 1.0 - dones),
      tf.zeros([]),
      reverse=True,
    )
    return tf.reduce_mean(tf.square(outputs[:, 0] - found))


def _loss(**hooks):
  verdict = tf2verify.verify(type('Case', (Advantages,), hooks), ['loss'])
  return next(one for one in verdict.stages if one.stage == 'loss')


class UnreadInputsTest(parameterized.TestCase):
  def test_right_port(self):
    stage = _loss()
    self.assertTrue(stage.passed, stage.to_text())

  def test_what_is_not_read_is_told(self):
    stage = _loss(shifted=False)
    self.assertFalse(stage.passed)
    said = r"without the input labels\['last_done'\], which tf1 reads for it \(unread_inputs_test"
    self.assertRegex(' '.join(stage.to_text().split()), said)


if __name__ == '__main__':
  absltest.main()
