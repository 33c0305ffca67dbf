import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.stages import tiny_models
from tf2verify.records import execution_mode as modes
from tf2verify.records.tensor_key import TensorKey
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.fill import DistinctFill
from tf2verify.sides.modes.execution_modes import PortModes, other_inputs
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.layer import Tf2Layer


def _ignore(_):
  pass


def _port(case):
  inputs = case.make_inputs()
  runs = [
    RunSpec(inputs, training, DistinctFill(), {}, gradients=training)
    for training in case.training_modes
  ]
  layer = Tf2Layer(case, inputs, _ignore)
  return PortModes(case, layer, case.make_labels(), runs, _ignore)


def _values(call):
  return {(t.quantity, t.name, t.replica): t.value for t in call.tensors}


class OtherInputsTest(absltest.TestCase):
  def test_each_reversed(self):
    inputs = {'net': np.arange(6).reshape(3, 2), 'scalar': np.float32(2.0)}
    found = other_inputs(inputs)
    self.assertEqual(found['net'].tolist(), [[4, 5], [2, 3], [0, 1]])
    self.assertEqual(found['scalar'], 2.0)


class PortModesTest(absltest.TestCase):
  def test_calls_of_every_mode(self):
    class Case(tiny_models.Normalized):
      pass

    port = _port(Case())
    eager = port.eager()
    self.assertEqual(
      [(call.training, call.number) for call in eager.calls],
      [(False, 1), (False, 2), (True, 1), (True, 2)],
    )
    for mode in modes.MODES:
      with self.subTest(mode):
        run = port.observe(mode)
        self.assertEqual(run.not_run, '')
        self.assertEqual(run.traces, () if mode == modes.FUNCTIONAL else (1, 1))
        self.assertEqual({t.replica for t in run.calls[0].tensors}, {0, mode == modes.REPLICAS})

  def test_every_call_starts_from_the_same_values(self):
    class Case(tiny_models.Normalized):
      training_modes = (True,)

    port = _port(Case())
    first, second = port.eager().calls
    moving = (modes.STATE, 'norm/moving_mean', 0)
    # The inputs are the same, in another order.
    np.testing.assert_allclose(_values(first)[moving], _values(second)[moving], rtol=1e-5)

  def test_again(self):
    class Case(tiny_models.Affine):
      pass

    port = _port(Case())
    eager = port.eager()
    (again,) = port.again(True, 1)
    (moved,) = port.again(True, 1, perturber=Perturber(0))
    output = (modes.OUTPUT, '(the output)', 0)
    np.testing.assert_array_equal(_values(eager.calls[2])[output], _values(again)[output])
    self.assertTrue(np.any(_values(again)[output] != _values(moved)[output]))
    np.testing.assert_allclose(_values(again)[output], _values(moved)[output], atol=1e-5)
    (again,) = port.again(True, 1)
    np.testing.assert_array_equal(_values(eager.calls[2])[output], _values(again)[output])

  def test_one_layer_more_where_it_is_asked_for(self):
    class Case(tiny_models.Affine):
      made = 0

      def make_tf2_layer(self):
        self.made += 1
        return super().make_tf2_layer()

    case = Case()
    port = _port(case)
    port.eager()
    port.observe(modes.FUNCTION)
    made = case.made
    port.release()
    port.again(True, 1)
    self.assertEqual(case.made, made)
    self.assertTrue(port.renew())
    port.again(True, 1)
    self.assertEqual(case.made, made + 1)
    self.assertFalse(port.renew())

  def test_again_only_what_is_wanted(self):
    class Case(tiny_models.Affine):
      pass

    port = _port(Case())
    whole = _values(port.eager().calls[2])
    for wanted in (
      {(modes.OUTPUT, '(the output)')},
      {(modes.GRADIENT, 'kernel'), (modes.STATE, 'bias')},
    ):
      keys = frozenset(TensorKey(*names) for names in wanted)
      (call,) = port.again(True, 1, wanted=keys)
      found = _values(call)
      self.assertEqual({key[:2] for key in found}, wanted)
      for key, value in found.items():
        np.testing.assert_array_equal(value, whole[key])

  def test_calls_with_the_same_inputs(self):
    class Case(tiny_models.Affine):
      pass

    class OneExample(tiny_models.Affine):
      def make_inputs(self):
        return super().make_inputs()[:1]

    for case, expected in ((Case(), ((1,), (2,))), (OneExample(), ((1, 2),))):
      port = _port(case)
      port.eager()
      self.assertEqual(port.calls_alike(True), expected)

  def test_a_record_has_what_is_kept_of_its_calls(self):
    class Case(tiny_models.Affine):
      training_modes = (True,)

    port = _port(Case())
    port.eager()
    run = port.observe(modes.FUNCTION, seen=lambda call: call.with_values_of((modes.OUTPUT,)))
    self.assertLen(run.calls, 2)
    for tensor in run.calls[0].tensors:
      self.assertEqual(tensor.value is not None, tensor.quantity == modes.OUTPUT)

  def test_labels(self):
    class Case(tiny_models.Regularized):
      def make_labels(self):
        return {'target': np.ones((4, 3), np.float32)}

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean((outputs - labels['target']) ** 2, axis=-1)

    call = _port(Case()).eager().calls[-1]
    found = _values(call)
    loss, total = found[modes.LOSS, '(tf2_loss)', 0], found[modes.TOTAL_LOSS, '(total)', 0]
    self.assertEqual(loss.shape, (4,))
    regularization = found[modes.REGULARIZATION, '(total)', 0]
    np.testing.assert_allclose(total, loss + regularization, rtol=1e-6)
    self.assertIn((modes.TOTAL_GRADIENT, 'fc/kernel', 0), found)

  def test_leaves_grappler_as_it_was(self):
    class Case(tiny_models.Affine):
      training_modes = (False,)

    before = tf.config.optimizer.get_experimental_options()
    port = _port(Case())
    port.eager()
    port.observe(modes.NO_ARITHMETIC)
    self.assertEqual(tf.config.optimizer.get_experimental_options(), before)

  def test_functions_that_run_eagerly(self):
    class Case(tiny_models.Affine):
      training_modes = (False,)

    port = _port(Case())
    port.eager()
    tf.config.run_functions_eagerly(True)
    self.addCleanup(tf.config.run_functions_eagerly, False)
    self.assertEqual(port.observe(modes.FUNCTION).traces, (1,))
    self.assertTrue(tf.config.functions_run_eagerly())

  def test_tensor_kept_from_another_trace(self):
    class Port(tiny_models.ShimLayer):
      kept = None

      @tiny_models.under_shim
      def call(self, inputs, training=False):
        net = self._forward(inputs, training)
        if self.kept is None and not tf.executing_eagerly():
          self.kept = tf.reduce_sum(net)
        return net if self.kept is None else net + 0.0 * self.kept

    class Case(tiny_models.Affine):
      training_modes = (False,)

      def make_tf2_layer(self):
        return Port(self.model)

    port = _port(Case())
    port.eager()
    self.assertEqual(port.observe(modes.FUNCTION).not_run, '')
    compiled = port.observe(modes.JIT)
    self.assertTrue(compiled.raised)
    self.assertRegex(compiled.not_run, '^inference: TypeError: .* is out of scope')


if __name__ == '__main__':
  absltest.main()
