"""Where and when a page is written: the project, its commit, the time."""

import os
import re
import subprocess
import time

# What a service of CI calls the commit, where there is no git.
_COMMITS = ('GITHUB_SHA', 'CI_COMMIT_SHA')
_NAME = re.compile(r"""^\[project\]\n(?:(?!\[).*\n)*?name\s*=\s*["']([^"']+)["']""", re.MULTILINE)
_SECONDS = 5
_SHORT = 10


def origin() -> tuple[tuple[str, str], ...]:
  """Returns what is known of `project`, `commit` and `written`, of the working folder, by name."""
  top = _git('rev-parse', '--show-toplevel')
  commit = _git('rev-parse', 'HEAD') or next(filter(None, map(os.environ.get, _COMMITS)), '')
  commit = commit[:_SHORT]
  if commit and _git('status', '--porcelain', '--untracked-files=no'):
    commit += ', with changes since'
  found = (
    ('project', _project(top or os.getcwd())),
    ('commit', commit),
    ('written', time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())),
  )
  return tuple((name, value) for name, value in found if value)


def _project(folder: str) -> str:
  """Returns the name in pyproject.toml of a folder, or that of the folder."""
  try:
    with open(os.path.join(folder, 'pyproject.toml'), encoding='utf-8') as file:
      named = _NAME.search(file.read())
  except (OSError, UnicodeDecodeError):
    named = None
  return named[1] if named else os.path.basename(folder)


def _git(*words: str) -> str:
  """Returns what git says of the working folder; '' without git, or outside of a repository."""
  try:
    done = subprocess.run(
      ['git', *words], capture_output=True, text=True, check=False, timeout=_SECONDS
    )
  except (OSError, subprocess.TimeoutExpired):
    return ''
  return done.stdout.strip() if done.returncode == 0 else ''
