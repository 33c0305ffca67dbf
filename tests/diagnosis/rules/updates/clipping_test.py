import dataclasses

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.updates.clipping import clipping
from tf2verify.numerics.gradient_clips import EACH, NONE, Clip
from tf2verify.records.observation import Slices

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


def cleared(gradients):
  kernel = gradients['kernel'] * np.array([[1.0], [0.0], [1.0]], np.float32)
  return {**gradients, 'kernel': kernel}


def of_two(bias, kernel):
  """Two optimizers, each with a clipping of its own."""

  def clip(gradients):
    made = [each({name: gradients[name]}) for name, each in (('bias', bias), ('kernel', kernel))]
    return {name: value for known in made for name, value in known.items()}

  return clip


def cause(tf1, tf2, **more):
  runs = (simulated.run(side, _FORM, clip=clip) for side, clip in (('tf1', tf1), ('tf2', tf2)))
  return clipping(training_evidence(*runs, simulated.PAIRS, 1, **more))


def of_rows(limit, size):
  """A global norm with a kernel whose rows, before they are added up, have a norm of `size`."""

  def clip(gradients):
    norm = np.hypot(np.linalg.norm(gradients['bias']), size)
    return {name: gradient * min(1, limit / norm) for name, gradient in gradients.items()}

  return clip


def with_rows(run, size):
  """Returns the run with such a kernel."""

  def sliced(records, raw):
    sizes = {record.name: np.linalg.norm(record.value) for record in raw}
    return tuple(
      dataclasses.replace(
        record, slices=Slices(7, size * np.linalg.norm(record.value) / sizes['kernel'])
      )
      if record.name == 'kernel'
      else record
      for record in records
    )

  return simulated.with_steps(
    run,
    gradients=[sliced(step.gradients, step.gradients) for step in run.steps],
    applied_gradients=[sliced(step.applied_gradients, step.gradients) for step in run.steps],
  )


