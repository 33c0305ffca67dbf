"""A case with `tf1_recording`, as a user sees it: what passes, what is refused, what is said."""

import os
import shutil
import tempfile

import numpy as np
from absl.testing import absltest

import tf2verify
from tests import recorded_small, small_case
from tf2verify.case import new_ladder
from tf2verify.errors import CaseDefinitionError
from tf2verify.stages import STAGES

# isort: split
import tensorflow as tf

Status = tf2verify.Status
v1 = tf.compat.v1
_FORWARD = (
  'no_new_variables',
  'variable_inventory',
  'zero_randomness',
  'seeded_constant',
  'seeded_num_random_ops',
  'gradients',
)


class _WrongPort(small_case.Port):
  @small_case.tracked
  def call(self, inputs, training=False):
    return 1.001 * small_case.model(inputs, training)


class _Folder(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(cls._folder.cleanup)
    cls.folder = cls._folder.name
    cls.recording = recorded_small.record(cls.folder)

  def copied(self):
    """Returns a copy of the recording, to be altered."""
    path = os.path.join(tempfile.mkdtemp(dir=self.folder), 'recording')
    return shutil.copytree(self.recording, path)


def _verify(case, *stages):
  return tf2verify.verify(case, stages or _FORWARD)


def _notes(verdict):
  return ' '.join(note for stage in verdict.stages for note in stage.notes)


class ReplayTest(_Folder):
  def test_a_right_port_passes_without_a_graph(self):
    case = recorded_small.case_of(self.recording)
    case.relate_graphs = False  # else the recorded graph is read
    ladder = new_ladder(case, lambda _: None)
    self.addCleanup(ladder.close)
    verdicts = [ladder.stage(stage) for stage in STAGES if stage.name in _FORWARD]
    self.assertEqual([v.status for v in verdicts], [Status.PASSED] * 6)
    self.assertEqual(ladder.prepared().tf1._graphs._builds, {})
    self.assertEqual(verdicts[4].notes, ('5 random ops in the same order',))

  def test_the_report_says_what_made_the_reference(self):
    verdict = _verify(recorded_small.case_of(self.recording))
    made = dict(verdict.environment)['reference']
    self.assertRegex(made, rf'TensorFlow {tf.__version__}, Python 3.*, recorded 20\d\d-\d\d-\d\d')
    live = tf2verify.verify(small_case.SmallCase, ['no_new_variables'])
    self.assertNotIn('reference', dict(live.environment))

  def test_a_wrong_port_fails_at_the_same_place_as_with_a_live_reference(self):
    class Live(small_case.SmallCase):
      def make_tf2_layer(self):
        return _WrongPort()

    wrong = recorded_small.case_of(self.recording, make_tf2_layer=lambda self: _WrongPort())
    recorded, live = _verify(wrong).stages[2], _verify(Live).stages[2]
    self.assertEqual((recorded.status, live.status), (Status.FAILED, Status.FAILED))
    self.assertEqual(len(recorded.differences), len(live.differences))
    self.assertEqual(
      [source.tf1_op for source in recorded.diagnosis.sources],
      [source.tf1_op for source in live.diagnosis.sources],
    )
    first, second = (found.diagnosis.sources[0].tf1_source for found in (recorded, live))
    self.assertEqual((first.line, first.code), (second.line, second.code))
    self.assertIn("the difference is the port's", ' '.join(recorded.diagnosis.notes))

  def test_variables_drawn_in_another_order_are_set_first(self):
    class Port(tf.keras.layers.Layer):
      @small_case.tracked
      def call(self, inputs, training=False):
        with v1.variable_scope('dense'):
          bias = v1.get_variable('bias', (2,))
          kernel = v1.get_variable('kernel', (3, 2), regularizer=lambda w: 0.1 * tf.nn.l2_loss(w))
        found = tf.matmul(inputs, kernel) + bias
        return v1.layers.dropout(found, rate=0.5, training=training)

    verdict = _verify(recorded_small.case_of(self.recording, make_tf2_layer=lambda self: Port()))
    self.assertEqual(verdict.stages[3].status, Status.PASSED, verdict.to_text())
    self.assertEqual(verdict.stages[4].status, Status.PASSED, verdict.to_text())
    self.assertIn("its variables were set to tf1's values first", verdict.stages[4].to_text())

  def test_altered_numbers_are_named_as_those_of_another_version(self):
    def change(manifest, arrays):
      run = next(r for r in manifest['runs'] if r['kind'] == 'filled' and r['inputs'] == 'varied')
      output = run['outputs'][0][1]['value']
      arrays[output] = (arrays[output] * np.float32(1.01)).astype(np.float32)

    case = recorded_small.case_of(recorded_small.altered(self.copied(), change))
    stage = _verify(case).stages[2]
    self.assertEqual(stage.status, Status.FAILED)
    (cause,) = stage.diagnosis.causes
    self.assertEqual(cause.rule, 'kernel_of_another_version')
    self.assertIn('the port is not to blame', cause.text)

  def test_numbers_a_few_roundings_off_pass_and_are_counted(self):
    def change(manifest, arrays):
      for run in manifest['runs']:
        for _, tensor in run['outputs']:
          value = arrays[tensor['value']]
          noise = 2.0 ** ((arrays[tensor['noise']].astype(float) - 232) / 4)
          far = 20 * np.float32(noise.max() * 2.0 ** np.ceil(np.log2(np.abs(value).max())))
          arrays[tensor['value']] = value + np.maximum(far, np.float32(0))

    tight = {'tolerance': tf2verify.Tolerance(rtol=0, atol=1e-9)}
    case = recorded_small.case_of(recorded_small.altered(self.copied(), change), **tight)
    stage = _verify(case).stages[2]
    self.assertEqual(stage.status, Status.PASSED, stage)
    self.assertEqual(stage.compared.rounding, 2)
    self.assertIn('kernels of a different version round differently', ' '.join(stage.notes))

  def test_a_fault_of_the_port_is_not_excused_by_kernels(self):
    def change(manifest, arrays):
      for run in manifest['runs']:
        for _, tensor in run['outputs']:
          value = arrays[tensor['value']]
          arrays[tensor['value']] = value + np.float32(1e-6)

    class Port(small_case.Port):
      @small_case.tracked
      def call(self, inputs, training=False):
        return small_case.model(inputs, training) + 2e-6

    tight = {'tolerance': tf2verify.Tolerance(rtol=0, atol=1e-7)}
    case = recorded_small.case_of(
      recorded_small.altered(self.copied(), change), make_tf2_layer=lambda self: Port(), **tight
    )
    self.assertEqual(_verify(case).stages[2].status, Status.FAILED)

  def test_process_globals_stay(self):
    before = tf.keras.backend.floatx(), tf.executing_eagerly()
    from tf_keras.src.legacy_tf_layers import base

    add_weight = base.Layer.add_weight
    _verify(recorded_small.case_of(self.recording))
    self.assertEqual((tf.keras.backend.floatx(), tf.executing_eagerly()), before)
    self.assertIs(base.Layer.add_weight, add_weight)


class RefusedTest(_Folder):
  def refused(self, case, *words):
    verdict = _verify(case)
    first, *others = verdict.stages
    self.assertEqual(first.status, Status.ERROR, verdict.to_text())
    self.assertEqual(first.error.side, 'tf1')
    for word in words:
      self.assertIn(word, first.error.summary)
    self.assertEqual({other.status for other in others}, {Status.BLOCKED})
    self.assertEqual(others[0].reason, 'blocked: no_new_variables ERROR')

  def test_a_folder_that_is_not_there(self):
    self.refused(
      recorded_small.case_of('no/such/recording'),
      "tf1_recording = 'no/such/recording': there is no such folder",
      'python -m tf2verify recorder',
    )

  def test_a_damaged_recording(self):
    path = self.copied()
    name = os.path.join(path, 'arrays-000.npz')
    with open(name, 'r+b') as file:
      file.seek(os.path.getsize(name) // 2)
      file.write(b'\0\1\2\3')
    self.refused(recorded_small.case_of(path), 'arrays-000.npz')

  def test_other_inputs(self):
    case = recorded_small.case_of
    self.refused(
      case(self.recording, make_inputs=lambda self: np.ones((4, 3), np.float32)),
      'make_inputs() of the case is (4, 3) float32 with sha256',
      'record with --inputs again',
    )
    self.refused(
      case(self.recording, make_inputs=lambda self: recorded_small.INPUTS[:2]),
      'make_inputs() of the case is (2, 3) float32, and',
    )
    self.refused(
      case(self.recording, make_inputs=lambda self: {'x': recorded_small.INPUTS}),
      "gives the arrays ['x']",
    )

  def test_the_same_inputs_pass(self):
    case = recorded_small.case_of(
      self.recording, make_inputs=lambda self: np.array(recorded_small.INPUTS)
    )
    self.assertEqual(_verify(case).status, Status.PASSED)

  def test_a_training_mode_that_was_not_recorded(self):
    path = recorded_small.record(self.folder, training_modes=(False,))
    self.refused(
      recorded_small.case_of(path),
      'has no run of training mode',
      'record with --training inference,training, or set training_modes = (False,)',
    )
    verdict = _verify(recorded_small.case_of(path, training_modes=(False,)))
    self.assertEqual(verdict.status, Status.PASSED, verdict.to_text())

  def test_another_fill(self):
    def fill_values(self, name, shape, dtype):
      value = tf2verify.distinct_values(name, shape, dtype)
      return value * np.float32(2) if name == 'dense/bias' else value

    case = recorded_small.case_of(self.recording, fill_values=fill_values)
    verdict = _verify(case)
    stage = verdict.stages[2]
    self.assertEqual(stage.status, Status.ERROR)
    self.assertIn(
      'fill_values of the case gives dense/bias values with sha256', stage.error.summary
    )
    self.assertIn('record with --fill', stage.error.summary)

  def test_the_recorded_fill_passes(self):
    def fill(name, shape, dtype):
      return np.full(shape, 0.25, dtype)

    path = recorded_small.record(self.folder, fill=fill)
    case = recorded_small.case_of(
      path, fill_values=lambda self, name, shape, dtype: fill(name, shape, dtype)
    )
    self.assertEqual(_verify(case).stages[2].status, Status.PASSED)
    self.assertEqual(_verify(recorded_small.case_of(path)).stages[2].status, Status.ERROR)

  def test_a_changed_builder(self):
    def change(manifest, arrays):
      del arrays
      manifest['builder']['sources'] = [{'path': os.path.basename(__file__), 'sha256': '0' * 64}]

    case = recorded_small.case_of(recorded_small.altered(self.copied(), change))
    case.__module__ = __name__
    self.refused(case, f'{os.path.basename(__file__)} has changed since it was recorded')

  def test_a_loss_of_the_cases_own_has_no_recorded_gradients(self):
    case = recorded_small.case_of(
      self.recording, loss=lambda self, outputs: tf.reduce_sum(outputs**2)
    )
    stage = _verify(case).stages[5]
    self.assertEqual(stage.status, Status.NOT_APPLICABLE)
    self.assertIn('the case overrides loss', stage.reason)


class DefinitionTest(_Folder):
  def test_two_references_are_refused(self):
    class Both(small_case.SmallCase):
      tf1_recording = self.recording

    with self.assertRaisesRegex(
      CaseDefinitionError, 'Both sets tf1_recording and overrides build_tf1_graph: which is'
    ):
      tf2verify.verify(Both)

  def test_a_subclass_may_take_its_base_s_reference_back(self):
    class Recorded(tf2verify.EquivalenceCase):
      tf1_recording = self.recording

      def make_tf2_layer(self):
        return small_case.Port()

    class Live(Recorded):
      tf1_recording = None

      def build_tf1_graph(self, inputs, training):
        return small_case.model(inputs, training)

      def make_inputs(self):
        return recorded_small.INPUTS

    self.assertEqual(_verify(Live).status, Status.PASSED)

  def test_a_port_is_needed(self):
    class Nothing(tf2verify.EquivalenceCase):
      tf1_recording = self.recording

    with self.assertRaisesRegex(CaseDefinitionError, 'Nothing does not override make_tf2_layer'):
      tf2verify.verify(Nothing)

  def test_the_path_is_relative_to_the_file_that_sets_it_or_to_the_working_folder(self):
    relative = os.path.relpath(self.recording, os.path.dirname(recorded_small.__file__))
    self.assertEqual(_verify(recorded_small.case_of(relative)).status, Status.PASSED)
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(os.path.dirname(self.recording))
    self.assertEqual(_verify(recorded_small.case_of('recording')).status, Status.PASSED)


class NotRunTest(_Folder):
  def _with_a_read(self):
    """Returns a recording whose graph reads a file on the way to its output."""

    def build(inputs, training):
      found = small_case.model(inputs, training)
      text = tf.io.read_file(__file__, name='read')
      return found + 0 * tf.cast(tf.strings.length(text), tf.float32)

    return recorded_small.record(self.folder, build)

  def test_a_graph_that_reads_files_is_replayed_and_never_run(self):
    class Port(small_case.Port):
      @small_case.tracked
      def call(self, inputs, training=False):
        return small_case.model(inputs, training) + 0

    path = self._with_a_read()
    verdict = _verify(recorded_small.case_of(path, make_tf2_layer=lambda self: Port()))
    self.assertEqual(verdict.status, Status.PASSED, verdict.to_text())
    stage = _verify(recorded_small.case_of(path, make_tf2_layer=lambda self: _WrongPort())).stages[
      2
    ]
    self.assertEqual(stage.status, Status.FAILED)
    notes = ' '.join(stage.diagnosis.notes)
    self.assertIn('no operation is named', notes)
    self.assertIn('a recording is not run with ReadFile (read)', notes)

  def test_the_port_is_repeated_all_the_same(self):
    class Port(small_case.Port):
      def call(self, inputs, training=False):
        return self.model(inputs, training)

      @small_case.tracked
      def model(self, inputs, training):
        return small_case.model(inputs, training) + 0

    class Varying(Port):
      def model(self, inputs, training):
        return super().model(inputs, training) + np.random.default_rng().random() * 1e-6

    path = self._with_a_read()
    own_loss = {'loss': lambda self, outputs: tf.reduce_sum(outputs**2)}
    for port, status, options in (
      (Port, Status.PASSED, {}),
      (Port, Status.PASSED, own_loss),
      (Varying, Status.FAILED, own_loss),
    ):
      case = recorded_small.case_of(path, make_tf2_layer=lambda self, p=port: p(), **options)
      found = _verify(case, 'determinism').stages[-1]
      self.assertEqual(found.status, status, found.to_text())
    # What an earlier stage would have run does not matter either.
    wrong = recorded_small.case_of(path, make_tf2_layer=lambda self: _WrongPort())
    found = _verify(wrong, 'zero_randomness', 'determinism').stages
    self.assertEqual([found[-2].status, found[-1].status], [Status.FAILED, Status.PASSED])

  def test_recorded_tensors_stand_for_what_is_not_run(self):
    def build(inputs, training):
      found = v1.py_func(np.tanh, [small_case.model(inputs, training)], tf.float32, name='custom')
      return 2 * tf.exp(tf.ensure_shape(found, (4, 2)), name='exp')

    class Port(tf.keras.layers.Layer):
      @small_case.tracked
      def call(self, inputs, training=False):
        return 2.1 * tf.exp(tf.tanh(small_case.model(inputs, training)))

    diagnoses = []
    for level in ('none', 'full'):
      path = recorded_small.record(self.folder, build, intermediates=level)
      case = recorded_small.case_of(path, make_tf2_layer=lambda self: Port())
      stage = _verify(case).stages[2]
      self.assertEqual(stage.status, Status.FAILED)
      diagnoses.append(stage.diagnosis)
    self.assertEqual(diagnoses[0].sources, ())
    self.assertIn('a recording is not run with PyFunc (custom)', ' '.join(diagnoses[0].notes))
    (source,) = diagnoses[1].sources
    self.assertEqual(source.tf1_type, 'Mul')

  def test_a_run_that_was_not_recorded_is_run_here_and_said_so(self):
    case = recorded_small.case_of(self.recording)
    verdict = _verify(case, 'execution_modes')
    self.assertEqual(verdict.stages[-1].status, Status.PASSED, verdict.to_text())
    ladder = new_ladder(case, lambda _: None)
    self.addCleanup(ladder.close)
    tf1 = ladder.prepared().tf1
    from tf2verify.sides.fill import ConstantFill
    from tf2verify.sides.side import RunSpec

    names = {variable.name: variable.name for variable in tf1.inventory().variables}
    run = RunSpec(2 * recorded_small.INPUTS, True, ConstantFill(), names)
    (observed,) = tf1.prepare_filled([run])()
    self.assertEqual(observed.run, "training, the guide's constant 0.001")
    self.assertIn('was not recorded: the recorded graph was run here', tf1.pending_notes()[-1])


if __name__ == '__main__':
  absltest.main()
