from absl.testing import absltest, parameterized

from tf2verify.records.repetition import FirstVariation
from tf2verify.stages.repetition.determinism import with_cause


class ExplainedTest(parameterized.TestCase):
  @parameterized.parameters(
    ('EagerPyFunc', 'it runs Python'),
    ('Timestamp', 'it reads the clock'),
    ('RandomUniform', 'it draws without a seed'),
    ('IteratorGetNext', 'deterministic=True'),
    ('AssignAdd', 'in no fixed order'),
    ('CropAndResizeGradImage', 'no deterministic kernel on a GPU: place it on the CPU'),
    ('SoftmaxCrossEntropyWithLogits', 'adds up in no fixed order: call tf.config'),
  )
  def test_known(self, op_type, words):
    found = with_cause(FirstVariation(op_type, '', None, '', None))
    self.assertIn(words, found.why)
    self.assertIn(found.why, str(found))

  def test_unknown_and_told_already(self):
    self.assertEqual(with_cause(FirstVariation('MatMul', 'm', None, '', None)).why, '')
    self.assertEqual(str(FirstVariation('MatMul', 'm', None, '', None)), 'MatMul m')
    told = FirstVariation('Timestamp', '', None, 'told', None)
    self.assertIs(with_cause(told), told)
    self.assertIsNone(with_cause(None))


if __name__ == '__main__':
  absltest.main()
