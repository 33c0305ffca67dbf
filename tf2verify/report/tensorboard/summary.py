"""A case as Markdown."""

import re
from collections.abc import Sequence

from tf2verify.records.verdict import CaseVerdict
from tf2verify.records.verdict_text import case_line, failure_text, outcome_text
from tf2verify.report.html.finding import finding_of

# What Markdown, or the HTML that it may hold, would take for a mark.
_MARKS = re.compile(r'[\\`*<>\[\]|&!]')


def summary_of(case: CaseVerdict, remarks: Sequence[str]) -> str:
  """Returns verdict, cause, a table of the stages and the first failure in full.

  Args:
    case: the verdict.
    remarks: what the charts cannot show.
  """
  lines = [f'**{case.status.value}** {_literal(case_line(case))}', '']
  found = finding_of(case)
  if found is not None:
    lines += [f'First stage that did not pass: {found.stage} ({found.status.value})', '']
    lines += [f'- {cause.label}: {_literal(cause.text)}' for cause in found.causes]
    if found.without_cause:
      lines.append(f'- {_literal(found.without_cause)}')
    lines.append('')
  lines += ['| stage | status | found | seconds |', '| --- | --- | --- | --- |']
  lines += [
    f'| {stage.number} {stage.stage} | {stage.status.value} | {_literal(outcome_text(stage))} | '
    f'{stage.seconds:.1f} |'
    for stage in case.stages
  ]
  lines += ['', *(f'- {_literal(remark)}' for remark in remarks)]
  if case.first_failure is not None:
    text = failure_text(case, case.first_failure).replace('```', "'''")
    lines += ['', '```text', text, '```']
  versions = ', '.join(f'{name} {version}' for name, version in case.environment)
  return '\n'.join([*lines, '', _literal(versions)]).strip() + '\n'


def _literal(text: str) -> str:
  """Returns text that Markdown shows as it is, on one line."""
  return _MARKS.sub(lambda mark: f'&#{ord(mark[0])};', ' '.join(text.split()))
