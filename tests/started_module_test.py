"""What a command line of Python starts."""

from absl.testing import absltest, parameterized

from tf2verify.environment.started_module import started_module


class StartedModuleTest(parameterized.TestCase):
  @parameterized.parameters(
    'python -m tf2verify',
    'python -m tf2verify run x.py',
    'python3.11 -W ignore -X dev -B -m tf2verify --help',
    'python -Bm tf2verify doctor',
  )
  def test_the_command(self, line):
    self.assertEqual(started_module(line.split()), 'tf2verify')

  @parameterized.parameters(
    ('python', ''),
    ('python train.py -m tf2verify', ''),
    ('python - -m tf2verify', ''),
    ('python -c code -m tf2verify', ''),
    ('python -m pytest tf2verify', 'pytest'),
    ('python -m tf2verify.commands.fingerprint x', 'tf2verify.commands.fingerprint'),
    ('python -W -m tf2verify', ''),
    ('python -m', ''),
  )
  def test_others(self, line, module):
    self.assertEqual(started_module(line.split()), module)


if __name__ == '__main__':
  absltest.main()
