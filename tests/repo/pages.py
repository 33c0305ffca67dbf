"""The Markdown pages of the project, and what is in them."""

import dataclasses
import pathlib
import re
from collections.abc import Mapping

REPOSITORY = pathlib.Path(__file__).parents[2]
_PATTERNS = (
  *('*.md', 'docs/**/*.md', 'examples/**/README.md'),
  *('benchmarks/README.md', 'benchmarks/blind/*.md'),
)


@dataclasses.dataclass(frozen=True)
class Block:
  """A fenced block.

  Attributes:
    language: as written behind the fence; '' without one.
    text: its lines.
    line: the number of its first line in the page, from 1.
    output: the text block directly behind it; None without one.
    is_output: whether it is the output of the block before.
  """

  language: str
  text: str
  line: int
  output: str | None = None
  is_output: bool = False

  @property
  def file_name(self) -> str:
    """The file that the block is: its first line is a comment with that name; '' for none."""
    found = re.match(r'# (\w+\.py)\n', self.text)
    return found[1] if found else ''

  @property
  def commands(self) -> list[str]:
    """The lines of a shell block without comments."""
    lines = [line.partition('  #')[0].strip() for line in self.text.splitlines()]
    return [line for line in lines if line and not line.startswith('#')]


def pages() -> list[str]:
  """Returns the paths of all pages, relative to the repository."""
  found = {path for pattern in _PATTERNS for path in REPOSITORY.glob(pattern)}
  return sorted(str(path.relative_to(REPOSITORY)) for path in found)


def text(page: str) -> str:
  """Returns the text of a page."""
  return (REPOSITORY / page).read_text(encoding='utf-8')


def blocks(page: str) -> list[Block]:
  """Returns the fenced blocks of a page in order."""
  return blocks_of(text(page))


def blocks_of(markdown: str) -> list[Block]:
  """Returns the fenced blocks of a text in order.

  Raises:
    ValueError: a block has no end.
  """
  found: list[Block] = []
  start, language, behind = 0, '', -1
  lines = markdown.splitlines()
  for number, line in enumerate(lines, 1):
    if not line.startswith('```'):
      continue
    if not start:
      start, language = number, line[3:].strip()
      continue
    inside = '\n'.join(lines[start : number - 1]) + '\n'
    is_output = language == 'text' and behind == start - 1
    if is_output:
      found[-1] = dataclasses.replace(found[-1], output=inside)
    found.append(Block(language, inside, start + 1, is_output=is_output))
    start, behind = 0, number
  if start:
    raise ValueError(f'the block of line {start} has no end')
  return found


def changed(diff: str, files: Mapping[str, str]) -> tuple[str, str]:
  """Returns the name of the file that a diff is about, and its text with the change.

  Args:
    diff: `--- FILE`, `+++ FILE`, then lines that begin with ` `, `-` or `+`, without numbers of
      lines: what is before the change stands in the file once.
    files: the text of each file.

  Raises:
    ValueError: it is about no such file, or what is before the change is not there once.
  """
  first, second, *lines = diff.splitlines()
  name = first.removeprefix('--- ')
  if name not in files or second != f'+++ {name}':
    raise ValueError(f'the diff of {name} changes no file of the page')
  if unknown := [line for line in lines if line[:1] not in (' ', '-', '+')]:
    raise ValueError(f'the diff of {name} has lines of no kind: {unknown}')
  before = ''.join(f'{line[1:]}\n' for line in lines if line[0] != '+')
  after = ''.join(f'{line[1:]}\n' for line in lines if line[0] != '-')
  if before == after or files[name].count(before) != 1:
    raise ValueError(f'the diff of {name} starts from lines that are there other than once')
  return name, files[name].replace(before, after)


def prose(page: str) -> str:
  """Returns a page without its fenced blocks."""
  return re.sub(r'^```.*?^```$', '', text(page), flags=re.MULTILINE | re.DOTALL)


def links(page: str) -> list[str]:
  """Returns the targets of the links that stay within the repository."""
  targets = re.findall(r'\]\(([^)\s]+)\)', prose(page))
  return [target for target in targets if not re.match(r'[a-z]+:', target)]


def anchors(page: str) -> set[str]:
  """Returns the anchors of a page's headings, as GitHub makes them."""
  headings = re.findall(r'^#+ (.*)$', prose(page), flags=re.MULTILINE)
  return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}
