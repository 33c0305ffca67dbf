"""The files of a run: one JSON per case, and a Markdown summary."""

import os
import re
import uuid
from collections.abc import Sequence

from tf2verify.errors import UsageError
from tf2verify.records.adequacy import AdequacyReport
from tf2verify.records.case_proof import CaseProof
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict
from tf2verify.records.verdict_json import case_from_json
from tf2verify.records.verdict_text import accepted_lines, compared_and_proven, failure_text
from tf2verify.report.proof_report import proof_json
from tf2verify.safe_text import safe, safe_line, safe_values

ENVIRONMENT_VARIABLE = 'TF2VERIFY_REPORT_DIR'
SUMMARY = 'summary.md'
_ADEQUACY = '.adequacy.json'
_PROOF = '.proof.json'
_NAMED_BY = '--report_dir names a folder'
_MARKS = {
  Status.PASSED: '✅',
  Status.NOT_APPLICABLE: '➖',
  Status.INCONCLUSIVE: '❔',
  Status.BLOCKED: '⏸',
  Status.FAILED: '❌',
  Status.ERROR: '💥',
}


def default_report_dir() -> str:
  """Returns the folder that the environment names; '' without one."""
  return os.environ.get(ENVIRONMENT_VARIABLE, '')


def write_whole(path: str, text: str, named_by: str = _NAMED_BY) -> None:
  """Writes a file whole or not at all.

  Args:
    path: of the file; its folder is made.
    text: what it is to hold.
    named_by: what a reader of the error is told to fix.

  Raises:
    UsageError: it cannot be written.
  """
  directory = os.path.dirname(path) or '.'
  try:
    os.makedirs(directory, exist_ok=True)
    # Not by mkstemp, whose files nobody else may read.
    temporary = os.path.join(directory, f'.writing-{uuid.uuid4().hex}')
    with open(temporary, 'x', encoding='utf-8') as file:
      file.write(safe(text, longest=None))
    os.replace(temporary, path)
  except OSError as error:
    raise UsageError(
      f'could not write the report {path}: {error.strerror}; {named_by} that can be made and '
      'written'
    ) from error


def case_file_name(verdict: CaseVerdict | AdequacyReport | CaseProof) -> str:
  """Returns the name of a case's file: module and class, so that equal class names stay apart."""
  module = re.sub(r'\.py$', '', verdict.module)
  return re.sub(r'[^A-Za-z0-9_.-]+', '.', f'{module}.{verdict.case}').strip('.') + '.json'


def write_case(verdict: CaseVerdict, directory: str) -> str:
  """Writes one case's JSON.

  Returns:
    The path.

  Raises:
    UsageError: the folder cannot be written.
  """
  return _written(directory, case_file_name(verdict), verdict.to_json())


def write_adequacy(report: AdequacyReport, directory: str) -> str:
  """Writes one case's adequacy as JSON; see `write_case`."""
  name = case_file_name(report).removesuffix('.json') + _ADEQUACY
  return _written(directory, name, report.to_json())


def write_proof(proof: CaseProof, directory: str) -> str:
  """Writes what of one case is proven as JSON; see `write_case`."""
  name = case_file_name(proof).removesuffix('.json') + _PROOF
  return _written(directory, name, proof_json(proof))


def _written(directory: str, name: str, text: str) -> str:
  path = os.path.join(directory, name)
  write_whole(path, text + '\n')
  return path


def case_files(paths: Sequence[str]) -> list[str]:
  """Returns the files of cases: a path that is a folder stands for those in it, by name.

  Raises:
    UsageError: a folder has none.
  """
  found = []
  for path in paths:
    if not os.path.isdir(path):
      found.append(path)
      continue
    names = sorted(name for name in os.listdir(path) if name.endswith('.json'))
    cases = [os.path.join(path, name) for name in names if not name.endswith((_ADEQUACY, _PROOF))]
    if not cases:
      raise UsageError(f'{path} has no JSON report of a case; --report_dir writes one per case')
    found += cases
  return found


def read_case(path: str) -> CaseVerdict:
  """Returns the verdict in a file that `write_case` has written.

  Raises:
    UsageError: the file cannot be read, or is not a whole report of this schema version.
  """
  try:
    with open(path, encoding='utf-8') as file:
      text = file.read()
  except (OSError, UnicodeDecodeError) as error:
    why = str(error) if isinstance(error, UnicodeDecodeError) else error.strerror
    raise UsageError(
      f'could not read the report {path}: {why}; --report_dir writes one JSON file per case'
    ) from error
  try:
    return case_from_json(text)
  except UsageError as error:
    raise UsageError(f'{path} {error}') from error


def write_summary(verdicts: Sequence[CaseVerdict], directory: str) -> str:
  """Writes the Markdown summary of a run, for a pull request.

  Returns:
    The path.

  Raises:
    UsageError: the folder cannot be written.
  """
  path = os.path.join(directory, SUMMARY)
  write_whole(path, summary_text(verdicts))
  return path


def summary_text(verdicts: Sequence[CaseVerdict]) -> str:
  """Returns a table of cases by stages, and each first failure in full."""
  verdicts = [safe_values(verdict) for verdict in verdicts]
  stages = list(dict.fromkeys(stage.stage for verdict in verdicts for stage in verdict.stages))
  passed = sum(verdict.status is Status.PASSED for verdict in verdicts)
  lines = [
    '# tf2verify',
    '',
    f'{passed} of {len(verdicts)} cases passed.',
    '',
    '| case | ' + ' | '.join(map(_cell, stages)) + ' | seconds |',
    '| --- |' + ' --- |' * (len(stages) + 1),
  ]
  for verdict in verdicts:
    by_name = {stage.stage: stage for stage in verdict.stages}
    cells = []
    for name in stages:
      stage = by_name.get(name)
      if stage is None:
        cells.append('not run')
        continue
      word = stage.status.value.lower().replace('_', ' ')
      count = f', {compared_and_proven(stage)}' if stage.status is Status.PASSED else ''
      cells.append(_cell(f'{_MARKS[stage.status]} {word}{count}'))
    lines.append(f'| {_cell(verdict.case)} | ' + ' | '.join(cells) + f' | {verdict.seconds:.1f} |')
  for verdict in verdicts:
    if verdict.first_failure is not None:
      text = failure_text(verdict, verdict.first_failure).replace('```', "'''")
      lines += ['', f'## {safe_line(verdict.case)}', '', '```text', text, '```']
  for verdict in verdicts:
    accepted = [line.text for line in accepted_lines(verdict.stages)]
    if accepted:
      lines += ['', f'Accepted by {safe_line(verdict.case)}:', '']
      lines += [f'- {safe_line(text)}' for text in accepted]
  if verdicts and verdicts[0].environment:
    versions = ', '.join(f'{name} {version}' for name, version in verdicts[0].environment)
    lines += ['', safe_line(versions)]
  return '\n'.join(lines) + '\n'


def _cell(text: str) -> str:
  """Returns a name as a cell of a Markdown table."""
  return safe_line(text).replace('|', '\\|')
