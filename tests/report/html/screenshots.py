"""Makes the pictures of docs/html_report.md, of real verdicts.

    python -m tests.report.html.screenshots --reports DIR

Runs four cases, Inception-ResNet-v2 with a mistake in its stem among them, and keeps
their JSON reports in DIR; where DIR has them already, takes those. Needs Chromium, the
extra `report`, and to run the cases two minutes.
"""

import argparse
import os
import pathlib
import tempfile

from tests import browser
from tf2verify.report.html import page
from tf2verify.report.report_dir import case_files, read_case, write_case

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_IMAGES = _ROOT / 'docs' / 'images'
_WIDTH, _OVERVIEW_HEIGHT, _CASE_HEIGHT = 1240, 1240, 1370


def _run_cases(folder):
  import tf2verify
  from examples.broken import broken_case
  from examples.inception_resnet_v2 import broken_case as inception_resnet_v2
  from examples.simple_model import broken_case as simple
  from examples.slim_rmsprop_ema import equivalence_test as slim_rmsprop_ema

  for case, stages in (
    (inception_resnet_v2.RewrittenStemCase, ['gradients']),
    (simple.FrozenScheduleCase, None),
    (broken_case.BrokenScalingCase, None),
    (slim_rmsprop_ema.SlimRmspropEmaCase, None),
  ):
    path = write_case(tf2verify.verify(case, stages), folder)
    # What a reader of the docs need not see: where they were made.
    text = pathlib.Path(path).read_text(encoding='utf-8').replace(f'{_ROOT}{os.sep}', '')
    pathlib.Path(path).write_text(text, encoding='utf-8')


def main():
  """Writes the pictures."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--reports', required=True)
  folder = parser.parse_args().reports
  os.makedirs(folder, exist_ok=True)
  if not os.listdir(folder):
    _run_cases(folder)
  cases = sorted(map(read_case, case_files([folder])), key=lambda case: case.case)
  name = next(f'case-{n}' for n, case in enumerate(cases, 1) if case.case == 'RewrittenStemCase')
  chromium = browser.Browser()
  try:
    with tempfile.TemporaryDirectory() as made:
      path = os.path.join(made, 'page.html')
      page.write_page(path, cases)
      chromium.look(_WIDTH, _OVERVIEW_HEIGHT)
      chromium.open(path)
      chromium.screenshot(_IMAGES / 'html_report_overview.png')
      chromium.look(_WIDTH, _CASE_HEIGHT, dark=True)
      chromium.open(path, f'?#{name}')
      chromium.wait_for(f"document.querySelector('#{name}[data-ready]')")
      chromium.wait_for(f"document.activeElement.id === '{name}-heading'")
      chromium.screenshot(_IMAGES / 'html_report_case.png')
  finally:
    chromium.close()


if __name__ == '__main__':
  main()
