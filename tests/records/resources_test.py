import math

from absl.testing import absltest, parameterized

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.resources import Resources, resources_of


class ResourcesTest(parameterized.TestCase):
  @parameterized.parameters(
    ({}, 'CPU 1, GPU 0', None),
    ({'cpus': 0.5, 'gpus': 0.25}, 'CPU 0.5, GPU 0.25', None),
    ({'cpus': 8, 'gpus': 2, 'memory_gib': 1.5}, 'CPU 8, GPU 2, 1.5 GiB of memory', 1610612736),
  )
  def test_right(self, fields, text, memory):
    found = Resources(**fields)
    self.assertEqual(str(found), text)
    self.assertEqual(found.memory, memory)
    self.assertEqual(Resources.from_fields(found.to_fields()), found)

  @parameterized.parameters(
    ({'cpus': 0}, r'Resources\(cpus=0\): cpus must be a number above 0; Resources\(cpus=2'),
    ({'cpus': '2'}, r"Resources\(cpus='2'\)"),
    ({'cpus': True}, 'cpus=True'),
    ({'gpus': -1}, 'gpus must be a number of at least 0'),
    ({'gpus': 1.5}, 'above 1, gpus must be a whole number'),
    ({'memory_gib': 0}, 'memory_gib must be a number above 0, or None'),
    ({'memory_gib': math.inf}, 'memory_gib=inf'),
  )
  def test_wrong(self, fields, text):
    with self.assertRaisesRegex(CaseDefinitionError, text):
      Resources(**fields)

  def test_of_a_case(self):
    class Case:
      resources = Resources(cpus=2)

    class WrongCase:
      resources = {'cpus': 2}

    self.assertEqual(resources_of(Case), Resources(cpus=2))
    with self.assertRaisesRegex(
      CaseDefinitionError, r"WrongCase.resources is \{'cpus': 2\}; it must be"
    ):
      resources_of(WrongCase)


if __name__ == '__main__':
  absltest.main()
