"""Makes the pictures of docs/html_report.md, of real verdicts.

    python -m tests.report.html.screenshots --reports DIR

Runs four cases, Inception-ResNet-v2 with a wrong residual scale among them, and keeps
their JSON reports in DIR; where DIR has them already, takes those. Needs Chromium, the
extra `report`, and to run the cases a minute.
"""

import argparse
import dataclasses
import os
import pathlib
import tempfile
from unittest import mock

from tests import browser
from tf2verify.report.html import page
from tf2verify.report.report_dir import case_files, read_case, write_case

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_IMAGES = _ROOT / 'docs' / 'images'
_WIDTH, _HEIGHT = 1180, 820


def _run_cases(folder):
  import tensorflow as tf

  import tf2verify
  from examples.broken import broken_case
  from examples.inception_resnet_v2 import equivalence_test, model, port
  from examples.simple_model import broken_case as simple
  from examples.slim_rmsprop_ema import equivalence_test as slim_rmsprop_ema

  class OtherScale(port.InceptionResnetV2):
    """Scales the residuals of all block17 by 0.17, as those of block35."""

    @tf.compat.v1.keras.utils.track_tf1_style_variables
    def call(self, inputs, training=False):
      right = model.block17

      def block17(net, scale, scope=None):
        return right(net, 0.17, scope)

      with mock.patch.object(model, 'block17', block17):
        return model.inception_resnet_v2(inputs, self.num_classes, is_training=training)

  class InceptionResnetV2Case(equivalence_test.InceptionResnetV2Case):
    def make_tf2_layer(self):
      return OtherScale(self.num_classes)

  for case, stages in (
    (InceptionResnetV2Case, ['gradients']),
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
  cases = [dataclasses.replace(case, run_again='') for case in cases]  # not of a case's file
  name = next(f'case-{n}' for n, case in enumerate(cases, 1) if 'Inception' in case.case)
  chromium = browser.Browser()
  try:
    with tempfile.TemporaryDirectory() as made:
      path = os.path.join(made, 'page.html')
      page.write_page(path, cases)
      chromium.look(_WIDTH, _HEIGHT)
      chromium.open(path)
      chromium.screenshot(_IMAGES / 'html_report_overview.png')
      chromium.look(_WIDTH, _HEIGHT, dark=True)
      chromium.open(path, f'?#{name}')
      chromium.wait_for(f"document.querySelector('#{name}[data-ready]')")
      chromium.wait_for(f"document.activeElement.id === '{name}-heading'")
      chromium.screenshot(_IMAGES / 'html_report_case.png')
  finally:
    chromium.close()


if __name__ == '__main__':
  main()
