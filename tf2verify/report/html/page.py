"""The page: an overview of all cases, and each case in detail."""

import base64
import dataclasses
import hashlib
import importlib.resources
import importlib.util
from collections.abc import Sequence

from tf2verify.errors import EnvironmentProblem
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.records.verdict_text import (
  differing_text,
  figure_text,
  notes_text,
  outcome_text,
)
from tf2verify.report.html import words
from tf2verify.report.html.figures import Figure, figures_of
from tf2verify.report.html.finding import FindingView, findings_of
from tf2verify.report.html.origin import origin
from tf2verify.report.html.packing import packed
from tf2verify.report.html.tables import case_tables, tensor_counts, variable_counts
from tf2verify.report.html.unchecked import Unchecked, unchecked
from tf2verify.report.report_dir import write_whole
from tf2verify.safe_text import safe_values

# Figures take about 40 ms and 10 kB each: those of the first cases that are not well are
# drawn, the numbers of all are there.
MOST_FIGURES = 150
MOST_FIGURE_BYTES = 3_000_000
_NEEDED = ('jinja2', 'matplotlib')
_WRONG = (Status.ERROR, Status.FAILED, Status.INCONCLUSIVE)


@dataclasses.dataclass(frozen=True)
class StageView:
  """A rung, for the ladder of a case and its cell in the overview."""

  name: str  # the stage
  number: int  # its rung
  status: Status | None  # how it ended; None where it was not run
  sign: str  # of the status
  word: str  # the status, in small letters
  proves: str  # what it is for
  outcome: str = ''  # what was compared, or why nothing was
  count: str = ''  # how many differ, or were compared; '' for none
  seconds: float = 0.0  # wall time
  notes: tuple[str, ...] = ()  # of the verdict, blind spots marked as such
  figures: tuple[tuple[str, str, str], ...] = ()  # numbers of both sides: what, tf1, tf2
  tables: tuple[str, ...] = ()  # names of the tables that the stage has in the page
  # Of the operations behind what was compared, how many are proven, how many there are, and the
  # text that says so; None where the graphs were not related.
  proven: tuple[int, int, str] | None = None


@dataclasses.dataclass(frozen=True)
class TableView:
  """A table that the page's script draws."""

  name: str  # in the packed data
  rows: int  # how many
  caption: str  # what it shows


@dataclasses.dataclass(frozen=True)
class CaseView:
  """A case, as the page shows it."""

  identifier: str  # of its parts in the page: `case-3`
  name: str  # the class
  module: str  # its file or module
  status: Status  # the gravest of its stages
  sign: str  # of the status
  word: str  # the status, in small letters
  severity: int  # the order of the status, the gravest the highest
  seconds: float  # wall time
  run_again: str  # the command; '' where nothing is wrong
  stages: tuple[StageView, ...]  # in ladder order, one per column of the overview
  # What is wrong, a stage that failed at a time; empty where nothing is.
  findings: tuple[FindingView, ...]
  figures: tuple[Figure, ...]  # those drawn, and those that are not
  tables: dict[str, TableView]  # by name
  variables: str  # how many are alike, and how many are not and why
  has_other_variables: bool  # whether some are not
  counts: tuple[str, ...]  # what the table of tensors holds, a line a stage
  unchecked: tuple[Unchecked, ...]  # what was not checked
  environment: tuple[tuple[str, str], ...]  # where it is another than that of the first case
  changes: tuple[str, ...]  # by which stages other tolerances than those of the run changed
  data: str  # the tables, packed


@dataclasses.dataclass(frozen=True)
class WrongGroup:
  """Cases in which the same is wrong."""

  headline: str  # the likely cause, or what differs
  # Those with that cause, each with its finding; one without a known cause stands alone.
  found: tuple[tuple[CaseView, FindingView], ...]


def require() -> None:
  """Checks that a page can be made, before models are run for it.

  Raises:
    EnvironmentProblem: Jinja2 or matplotlib is not installed.
  """
  missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
  if missing:
    raise EnvironmentProblem(
      f'an HTML report needs {" and ".join(missing)}, which this Python does not have: '
      "pip install 'tf2verify[report]'"
    )


def page(
  cases: Sequence[CaseVerdict],
  changes: Sequence[Sequence[str]] = (),
  about: Sequence[tuple[str, str]] = (),
) -> str:
  """Returns the page of a run, which loads nothing and can be sent as one file.

  The same verdicts give the same text.

  Args:
    cases: in the order of the run.
    changes: what other tolerances changed, of each case; empty where none were given.
    about: what is known of the project and the time, by name; see `origin`.

  Raises:
    EnvironmentProblem: Jinja2 or matplotlib is not installed.
  """
  require()
  import jinja2

  cases = [safe_values(case) for case in cases]
  views = _views(cases, safe_values(list(changes)))
  environment = jinja2.Environment(
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
    loader=jinja2.FunctionLoader(_part),
  )
  style, script = _part('page.css'), _part('page.js')
  text: str = environment.get_template('page.html.j2').render(
    cases=views,
    columns=views[0].stages if views else (),
    counts=[
      (words.SIGNS[status], status.value, words.word(status), count)
      for status in (*_WRONG, Status.PASSED, Status.BLOCKED, Status.NOT_APPLICABLE)
      if (count := sum(view.status is status for view in views))
    ],
    groups=_groups(views),
    about={'project': '', 'commit': '', 'written': '', **dict(safe_values(list(about)))},
    environment=cases[0].environment if cases else (),
    legend=[(words.SIGNS[status], words.word(status), status.value) for status in Status],
    not_run=words.NOT_RUN_SIGN,
    style=style,
    script=script,
    style_hash=_hash(style),
    script_hash=_hash(script),
  )
  return text


