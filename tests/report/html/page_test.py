"""What the page is made of, as far as it can be told without a browser."""

import base64
import dataclasses
import hashlib
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from unittest import mock

import pytest
from absl.testing import absltest

from tests.report.html import made_up
from tf2verify.errors import EnvironmentProblem, UsageError
from tf2verify.records.experiment import Edit, Experiment, Outcome
from tf2verify.report.html import page

pytestmark = pytest.mark.starts_processes

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_GOLDEN = _ROOT / 'tests' / 'golden_reports' / 'page.txt'
_SHOWN = ('h1', 'h2', 'h3', 'h4', 'caption', 'th', 'td', 'button', 'legend', 'a', 'dt', 'code')
_SILENT = ('script', 'style', 'title')


class _Reader(html.parser.HTMLParser):
  """Reads tags, attributes and the text of the tags that are shown."""

  def __init__(self, text):
    super().__init__()
    self.tags, self.outline, self._open = [], [], []
    self.feed(text.replace('<wbr>', ''))

  def handle_starttag(self, tag, attributes):
    self.tags.append((tag, dict(attributes)))
    self._open.append(tag)
    if tag in ('template', 'svg'):
      self.outline.append(f'{tag} {dict(attributes).get("id", "")}'.strip())
    elif 'data-table' in dict(attributes):
      self.outline.append(f'table {dict(attributes)["data-table"]}')
    elif tag in _SHOWN:
      self.outline.append(tag)
    if tag in ('meta', 'input', 'br', 'wbr'):
      self._open.pop()

  def handle_endtag(self, tag):
    while self._open and self._open.pop() != tag:
      pass

  def handle_data(self, data):
    inside = [tag for tag in self._open if tag in _SHOWN]
    silent = any(tag in _SILENT or tag == 'svg' for tag in self._open)
    said = ' '.join(data.split())
    if inside and said and not silent and self.outline:
      self.outline[-1] += f' {said}' if self.outline[-1].split()[0] == inside[-1] else ''


def _outline(text):
  return '\n'.join(_Reader(text).outline) + '\n'


