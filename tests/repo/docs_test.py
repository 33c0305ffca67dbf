"""Every command and code block of the documentation is run, or checked as far as it can be."""

import abc
import ast
import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import types
from unittest import mock

import pytest
import tensorflow as tf
import yaml
from absl.testing import absltest, parameterized

import tf2verify
from tests import console, small_case
from tests.repo import pages, recorded_page
from tf2verify import case, optional_hooks, time_for_diagnosis
from tf2verify.commands import cli, defaults, new_case
from tf2verify.commands.defaults import tomllib
from tf2verify.environment import doctor
from tf2verify.records import difference, table, verdict
from tf2verify.stages import STAGES, Stage
from tf2verify.stages.experiments import stage_bench

pytestmark = pytest.mark.starts_processes

# Commands that are not run here, and why; what they name is checked to exist.
_NOT_RUN = (
  (r'(pip install|python3 -m venv|\. \.venv/bin/activate)\b.*', 'changes the environment'),
  (r'bazel test .*', 'Bazel is not a part of the environment'),
  (r'\.ci/run', 'runs this suite'),
  (r'python -m pytest( (examples|tests/\S+))?', 'runs this suite, or a part of it'),
  (
    r'python -m tf2verify run examples/(\w+/equivalence_test|broken/broken_case)\.py',
    'the suite runs every example',
  ),
  (
    r'python -m tf2verify run examples/inception_resnet_v2/full_size_case\.py',
    'takes minutes: make demo',
  ),
  (
    r'python -m tf2verify run examples/inception_resnet_v2/broken_case\.py( .*)?',
    'takes a minute: tests.report.html.screenshots',
  ),
  (
    r'python -m (examples\.inception_resnet_v2\.write_checkpoint|tf2verify convert '
    r'examples/inception_resnet_v2/native_case\.py) .*',
    'takes minutes; tests/optimizer_conversion_test.py converts keras3_ranker in the same way',
  ),
  (r'python -m benchmarks\.\w+( .*)?', 'takes minutes: make bench'),
)
# Text blocks that are no output of the block before, by their first line.
_EXCERPTS = {
  (
    'docs/overview.md',
    "     commands/        run, fleet, report, recorder, adequacy, ...; absl's main()",
  ): 'a drawing',
  (
    'docs/decisions/0044-the-house.md',
    'errors, safe_text, hooks     what a user may do wrong, say, declare',
  ): 'a drawing',
  ('docs/ci.md', '# requirements.txt'): 'test_requirements_of_the_workflow',
  (
    'docs/environment.md',
    'TF1-style code cannot run here: 1 problem.',
  ): 'tests/import_order_test.py',
  ('docs/environment.md', 'versions'): 'test_doctor_sections',
  (
    'docs/first_case.md',
    '# To be replaced before old_model.py runs under TensorFlow 2:',
  ): 'test_excerpts_of_the_first_case',
  (
    'docs/first_case.md',
    'def _outputs(inputs, training):',
  ): 'test_excerpts_of_the_first_case',
  (
    'docs/first_case.md',
    '  def make_inputs(self):  # numpy, the same for both sides',
  ): 'test_excerpts_of_the_first_case',
  (
    'examples/inception_v3/README.md',
    'ValueError: The truth value of an array with more than one element is ambiguous.',
  ): "numpy's words, of a port that is not in the example",
}
# Folders that commands write to, also those that read the repository's examples.
_WRITTEN = 'reports|trained'
_COMMANDS = (
  'run',
  'report',
  'prove',
  'adequacy',
  'inspect',
  'convert',
  'map',
  'repeat',
  'recorder',
  'recording',
  'doctor',
  'fleet',
  'history',
  'new',
  'watch',
  '...',
)
_NOTEBOOK = 'notebook'
_FRACTION = re.compile(r'\d+\.\d+(?:e[+-]\d+)?')
# Of the TensorFlow that the outputs in the pages were made with.
_VERSION_OF_OUTPUTS = '2.21'
# Stages that run a side against itself, and the hook by which a case asks for something of it.
_OF_ONE_SIDE = {'execution_modes': 'modes_to_run', 'determinism': 'fresh_processes'}


