import numpy as np
from absl.testing import absltest, parameterized

from tests.stages.training.causes import simulated
from tf2verify.compare.update_rules import Form
from tf2verify.stages.training.causes.clipping import clipping
from tf2verify.stages.training.causes.evidence import Evidence

_FORM = Form('sgd', (('learning_rate', 0.1),))


def joint(limit):
  def clip(gradients):
    norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients.values()))
    return {name: gradient * min(1, limit / norm) for name, gradient in gradients.items()}

  return clip


def each(limit):
  def clip(gradients):
    return {
      name: gradient * min(1, limit / np.linalg.norm(gradient))
      for name, gradient in gradients.items()
    }

  return clip


def values(limit):
  def clip(gradients):
    return {name: np.clip(gradient, -limit, limit) for name, gradient in gradients.items()}

  return clip


def squared(gradients):
  return {name: gradient**2 for name, gradient in gradients.items()}


def cause(tf1, tf2):
  runs = (simulated.run(side, _FORM, clip=clip) for side, clip in (('tf1', tf1), ('tf2', tf2)))
  return clipping(Evidence(*runs, simulated.PAIRS, 1))


class ClippingTest(parameterized.TestCase):
  # The norms are 0.36 and 1.3.
  @parameterized.named_parameters(
    ('joint_and_each', joint(0.2), each(0.2), 'pass global_clipnorm=0.2'),
    ('joint_and_one', joint(0.5), each(0.5), 'pass global_clipnorm=0.5'),
    ('each_and_joint', each(0.2), joint(0.2), 'pass clipnorm=0.2'),
    ('values_and_none', values(0.1), None, 'pass clipvalue=0.1'),
    ('none_and_joint', None, joint(0.3), 'leave clipnorm, global_clipnorm and clipvalue out'),
    ('another_limit', joint(0.2), joint(0.3), 'the port scales all gradients by their joint norm'),
  )
  def test_is_named(self, tf1, tf2, words):
    self.assertIn(words, cause(tf1, tf2).text)

  def test_a_norm_of_sparse_gradients(self):
    self.assertIn('repeated rows', cause(joint(0.199509), each(0.2)).text)
    self.assertNotIn('repeated rows', cause(joint(0.2), each(0.2)).text)

  @parameterized.named_parameters(
    ('same', joint(0.2), joint(0.2)),
    ('none', None, None),
    ('limit_that_is_not_met', each(5.0), None),
    ('something_else', joint(0.2), squared),
  )
  def test_is_not_named(self, tf1, tf2):
    self.assertIsNone(cause(tf1, tf2))

  def test_without_gradients_nothing_is_said(self):
    tf1 = simulated.run('tf1', _FORM, clip=joint(0.2))
    tf2 = simulated.with_steps(simulated.run('tf2', _FORM), gradients=[()] * 3)
    self.assertIsNone(clipping(Evidence(tf1, tf2, simulated.PAIRS, 1)))


if __name__ == '__main__':
  absltest.main()
