"""What MkDocs has to be told of this repository: pages outside of docs/, and their links.

On GitHub the pages link to each other, and to files beside them, by their places in the
repository. The site has docs/ at its top, the README as its start page, and takes the other
pages from where they lie. Links are rewritten from the one to the other; what leads
nowhere is left as it is, and fails the build (`--strict`).
"""

import argparse
import contextlib
import io
import os
import pathlib
import posixpath
import re
import sys
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

# Where files outside of docs/ stand on the site.
_MOVED = {
  'README.md': 'index.md',
  'LICENSE': 'LICENSE.txt',
  'docs_site/iframe-worker.js': 'assets/iframe-worker.js',
}
_BESIDE_DOCS = (
  'README.md',
  'BUILD.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'LICENSE',
  'benchmarks/README.md',
  'benchmarks/blind/*.md',
  'examples/**/README.md',
  'docs_site/iframe-worker.js',
  'docs_site/reference/*.md',
)
_DECISIONS = 'decisions/index.md'
_COMMAND_LINE = 'reference/command_line.md'
_LINK = re.compile(r'(?<=\]\()([^)\s#]+)')
# Code is not searched for links: fenced blocks, then spans on one line.
_CODE = re.compile(r'(^```.*?^```$|`[^`\n]+`)', flags=re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
  """Puts the decisions into the navigation."""
  pages = [{title: f'decisions/{name}'} for name, title in _decisions(config)]
  nav = [item for item in config.nav or () if item != {'Decisions': _DECISIONS}]
  config.nav = [*nav, {'Decisions': [_DECISIONS, *pages]}]
  return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
  """Adds what lies outside of docs/, and the pages that are made here."""
  root = _root(config)
  for pattern in _BESIDE_DOCS:
    for path in sorted(root.glob(pattern)):
      place = _place(path.relative_to(root).as_posix())
      files.append(File.generated(config, place, abs_src_path=str(path)))
  files.append(File.generated(config, _DECISIONS, content=_decisions_page(config)))
  files.append(File.generated(config, _COMMAND_LINE, content=_command_line_page(root)))
  return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
  """Rewrites the links of a page from the repository's places to those of the site."""
  if page.file.abs_src_path is None:  # made here
    return markdown
  here = pathlib.Path(page.file.abs_src_path).relative_to(_root(config)).as_posix()

  def rewritten(link: re.Match[str]) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[1]))
    for name in (target, f'{target}/README.md', f'{target}/index.md'):
      if files.get_file_from_path(_place(name)) is not None:
        return posixpath.relpath(_place(name), posixpath.dirname(page.file.src_uri) or '.')
    return link[1]

  parts = _CODE.split(markdown)
  return ''.join(part if n % 2 else _LINK.sub(rewritten, part) for n, part in enumerate(parts))


def _root(config: MkDocsConfig) -> pathlib.Path:
  return pathlib.Path(config.config_file_path).parent


def _place(path: str) -> str:
  """Returns where a file of the repository stands on the site."""
  return _MOVED.get(path) or path.removeprefix('docs/').removeprefix('docs_site/')


def _decisions(config: MkDocsConfig) -> Iterator[tuple[str, str]]:
  """Yields name and title of each decision: `0001-….md`, `0001: …`."""
  for path in sorted(pathlib.Path(config.docs_dir, 'decisions').glob('[0-9]*.md')):
    heading, _, _ = path.read_text(encoding='utf-8').partition('\n')
    yield path.name, heading.removeprefix('# ')


def _decisions_page(config: MkDocsConfig) -> str:
  lines = [f'- [{title}]({name})' for name, title in _decisions(config)]
  head = '# Decisions\n\nWhat a reader would ask about: context, decision, consequence.\n\n'
  return head + '\n'.join(lines) + '\n'


def _command_line_page(root: pathlib.Path) -> str:
  """Returns what `--help` says, of every command."""
  whole = _parser(root)
  [commands] = [a for a in whole._actions if isinstance(a, argparse._SubParsersAction)]
  about = {action.dest: action.help for action in commands._get_subactions()}
  lines = ['# Command line', '', 'What `python -m tf2verify COMMAND --help` prints.', '']
  for name, command in commands.choices.items():
    lines += [f'## {name}', '', f'{name}: {about[name]}.', '', '```text', _help(command), '```', '']
  return '\n'.join(lines)


def _help(command: argparse.ArgumentParser) -> str:
  width, os.environ['COLUMNS'] = os.environ.get('COLUMNS'), '96'
  try:
    return command.format_help().rstrip()
  finally:
    if width is None:
      del os.environ['COLUMNS']
    else:
      os.environ['COLUMNS'] = width


def _parser(root: pathlib.Path) -> argparse.ArgumentParser:
  # As the command that shows stored reports: those do not import TensorFlow.
  argv, sys.orig_argv = sys.orig_argv, [sys.executable, '-m', 'tf2verify', 'report']
  sys.path.insert(0, str(root))
  try:
    with contextlib.redirect_stderr(io.StringIO()):
      from tf2verify.commands.arguments import parser
  finally:
    sys.orig_argv = argv
    sys.path.remove(str(root))
  return parser()
