import collections
import random

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel
from tf2verify.records import execution_mode as modes
from tf2verify.stages.modes import execution_modes

v1 = tf.compat.v1
STAGE = 'execution_modes'
# Asked for by name, so that an older TensorFlow runs them as well.
ALL_MODES = (*modes.MODES,)
Pair = collections.namedtuple('Pair', ['left', 'right'])


def climbed(case):
  """Returns the verdict of the stage."""
  return tf2verify.verify(case, stages=[STAGE]).stages[-1]


def row(verdict, mode):
  """Returns the cells of a mode, by column."""
  (table,) = verdict.tables
  (found,) = [cells for cells in table.rows if cells[0] == mode]
  return dict(zip(table.columns, found, strict=True))


class PythonStateTest(LadderTestCase):
  def test_numpy_draws_in_every_call(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION,)

      def model(self, inputs, training):
        return inputs @ kernel() + np.random.normal(size=3).astype(np.float32)

    text = self.assert_first_failure(
      Case,
      STAGE,
      'output (the output) [tf.function, training, second call]: values differs',
      'elements (4, 3) float32 differ from eager mode; max absolute difference',
      'also in eager mode: it draws from numpy.random, which a tf.function reads once',
      'the port equals tf1 in tf.function, and differs from it in eager mode',
    )
    self.assertIn('DIFFERS', text)

  def test_python_draws_in_every_call(self):
    class Case(tiny_models.Affine):
      training_modes = (False,)
      modes_to_run = (modes.FUNCTION,)

      def model(self, inputs, training):
        return inputs @ kernel() + random.random()

    self.assert_first_failure(Case, STAGE, "it draws from Python's random, which a tf.function")


class HowItIsRunTest(LadderTestCase):
  def test_asks_whether_it_is_eager(self):
    class Case(tiny_models.Affine):
      modes_to_run = ALL_MODES

      def port(self, inputs, training):
        scale = 1.0 if tf.executing_eagerly() else 1.001
        return scale * self.model(inputs, training)

    text = self.assert_first_failure(
      Case,
      STAGE,
      'output (the output) [tf.function, training]: values differs',
      'the port equals tf1 in eager mode, and differs from it in tf.function, jit_compile, ',
    )
    self.assertNotIn('likely cause', text)

  def test_a_trace_changes_the_layer(self):
    class Port(tiny_models.ShimLayer):
      scale = 1.0

      @tiny_models.under_shim
      def call(self, inputs, training=False):
        if not tf.executing_eagerly():
          self.scale = 1.001
        return self.scale * self._forward(inputs, training)

    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION,)

      def make_tf2_layer(self):
        return Port(self.model)

    text = self.assert_first_failure(
      Case, STAGE, 'the port equals tf1 in eager mode, and differs from it in tf.function'
    )
    self.assertNotIn('at its next call', text)

  def test_a_trace_breaks_the_layer(self):
    class Port(tiny_models.ShimLayer):
      kept = 1.0

      @tiny_models.under_shim
      def call(self, inputs, training=False):
        net = self._forward(inputs, training)
        if not tf.executing_eagerly():
          self.kept = 1.001 * tf.reduce_sum(tf.ones_like(net[0, :1]))
        return self.kept * net

    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION,)

      def make_tf2_layer(self):
        return Port(self.model)

    text = self.assert_first_failure(Case, STAGE, 'differs from it in tf.function')
    self.assertNotIn('at its next call', text)

  def test_variable_made_in_a_trace(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION, modes.FUNCTIONAL)

      def port(self, inputs, training):
        net = self.model(inputs, training)
        return net if tf.executing_eagerly() else net + tf.Variable(0.0, name='extra')

    text = self.assert_first_failure(
      Case,
      STAGE,
      'variable shim_layer/extra: tf.function, inference created it, () float32 at ',
      "tf.Variable(0.0, name='extra')",
      'the port makes a variable in this mode that it does not make in eager mode',
    )
    self.assertNotIn('was not run', text)

  def test_runs_eagerly_only(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION, modes.NO_ARITHMETIC)

      def port(self, inputs, training):
        net = self.model(inputs, training)
        return net + 1.0 if float(tf.reduce_sum(net)) > 1e9 else net

    text = self.assert_first_failure(
      Case,
      STAGE,
      'call call_tf2_layer [tf.function]: presence differs',
      'tf2: computed in eager mode; inference and training: TypeError: ',
      'in port: return net + 1.0 if float(tf.reduce_sum(net)) > 1e9 else net)',
      'the port runs in eager mode only, and tf1 ran as a graph',
    )
    self.assertIn('tf.function                 not run', text)


