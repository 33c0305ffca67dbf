"""The report as JUnit's XML, which CI systems show."""

from collections.abc import Iterable
from xml.etree import ElementTree

from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.records.verdict_text import failure_text
from tf2verify.report.headline import message
from tf2verify.safe_text import safe, safe_line, safe_values

_SKIPPED = (Status.BLOCKED, Status.NOT_APPLICABLE)


def junit_text(verdicts: Iterable[CaseVerdict]) -> str:
  """Returns one test suite per case, one test per stage.

  A stage that is INCONCLUSIVE counts as failed, as it does in a test; BLOCKED and
  NOT_APPLICABLE are skipped, with the reason. Accepted causes, and blind spots of a stage that
  passed, are its output. The message of a failure is the cause on one line,
  as for the tests of pytest and absl; its text is the report.
  """
  root = ElementTree.Element('testsuites', name='tf2verify')
  for verdict in map(safe_values, verdicts):
    failed = sum(s.status in (Status.FAILED, Status.INCONCLUSIVE) for s in verdict.stages)
    suite = ElementTree.SubElement(
      root,
      'testsuite',
      name=safe_line(f'{verdict.module}::{verdict.case}'),
      tests=str(len(verdict.stages)),
      failures=str(failed),
      errors=str(sum(stage.status is Status.ERROR for stage in verdict.stages)),
      skipped=str(sum(stage.status in _SKIPPED for stage in verdict.stages)),
      time=f'{verdict.seconds:.3f}',
    )
    for stage in verdict.stages:
      _add_stage(suite, verdict, stage)
  ElementTree.indent(root)
  return ElementTree.tostring(root, encoding='unicode', xml_declaration=True) + '\n'


def remarks(stage: StageVerdict) -> list[str]:
  """Returns what a test of a stage says besides its finding: accepted causes and blind spots."""
  said = [cause.to_text() for cause in stage.accepted]
  if stage.status is Status.PASSED:  # the text of a failure has them
    said += [f'blind spot: {text}' for text in stage.blind_spots]
  return said


def _add_stage(suite: ElementTree.Element, verdict: CaseVerdict, stage: StageVerdict) -> None:
  test = ElementTree.SubElement(
    suite,
    'testcase',
    classname=safe_line(f'{verdict.module}::{verdict.case}'),
    name=safe_line(stage.stage),
    time=f'{stage.seconds:.3f}',
  )
  found_out = remarks(stage)
  if found_out:
    ElementTree.SubElement(test, 'system-out').text = safe('\n'.join(found_out), longest=None)
  if stage.status in _SKIPPED:
    ElementTree.SubElement(test, 'skipped', message=stage.reason)
  elif stage.status is not Status.PASSED:
    kind = 'error' if stage.status is Status.ERROR else 'failure'
    found = ElementTree.SubElement(test, kind, message=message(stage), type=stage.status.value)
    found.text = safe(failure_text(verdict, stage), longest=None)
