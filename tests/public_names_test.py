"""The public names, which are loaded at their first use."""

from absl.testing import absltest

import tf2verify


class PublicNamesTest(absltest.TestCase):
  def test_each_is_loaded_once(self) -> None:
    # While a ladder runs, its frozen objects are counted at every import: 10 ms.
    for name in tf2verify.__all__:
      with self.subTest(name):
        self.assertIs(getattr(tf2verify, name), vars(tf2verify)[name])

  def test_what_is_none(self) -> None:
    with self.assertRaisesRegex(AttributeError, 'normal_input'):
      _ = tf2verify.normal_input  # type: ignore[attr-defined]


if __name__ == '__main__':
  absltest.main()
