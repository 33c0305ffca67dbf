"""The README as a package index shows it: hatchling asks for it when it builds the package.

The README links to pages of the repository by their places in it. An index knows no such places:
links lead to the repository's address, `urls.Repository` of pyproject.toml. As long as there is
none, they are text, and pictures are left out: nothing on the page leads nowhere.
"""

import pathlib
import re
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = re.compile(r'!\[[^\]]*\]\((?!https?:)([^)\s]+)\)\n*')
_LINK = re.compile(r'(?<![!\w])\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)')
_CODE = re.compile(r'(^```.*?^```$)', re.MULTILINE | re.DOTALL)


class PackagePage(MetadataHookInterface):
  """Fills the field `readme`."""

  def update(self, metadata: dict[str, Any]) -> None:
    """Sets the readme; called by hatchling."""
    readme = pathlib.Path(self.root, 'README.md').read_text(encoding='utf-8')
    text = package_page(readme, metadata.get('urls', {}).get('Repository', ''))
    metadata['readme'] = {'content-type': 'text/markdown', 'text': text}


def package_page(readme: str, repository: str) -> str:
  """Returns a README without links to places beside it.

  Args:
    readme: in Markdown.
    repository: its address, as GitHub and GitLab have it; '' for none.
  """
  # Code stays as it is: re.split keeps what it splits at, at the odd positions.
  parts = _CODE.split(readme)
  parts[::2] = [_with_addresses(part, repository) for part in parts[::2]]
  return ''.join(parts)


def _with_addresses(text: str, repository: str) -> str:
  if not repository:
    return _LINK.sub(r'\1', _IMAGE.sub('', text))
  base = repository.rstrip('/')
  text = _IMAGE.sub(lambda image: image[0].replace(image[1], f'{base}/raw/main/{image[1]}'), text)
  return _LINK.sub(rf'[\1]({base}/blob/main/\2)', text)
