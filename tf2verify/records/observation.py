"""What one run of a side yields, as numpy."""

import abc
import dataclasses
import os
import textwrap

import numpy as np

# Characters of the first of several places.
_FIRST = 120


@dataclasses.dataclass(frozen=True)
class _InFile(abc.ABC):
  """Where something is in the user's code.

  Attributes:
    path: the file, as Python names it.
    line: 1-based number of the first line.
    function: the function that the line belongs to.
    code: the text of the call or statement that starts there, on one line; empty where the file
      cannot be read.
    last_line: number of the last line of that text; 0 where it is the first one.
  """

  path: str
  line: int
  function: str
  code: str
  last_line: int = 0

  def __str__(self) -> str:
    return self._text(self.path)

  @property
  def at(self) -> tuple[str, int]:
    """The file and the number: what tells it from all others."""
    return self.path, self.line

  @property
  def lines(self) -> str:
    """The numbers of its lines: `7`, `7-9`."""
    return f'{self.line}-{self.last_line}' if self.last_line else str(self.line)

  @property
  def short(self) -> str:
    """The file without its folder, and the lines: `port.py:7`, `port.py:7-9`."""
    return f'{os.path.basename(self.path)}:{self.lines}'

  @property
  def in_file(self) -> str:
    """As text, the file without its folder."""
    return self._text(os.path.basename(self.path))

  def _text(self, path: str) -> str:
    text = f'{path}:{self.lines}, in {self.function}'
    return f'{text}: {self.code}' if self.code else text


@dataclasses.dataclass(frozen=True)
class CodePlace(_InFile):
  """A place in the user's code that leads to a line; its attributes are those of `SourceLine`."""


@dataclasses.dataclass(frozen=True)
class SourceLine(_InFile):
  """A line of the user's code.

  Attributes:
    path: the file, as Python names it.
    line: 1-based line number.
    function: the function that the line belongs to.
    code: the text of the call or statement that starts there, on one line; empty where the file
      cannot be read.
    last_line: number of the last line of that text; 0 where it is the first one.
    callers: the lines of the user's code that led to it, innermost first; not all.
    made: where the Keras layers were constructed that it runs in, innermost first; not all.
    settings: where arguments were set that it, or such a constructor, was given: an `arg_scope` of
      TF-Slim, the assignment of a name; not all.
    gradient_of: the line whose gradient is computed here; None elsewhere.
  """

  callers: tuple[CodePlace, ...] = dataclasses.field(default=(), compare=False)
  made: tuple[CodePlace, ...] = dataclasses.field(default=(), compare=False)
  settings: tuple[CodePlace, ...] = dataclasses.field(default=(), compare=False)
  gradient_of: CodePlace | None = dataclasses.field(default=None, compare=False)

  @property
  def place(self) -> CodePlace:
    """The line alone, without what led to it."""
    return CodePlace(self.path, self.line, self.function, self.code, self.last_line)

  def with_layer(self) -> str:
    """Returns it as text, with where the layer that it runs in was constructed and set."""
    places = [place for place in self.made if place.at != self.at]
    text = f'{self}; layer constructed at {places[0].in_file}' if places else str(self)
    if self.settings:
      text += '; arguments set at ' + ' ← '.join(place.short for place in self.settings)
    return text

  def leading(self) -> tuple[str, ...]:
    """Returns what led to it, as lines of text: who called it, and what was constructed where."""
    found = []
    for what, places in (
      ('gradient of', () if self.gradient_of is None else (self.gradient_of,)),
      ('called from', self.callers),
      ('layer constructed at', self.made),
      ('arguments set at', self.settings),
    ):
      if places:
        first, *others = places
        more = ''.join(f' ← {place.short}' for place in others)
        # A long text would push the others out of the line.
        text = textwrap.shorten(first.in_file, _FIRST, placeholder=' …') if more else first.in_file
        found.append(f'{what} {text}{more}')
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class Slices:
  """What a gradient of `IndexedSlices` is made of.

  Attributes:
    rows: how many, those of one index each by itself.
    norm: of these rows, before those of one index are added up.
  """

  rows: int
  norm: float


@dataclasses.dataclass(frozen=True, eq=False)
class TensorRecord:
  """One named tensor.

  Attributes:
    name: a variable name without `:0`, or the path of an output in its nest
      (`['logits']`, `[0].values`).
    value: the read-only array; None where the side has None in this place (an
      unconnected gradient, an output that is None).
    slices: of a gradient of `IndexedSlices`, whose `value` is dense; None for any other.
    of_group: whether the port holds the elements in several variables, or together with others:
      what it makes of the norm of a variable is not to be seen.
  """

  name: str
  value: np.ndarray | None
  slices: Slices | None = None
  of_group: bool = False

  def __post_init__(self) -> None:
    if self.value is not None:
      self.value.flags.writeable = False