def _normalized(output: str) -> str:
  """Returns text without what differs by run or machine: seconds, noise, digits, widths."""
  output = re.sub(r'\S*/site-packages/', '…/site-packages/', output)
  output = re.sub(r'rounding\s+noise\s+here\s+[^;)]*', 'rounding noise here N', output)
  output = re.sub(r'\brounding\s+\d\S*', 'rounding N', output)
  output = re.sub(r'\b(keras)\s+\d+\.\d+\.\d+', r'\1 N', output)
  output = re.sub(r'note: with \S+enable_op_determinism\(\) .*', 'note: with determinism …', output)
  output = re.sub(r'(?<=\S) {2,}', '  ', output)  # columns are as wide as what was replaced
  output = re.sub(r'\b\d+\.\d s\b', 'N s', output)
  output = re.sub(r'(?m)^( +made +)\S+|^( +by +).*|\d[\d,]* bytes', r'\1\2…', output)
  output = re.sub(r'\b\d+\.\d GiB\b', 'N GiB', output)
  # What is left by rounding, not an epsilon, say.
  output = re.sub(r'\b(agree\s+to|max\s+relative\s+difference)\s+\d\S*?e-\d+', r'\1 N', output)
  return '\n'.join(line.rstrip() for line in output.strip().splitlines())


def _words(output: str, shown: str) -> tuple[list[str], list[str]]:
  """Returns the words of both, equal where only the last digits of fractions differ.

  Word by word, since where lines are wrapped depends on figures that vary. The last digits are
  those of the processor.
  """
  words, expected = _normalized(output).split(), _normalized(shown).split()
  for place, (word, other) in enumerate(zip(words, expected, strict=False)):
    if _FRACTION.sub('', word) != _FRACTION.sub('', other):
      continue
    numbers = zip(_FRACTION.findall(word), _FRACTION.findall(other), strict=False)
    if all(math.isclose(float(one), float(two), rel_tol=0.01) for one, two in numbers):
      words[place] = other
  return words, expected


def _verdicts(output: str) -> list[tuple[str, str]]:
  """Returns the stages that a text shows, and the status of each."""
  return re.findall(r'(?m)^ +\d+ (\w+) +([A-Z_]+)\b', output)


@contextlib.contextmanager
def _working_in(folder: pathlib.Path):
  """Makes a folder the current one, and lets Python import from it."""
  before, modules = os.getcwd(), set(sys.modules)
  os.chdir(folder)
  sys.path.insert(0, str(folder))
  try:
    yield
  finally:
    os.chdir(before)
    sys.path.remove(str(folder))
    for name in set(sys.modules) - modules:
      if str(getattr(sys.modules[name], '__file__', None)).startswith(str(folder)):
        del sys.modules[name]


def _stages_of(declared):
  """Returns the stages for a case of a page; without those about nothing that it declares."""
  plain = tf2verify.EquivalenceCase
  left_out = {
    stage for stage, hook in _OF_ONE_SIDE.items() if getattr(declared, hook) == getattr(plain, hook)
  }
  return [stage.name for stage in STAGES if stage.name not in left_out]