class ReplicasTest(LadderTestCase):
  def test_divided_by_the_number_of_replicas(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.REPLICAS,)

      def port(self, inputs, training):
        return self.model(inputs, training) / tf.distribute.get_strategy().num_replicas_in_sync

    self.assert_first_failure(
      Case,
      STAGE,
      'output (the output) [two replicas on replica 0, training]: values differs',
      'every tensor that differs is 0.5 times that of eager mode',
    )

  def test_call_without_training_under_two_decorators(self):
    class Function(tf.keras.layers.Layer):
      @tf.function
      @tiny_models.under_shim
      def call(self, inputs):
        return tf.matmul(inputs, kernel()) + bias()

    class Named(Function):
      pass

    class Inside(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.inner = Function()

      @tf.function
      @tiny_models.under_shim
      def call(self, inputs):
        return self.inner(inputs)

    for layer in (Function, Named, Inside):
      with self.subTest(layer.__name__):
        case = type('Case', (tiny_models.Affine,), {'make_tf2_layer': lambda _, make=layer: make()})
        text = self.assert_passes(case, STAGE).to_text()
        self.assertNotIn('two replicas was not run', text)

  def test_one_device(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION, modes.REPLICAS)

    with absltest.mock.patch.object(
      execution_modes.PortModes, '_replicated', autospec=True
    ) as replicated:
      replicated.return_value = modes.ModeRun(modes.REPLICAS, (), 'there is one device')
      verdict = climbed(Case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED)
    self.assertEqual(verdict.compared.blind_spots, 1)
    self.assertIn('two replicas was not run: there is one device', verdict.notes)
    self.assertEqual(row(verdict, modes.REPLICAS)['outputs'], 'not run')

  def test_nothing_could_be_run(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.REPLICAS,)

    with absltest.mock.patch.object(
      execution_modes.PortModes, '_replicated', autospec=True
    ) as replicated:
      replicated.return_value = modes.ModeRun(modes.REPLICAS, (), 'there is one device')
      verdict = climbed(Case)
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE)
    self.assertIn('no execution mode could be compared with eager mode', verdict.reason)


class LossTest(LadderTestCase):
  def _saturated(self, from_logits):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION,)

      def model(self, inputs, training):
        return 60.0 * (inputs @ kernel() + bias())

      def make_labels(self):
        return np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]

      def tf1_loss(self, outputs, labels):
        return tf.nn.softmax_cross_entropy_with_logits(labels, outputs)

      def tf2_loss(self, outputs, labels):
        predictions = outputs if from_logits else tf.nn.softmax(outputs)
        return tf.keras.losses.categorical_crossentropy(
          labels, predictions, from_logits=from_logits
        )

    return Case

  def test_looks_behind_its_input(self):
    verdict = climbed(self._saturated_outputs())
    text = verdict.to_text()
    self.assertIs(verdict.status, tf2verify.Status.FAILED)
    self.assertIn('loss (tf2_loss) [tf.function, training]: values differs', text)
    self.assertIn('it inspects the operation that made its input', text)
    self.assertIn('the port equals tf1 in tf.function, and differs from it in eager mode', text)
    self.assertEqual(row(verdict, modes.FUNCTION)['outputs'], 'equal')

  def _saturated_outputs(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION,)

      def model(self, inputs, training):
        return tf.nn.softmax(60.0 * (inputs @ kernel() + bias()))

      def make_labels(self):
        return np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]

      def tf1_loss(self, outputs, labels):
        logits = outputs.op.inputs[0]
        return tf.nn.softmax_cross_entropy_with_logits(labels, logits)

      def tf2_loss(self, outputs, labels):
        return tf.keras.losses.categorical_crossentropy(labels, outputs)

    return Case

  def test_logits(self):
    verdict = climbed(self._saturated(from_logits=True))
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertEqual(row(verdict, modes.FUNCTION)['losses'], 'equal')