def write_page(
  path: str, cases: Sequence[CaseVerdict], changes: Sequence[Sequence[str]] = ()
) -> None:
  """Writes the page of a run, whole or not at all.

  Raises:
    EnvironmentProblem: Jinja2 or matplotlib is not installed.
    UsageError: the file cannot be written.
  """
  write_whole(path, page(cases, changes, origin()) + '\n', '--html names a file')


def _part(name: str) -> str:
  text = importlib.resources.files('tf2verify.report.html').joinpath(name).read_text('utf-8')
  return text.strip()


def _hash(text: str) -> str:
  """Returns what the page's policy calls a style or script by: nothing else may run."""
  return 'sha256-' + base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')


def _views(cases: Sequence[CaseVerdict], changes: Sequence[Sequence[str]]) -> tuple[CaseView, ...]:
  figures = _figures(cases)
  columns = list(words.PROVES)
  columns += dict.fromkeys(s.stage for case in cases for s in case.stages if s.stage not in columns)
  views = []
  for position, case in enumerate(cases):
    tables = case_tables(case)
    views.append(
      CaseView(
        identifier=f'case-{position + 1}',
        name=case.case,
        module=case.module,
        status=case.status,
        sign=words.SIGNS[case.status],
        word=words.word(case.status),
        severity=list(Status).index(case.status),
        seconds=case.seconds,
        run_again=case.run_again,
        stages=tuple(_stages(case, columns, list(tables))),
        findings=findings_of(case),
        figures=figures[position],
        tables={n: TableView(n, len(table.rows), table.caption) for n, table in tables.items()},
        variables=variable_counts(case)[0],
        has_other_variables=variable_counts(case)[1] > 0,
        counts=tensor_counts(case),
        unchecked=unchecked(case),
        environment=case.environment if case.environment != cases[0].environment else (),
        changes=tuple(changes[position]) if changes else (),
        data=packed(tables),
      )
    )
  return tuple(views)


def _stages(case: CaseVerdict, columns: Sequence[str], tables: Sequence[str]) -> list[StageView]:
  by_name = {stage.stage: stage for stage in case.stages}
  return [
    _stage(by_name[name], tables)
    if name in by_name
    else StageView(
      name, number, None, words.NOT_RUN_SIGN, 'not run', words.PROVES.get(name, ''), 'not run'
    )
    for number, name in enumerate(columns, 1)
  ]


def _stage(stage: StageVerdict, tables: Sequence[str]) -> StageView:
  count = ''
  if stage.differences:
    count = differing_text(stage)
  elif stage.compared.tensors and stage.status in (Status.PASSED, Status.INCONCLUSIVE):
    tensors, noun = stage.compared.tensors, stage.compared.noun
    count = f'{tensors:,} {noun if tensors != 1 else noun.removesuffix("s")}'
  own = (f'{stage.stage}-', f'random-{stage.stage}-')
  return StageView(
    name=stage.stage,
    number=stage.number,
    status=stage.status,
    sign=words.SIGNS[stage.status],
    word=words.word(stage.status),
    proves=words.PROVES.get(stage.stage, ''),
    outcome=outcome_text(stage),
    count=count,
    seconds=stage.seconds,
    notes=tuple(line.removeprefix('note: ') for line in notes_text(stage)),
    figures=tuple(
      (figure_text(stage, known), f'{known.tf1:.8g}', f'{known.tf2:.8g}') for known in stage.figures
    ),
    tables=tuple(name for name in tables if name.startswith(own)),
    proven=_proven(stage),
  )


def _proven(stage: StageVerdict) -> tuple[int, int, str] | None:
  found = stage.proven
  if found is None or found.reason or not found.tf2_operations:
    return None
  tested = found.tf2_operations - found.tf2_proven
  text = f'{found.tf2_proven:,} operations of the port proven, {tested:,} only tested'
  return found.tf2_proven, found.tf2_operations, text


def _figures(cases: Sequence[CaseVerdict]) -> list[tuple[Figure, ...]]:
  """Draws the figures of the cases that are not well, then of the others, within bounds."""
  found = [figures_of(case, draws=False) for case in cases]
  count = size = 0
  order = sorted(range(len(cases)), key=lambda position: cases[position].status not in _WRONG)
  for position in order:
    if not found[position]:
      continue
    if count >= MOST_FIGURES or size >= MOST_FIGURE_BYTES:
      break
    found[position] = figures_of(cases[position], draws=True)
    count += len(found[position])
    size += sum(len(figure.svg) for figure in found[position])
  return found


def _groups(views: Sequence[CaseView]) -> list[WrongGroup]:
  """Returns the cases that are not well: those with the same cause together, then the others.

  Without a cause nothing tells that two cases have the same mistake.
  """
  groups: dict[str, list[tuple[CaseView, FindingView]]] = {}
  alone: list[WrongGroup] = []
  for view in views:
    for finding in view.findings:
      if finding.causes:
        groups.setdefault(finding.headline, []).append((view, finding))
      else:
        alone.append(WrongGroup(finding.headline, ((view, finding),)))
  return [WrongGroup(headline, tuple(found)) for headline, found in groups.items()] + alone
