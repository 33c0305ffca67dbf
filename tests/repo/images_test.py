"""Pictures and pages belong together."""

import pathlib
import posixpath
import re

from absl.testing import absltest

from tests.repo import pages

_IMAGES = 'docs/images'


def _shown(markdown, page):
  """Returns the pictures that a page shows, by their paths in the repository."""
  targets = re.findall(r'!\[[^\]]*\]\(([^)\s]+)\)', markdown)
  return {posixpath.normpath(posixpath.join(posixpath.dirname(page), t)) for t in targets}


def _problems(existing, shown):
  lost = [f'{path} is shown and does not exist' for path in sorted(shown - existing)]
  return lost + [f'no page shows {path}' for path in sorted(existing - shown)]


class ImagesTest(absltest.TestCase):
  def test_every_picture_is_shown_and_exists(self):
    existing = {
      path.relative_to(pages.REPOSITORY).as_posix()
      for path in pathlib.Path(pages.REPOSITORY, _IMAGES).iterdir()
    }
    shown = {path for page in pages.pages() for path in _shown(pages.prose(page), page)}
    self.assertNotEmpty(shown)
    self.assertEqual(_problems(existing, shown), [])

  def test_every_picture_says_what_it_shows(self):
    for page in pages.pages():
      self.assertNotIn('![](', pages.prose(page))

  def test_planted(self):
    shown = _shown('![a](images/a.png) and ![b](../x/b.png)', 'docs/page.md')
    self.assertEqual(shown, {'docs/images/a.png', 'x/b.png'})
    self.assertEqual(
      _problems({'docs/images/a.png', 'docs/images/c.png'}, shown),
      ['x/b.png is shown and does not exist', 'no page shows docs/images/c.png'],
    )


if __name__ == '__main__':
  absltest.main()