class ClippingTest(parameterized.TestCase):
  # The norms are 0.36 and 1.3.
  @parameterized.named_parameters(
    ('joint_and_each', joint(0.2), each(0.2), 'pass global_clipnorm=0.2'),
    ('joint_and_one', joint(0.5), each(0.5), 'pass global_clipnorm=0.5'),
    ('each_and_joint', each(0.2), joint(0.2), 'pass clipnorm=0.2'),
    ('values_and_none', values(0.1), None, 'pass clipvalue=0.1'),
    ('none_and_joint', None, joint(0.3), 'remove clipnorm, global_clipnorm and clipvalue'),
    ('another_limit', joint(0.2), joint(0.3), 'the port scales all gradients by their global norm'),
  )
  def test_is_named(self, tf1, tf2, words):
    self.assertIn(words, cause(tf1, tf2).text)

  def test_elements_that_are_set_to_0(self):
    first, then = (lambda g: each(0.2)(cleared(g))), (lambda g: cleared(each(0.2)(g)))
    text = cause(then, first).text
    self.assertIn('TF1 scales each gradient by its own norm, to 0.2, and then sets', text)
    self.assertIn('the port sets elements of gradients to 0, and then scales each', text)
    self.assertIn('clip before elements are set to 0', text)
    self.assertIn('clip after elements are set to 0', cause(first, then).text)
    self.assertIsNone(cause(then, then))

  def test_a_gradient_that_is_left_out_of_the_norm(self):
    def apart(gradients):
      kernel = gradients['kernel']
      return {**gradients, 'kernel': kernel * min(1.0, 0.2 / np.linalg.norm(kernel))}

    text = cause(joint(0.2), apart).text
    self.assertIn('the port leaves bias out of it, applies them as they are', text)
    self.assertIn('give all gradients to tf.clip_by_global_norm', text)
    self.assertIn('TF1 leaves bias out of it', cause(apart, joint(0.2)).text)
    other = cause(joint(0.3), apart)
    self.assertNotIn('out of it', '' if other is None else other.text)

  @parameterized.parameters(0.3, 0.01)
  def test_a_norm_that_has_more_in_it(self, more):
    def clip(gradients):
      norm = np.sqrt(sum(np.sum(g**2) for g in gradients.values()) + more**2)
      return {name: gradient * min(1.0, 0.2 / norm) for name, gradient in gradients.items()}

    text = cause(joint(0.2), clip).text
    self.assertIn('that of the port is of more', text)
    self.assertIn(f'there is one besides, of norm {more:g}', text)
    self.assertIn('that of TF1 is of more', cause(clip, joint(0.2)).text)
    self.assertNotIn('is of more', cause(joint(0.2), joint(0.19)).text)

  def test_of_one_of_two_optimizers(self):
    tf1 = of_two(each(0.2), each(0.3))
    text = cause(tf1, of_two(each(0.2), values(0.1))).text
    self.assertIn('of kernel, TF1 scales each gradient by its own norm, to 0.3; the port', text)
    self.assertIn('clips each element at 0.1: pass clipnorm=0.3', text)
    self.assertIsNone(cause(tf1, of_two(each(0.2), squared)))
    self.assertIsNone(cause(tf1, of_two(each(0.2), each(0.123456))))

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

  @parameterized.named_parameters(
    ('not_tried', None, 'it clips none, or by a limit that they do not reach'),
    ('tried', Clip(EACH, 5.0), 'scales each gradient by its own norm, to 5, which those of this'),
    ('none', Clip(NONE), 'leaves gradients unchanged, also larger ones'),
  )
  def test_a_port_that_leaves_the_gradients(self, beyond, words):
    found = cause(joint(0.2), None, clip_beyond=lambda: beyond)
    self.assertIn(words, found.text)
    self.assertIn('pass global_clipnorm=0.2', found.text)

  def test_limit_of_repeated_rows(self):
    tf1 = with_rows(simulated.run('tf1', _FORM, clip=of_rows(0.2, 1.5)), 1.5)
    found = clipping(training_evidence(tf1, simulated.run('tf2', _FORM), simulated.PAIRS, 1))
    self.assertIn('pass global_clipnorm=0.2 ', found.text)
    self.assertNotIn('repeated rows', found.text)

  def test_one_limit_and_other_rows(self):
    tf1 = with_rows(simulated.run('tf1', _FORM, clip=of_rows(0.2, 0.5)), 0.5)
    tf2 = with_rows(simulated.run('tf2', _FORM, clip=of_rows(0.2, 1.5)), 1.5)
    found = clipping(training_evidence(tf1, tf2, simulated.PAIRS, 1))
    self.assertIn('both sides scale all gradients by their global norm, to 0.2, but', found.text)
    self.assertIn('that of kernel is 0.5 in TF1 (7 rows) and 1.5 in the port (7 rows)', found.text)
    self.assertIsNone(clipping(training_evidence(tf1, tf1, simulated.PAIRS, 1)))

  def test_rows_that_are_added_up_before_clipping(self):
    # The port differs in something else, and takes the norm that TF1 takes.
    tf1 = simulated.run('tf1', _FORM, clip=joint(0.2))
    tf2 = simulated.run('tf2', _FORM, clip=joint(0.2))
    sliced = [with_rows(tf2, 1.5).steps[n].gradients for n in range(3)]
    tf2 = simulated.with_steps(tf2, gradients=sliced)
    self.assertIsNone(clipping(training_evidence(tf1, tf2, simulated.PAIRS, 1)))

  def test_norms_of_a_gradient_that_is_another_one(self):
    tf1 = with_rows(simulated.run('tf1', _FORM, clip=of_rows(0.2, 0.5)), 0.5)
    tf2 = with_rows(simulated.run('tf2', _FORM, clip=of_rows(0.2, 1.5)), 1.5)
    doubled = {
      name: [
        tuple(
          dataclasses.replace(record, value=2 * record.value) if record.slices else record
          for record in getattr(step, name)
        )
        for step in tf2.steps
      ]
      for name in ('gradients', 'applied_gradients')
    }
    tf2 = simulated.with_steps(tf2, **doubled)
    self.assertIsNone(clipping(training_evidence(tf1, tf2, simulated.PAIRS, 1)))

  def test_without_gradients_nothing_is_said(self):
    tf1 = simulated.run('tf1', _FORM, clip=joint(0.2))
    tf2 = simulated.with_steps(simulated.run('tf2', _FORM), gradients=[()] * 3)
    self.assertIsNone(clipping(training_evidence(tf1, tf2, simulated.PAIRS, 1)))


if __name__ == '__main__':
  absltest.main()