@dataclasses.dataclass(frozen=True)
class VariableRecord:
  """One variable of a side.

  Attributes:
    name: full name without `:0`.
    shape: None stands for a dimension that is not known.
    dtype: numpy's name of the dtype (`float32`, `bfloat16`, `str`).
    trainable: membership of the set that an optimizer would train: the
      TRAINABLE_VARIABLES collection (tf1), `layer.trainable_variables` (tf2).
    trainable_flag: the variable's own `trainable` attribute, which is not the
      same thing.
    collections: the tf1 collections that hold it; empty on the tf2 side.
    source: the user's line that created it, where it is known.
  """

  name: str
  shape: tuple[int | None, ...]
  dtype: str
  trainable: bool
  trainable_flag: bool
  collections: tuple[str, ...] = ()
  source: SourceLine | None = None


@dataclasses.dataclass(frozen=True)
class VariableCreation:
  """A variable that came into being during a call.

  Attributes:
    name: full name without `:0`.
    shape: as in `VariableRecord`.
    dtype: as in `VariableRecord`.
    call: which call it was: `call 2 (inference)`.
    source: the user's line that created it.
    creator: how it was made: `get_variable`, `tf.Variable`, `keras layer`.
    layer: the class of the Keras layer that made it, where one did.
    refused: whether TensorFlow refused it (the attempt raised).
  """

  name: str
  shape: tuple[int | None, ...]
  dtype: str
  call: str
  source: SourceLine | None
  creator: str
  layer: str | None = None
  refused: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class RegularizationLoss:
  """One regularization loss.

  Attributes:
    variables: names of the variables that it reads, sorted; empty for a loss
      that reads none (an activity regularizer).
    value: the scalar.
  """

  variables: tuple[str, ...]
  value: np.ndarray


@dataclasses.dataclass(frozen=True)
class RandomDraw:
  """One random op, in the order in which the side made it.

  Attributes:
    op_type: TensorFlow's op type (`TruncatedNormal`, `RandomUniform`).
    shape: of the drawn tensor.
    variable: the variable whose initial value it draws; None elsewhere.
    source: the user's line.
    in_loop: whether it stands in the body of a loop, where one seed serves every
      step, and the steps draw in no fixed order.
    op_name: in a graph; None where it was drawn eagerly.
    feeds_outputs: tf1 only: whether an output is computed from the draw itself, not
      only from a variable that starts with it.
    before_calls: tf2 only: whether it was drawn while the layer was made, so that
      all calls use the same numbers.
  """

  op_type: str
  shape: tuple[int | None, ...]
  variable: str | None
  source: SourceLine | None = dataclasses.field(default=None, compare=False)
  in_loop: bool = dataclasses.field(default=False, compare=False)
  op_name: str | None = dataclasses.field(default=None, compare=False)
  feeds_outputs: bool = dataclasses.field(default=False, compare=False)
  before_calls: bool = dataclasses.field(default=False, compare=False)

  def __str__(self) -> str:
    sizes = ', '.join('?' if size is None else str(size) for size in self.shape)
    purpose = f'initial value of {self.variable}' if self.variable else 'in the computation'
    return f'{self.op_type} ({sizes}), {purpose}'


@dataclasses.dataclass(frozen=True, eq=False)
class Observation:
  """Everything that one run of one side yields.

  Attributes:
    side: 'tf1' or 'tf2'.
    run: what was run, for reports: `training, constant`.
    structure: the nest that the side returned, as text.
    outputs: in the order of the nest, dictionaries by sorted key.
    regularization_losses: in the side's own order; pair them by variable.
    regularization_total: their sum, see `sides.losses.functional.total`; None without any.
    losses_left_out: tf2 only: the number of `layer.losses` where the case's
      `tf2_regularization_losses` returns none.
    initial_values: of every variable, before the call.
    state_after: of every variable, after the call (and its update ops).
    gradients: of the loss, for every trainable variable; empty when not asked.
    random_draws: in order; empty when not traced.
    narrow_bits: tf1 only: the fraction bits of the narrowest format below float32 that it
      was computed in; 0 for none.
    fixed_draws: tf2 only, of seeded runs: draws for which fixed numbers stood.
  """

  side: str
  run: str
  structure: str
  outputs: tuple[TensorRecord, ...]
  regularization_losses: tuple[RegularizationLoss, ...] = ()
  regularization_total: np.ndarray | None = None
  losses_left_out: int = 0
  initial_values: tuple[TensorRecord, ...] = ()
  state_after: tuple[TensorRecord, ...] = ()
  gradients: tuple[TensorRecord, ...] = ()
  random_draws: tuple[RandomDraw, ...] = ()
  narrow_bits: int = 0
  fixed_draws: tuple[RandomDraw, ...] = ()
