"""`make demo`, with a model that takes no minute."""

import contextlib
import io
from unittest import mock

from absl.testing import absltest

import tf2verify
from examples.inception_resnet_v2 import demo
from tests import small_case


class DemoTest(absltest.TestCase):
  def _shown(self, case: type[tf2verify.EquivalenceCase]) -> tuple[int, str]:
    stream = io.StringIO()
    with (
      mock.patch.object(demo, 'InceptionResnetV2FullSizeCase', case),
      contextlib.redirect_stdout(stream),
    ):
      status = demo.main()
    return status, stream.getvalue()

  def test_shows_the_stages_and_figures_that_are_not_those_published(self) -> None:
    status, text = self._shown(small_case.SmallCase)
    self.assertEqual(status, 1)
    self.assertRegex(text, r'6 gradients +PASSED')
    self.assertIn('SmallCase: PASSED', text)
    self.assertRegex(text, r'training, constant .* 1\.2239965 .*DIFFERS')

  def test_shows_why_a_port_fails(self) -> None:
    class Broken(small_case.SmallCase):
      def make_inputs(self):
        return 'no array'

    status, text = self._shown(Broken)
    self.assertEqual(status, 1)
    self.assertIn('make_inputs', text)


if __name__ == '__main__':
  absltest.main()