class PageTest(parameterized.TestCase):
  @parameterized.parameters(*pages.pages())
  def test_blocks(self, page):
    self.run_page(page)

  def run_page(self, page):
    """Runs a page from top to bottom, in a folder of its own."""
    notebook = types.ModuleType(_NOTEBOOK)
    sys.modules[_NOTEBOOK] = notebook
    self.addCleanup(sys.modules.pop, _NOTEBOOK)
    self._files: dict[str, str] = {}  # as the page shows them, without the changes of a diff
    narrow = mock.patch.dict(os.environ, COLUMNS='80')  # as where nothing says how wide it is
    # What a loaded machine does not get to in time it would not show.
    patient = mock.patch.object(stage_bench.StageBench, 'is_over', return_value=False)
    unhurried = mock.patch.object(time_for_diagnosis, '_LEAST_SECONDS', 1e6)
    folder = tempfile.TemporaryDirectory()
    with narrow, patient, unhurried, folder as name, _working_in(pathlib.Path(name).resolve()):
      for block in pages.blocks(page):
        with self.subTest(f'{page}:{block.line}'):
          self._check(page, block, notebook)

  def _check(self, page, block, notebook):
    if block.language == 'python' and block.file_name:
      pathlib.Path(block.file_name).write_text(block.text)
      self._files[block.file_name] = block.text
    elif block.language == 'diff':
      name, changed = pages.changed(block.text, self._files)
      pathlib.Path(name).write_text(changed)
    elif block.language == 'python':
      self._run_python(page, block, notebook)
    elif block.language == 'sh':
      output = ''.join(self._run_command(line, block.output or '') for line in block.commands)
      self._assert_output(block, output)
    elif block.language == 'json':
      json.loads(block.text)
    elif block.language == 'toml':
      self._check_settings(block.text)
    elif block.language == 'yaml':
      self.assertIsInstance(yaml.safe_load(block.text), dict)
    elif block.language == 'starlark':
      ast.parse(block.text)  # Starlark's grammar is a part of Python's
    elif block.language == 'text':
      known = block.is_output or (page, block.text.splitlines()[0]) in _EXCERPTS
      self.assertTrue(known, 'put it directly behind the block that prints it, or into _EXCERPTS')
    else:
      self.fail(f'no check is known for a block of language {block.language!r}')

  def _check_settings(self, text):
    """Reads a block of pyproject.toml as `run` does."""
    settings = tomllib.loads(text)
    pathlib.Path('pyproject.toml').write_text(text)
    self.assertLen(defaults.run_defaults(os.curdir), len(settings['tool'].get('tf2verify', {})))
    pathlib.Path('pyproject.toml').unlink()  # it is not that of the blocks behind it

  def _run_python(self, page, block, notebook):
    before = set(vars(notebook))
    path = pages.REPOSITORY / page
    code = compile('\n' * (block.line - 1) + block.text, str(path), 'exec')
    with contextlib.redirect_stdout(io.StringIO()) as output:
      exec(code, vars(notebook))
    self._assert_output(block, output.getvalue())
    for name in vars(notebook).keys() - before:
      declared = vars(notebook)[name]
      if isinstance(declared, type) and declared.__module__ == _NOTEBOOK:
        self._check_class(declared)

  def _check_class(self, declared):
    """Runs the cases and stages that a page declares."""
    if issubclass(declared, tf2verify.EquivalenceCase) and abc.ABC not in declared.__bases__:
      found = tf2verify.verify(declared, stages=_stages_of(declared))
      self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    elif issubclass(declared, Stage):
      made = case.new_ladder(small_case.SmallCase, lambda step: None)
      self.addCleanup(made.close)
      found = made._run(declared, len(STAGES) + 1)
      self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def _assert_output(self, block, output):
    if block.output is None:
      return
    if tf.__version__.startswith(f'{_VERSION_OF_OUTPUTS}.'):
      self.assertEqual(*_words(output, block.output))
    else:  # digits, and what XLA can do, are those of the version
      self.assertEqual(_verdicts(output), _verdicts(block.output))

  def _run_command(self, command, expected):
    """Returns what a command prints; it may exit with 1 where the page shows that it fails."""
    words = shlex.split(command)
    statuses = (0, 1) if re.search('FAILED|REFUSED|ERROR', expected) else (0,)
    if words[0] == 'make':
      dry_run = subprocess.run(
        ['make', '-n', *words[1:]], cwd=pages.REPOSITORY, capture_output=True, check=False
      )
      self.assertEqual(dry_run.returncode, 0, dry_run.stderr)
      return ''
    if any(re.fullmatch(pattern, command) for pattern, _ in _NOT_RUN):
      self._check_names(words)
      return ''
    if words[:2] == ['python', recorded_page.RECORDER]:
      self._record(words)
      return ''
    if '>' in words:
      *words, _, written = words
      pathlib.Path(written).write_text(self._run_command(shlex.join(words), expected))
      return ''
    if words[:3] == ['python', '-m', 'tf2verify']:
      # In this process, which has TensorFlow loaded.
      example = any(word.startswith('examples') for word in words)
      folder = pages.REPOSITORY if example else pathlib.Path.cwd()
      words = [re.sub(f'^({_WRITTEN})(?=/|$)', rf'{os.getcwd()}/\1', word) for word in words]
      with contextlib.redirect_stdout(io.StringIO()) as output, _working_in(folder):
        self.assertIn(cli.main(words[3:]), statuses, output.getvalue())
      return output.getvalue().replace(os.getcwd() + os.sep, '')
    environment = dict(word.split('=', 1) for word in words if re.match('[A-Z0-9_]+=', word))
    words = words[len(environment) :]
    self.assertEqual(words[0], 'python', f'no check is known for the command: {command}')
    environment['PYTEST_PLUGINS'] = 'pytest_tf2verify'  # also where the package is not installed
    done = console.run(*words[1:], folder=pathlib.Path.cwd(), **{'COLUMNS': '80', **environment})
    self.assertIn(done.returncode, statuses, done.stdout + done.stderr)
    return done.stdout

  def _record(self, words):
    python = os.environ.get('TF1_PYTHON')
    if python:
      recorded_page.record(words, python, pathlib.Path.cwd())
    else:  # the case refuses it if it is none of the model that the page shows
      recorded_page.take_committed(words, pathlib.Path.cwd())

  def _check_names(self, words):
    """Asserts that the files and modules of a command exist."""
    for before, word in zip(['', *words], words, strict=False):
      if before == '-m' and word not in ('pytest', 'tf2verify', 'venv'):
        self.assertTrue((pages.REPOSITORY / (word.replace('.', '/') + '.py')).is_file(), word)
      elif word.startswith(('examples', 'tests', '.ci/')):
        self.assertTrue((pages.REPOSITORY / word).exists(), word)


