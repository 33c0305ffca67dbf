"""What a reader does with the page, in a real browser."""

import dataclasses
import itertools
import json
import os
import pathlib
import tempfile
import unittest

from absl.testing import absltest

from tests import browser
from tests.report.html import made_up
from tf2verify.records.side_by_side import VariablePair
from tf2verify.report.html import page
from tf2verify.safe_text import safe_line

_SHOWN = """[...document.querySelectorAll('#overview tbody tr')]
  .filter((row) => !row.hidden).map((row) => row.dataset.name)"""
_OPEN = "[...document.querySelectorAll('article.case')].map((article) => article.id)"


def _table(name, within='article'):
  """Returns an expression: the rows of a packed table, as texts of their cells."""
  place = f'{within} .packed[data-table={json.dumps(name)}]'
  return f"""[...document.querySelectorAll({json.dumps(place + ' tbody tr')})]
    .map((row) => [...row.cells].map((cell) => cell.textContent))"""


@unittest.skipIf(
  browser.executable() is None, 'no Chromium on this machine: apt-get install chromium'
)
@made_up.needs_report_extra
class BrowserTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.browser = browser.Browser()
    cls.addClassCleanup(cls.browser.close)
    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    cls.folder = pathlib.Path(folder.name)

  def _open(self, *cases, fragment=''):
    path = self.folder / f'{self.id()}.html'
    path.write_text(page.page(cases), encoding='utf-8')
    self.browser.look()
    self.browser.open(path, fragment)
    if self._ask(_OPEN):
      self._ready()
    return path

  def _ask(self, expression):
    return self.browser.evaluate(expression)

  def _ready(self):
    self.browser.wait_for(
      "[...document.querySelectorAll('article.case')].every((a) => a.dataset.ready)"
    )

  def _assert_quiet(self):
    self.assertEqual(self.browser.errors, [])
    self.assertEqual(self.browser.dialogs, [])
    self.assertLen(self.browser.requests, 1)

  def test_first_failure_is_open_and_asks_for_nothing(self):
    self._open(made_up.passed(), made_up.failed())
    self.assertEqual(self._ask(_OPEN), ['case-2'])
    self.assertEqual(self._ask("document.querySelectorAll('.warning').length"), 0)
    self._assert_quiet()

  def test_names_that_look_like_markup_stay_text(self):
    self._open(made_up.failed(made_up.EVIL, made_up.EVIL))
    shown = self._ask(_table('tensors'))
    evil = safe_line(made_up.EVIL)
    self.assertIn(evil, [cell for row in shown for cell in row])
    self.assertIn(evil, self._ask("document.querySelector('h3').textContent"))
    self.assertEqual(self._ask("document.querySelectorAll('img').length"), 0)
    for name in ('inventory', 'differences', 'training_steps-0'):
      self.assertTrue(any(evil in cell for row in self._ask(_table(name)) for cell in row), name)
    self._assert_quiet()

  def test_a_planted_script_does_not_run(self):
    path = self.folder / 'planted.html'
    text = page.page([made_up.passed()])
    path.write_text(
      text.replace('</body>', '<script>alert(1)</script><img src=x onerror=alert(2)>')
    )
    self.browser.open(path)
    self.assertEqual(self.browser.dialogs, [])
    self.assertLen([e for e in self.browser.errors if 'Content Security Policy' in e], 3)

  def test_filter_and_sort(self):
    self._open(made_up.passed('B'), made_up.failed('C'), made_up.error('A'), made_up.passed('D'))
    self.assertEqual(self._ask(_SHOWN), ['B', 'C', 'A', 'D'])
    self._ask("document.querySelector('input[value=PASSED]').click()")
    self.assertEqual(self._ask(_SHOWN), ['C', 'A'])
    said = "document.querySelector('#shown').textContent"
    self.assertEqual(self._ask(said), '2 of 4 cases shown')
    self._ask("document.querySelector('input[value=PASSED]').click()")
    for order, names in (
      ('name', ['A', 'B', 'C', 'D']),
      ('severity', ['A', 'C', 'B', 'D']),
      ('seconds', ['C', 'B', 'D', 'A']),
      ('run', ['B', 'C', 'A', 'D']),
    ):
      self._ask(f"""(() => {{ const order = document.querySelector('#order');
        order.value = '{order}'; order.dispatchEvent(new Event('change')); }})()""")
      self.assertEqual(self._ask(_SHOWN), names)
    self._ask("document.querySelector('#needle').focus()")
    self.browser.type('THE CAUSE')
    self.assertEqual(self._ask(_SHOWN), ['C'])
    self._assert_quiet()

  def test_open_and_close(self):
    self._open(made_up.passed(), made_up.failed(), made_up.error())
    click = "document.querySelectorAll('.opener')[{}].click()"
    self._ask(click.format(0))
    self.assertEqual(self._ask(_OPEN), ['case-1', 'case-2'])
    expanded = """[...document.querySelectorAll('.opener')]
      .map((button) => button.getAttribute('aria-expanded'))"""
    self.assertEqual(self._ask(expanded), ['true', 'true', 'false'])
    self._ask(click.format(1))
    self.assertEqual(self._ask(_OPEN), ['case-1'])
    self._ask("document.querySelector('#open-wrong').click()")
    self.assertEqual(self._ask(_OPEN), ['case-1', 'case-2', 'case-3'])
    self._ask("document.querySelector('#close-all').click()")
    self.assertEqual(self._ask(_OPEN), [])
    self.assertFalse(self._ask("document.querySelector('#nothing-open').hidden"))

  def test_an_address_opens_its_case(self):
    self._open(made_up.failed(), made_up.passed(), fragment='#case-2')
    self.assertEqual(self._ask(_OPEN), ['case-2'])
    self.browser.wait_for("document.activeElement.id === 'case-2-heading'")

  def test_table_of_tensors(self):
    self._open(made_up.failed())
    self.assertLen(self._ask(_table('tensors')), 25)
    place = "document.querySelector('article .packed[data-table=tensors]')"
    self.assertEqual(
      self._ask(f"{place}.querySelector('.pager .note').textContent"), 'Rows 1 to 25 of 33 rows'
    )
    first = self._ask(_table('tensors'))[0]
    self.assertIn('bias', first)  # 9 is more than 0.25
    self.assertIn('about equal: 56 %, 1 apart: 33 %, 4 to 7 apart: 11 %', ' '.join(first))
    self._ask(f"[...{place}.querySelectorAll('.pager button')][1].click()")
    self.assertLen(self._ask(_table('tensors')), 8)
    self.assertEqual(self._ask('document.activeElement.textContent'), 'Previous')
    self._ask(f"""(() => {{ const input = {place}.querySelector('input');
      input.value = 'LAYER_3/'; input.dispatchEvent(new Event('input')); }})()""")
    self.assertLen(self._ask(_table('tensors')), 1)
    self.assertEqual(self._ask(f"{place}.querySelector('.pager').textContent"), '1 of 33 rows')

  def test_sort_and_choose_in_a_table(self):
    self._open(made_up.failed())
    place = "document.querySelector('article .packed[data-table=tensors]')"
    head = f"[...{place}.querySelectorAll('thead button')].find((b) => b.textContent === 'tensor')"
    self._ask(f'{head}.click()')
    names = [row[0] for row in self._ask(_table('tensors'))]
    self.assertEqual(names, sorted(names))
    self.assertEqual(self._ask(f"{place}.querySelectorAll('[aria-sort=ascending]').length"), 1)
    self._ask(f"""(() => {{ const select = {place}.querySelector('select');
      select.value = [...select.options].find((o) => o.text.startsWith('failed')).value;
      select.dispatchEvent(new Event('change')); }})()""")
    self.assertEqual([row[0] for row in self._ask(_table('tensors'))], ['bias', 'dense/kernel'])

  def test_a_renamed_variable_is_no_warning(self):
    case = made_up.failed()
    [at] = [n for n, stage in enumerate(case.stages) if stage.inventory]
    pair = VariablePair(made_up.variable('alpha'), made_up.variable('norm/alpha'))
    stage = case.stages[at]
    stage = dataclasses.replace(stage, inventory=(*stage.inventory, pair))
    stages = (*case.stages[:at], stage, *case.stages[at + 1 :])
    self._open(dataclasses.replace(case, stages=stages))
    classes = self._ask("""Object.fromEntries([...document.querySelectorAll(
      'article .packed[data-table=inventory] tbody tr')]
      .map((row) => [row.lastChild.textContent, row.className]))""")
    self.assertEqual(classes['renamed'], '')
    self.assertEqual(classes['renamed and trained on one side only'], 'marked')
    self.assertEqual(classes['only in tf2'], 'marked-bad')

  def test_tables_of_a_written_page_are_whole(self):
    """The file, and not only the text that is written into it."""
    path = self.folder / 'written.html'
    page.write_page(str(path), [made_up.failed(), made_up.passed()])
    self.browser.look(width=1400)
    self.browser.open(path)
    self._ready()
    self.assertIn('no_new_variables', self._ask("document.querySelector('#overview').innerText"))
    cut = """[...document.querySelectorAll('.scroll')]
      .filter((one) => one.scrollWidth > one.clientWidth)
      .map((one) => one.innerText.slice(0, 60))"""
    self.assertEqual(self._ask(cut), [])
    self._assert_quiet()

  def test_numbers_of_a_figure(self):
    self._open(made_up.failed())
    button = """document.querySelector('article .packed[data-table=growth-gradients] button')"""
    self.assertEqual(self._ask(f'{button}.textContent'), 'Show the numbers (5 rows)')
    hidden = f"document.getElementById({button}.getAttribute('aria-controls')).hidden"
    self.assertTrue(self._ask(hidden))
    self._ask(f'{button}.click()')
    self.assertFalse(self._ask(hidden))
    self.assertEqual(self._ask(_table('growth-gradients'))[0], ['dense/kernel_0', '1e-4'])

  def test_with_the_keyboard_alone(self):
    self._open(made_up.passed(), made_up.passed('Other'))
    self.assertEqual(self._ask(_OPEN), [])
    self.browser.press('Tab')
    self.assertEqual(self._ask('document.activeElement.className'), 'skip')
    self.assertGreaterEqual(self._ask('document.activeElement.getBoundingClientRect().left'), 0)
    self.browser.press('Enter')
    for _ in range(12):
      if self._ask('document.activeElement.className') == 'opener':
        break
      self.browser.press('Tab')
    outline = 'getComputedStyle(document.activeElement).outlineStyle'
    self.assertEqual(self._ask(outline), 'solid')
    self.browser.press('Enter')
    self.assertEqual(self._ask(_OPEN), ['case-1'])
    self._ready()
    self.assertEqual(self._ask('document.activeElement.id'), 'case-1-heading')
    self.browser.press('Tab')
    self.assertEqual(self._ask('document.activeElement.className'), 'closer')
    self.browser.press(' ')
    self.assertEqual(self._ask(_OPEN), [])
    self.assertEqual(self._ask('document.activeElement.className'), 'opener')

  def test_what_a_screen_reader_meets(self):
    self._open(made_up.failed(), made_up.passed())
    tree = self.browser.accessibility_tree()
    headings = [(p['level'], name) for role, name, p in tree if role == 'heading']
    self.assertEqual(headings[:5], [
      (1, 'tf2verify report'), (2, 'What is wrong'), (2, 'Cases'), (2, 'Details'),
      (3, 'WrongCase failed'),
    ])  # fmt: skip
    levels = [level for level, _ in headings]
    self.assertTrue(all(b - a <= 1 for a, b in itertools.pairwise(levels)))
    roles = {role for role, _, _ in tree}
    self.assertContainsSubset(
      {'banner', 'main', 'contentinfo', 'table', 'columnheader', 'rowheader', 'caption'}, roles
    )
    for role, name, _ in tree:
      if role in ('button', 'link', 'checkbox', 'searchbox', 'combobox', 'region'):
        self.assertNotEqual(name, '', role)
    tables = [name for role, name, _ in tree if role == 'table']
    self.assertNotIn('', tables)

  def test_light_dark_narrow_and_on_paper(self):
    path = self._open(made_up.failed(), made_up.passed())
    colour = 'getComputedStyle(document.body).backgroundColor'
    light = self._ask(colour)
    self.browser.look(dark=True)
    self.assertNotEqual(self._ask(colour), light)
    ink = "getComputedStyle(document.querySelector('figure svg text')).fill"
    self.assertEqual(self._ask(ink), 'rgb(230, 233, 239)')
    self.browser.look(width=400)
    self.assertLessEqual(self._ask('document.documentElement.scrollWidth'), 400)
    self.browser.look()
    self.assertStartsWith(self.browser.pdf(), b'%PDF')
    self.assertStartsWith(self.browser.screenshot(), b'\x89PNG')
    self.assertTrue(os.path.exists(path))

  def test_contrast(self):
    """Every text stands out from its ground by 4.5 at least (WCAG 2.1, 1.4.3)."""
    self._open(made_up.failed(), made_up.passed(), made_up.error())
    for dark in (False, True):
      self.browser.look(dark=dark)
      with self.subTest(dark=dark):
        self.assertEqual(self._ask(_TOO_FAINT), [])


_TOO_FAINT = """(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((c) => c / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const found = new Set();
  for (const element of document.body.querySelectorAll('*')) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || element.closest('svg, [hidden], :disabled, noscript, script, template')) continue;
    const [a, b] = [getComputedStyle(element).color, ground(element)].map(light);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.add(`${element.tagName}.${element.className} ${contrast.toFixed(2)}`);
  }
  return [...found];
})()"""


if __name__ == '__main__':
  absltest.main()
