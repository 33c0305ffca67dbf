from absl.testing import absltest, parameterized

from tf2verify.records.repetition import FirstVariation
from tf2verify.stages.repetition.variation_causes import explained


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
    found = explained(FirstVariation(op_type, '', None, '', None))
    self.assertIn(words, found.why)
    self.assertIn(found.why, str(found))

  def test_unknown_and_told_already(self):
    self.assertEqual(explained(FirstVariation('MatMul', 'm', None, '', None)).why, '')
    self.assertEqual(str(FirstVariation('MatMul', 'm', None, '', None)), 'MatMul m')
    told = FirstVariation('Timestamp', '', None, 'told', None)
    self.assertIs(explained(told), told)
    self.assertIsNone(explained(None))


if __name__ == '__main__':
  absltest.main()
