"""Verdicts as a notebook shows them: a small table, and the first failure below it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from tf2verify.records.status import Status
from tf2verify.records.verdict_text import case_line, failure_text, outcome_text, stage_text
from tf2verify.safe_text import safe, safe_line

if TYPE_CHECKING:
  from tf2verify.records.verdict import CaseVerdict, StageVerdict

# They show on a light and on a dark page; the word is there as well.
_COLORS = {
  Status.PASSED: '#2e8540',
  Status.INCONCLUSIVE: '#b26a00',
  Status.FAILED: '#d13438',
  Status.ERROR: '#d13438',
}
_GREY = '#808080'


def case_html(case: CaseVerdict) -> str:
  """Returns a case as HTML: a row for each stage, its first failure in full."""
  rows = ''.join(_row(stage) for stage in case.stages)
  text = f'<p><b>{_escaped(case_line(case))}</b></p><table>{rows}</table>'
  if case.first_failure is not None:
    text += _preformatted(failure_text(case, case.first_failure))
  return f'<div>{text}</div>'


def stage_html(stage: StageVerdict) -> str:
  """Returns a stage as HTML: its row and, where there is more to say, the text of it."""
  text = f'<table>{_row(stage)}</table>'
  said = stage_text(stage)
  return f'<div>{text}{_preformatted(said) if len(said.splitlines()) > 1 else ""}</div>'


def _row(stage: StageVerdict) -> str:
  color = _COLORS.get(stage.status, _GREY)
  status = f'<span style="color:{color};font-weight:bold">{stage.status.value}</span>'
  words = (str(stage.number), _escaped(stage.stage), status, _escaped(outcome_text(stage)))
  cells = ''.join(f'<td style="text-align:left">{word}</td>' for word in words)
  return f'<tr>{cells}<td>{stage.seconds:.1f}&nbsp;s</td></tr>'


def _escaped(text: str) -> str:
  return html.escape(safe_line(text))


def _preformatted(text: str) -> str:
  return f'<pre style="white-space:pre-wrap">{html.escape(safe(text, longest=None))}</pre>'
