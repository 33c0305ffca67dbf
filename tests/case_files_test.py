"""Tests of tf2verify.environment.case_files."""

import os
import tempfile

from absl.testing import absltest, parameterized

from tf2verify.environment.case_files import runs_its_tests


class RunsItsTestsTest(parameterized.TestCase):
  def _runs(self, text, in_package=False):
    with tempfile.TemporaryDirectory() as folder:
      if in_package:
        open(os.path.join(folder, '__init__.py'), 'w', encoding='utf-8').close()
      path = os.path.join(folder, 'some_case.py')
      with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
      return runs_its_tests(path)

  @parameterized.parameters(
    "import tf2verify\nif __name__ == '__main__':\n  tf2verify.main()\n",
    "from absl.testing import absltest\nif __name__ == '__main__':\n  absltest.main()\n",
    "if '__main__' == __name__:\n  import unittest\n  unittest.main(argv=[])\n",
    'import tensorflow as tf\ntf.test.main()\n',
    "from tf2verify import main\nif __name__ == '__main__':\n  main()\n",
    "from unittest import main as main\nif __name__ == '__main__':\n  raise SystemExit(main())\n",
  )
  def test_a_program(self, text):
    self.assertTrue(self._runs(text))

  @parameterized.parameters(
    '',
    'import tf2verify\n',
    'def main():\n  pass\nmain()\n',
    "def main():\n  tf2verify.main()\nif __name__ == '__main__':\n  print()\n",
    '# tf2verify.main()\n',
    'class A:\n  tf2verify.main()\n',
    'def broken(:\n  tf2verify.main()\n',
  )
  def test_no_program(self, text):
    self.assertFalse(self._runs(text))

  def test_a_program_of_a_package(self):
    # `python FILE` would not find what it imports from the package.
    self.assertFalse(self._runs('import tf2verify\ntf2verify.main()\n', in_package=True))

  def test_no_file(self):
    self.assertFalse(runs_its_tests('absent_case.py'))


if __name__ == '__main__':
  absltest.main()