class EmbeddedTest(LadderTestCase):
  def test_training_is_lost(self):
    backend = tf.keras.backend

    class Port(tf.keras.layers.Layer):
      def __init__(self, forward):
        super().__init__()
        self._forward = forward

      @tiny_models.under_shim
      def call(self, inputs):
        return self._forward(inputs, bool(backend.learning_phase()))

    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTIONAL,)

      def model(self, inputs, training):
        return (2.0 if training else 1.0) * (inputs @ kernel() + bias())

      def make_tf2_layer(self):
        return Port(self.model)

      def call_tf2_layer(self, layer, inputs, training):
        backend.set_learning_phase(int(training))
        try:
          return layer(inputs)
        finally:
          backend.set_learning_phase(0)

    self.assert_first_failure(
      Case, STAGE, 'keras functional model, training', '`training` does not reach it'
    )


class RightPortTest(LadderTestCase):
  def test_a_list_of_one_output(self):
    for kind in (list, tuple):

      class Case(tiny_models.Affine):
        modes_to_run = (modes.FUNCTIONAL,)

        def model(self, inputs, training, kind=kind):
          return kind([inputs @ kernel() + bias()])

      with self.subTest(kind=kind.__name__):
        self.assert_passes(Case, STAGE)

  def test_loop_of_the_graph_has_zeros_where_eager_mode_has_no_gradient(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION,)

      def model(self, inputs, training):
        start, idle = inputs @ kernel(), v1.get_variable('idle', [3])

        def body(n, state, unread):
          return n + 1, 0.5 * state, unread + idle

        loop = [0, start, tf.zeros_like(start)]
        return tf.while_loop(lambda n, *_: n < 2, body, loop)[1]

    self.assert_passes(Case, STAGE)

  def assert_all_modes(self, case, **cells):
    verdict = climbed(type(case.__name__, (case,), {'modes_to_run': ALL_MODES}))
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    for mode in modes.MODES:
      found = row(verdict, mode)
      self.assertNotIn('DIFFERS', str(found))
    for column, cell in cells.items():
      self.assertEqual(row(verdict, modes.FUNCTION)[column], cell)
    return verdict

  def test_affine(self):
    class Case(tiny_models.Affine):
      pass

    verdict = self.assert_all_modes(Case, outputs='equal', gradients='equal', state='equal')
    self.assertEqual(verdict.compared.blind_spots, 0, verdict.to_text())
    self.assertEqual([cells[0] for cells in verdict.tables[0].rows], list(modes.MODES))
    self.assertEqual({cells[-2] for cells in verdict.tables[0].rows}, {'1', '-'})

  def test_loss_that_keras_refuses_under_a_strategy(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.REPLICAS,)

      def make_labels(self):
        return tf2verify.normal_inputs((4, 3), seed=3)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - labels))

      def tf2_loss(self, outputs, labels):
        return tf.keras.losses.MeanSquaredError()(labels, outputs)

    verdict = climbed(Case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertEqual(row(verdict, modes.REPLICAS)['losses'], 'equal')
    self.assertIn('MeanSquaredError took the mean over each replica', verdict.to_text())
    strategy = tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])
    with strategy.scope(), self.assertRaisesRegex(ValueError, 'Reduction.SUM'):  # put back
      tf.keras.losses.MeanSquaredError()([1.0], [1.0])

  def test_batch_norm_on_replicas(self):
    class Case(tiny_models.Normalized):
      pass

    verdict = self.assert_all_modes(Case, state='equal')
    self.assertEqual(row(verdict, modes.REPLICAS)['outputs'], 'equal')
    self.assertEqual(row(verdict, modes.REPLICAS)['state'], 'equal')

  def test_dropout(self):
    class Case(tiny_models.Dropped):
      pass

    verdict = self.assert_all_modes(Case, outputs='equal')
    compiled = row(verdict, modes.JIT)
    # 'equal' with XLA of 2.21, 'rounding 2e-07' with that of 2.16.
    self.assertRegex(compiled['outputs'], '^(equal|rounding .*), inference only$')
    self.assertEqual(compiled['gradients'], 'not compared')
    self.assertIn(
      'jit_compile was not compared in training: XLA draws different', str(verdict.notes)
    )

  def test_dropout_in_a_function_of_its_own(self):
    class Port(tiny_models.ShimLayer):
      def __init__(self, forward):
        super().__init__(forward)
        self.drop = tf.function(lambda net: tf.nn.dropout(net, 0.2))

      @tiny_models.under_shim
      def call(self, inputs, training=False):
        net = inputs @ kernel() + bias()
        return self.drop(net) if training else net

    class Case(tiny_models.Dropped):
      modes_to_run = (modes.FUNCTION, modes.NO_ARITHMETIC, modes.REPLICAS)

      def make_tf2_layer(self):
        return Port(self.model)

    self.assert_passes(Case, STAGE)

  def test_dropout_in_a_loop(self):
    """Fixed numbers stand there, so that training is compared, too."""

    class Case(tiny_models.OneModel):
      modes_to_run = (modes.FUNCTION, modes.FUNCTIONAL)

      def model(self, inputs, training):
        def step(number, net):
          net = net @ kernel_value
          return number + 1, tf.nn.dropout(net, 0.4) if training else net

        kernel_value = tf.identity(kernel())
        return tf.while_loop(lambda number, _: number < 3, step, (0, inputs))[1]

    verdict = climbed(Case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertEqual(row(verdict, modes.FUNCTION)['outputs'], 'equal')
    self.assertEqual(row(verdict, modes.FUNCTION)['gradients'], 'equal')

  def test_regularization_losses(self):
    class Case(tiny_models.Regularized):
      pass

    verdict = self.assert_all_modes(Case, losses='equal')
    self.assertEqual(row(verdict, modes.FUNCTIONAL)['losses'], 'equal')

  def test_module(self):
    class Case(tiny_models.Affine):
      modes_to_run = (modes.FUNCTIONAL,)

      def make_tf2_layer(self):
        return tiny_models.ShimModule(self.port)

    verdict = self.assert_passes(Case, STAGE).stages[-1]
    self.assertEqual(row(verdict, modes.FUNCTIONAL)['gradients'], 'equal')

  def test_module_that_draws_while_it_is_made(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.random.uniform([3, 3], -1.0, 1.0), name='kernel')

      def __call__(self, inputs):
        return inputs @ self.kernel

    class Case(tiny_models.OneModel):
      modes_to_run = (modes.FUNCTION, modes.JIT)

      def model(self, inputs, training):
        return inputs @ v1.get_variable('kernel', [3, 3])

      def make_tf2_layer(self):
        return Port()

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(outputs**2)

      tf2_loss = tf1_loss

    found = climbed(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertNotIn('draws random numbers', found.to_text())
    self.assertNotIn('not compared', row(found, modes.JIT).values())

  def test_nests(self):
    class Case(tiny_models.OneModel):
      modes_to_run = (modes.FUNCTION, modes.FUNCTIONAL)

      def model(self, inputs, training):
        net = inputs['image'] @ kernel()
        return Pair(net, (net + inputs['shift'].right, inputs['shift'].left))

      def make_inputs(self):
        image = tf2verify.normal_inputs((4, 3))
        return {'image': image, 'shift': Pair(np.arange(4, dtype=np.int64), image[:, ::-1] * 2)}

    self.assert_passes(Case, STAGE)

  def test_scalar_input_cannot_be_embedded(self):
    class Case(tiny_models.OneModel):
      modes_to_run = (modes.FUNCTION, modes.FUNCTIONAL)

      def model(self, inputs, training):
        return inputs[0] @ kernel() * inputs[1]

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 3)), np.float32(3.5)

    (note,) = climbed(Case).notes
    self.assertEqual(
      note,
      'keras functional model was not run: [1] is a scalar, and the inputs of Keras models have a '
      'batch',
    )

  def test_python_branches_over_tensors_in_a_keras_layer(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(3, name='fc')

      def call(self, inputs):
        net = self.dense(inputs)
        if tf.reduce_sum(net) > 0.0:
          net = net * 2.0
        return net

    class Case(tiny_models.OneModel):
      modes_to_run = (modes.FUNCTION, modes.FUNCTIONAL)
      variable_names = {'fc/kernel': 'port/fc/kernel', 'fc/bias': 'port/fc/bias'}

      def model(self, inputs, training):
        net = v1.layers.dense(inputs, 3, name='fc')
        return tf.where(tf.reduce_sum(net) > 0.0, net * 2.0, net)

      def make_tf2_layer(self):
        return Port()

    self.assert_passes(Case, STAGE)

  def test_strings_are_not_compiled(self):
    class Case(tiny_models.OneModel):
      modes_to_run = (modes.FUNCTION, modes.JIT)

      def model(self, inputs, training):
        net = inputs @ kernel()
        return {'net': net, 'text': tf.strings.as_string(net[:, 0])}

    verdict = climbed(Case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED)
    self.assertEqual(verdict.notes, ('jit_compile was not run: XLA has no kernel for AsString',))

  def test_inputs_that_cannot_be_reversed(self):
    class Case(tiny_models.OneModel):
      modes_to_run = (modes.FUNCTION,)

      def model(self, inputs, training):
        net, segments = inputs
        with tf.control_dependencies(
          [tf.debugging.assert_non_negative(segments[1:] - segments[:-1])]
        ):
          return tf.math.segment_sum(tf.identity(net @ kernel()), segments)

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 3)), np.array([0, 0, 1, 1], np.int32)

    self.assert_passes(Case, STAGE)

  def test_one_training_mode(self):
    class Case(tiny_models.Normalized):
      training_modes = (False,)
      modes_to_run = (modes.FUNCTION, modes.JIT)

    verdict = self.assert_passes(Case, STAGE).stages[-1]
    self.assertNotEqual(row(verdict, modes.FUNCTION)['gradients'], '-')

  def test_rounding_that_grappler_makes(self):
    class Case(tiny_models.OneModel):
      modes_to_run = (modes.FUNCTION, modes.NO_ARITHMETIC)

      def model(self, inputs, training):
        scale = v1.get_variable('scale', [3])
        return inputs * scale + inputs * (0.3 * scale) + inputs * scale * scale

    verdict = self.assert_passes(Case, STAGE).stages[-1]
    self.assertIn('rounding', row(verdict, modes.FUNCTION)['outputs'])
    self.assertEqual(row(verdict, modes.NO_ARITHMETIC)['outputs'], 'equal')

  def test_large_graph_is_compiled_where_asked_for(self):
    class Case(tiny_models.Affine):
      pass

    class Named(tiny_models.Affine):
      modes_to_run = (modes.FUNCTION, modes.JIT)

    with absltest.mock.patch('tf2verify.sides.modes.execution_modes.LARGE', 3):
      by_default, named = climbed(Case), climbed(Named)
    self.assertEqual(row(by_default, modes.JIT)['outputs'], 'not run')
    self.assertIn("name 'jit_compile' in modes_to_run to have it run", str(by_default.notes))
    self.assertRegex(row(named, modes.JIT)['outputs'], '^(equal|rounding .*)$')


class DeclarationTest(LadderTestCase):
  def _verdict(self, wanted):
    class Case(tiny_models.Affine):
      modes_to_run = wanted

    return climbed(Case)

  def test_unknown_mode(self):
    verdict = self._verdict(('tf.function', 'tpu'))
    self.assertIs(verdict.status, tf2verify.Status.ERROR)
    self.assertIn("modes_to_run names 'tpu', which is not an execution mode", verdict.error.summary)
    self.assertIn("'two replicas'; eager mode is always run", verdict.error.summary)

  def test_no_tuple(self):
    verdict = self._verdict('jit_compile')
    self.assertIn("modes_to_run is 'jit_compile'; it must be a tuple", verdict.error.summary)

  def test_none(self):
    verdict = self._verdict(())
    self.assertIs(verdict.status, tf2verify.Status.NOT_APPLICABLE)
    self.assertEqual(verdict.reason, 'modes_to_run is empty')


if __name__ == '__main__':
  absltest.main()
