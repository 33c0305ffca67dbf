"""Why a stage failed."""

import dataclasses
import enum
from typing import Any

from tf2verify.records.accepted import Change
from tf2verify.records.experiment import Experiment, Outcome
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import VARIABLE

_MOST_LINES = 3


class GraphAspect(enum.Enum):
  """How two operations, or their surroundings, differ."""

  TYPE = 'type'
  ATTRIBUTE = 'attribute'
  CONSTANT = 'constant'
  MISSING = 'missing in tf2'
  EXTRA = 'extra in tf2'
  REPLACED = 'replaced'
  ORDER = 'order of inputs'
  WIRING = 'wiring'
  GRADIENT = 'gradient'
  CORRECTED = 'corrected'  # found by an edit of the port alone; `tf1_value` says what it is


@dataclasses.dataclass(frozen=True)
class GraphDifference:
  """One difference between the two graphs.

  Attributes:
    aspect: what kind of difference it is.
    op: the operation concerned, by its tf1 name where it has one.
    op_type: its type.
    what: the attribute's or input's name; of an operation that the port lacks, what it brings in
      (`adds net/block/add`); empty for other whole operations.
    tf1: the tf1 side, as text.
    tf2: the tf2 side, as text.
    tf1_value: the plain value of `tf1`: a number, a string, a tuple, the types of
      operations (one type for `WIRING` and `ORDER`: of what is read); None where there
      is none.
    tf2_value: the same of the tf2 side.
    elsewhere: of operations that one side has here, and the other one at another place: which; ''
      where it has them nowhere.
    alike: of operations that one side seems to lack: an operation of their type that it has behind
      this place, without a counterpart; of an output that is another tensor in tf1, the port's
      counterpart of that; '' where there is none.
    respelled: whether operations that one side seems to lack read variables that the other side
      holds in another layout: it computes with these in its own way.
  """

  aspect: GraphAspect
  op: str
  op_type: str
  what: str
  tf1: str
  tf2: str
  tf1_value: Any = None
  tf2_value: Any = None
  elsewhere: str = ''
  alike: str = ''
  respelled: bool = False


@dataclasses.dataclass(frozen=True)
class Statistics:
  """A tensor in a few numbers.

  Attributes:
    shape: its shape.
    dtype: numpy's name of its dtype.
    minimum: least finite element; NaN without any.
    maximum: greatest finite element.
    mean: of the finite elements.
    zeros: share of elements that are 0.
    non_finite: number of NaN and infinite elements.
  """

  shape: tuple[int, ...]
  dtype: str
  minimum: float
  maximum: float
  mean: float
  zeros: float
  non_finite: int


@dataclasses.dataclass(frozen=True)
class Source:
  """An operation whose inputs agree and whose outputs do not, or a variable with a different start.

  Attributes:
    tf1_op: name on the tf1 side.
    tf2_op: name on the tf2 side.
    tf1_type: op type.
    tf2_type: op type.
    tf1_source: the user's line; where many unpaired operations lead to it, that of the
      last of them.
    tf2_source: the same of the tf2 side.
    tf1_path: types of the unpaired operations that lead to it, and its own.
    tf2_path: the same of the tf2 side.
    absolute: greatest difference of its outputs; 0 where a gradient is stopped there on
      one side only.
    relative: that, over the greatest magnitude of the tf1 side.
    alone: whether it took a run on the other side's inputs to see it, since its own
      inputs differ already.
    tf1_output: statistics of the output that differs.
    tf2_output: the same of the tf2 side, computed from the tf1 side's inputs.
    differences: what differs in the graphs here.
    tf1_first: name of the unpaired operation whose line is shown; '' without one.
    tf2_first: the same of the tf2 side.
    rewired: whether it reads other tensors than on the tf1 side, rather than the same.
    tf2_lines: other lines of the user's port at this place: of the unpaired operations
      that lead to it, and where it lacks some, of those that make what it reads.
    experiment: what an edit of the port's graph here has shown; None where none was made.
    tf1_start: the user's line from which on it goes another way, where that of the last of many
      operations is shown.
    tf2_start: the same of the tf2 side.
    values: by what simple rule the output of the port follows from that of tf1, in words; ''
      where there is none.
    is_correction: whether an edit of the port alone has shown it: the operation need not have a
      counterpart. `absolute` is then by how much the edit changes its outputs, and `tf1_source`
      a line of tf1 that has the setting; None where none or several have it.
    reads_lists: whether it reads what has no value to compare, such as the list of a loop.
    began_at: of a correction, the port's lines at the place where both sides differ first: an
      edit of another one of these lines may correct the same mistake.
  """

  tf1_op: str
  tf2_op: str
  tf1_type: str
  tf2_type: str
  tf1_source: SourceLine | None
  tf2_source: SourceLine | None
  tf1_path: tuple[str, ...]
  tf2_path: tuple[str, ...]
  absolute: float
  relative: float
  alone: bool
  tf1_output: Statistics | None
  tf2_output: Statistics | None
  differences: tuple[GraphDifference, ...]
  tf1_first: str = ''
  tf2_first: str = ''
  rewired: bool = False
  tf2_lines: tuple[SourceLine, ...] = ()
  experiment: Experiment | None = None
  values: str = ''
  tf1_start: SourceLine | None = None
  tf2_start: SourceLine | None = None
  is_correction: bool = False
  reads_lists: bool = False
  began_at: tuple[SourceLine, ...] = ()

  @property
  def has_tf1_place(self) -> bool:
    """Whether anything of tf1 is known to belong to it."""
    return not self.is_correction or self.tf1_source is not None

  @property
  def is_initial_value(self) -> bool:
    """Whether it is a variable whose initial values differ."""
    return self.tf1_type == VARIABLE

  def to_lines(self) -> str:
    """Returns the lines of both sides, as an addition to a text; '' where none is known."""
    more = [line.short for line in self.tf2_lines][:_MOST_LINES]
    shown = [f'{self.tf1_source} in tf1'] if self.tf1_source else []
    shown += [f'{self.tf2_source} in the port'] if self.tf2_source else []
    also = f' (with {", ".join(more)})' if shown and more else ''
    return f', first at {" and ".join(shown)}{also}' if shown else ''


