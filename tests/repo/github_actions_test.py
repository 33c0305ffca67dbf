import re
import shlex

from absl.testing import absltest

from tests.repo import pages
from tf2verify.commands import arguments

_LINE = re.compile(
  r'(?P<indent> *)(?P<dash>- )?(?:(?P<key>[\w-]+):(?: +(?P<value>.+))?|(?P<item>.+))'
)


def parsed(text):
  """Yields path and value of each scalar, of the part of YAML that the workflow uses.

  Raises:
    ValueError: a line is none of mapping, sequence, comment and block scalar.
  """
  path, block = [], None  # path: pairs of indentation and key
  for number, line in enumerate(text.splitlines(), 1):
    if not line.strip() or line.lstrip().startswith('#'):
      continue
    if '\t' in line:
      raise ValueError(f'line {number} has a tab')
    indent = len(line) - len(line.lstrip())
    if block is not None and indent > block:
      yield tuple(key for _, key in path), line.strip()
      continue
    block = None
    match = _LINE.fullmatch(line)
    if match is None or indent % 2:
      raise ValueError(f'line {number} cannot be read: {line}')
    while path and path[-1][0] >= indent:
      path.pop()
    if match['dash']:
      path.append((indent, f'- {number}'))
      indent += 2
    if match['item']:
      yield tuple(key for _, key in path), match['item']
      continue
    path.append((indent, match['key']))
    if match['value'] in ('|', '>-'):
      block = indent
    elif match['value'] is not None:
      yield tuple(key for _, key in path), match['value']


class GithubActionsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.values = {}
    for path, value in parsed(pages.text('docs/github_actions.yml')):
      self.values.setdefault(path, []).append(value)

  def steps(self, job):
    """Returns the steps of a job, each its keys and values."""
    found = {}
    for path, value in self.values.items():
      if path[:3] == ('jobs', job, 'steps'):
        found.setdefault(path[3], {})[path[4]] = ' '.join(value)
    return list(found.values())

  def test_commands_are_those_of_the_command_line(self):
    commands = [
      shlex.split(step['run'])
      for job in ('cases', 'summary')
      for step in self.steps(job)
      if step.get('run', '').startswith('python -m tf2verify')
    ]
    fleet, report = (arguments.parser().parse_args(words[3:]) for words in commands)
    self.assertTrue(fleet.resume)
    self.assertEqual(fleet.journal, 'shard.sqlite')
    self.assertEqual((report.merge, report.markdown), ('all.sqlite', 'summary.md'))
    self.assertLen(report.files, 4)

  def test_every_shard_is_run_and_merged(self):
    (total,) = self.values['jobs', 'cases', 'env', 'TEST_TOTAL_SHARDS']
    (matrix,) = self.values['jobs', 'cases', 'strategy', 'matrix', 'shard']
    self.assertEqual(matrix, str(list(range(int(total)))))

  def test_the_summary_is_posted_also_when_cases_fail(self):
    self.assertEqual(self.values['jobs', 'summary', 'if'], ['always()'])
    (post,) = [
      step for step in self.steps('summary') if 'GITHUB_STEP_SUMMARY' in step.get('run', '')
    ]
    self.assertEqual(post['run'], 'cat summary.md >> "$GITHUB_STEP_SUMMARY"')
    self.assertEqual(post['if'], 'always()')

  def test_every_step_does_one_thing(self):
    for job in ('cases', 'summary'):
      for step in self.steps(job):
        self.assertLen({'run', 'uses'} & step.keys(), 1)

  def test_what_cannot_be_read_is_seen(self):
    for text in ('a:\n\tb: 1', 'a:\n   b: 1'):
      with self.assertRaises(ValueError):
        list(parsed(text))


if __name__ == '__main__':
  absltest.main()
