"""Writes what the commands of pages print into the pages, where it is no longer what they show.

    python -m tests.repo.write_outputs [PAGE ...]

runs the blocks as `docs_test.py` does. What it has written is to be read before it is committed:
an output that has got worse is a fault, not a page to be brought up to date.
"""

import re
import sys

from tests.repo import docs_test, pages
from tf2verify.sides.process import logical_devices


class _Writer(docs_test.PageTest):
  """Collects the outputs that differ, instead of failing."""

  outputs: dict[int, str]

  def _assert_output(self, block: pages.Block, output: str) -> None:
    if block.output is None:
      return
    words, shown = docs_test._words(output, block.output)
    if words != shown:
      self.outputs[block.line] = output


def _with_outputs(page: str, outputs: dict[int, str]) -> str:
  """Returns a page whose blocks, by their first line, have other outputs."""
  lines = pages.text(page).splitlines()
  for start in sorted(outputs, reverse=True):
    end = next(number for number in range(start - 1, len(lines)) if lines[number] == '```')
    close = next(number for number in range(end + 2, len(lines)) if lines[number] == '```')
    lines[end + 2 : close] = outputs[start].strip('\n').splitlines()
  return '\n'.join(re.sub(r'\s+$', '', line) for line in lines) + '\n'


def main() -> int:
  """Writes pages; returns 1 where a block could not be run."""
  logical_devices.ask_for_two_cpus()  # as the command line does
  failed = 0
  for page in sys.argv[1:] or pages.pages():
    writer = _Writer('run_page')
    writer.outputs = {}
    try:
      writer.run_page(page)
    except AssertionError as error:
      failed = 1
      print(f'{page}: {error}')
    finally:
      writer.doCleanups()
    if writer.outputs:
      (pages.REPOSITORY / page).write_text(_with_outputs(page, writer.outputs), encoding='utf-8')
      print(f'{page}: wrote the outputs of the blocks at {sorted(writer.outputs)}', flush=True)
  return failed


if __name__ == '__main__':
  sys.exit(main())