@dataclasses.dataclass(frozen=True)
class GrowthPoint:
  """How much the sides differ at one operation between a source and the end.

  Attributes:
    op: the tf1 name.
    relative: greatest difference over the greatest magnitude of the tf1 side.
  """

  op: str
  relative: float


class About(enum.Enum):
  """What a cause of training explains; a difference in one of these gets it as its hint."""

  LEARNING_RATE = 'learning rate'
  LOSS = 'loss'
  GRADIENTS = 'gradients as applied'
  UPDATE = 'variables and slots'
  SHADOWS = 'moving averages of the weights'
  COUNT = 'count of steps'


# The rule of a cause that is a tested edit of the graph which no rule explains.
BY_EXPERIMENT = 'experiment'
# The rule of a cause that is about what variables start with, which no edit of a graph corrects.
OF_STARTS = 'initializer_scale'


@dataclasses.dataclass(frozen=True)
class Cause:
  """A known mistake whose marks were found.

  Attributes:
    text: what is wrong and how to fix it, one sentence.
    evidence: what was seen; '' where the text says it.
    rule: the rule's name.
    explains: what follows from it; empty for all.
    variables: tf1 names of those that it is about; empty for all.
    change: what TF1 has to be run with to compute the port's numbers; None where the rule
      cannot predict them.
    experiment: what editing the port's graph at its place has shown; None where none was made.
    predicts: whether the edit is what the cause says, rather than all that is different there.
    numbers: which of the port's numbers it predicts, where it predicts all that differ of a kind
      and they are too many to agree by chance; '' otherwise.
    inputs: paths of the inputs that the port has to read for it.
    by_itself: whether no other mistake of the port makes what was seen of it.
  """

  text: str
  evidence: str = ''
  rule: str = ''
  explains: tuple[About, ...] = ()
  variables: tuple[str, ...] = ()
  change: Change | None = None
  experiment: Experiment | None = None
  predicts: bool = False
  numbers: str = ''
  inputs: tuple[str, ...] = ()
  by_itself: bool = False

  @property
  def is_proven(self) -> bool:
    """Whether numbers prove it, or an experiment with what it says has removed the difference."""
    tried = self.experiment
    if self.numbers:
      return True
    return self.predicts and tried is not None and tried.outcome is Outcome.PROVEN

  def accounts_for(self, about: About, variable: str) -> bool:
    """Returns whether a difference follows from it: of what, and of which variable, if any."""
    is_meant = not self.explains or about in self.explains
    return is_meant and (not self.variables or variable in self.variables)


@dataclasses.dataclass(frozen=True)
class Diagnosis:
  """Where the sides part first, and why.

  Attributes:
    run: the run that was looked into.
    causes: known mistakes, the most specific first; empty where nothing fits.
    sources: in the order of execution.
    gradient_differences: where the forward passes agree but let gradients pass
      differently.
    updates: variables that are written a different number of times: name, times in
      tf1, times in tf2.
    growth: from the first source to the end.
    operations: number of operations that what differs depends on, tf1 side.
    paired: how many of them have a partner in tf2.
    notes: what could not be looked at, and why.
    without_experiments: why no cause was tried out on the port's graph, or no edit of it helped; ''
      where one did.
    experimented: whether edits were tried out.
    seconds: wall time of the diagnosis, tracing the port included.
  """

  run: str = ''
  causes: tuple[Cause, ...] = ()
  sources: tuple[Source, ...] = ()
  gradient_differences: tuple[GraphDifference, ...] = ()
  updates: tuple[tuple[str, int, int], ...] = ()
  growth: tuple[GrowthPoint, ...] = ()
  operations: int = 0
  paired: int = 0
  notes: tuple[str, ...] = ()
  without_experiments: str = ''
  experimented: bool = False
  seconds: float = 0.0

  @property
  def is_settled(self) -> bool:
    """Whether each mistake has a cause, and the stage passes with the edits of all of them."""
    tried = [cause.experiment for cause in self.causes if cause.experiment is not None]
    proven = [one for one in tried if one.outcome is Outcome.PROVEN and not one.by_value]
    return bool(proven) and len(proven) == proven[0].mistakes