class InlineCommandsTest(parameterized.TestCase):
  @parameterized.parameters(*pages.pages())
  def test_commands_in_the_prose(self, page):
    makefile = (pages.REPOSITORY / 'Makefile').read_text()
    for code in re.findall(r'`([^`\n]+)`', pages.prose(page)):
      words = code.split()
      if words[0] == 'make' and len(words) > 1:
        self.assertRegex(makefile, rf'(?m)^{re.escape(words[1])}:')
      elif words[:3] == ['python', '-m', 'tf2verify'] and len(words) > 3:
        self.assertIn(words[3], _COMMANDS)
      elif words[:2] == ['python', 'examples']:
        self.assertTrue((pages.REPOSITORY / words[1]).is_file(), code)


class LinksTest(parameterized.TestCase):
  @parameterized.parameters(*pages.pages())
  def test_links(self, page):
    for link in pages.links(page):
      with self.subTest(link):
        path, _, anchor = link.partition('#')
        target = (pages.REPOSITORY / page).parent / path if path else pages.REPOSITORY / page
        self.assertTrue(target.exists(), f'{page} links to {link}')
        if anchor:
          name = str(target.resolve().relative_to(pages.REPOSITORY.resolve()))
          self.assertIn(anchor, pages.anchors(name))


class CompletenessTest(absltest.TestCase):
  def test_every_stage_has_a_section_and_a_row(self):
    stages = pages.text('docs/stages.md')
    for number, stage in enumerate(STAGES, 1):
      self.assertIn(stage.name, pages.anchors('docs/stages.md'))
      needs = ', '.join(str([s.name for s in STAGES].index(name) + 1) for name in stage.needs)
      self.assertIn(f'| {number} | [{stage.name}](#{stage.name}) | {needs}'.rstrip(), stages)
      self.assertIn(f'[{stage.name}](stages.md#', pages.text('docs/migration_checklist.md'))

  def test_every_status_is_explained(self):
    for status in tf2verify.Status:
      self.assertIn(f'| {status.value} |', pages.text('docs/stages.md'))

  def test_every_make_target_is_in_build(self):
    makefile = (pages.REPOSITORY / 'Makefile').read_text()
    targets = re.search(r'^\.PHONY: (.*)$', makefile, flags=re.MULTILINE)[1].split()
    for target in targets:
      self.assertIn(f'| `make {target}` |', pages.text('BUILD.md'))

  def test_every_public_name_is_in_the_docs(self):
    together = '\n'.join(pages.text(page) for page in pages.pages())
    for name in tf2verify.__all__:
      self.assertIn(f'tf2verify.{name}', together)

  def test_every_hook_is_in_writing_a_case(self):
    page = pages.text('docs/writing_a_case.md')
    for name in (*vars(tf2verify.EquivalenceCase), *vars(optional_hooks.OptionalHooks)):
      if not name.startswith('_') and name not in (*case._FINAL, *case._TESTS):
        self.assertRegex(page, rf'\| `{name}\b')

  def test_the_json_example_has_all_fields(self):
    [block] = [b for b in pages.blocks('docs/reading_a_report.md') if b.language == 'json']
    shown = json.loads(block.text)
    real = json.loads(verdict.CaseVerdict('Case', 'module', ()).to_json())
    self.assertEqual(list(shown), list(real))
    [stage] = shown['stages']
    [found] = stage['differences']
    for record, part in (
      (verdict.StageVerdict, stage),
      (verdict.Compared, stage['compared']),
      (difference.Difference, found),
      (difference.ArrayDifference, found['array']),
    ):
      self.assertEqual(list(part), [field.name for field in dataclasses.fields(record)])

  def test_every_json_field_is_explained(self):
    page = pages.prose('docs/reading_a_report.md')
    for record in (
      verdict.StageVerdict,
      verdict.Compared,
      verdict.Figure,
      table.Table,
      verdict.ErrorRecord,
      difference.Difference,
      difference.ArrayDifference,
    ):
      for field in dataclasses.fields(record):
        self.assertIn(f'`{field.name}`', page)
    for aspect in difference.Aspect:
      self.assertIn(f'`{aspect.value}`', page)

  def test_decisions_are_numbered_and_complete(self):
    decisions = [page for page in pages.pages() if page.startswith('docs/decisions/')]
    for number, page in enumerate(decisions, 1):
      self.assertStartsWith(os.path.basename(page), f'{number:04}-')
      self.assertContainsSubset({'context', 'decision', 'consequence'}, pages.anchors(page))

  def test_requirements_of_the_workflow(self):
    [block] = [b for b in pages.blocks('docs/ci.md') if b.text.startswith('# requirements.txt')]
    lines = [line for line in block.text.splitlines() if not line.startswith('#')]
    own, *others = lines
    self.assertEqual(others, ['pytest', 'pytest-xdist'])  # the workflow has -n
    extras = re.fullmatch(r'\./tf2verify\[(.+)\]', own)[1].split(',')
    project = tomllib.loads(pages.text('pyproject.toml'))['project']
    self.assertContainsSubset(extras, project['optional-dependencies'])

  def test_excerpts_of_the_first_case(self):
    found = pages.blocks('docs/first_case.md')
    written = ''
    with tempfile.TemporaryDirectory() as name, _working_in(pathlib.Path(name)):
      for file, target in (('old_model.py', 'network'), ('old_class.py', 'Classifier.build_graph')):
        text = next(block.text for block in found if block.file_name == file)
        pathlib.Path(file).write_text(text)
        written += new_case.new_case(f'{file}:{target}')
    for block in found:
      if ('docs/first_case.md', block.text.splitlines()[0]) in _EXCERPTS:
        self.assertIn(block.text, written)

  def test_doctor_sections(self):
    [shown] = [b.text for b in pages.blocks('docs/environment.md') if b.text.startswith('versions')]
    titles = [part.splitlines()[0] for part in shown.split('\n\n')]
    self.assertEqual(
      titles, [part.splitlines()[0] for part in doctor.report().to_text().split('\n\n')]
    )


if __name__ == '__main__':
  absltest.main()
