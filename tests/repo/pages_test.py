"""Tests of tests.repo.pages."""

from absl.testing import absltest

from tests.repo import pages

_PAGE = """
```python
# my_test.py
print(1)
```

```sh
python my_test.py  # runs it
# a comment
```
```text
1
```

```text
a drawing
```
"""


class BlocksTest(absltest.TestCase):
  def test_blocks(self):
    file, command, output, drawing = pages.blocks_of(_PAGE)
    self.assertEqual(file.file_name, 'my_test.py')
    self.assertEqual(file.line, 3)
    self.assertEqual(command.commands, ['python my_test.py'])
    self.assertEqual(command.output, '1\n')
    self.assertTrue(output.is_output)
    self.assertFalse(drawing.is_output)
    self.assertIsNone(file.output)

  def test_block_without_an_end(self):
    with self.assertRaisesRegex(ValueError, 'line 2 has no end'):
      pages.blocks_of('\n```sh\nmake\n')

  def test_every_page_is_found(self):
    found = pages.pages()
    for page in ('README.md', 'docs/stages.md', 'examples/gan/README.md', 'benchmarks/README.md'):
      self.assertIn(page, found)


class ChangedTest(absltest.TestCase):
  _FILES = {'one.py': 'a = 1\nb = 2\nb = 2\nc = 3\n'}

  def test_a_change(self):
    name, text = pages.changed('--- one.py\n+++ one.py\n b = 2\n-c = 3\n+c = 4\n', self._FILES)
    self.assertEqual(name, 'one.py')
    self.assertEqual(text, 'a = 1\nb = 2\nb = 2\nc = 4\n')

  def test_what_is_no_change_of_a_file_of_the_page(self):
    for head, body, said in (
      ('--- two.py\n+++ two.py\n', '-a = 1\n', 'no file of the page'),
      ('--- one.py\n+++ two.py\n', '-a = 1\n', 'no file of the page'),
      ('--- one.py\n+++ one.py\n', '-b = 2\n', 'other than once'),
      ('--- one.py\n+++ one.py\n', '-a = 2\n', 'other than once'),
      ('--- one.py\n+++ one.py\n', ' a = 1\n', 'other than once'),
      ('--- one.py\n+++ one.py\n', '-a = 1\nb = 2\n', 'lines of no kind'),
    ):
      with self.subTest(head + body), self.assertRaisesRegex(ValueError, said):
        pages.changed(head + body, self._FILES)


if __name__ == '__main__':
  absltest.main()