@made_up.needs_report_extra
class PageTest(absltest.TestCase):
  maxDiff = None

  def test_structure(self):
    """Written anew by `python -m tests.report.html.page_test --write`."""
    cases = [made_up.failed(), made_up.passed(), made_up.error()]
    self.assertEqual(_outline(page.page(cases)), _GOLDEN.read_text())

  def test_without_a_cause_it_says_what_to_compare(self):
    case = made_up.failed()
    [at] = [n for n, stage in enumerate(case.stages) if stage.stage == 'gradients']
    diagnosis = dataclasses.replace(case.stages[at].diagnosis, causes=())
    changed = dataclasses.replace(case.stages[at], diagnosis=diagnosis, differences=())
    stages = (*case.stages[:at], changed, *case.stages[at + 1 :])
    said = 'What to do: compare the two lines above'
    self.assertIn(said, page.page([dataclasses.replace(case, stages=stages)]))
    self.assertNotIn(said, page.page([case]))

  def test_every_stage_that_failed_is_told(self):
    case = made_up.failed()
    [at] = [n for n, stage in enumerate(case.stages) if stage.stage == 'gradients']
    later = dataclasses.replace(
      case.stages[at], stage='checkpoint', number=9, diagnosis=None, differences=()
    )
    case = dataclasses.replace(case, stages=(*case.stages[: at + 1], later))
    text = page.page([case])
    self.assertEqual(text.count('<section class="finding'), 2)
    items = text[text.index('<ol class="wrong">') : text.index('</ol>')].split('<li')[1:]
    self.assertEqual([re.findall(r'\((\d+ \w+) FAILED\)', one) for one in items],
      [['6 gradients'], ['9 checkpoint']])  # fmt: skip
    self.assertIn('Begin with the first of each case', text)
    self.assertNotIn('Begin with the first', page.page([made_up.failed()]))

  def test_a_proven_cause_looks_proven(self):
    case = made_up.failed()
    [at] = [n for n, stage in enumerate(case.stages) if stage.stage == 'gradients']
    stage = case.stages[at]
    experiment = Experiment(Edit.SETTING, '', Outcome.PROVEN, 1, 1, 0.0, 5)
    [cause, *others] = stage.diagnosis.causes
    for known, badge in (
      (cause, 'likely'),
      (dataclasses.replace(cause, experiment=experiment, predicts=True), '✓ proven'),
    ):
      diagnosis = dataclasses.replace(stage.diagnosis, causes=(known, *others))
      changed = dataclasses.replace(stage, diagnosis=diagnosis)
      stages = (*case.stages[:at], changed, *case.stages[at + 1 :])
      text = page.page([dataclasses.replace(case, stages=stages)])
      [shown] = re.findall(r'<p class="headline">.*?<span class="badge [^>]*>(.*?)</span>', text)
      self.assertEqual(shown, badge)
      self.assertEqual('class="cause proven"' in text, badge != 'likely')

  def test_the_top_says_where_it_is_from(self):
    about = (('project', 'a<b'), ('commit', '0123456789, with changes since'), ('written', 'today'))
    text = page.page([made_up.failed()], about=about)
    self.assertIn('<h1>tf2verify report: a&lt;b</h1>', text)
    self.assertIn('<title>a&lt;b, tf2verify: 1 failed</title>', text)
    self.assertIn('Written today; commit <code>0123456789, with changes since</code>', text)
    self.assertNotIn('Written', page.page([made_up.failed()]))

  def test_the_file_is_the_page(self):
    """Nothing in it is escaped when it is written, as characters without width are."""
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder, 'page.html')
      with mock.patch.object(page, 'origin', lambda: (('project', 'one'),)):
        page.write_page(str(path), [made_up.failed()])
      self.assertEqual(
        path.read_text(), page.page([made_up.failed()], (), (('project', 'one'),)) + '\n'
      )

  def test_names_stay_text(self):
    text = page.page([made_up.failed(made_up.EVIL, made_up.EVIL)])
    tags = [tag for tag, _ in _Reader(text).tags]
    self.assertNotIn('img', tags)
    self.assertEqual(tags.count('script'), 2)
    self.assertEqual(text.count('</script>'), 2)
    self.assertNotIn('<img', text)
    self.assertNotIn('49', re.sub(r'<svg.*?</svg>|<script.*?</script>', '', text))

  def test_nothing_is_loaded_and_nothing_else_may_run(self):
    text = page.page([made_up.failed()])
    for tag, attributes in _Reader(text).tags:
      self.assertNotIn(tag, ('link', 'img', 'iframe', 'object', 'embed', 'base'))
      for name, value in attributes.items():
        self.assertFalse(name.startswith('on') or name in ('style', 'src'), f'{tag} {name}')
        if name == 'href':
          self.assertStartsWith(value, '#')
    [policy] = [
      attributes['content']
      for tag, attributes in _Reader(text).tags
      if attributes.get('http-equiv') == 'Content-Security-Policy'
    ]
    self.assertStartsWith(policy, "default-src 'none'; ")
    for name in ('style', 'script'):
      [inside] = re.findall(rf'<{name}>(.*?)</{name}>', text, flags=re.DOTALL)
      digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
      self.assertIn(f"{name}-src 'sha256-{digest}'", policy)

  def test_names_of_parts_are_used_once(self):
    text = page.page([made_up.failed('One'), made_up.failed('Other'), made_up.passed()])
    # What matplotlib draws alike has the name of its own drawing.
    outside = re.sub(r'<svg.*?</svg>', '', text, flags=re.DOTALL)
    names = [attributes['id'] for _, attributes in _Reader(outside).tags if 'id' in attributes]
    self.assertEqual(len(names), len(set(names)))

  def test_the_same_cause_is_said_once(self):
    text = page.page([made_up.failed('One'), made_up.failed('Other'), made_up.error()])
    said = _Reader(text).outline
    start, end = said.index('h2 What is wrong'), said.index('h2 Cases')
    links = [line for line in said[start:end] if line.startswith('a ')]
    self.assertEqual(links, ['a One', 'a Other', 'a RaisingCase'])
    self.assertEqual(text.count('<p class="headline">'), 2)

  def test_cases_without_a_cause_stand_alone_behind_the_others(self):
    def without(name):
      case = made_up.failed(name)
      [at] = [n for n, stage in enumerate(case.stages) if stage.stage == 'gradients']
      stage = dataclasses.replace(
        case.stages[at], differences=(made_up.difference('w'),), diagnosis=None
      )
      return dataclasses.replace(case, stages=(*case.stages[:at], stage, *case.stages[at + 1 :]))

    cases = [without('First'), made_up.failed('One'), without('Second'), made_up.failed('Other')]
    text = page.page(cases)
    items = text[text.index('<ol class="wrong">') : text.index('</ol>')].split('<li')[1:]
    names = [re.findall(r'class="to-case">(\w+)', item) for item in items]
    self.assertEqual(names, [['One', 'Other'], ['First'], ['Second']])
    self.assertEqual(text.count('Differs first</span>'), 2)

  def test_figures_that_are_not_drawn_say_so(self):
    cases = [made_up.passed(), made_up.failed('One'), made_up.failed('Other')]
    with mock.patch.object(page, 'MOST_FIGURES', 1):
      text = page.page(cases)
    self.assertEqual(text.count('<svg'), 4)
    self.assertEqual(text.count('Not drawn:'), 4)
    self.assertEqual(text.count('<figcaption>'), 8)

  def test_other_tolerances_and_other_environments(self):
    text = page.page([made_up.passed(), made_up.error()], [['a: FAILED -> PASSED'], []])
    self.assertIn('<li>a: FAILED -&gt; PASSED</li>', text)
    self.assertEqual(text.count('Judged again'), 1)
    self.assertIn('python 3.10', text)

  def test_the_same_verdicts_give_the_same_text(self):
    cases = [made_up.failed(), made_up.passed()]
    self.assertEqual(page.page(cases), page.page(cases))

  def test_without_cases_and_without_failures(self):
    self.assertIn('0 of 0 cases passed', page.page([]))
    text = page.page([made_up.passed()])
    self.assertIn('1 of 1 cases passed', text)
    self.assertNotIn('What is wrong', text)

  def test_stages_of_another_version_have_a_column(self):
    [stage, *_] = made_up.passed().stages
    stage = dataclasses.replace(stage, stage='later_stage', number=12)
    case = dataclasses.replace(made_up.passed(), stages=(stage,))
    self.assertIn('th 12 later_stage', _Reader(page.page([case])).outline)

  def test_written_whole_or_refused(self):
    folder = pathlib.Path(tempfile.mkdtemp())
    self.addCleanup(shutil.rmtree, folder)
    page.write_page(str(folder / 'made' / 'page.html'), [made_up.passed()])
    self.assertEqual([path.name for path in (folder / 'made').iterdir()], ['page.html'])
    with self.assertRaisesRegex(UsageError, '--html names a file that can be made'):
      page.write_page(str(folder), [made_up.passed()])


class RequirementsTest(absltest.TestCase):
  def test_what_is_missing_is_named_with_the_fix(self):
    with (
      mock.patch.object(page.importlib.util, 'find_spec', return_value=None),
      self.assertRaisesRegex(
        EnvironmentProblem,
        r"an HTML report needs jinja2 and matplotlib, which .*: pip install 'tf2verify\[report\]'",
      ),
    ):
      page.page([])

  def test_it_takes_neither_tensorflow_nor_what_draws_until_asked(self):
    code = (
      'import sys; sys.modules.update(tensorflow=None, jinja2=None, matplotlib=None); '
      'import tf2verify.report.html.page'
    )
    done = subprocess.run([sys.executable, '-c', code], cwd=_ROOT, capture_output=True, check=False)
    self.assertEqual(done.returncode, 0, done.stderr.decode())


if __name__ == '__main__':
  if '--write' in sys.argv:
    _GOLDEN.write_text(_outline(page.page([made_up.failed(), made_up.passed(), made_up.error()])))
  else:
    absltest.main()
