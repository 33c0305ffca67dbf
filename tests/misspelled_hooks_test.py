"""Tests of tf2verify.misspelled_hooks, with what a case can declare."""

import abc

from absl.testing import absltest, parameterized

import tf2verify
from tests import small_case
from tf2verify.case import _DECLARABLE
from tf2verify.errors import CaseDefinitionError
from tf2verify.misspelled_hooks import misspelled_hook, near_miss


def _method(self, *_):
  return None


def _found(case):
  found = misspelled_hook(case, tf2verify.EquivalenceCase, _DECLARABLE)
  return found and found[1:]


def _with(base, *names, value=_method):
  return type('NamedCase', (base, abc.ABC), dict.fromkeys(names, value))


class MisspelledTest(parameterized.TestCase):
  @parameterized.parameters(
    ('build_tf1_grph', 'build_tf1_graph'),
    ('build_tf1_model_graph', None),
    ('make_input', 'make_inputs'),
    ('make_lables', 'make_labels'),
    ('make_tf2_layers', 'make_tf2_layer'),
    ('call_tf2_layr', 'call_tf2_layer'),
    ('tf2_lose', 'tf2_loss'),
    ('tf1loss', 'tf1_loss'),
    ('tf2_trainstep', 'tf2_train_step'),
    ('make_tf2_optimiser', 'make_tf2_optimizer'),
    ('make_tf1_train_ops', 'make_tf1_train_op'),
    ('load_tf1_checkpoints', 'load_tf1_checkpoint'),
    ('tf2_regularisation_losses', 'tf2_regularization_losses'),
  )
  def test_method(self, name, hook):
    self.assertEqual(_found(_with(tf2verify.EquivalenceCase, name)), hook and (name, hook))

  @parameterized.parameters(
    ('training_steps_to_takes', 'training_steps_to_take'),
    ('training_mode', 'training_modes'),
    ('training_steps', 'training_steps_to_take'),
    ('tolerence', 'tolerance'),
    ('gradients_tolerance', 'gradient_tolerance'),
    ('variable_name', 'variable_names'),
    ('modes_to_runs', 'modes_to_run'),
    ('resource', 'resources'),
    ('tf1_recordings', 'tf1_recording'),
  )
  def test_attribute(self, name, hook):
    self.assertEqual(_found(_with(tf2verify.EquivalenceCase, name, value=3)), (name, hook))

  def test_in_place_of_an_inherited_hook(self):
    self.assertEqual(
      _found(_with(small_case.SmallCase, 'make_input')), ('make_input', 'make_inputs')
    )

  def test_of_a_mixin(self):
    class Mixin:
      tf2_lose = _method

    case = type('MixedCase', (Mixin, small_case.SmallCase), {})
    self.assertEqual(
      misspelled_hook(case, tf2verify.EquivalenceCase, _DECLARABLE), (Mixin, 'tf2_lose', 'tf2_loss')
    )

  def test_of_a_base(self):
    base = _with(tf2verify.EquivalenceCase, 'build_tf1_grph')
    self.assertEqual(_found(type('Concrete', (base,), {})), ('build_tf1_grph', 'build_tf1_graph'))


class WellTest(parameterized.TestCase):
  @parameterized.parameters(
    'make_model', 'make_inputs_small', 'make_layer', 'make_optimizer', 'make_mask', 'make_dataset',
    'loss_fn', 'losses', 'loss_weight', 'weighted_loss', 'total_loss', 'metrics', 'optimizer',
    'train_step', 'learning_rate', 'training', 'steps', 'stage', 'port', 'model', 'layer', 'inputs',
    'labels', 'units', 'depth', 'variable_scope', 'variables', 'names', 'tolerance_of', 'rtol',
    'build_graph', 'build_model', 'build_tf2_graph', 'call_layer', 'call_tf1_layer',
    'save_tf1_checkpoint', 'tf1_regularization_losses', 'tf1_train_step', 'checkpoint', 'saves',
    'tf1_model', 'tf2_model', 'tf1_variables', 'tf1_name', '_make_input', 'test_loss', 'recording',
    'fill', 'fills', 'fresh_weights', 'mode', 'modes', 'batch_size', 'image_size', 'input_shape',
  )  # fmt: skip
  def test_helper(self, name):
    for base in (tf2verify.EquivalenceCase, small_case.SmallCase):
      self.assertIsNone(_found(_with(base, name)))
      self.assertIsNone(_found(_with(base, name, value=3)))

  def test_helper_beside_its_hook(self):
    case = _with(tf2verify.EquivalenceCase, 'make_input', 'make_inputs', 'tf1_losses', 'tf1_loss')
    self.assertIsNone(_found(case))

  def test_helper_that_is_used(self):
    class Base(small_case.SmallCase):
      def make_input(self):
        return super().make_inputs()

      def make_inputs(self):
        return {name: self.make_input() for name in 'ab'}

    class Other(Base):
      def make_input(self):  # in place of the helper
        return super().make_input()

    self.assertIsNone(_found(Other))

  def test_that_only_calls_itself_is_not_used(self):
    class Base(small_case.SmallCase):
      def make_input(self):
        return super().make_input()

    self.assertEqual(_found(Base), ('make_input', 'make_inputs'))

  def test_attribute_used_by_a_layer_in_a_method(self):
    class Base(small_case.SmallCase):
      training_mode = True

      def make_tf2_layer(self):
        case = self

        class Layer:
          def call(self):
            return case.training_mode

        return Layer()

    self.assertIsNone(_found(Base))


class CaseTest(absltest.TestCase):
  def test_verify_refuses_it(self):
    case = type('LabelCase', (small_case.SmallCase,), {'tf2_lose': _method})
    with self.assertRaisesRegex(
      CaseDefinitionError,
      r'^LabelCase defines tf2_lose: did you mean tf2_loss\? No stage looks at tf2_lose, .*, '
      'call it _tf2_lose',
    ):
      tf2verify.verify(case)

  def test_no_hook_of_a_reference_is_meant_beside_a_recording(self):
    case = type('Recorded', (small_case.SmallCase,), {'tf1_recording': 'absent', 'tf1_lose': 1})
    with self.assertRaisesRegex(CaseDefinitionError, 'sets tf1_recording and overrides'):
      tf2verify.verify(case)

  def test_near_miss_of_a_missing_hook(self):
    case = type('GraphCase', (tf2verify.EquivalenceCase,), {'build_graph': _method})
    with self.assertRaisesRegex(
      CaseDefinitionError,
      r'GraphCase does not override build_tf1_graph \(build_graph is close: is that meant\?\); a',
    ):
      tf2verify.verify(case)
    self.assertEqual(near_miss(case, tf2verify.EquivalenceCase, 'make_inputs'), '')


if __name__ == '__main__':
  absltest.main()
