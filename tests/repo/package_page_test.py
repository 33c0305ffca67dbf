"""The page of the package on an index: its links, with and without an address of the repository."""

import importlib
import sys
import types
from unittest import mock

from absl.testing import absltest

_README = """# Name
![A
picture](docs/one.png)

[A page](docs/page.md#part), [a site](https://example.org/), [below](#part), `code[0](x)`.

```python
print('[text](docs/page.md)')
```
"""


def _module():
  """Returns the module; hatchling, which it is for, need not be installed."""
  names = ('hatchling', 'hatchling.metadata', 'hatchling.metadata.plugin')
  stand_ins = {name: types.ModuleType(name) for name in names}
  interface = types.ModuleType('hatchling.metadata.plugin.interface')
  interface.MetadataHookInterface = object
  with mock.patch.dict(sys.modules, {**stand_ins, interface.__name__: interface}):
    try:
      return importlib.import_module('docs_site.package_page')
    finally:
      sys.modules.pop('docs_site.package_page', None)


class PackagePageTest(absltest.TestCase):
  def test_without_an_address_links_to_the_repository_are_text(self):
    page = _module().package_page(_README, '')
    self.assertEqual(
      page,
      '# Name\nA page, [a site](https://example.org/), [below](#part), `code[0](x)`.\n\n'
      "```python\nprint('[text](docs/page.md)')\n```\n",
    )

  def test_with_an_address_they_lead_there(self):
    page = _module().package_page(_README, 'https://example.org/one/')
    self.assertIn('![A\npicture](https://example.org/one/raw/main/docs/one.png)', page)
    self.assertIn('[A page](https://example.org/one/blob/main/docs/page.md#part), [a site](', page)
    self.assertIn("print('[text](docs/page.md)')", page)


if __name__ == '__main__':
  absltest.main()
