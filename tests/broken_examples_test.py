"""The examples that are wrong on purpose fail at the stage that their page names, and say why."""

import importlib
import inspect
import pathlib

import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest, parameterized

import tf2verify
from examples.broken import broken_case as broken
from examples.checkpoint_conversion import broken_case as checkpoint_conversion
from examples.inception_resnet_v2 import broken_case as inception_resnet_v2
from examples.inception_resnet_v2 import broken_port, model
from examples.keras3_conv_net import broken_case as keras3_conv_net
from examples.simple_model import broken_case as simple_model
from examples.slim_rmsprop_ema import broken_case as slim_rmsprop_ema
from tf2verify.case import EquivalenceCase
from tf2verify.stages import STAGES

_EXAMPLES = pathlib.Path(__file__).parents[1] / 'examples'
_LONGEST_CASE = 40
_STAGES = [stage.name for stage in STAGES]


def _stem_case():
  """Returns a case that is no test here, since it fails on purpose."""

  class StemCase(EquivalenceCase):
    """What is wrong in `RewrittenStemCase`, which takes a minute, without the blocks behind it."""

    def build_tf1_graph(self, inputs, training):
      with (
        slim.arg_scope(model.inception_resnet_v2_arg_scope()),
        tf.compat.v1.variable_scope('InceptionResnetV2'),
        slim.arg_scope([slim.batch_norm], is_training=training),
        slim.arg_scope([slim.conv2d], stride=1, padding='SAME'),
      ):
        return model.stem(inputs)

    def make_tf2_layer(self):
      return broken_port.Stem(name='stem')

    def make_inputs(self):
      return tf2verify.normal_inputs((2, 41, 41, 3))

    def variable_names(self, name):
      return 'stem/' + broken_port.variable_name(name).partition('/stem/')[2]

  return StemCase


def _cases(path):
  """Returns the case classes that a file of the examples defines."""
  name = '.'.join(path.relative_to(_EXAMPLES.parent).with_suffix('').parts)
  members = vars(importlib.import_module(name)).values()
  classes = [member for member in members if isinstance(member, type)]
  return [c for c in classes if issubclass(c, EquivalenceCase) and c.__module__ == name]


class BrokenExamplesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('scaling', broken.BrokenScalingCase, 'no_new_variables', ['offset']),
    (
      'schedule',
      simple_model.FrozenScheduleCase,
      'training_steps',
      ['[step 2]', 'the learning rate stays at 0.001 in the port, the value of its first step'],
    ),
    (
      'rmsprop',
      slim_rmsprop_ema.PlainRmspropCase,
      'training_steps',
      ['the accumulated squared gradient starts at 0 in tf.keras.optimizers.RMSprop, at 1 in TF1'],
    ),
    (
      'variance',
      keras3_conv_net.BiasedVarianceCase,
      'seeded_constant',
      ['the moving variance follows the unbiased variance in tf1', 'state after the call'],
    ),
    (
      'stem',
      _stem_case(),
      'zero_randomness',
      ['the port applies relu before the batch norm, tf1 after it', 'self.convolution(inputs)'],
    ),
    (
      'nothing',
      checkpoint_conversion.RestoredByObjectCase,
      'checkpoint',
      ['bars/stem/kernel', 'kept its value: not restored', '0 of 7 variables restored'],
    ),
    (
      'name',
      checkpoint_conversion.MissedNameCase,
      'checkpoint',
      ['5 of 7 variables restored', 'keys unread: classifier/fc/kernel, classifier/fc/bias'],
    ),
  )
  def test_fails_where_its_page_says(self, case, stage, words):
    verdict = tf2verify.verify(case, stages=_STAGES[: _STAGES.index(stage) + 1])
    text = verdict.to_text()
    self.assertIs(verdict.status, tf2verify.Status.FAILED, text)
    self.assertEqual(verdict.first_failure.stage, stage, text)
    for word in words:
      self.assertIn(word, text)

  def test_cases_are_short(self):
    for path in sorted(_EXAMPLES.glob('*/*_test.py')):
      for case in _cases(path):
        self.assertLessEqual(len(inspect.getsourcelines(case)[0]), _LONGEST_CASE, case)

  def test_every_broken_case_is_run_here(self):
    found = {case for path in _EXAMPLES.glob('*/broken_case.py') for case in _cases(path)}
    run = {
      broken.BrokenScalingCase,
      simple_model.FrozenScheduleCase,
      slim_rmsprop_ema.PlainRmspropCase,
      keras3_conv_net.BiasedVarianceCase,
      checkpoint_conversion.RestoredByObjectCase,
      checkpoint_conversion.MissedNameCase,
    }
    self.assertEqual(found - {inception_resnet_v2.RewrittenStemCase}, run)  # see _stem_case


if __name__ == '__main__':
  absltest.main()
