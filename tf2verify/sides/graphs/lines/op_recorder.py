"""What a side does while it runs: variables created, random ops drawn, variables read."""

import contextlib
import dataclasses
import gc
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.distributions import ValueRange, points
from tf2verify.records.observation import RandomDraw, SourceLine, VariableCreation
from tf2verify.reference.random_ops import is_random_op
from tf2verify.reference.scratch_graph import is_scratch_graph
from tf2verify.reference.variables import static_shape, variable_name
from tf2verify.sides.graphs.lines.made_layers import MadeLayers
from tf2verify.sides.graphs.lines.source_lines import user_line
from tf2verify.sides.graphs.lines.traces import Trace
from tf2verify.sides.process import randomness
from tf2verify.tensorflow_internals import graphs, keras3, op_callbacks

# Ops that read or change a variable, whose handle is their first input.
_VARIABLE_USES = (
  'ReadVariableOp',
  'ResourceGather',
  'ResourceGatherNd',
  'AssignVariableOp',
  'AssignAddVariableOp',
  'AssignSubVariableOp',
)
# Ops whose value tells of their inputs only the shape.
_SHAPE_ONLY = ('Shape', 'ShapeN', 'Size', 'Rank', 'ZerosLike', 'OnesLike')
# Ops that ask of a variable what is known without its value.
_WITHOUT_VALUE = ('VariableShape', 'VarIsInitializedOp', 'DestroyResourceOp')
# On an eager tensor: the paths of the inputs that it was computed from.
_FROM_INPUTS = '_tf2verify_from_inputs'
# The call in which the layer is made.
MAKING = 'make_tf2_layer'


def mark_input(tensor: Any, path: str) -> None:
  """Marks an eager tensor as an input of this path, for `inputs_behind`."""
  setattr(tensor, _FROM_INPUTS, frozenset([path]))


def inputs_behind(tensor: Any) -> frozenset[str]:
  """Returns the paths of the inputs that eager operations computed a tensor from.

  What went through Python, numpy or a variable is not seen.
  """
  return getattr(tensor, _FROM_INPUTS, frozenset())


def _is_keras_counter() -> bool:
  """Returns whether Keras is making a counter of batches, or the state of a seed generator."""
  frame = sys._getframe(2)
  while frame is not None:
    code = frame.f_code
    if code.co_name == '_init_batch_counters' and 'keras' in code.co_filename:
      return True
    if keras3.makes_seed_state(code):
      return True
    frame = frame.f_back  # type: ignore[assignment]
  return False


@dataclasses.dataclass(frozen=True)
class _Creator:
  """How the variable being created is made.

  Attributes:
    creator: as in `VariableCreation`.
    layer: the Keras layer class that makes it.
    path: of a variable of Keras 3, whose `tf.Variable` has only the last part of it as its name.
  """

  creator: str
  layer: str | None = None
  path: str | None = None


def _creator_of_frame() -> _Creator:
  frame = sys._getframe(2)
  creator, layer, keras3_path = 'tf.Variable', None, None
  while frame is not None:
    name, path = frame.f_code.co_name, frame.f_code.co_filename
    if name == 'get_variable' and 'variable_scope' in path:
      return _Creator('get_variable')
    if keras3_path is None:
      keras3_path = keras3.path_of_variable_being_made(frame.f_code, frame.f_locals)
    if (name == 'add_weight' and 'tf_keras' in path) or keras3.is_add_weight(frame.f_code):
      owner = frame.f_locals.get('self')
      creator, layer = 'keras layer', type(owner).__name__
    frame = frame.f_back  # type: ignore[assignment]
  return _Creator(creator, layer, keras3_path)


def _raised_by_tf_function(error: BaseException) -> bool:
  """Returns whether `tf.function` raised an error itself: what its own code may not do."""
  trace = error.__traceback__
  while trace is not None and trace.tb_next is not None:
    trace = trace.tb_next
  return trace is not None and trace.tb_frame.f_code.co_filename.endswith('polymorphic_function.py')


@dataclasses.dataclass
class _Creation:
  """A creation attempt; `variable` is None where TensorFlow refused it.

  `make_value` makes the initial value again; None where a tensor was given. Before it,
  `draws_before` random ops had been made.
  """

  requested_name: str
  requested_shape: Any
  requested_dtype: Any
  call: str
  source: SourceLine | None
  creator: str
  layer: str | None
  variable: Any = None
  initial_value: Any = None
  refused_by_function: bool = False
  make_value: Callable[[], Any] | None = None
  draws_before: int = 0
  of_keras3: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class EagerDraw:
  """Some of the numbers that an op drew eagerly.

  Attributes:
    op_type: of the op.
    size: how many it drew.
    points: some of them, as `points` takes them.
    extent: of all.
  """

  op_type: str
  size: int
  points: np.ndarray
  extent: ValueRange


@dataclasses.dataclass(frozen=True)
class _Draw:
  """A random op; `creation` is of the variable whose initial value it draws."""

  op_type: str
  shape: tuple[int | None, ...]
  creation: _Creation | None
  source: SourceLine | None
  in_loop: bool
  op_name: str | None
  call: str
  drawn: EagerDraw | None = None


class OpRecorder:
  """Records one side's variables, random ops and variable reads while `recording`.

  Attributes:
    creations: every variable whose creation was attempted, in order.
    call: what is being called, for the records; the owner sets it.
    traces: every `tf.function` that user code had traced, once a trace.
    layers: the Keras layers that were constructed.
    keeps_values: whether the initial values of variables are kept; not of variables that never
      get one.
    values_used: whether variables that never get a value were read, or written, anyway:
      TensorFlow gives them out as empty tensors.
  """

  def __init__(self, keeps_values: bool = True) -> None:
    self.keeps_values = keeps_values
    self.values_used = False
    self.creations: list[_Creation] = []
    self.call = ''
    self.traces: list[Trace] = []
    self.layers = MadeLayers()
    self._graphs: weakref.WeakSet[Any] = weakref.WeakSet()
    self._draws: list[_Draw] = []
    self._uses: dict[int, Any] = {}
    self._being_created: list[_Creation] = []

  @contextlib.contextmanager
  def recording(self, call: str) -> Iterator[None]:
    """Records until exit; the variables stay known afterwards."""
    self.call = call
    with (
      self.layers.recording(),
      op_callbacks.called(self._on_op),
      tf.variable_creator_scope(self._on_variable),
    ):
      yield

  def _on_variable(self, next_creator: Any, **arguments: Any) -> Any:
    if _is_keras_counter():
      return next_creator(**arguments)
    made = _creator_of_frame()
    if made.path is not None:
      # As an absolute scope, or TensorFlow puts the scopes that Keras is in in front.
      arguments['name'] = f'{made.path}/'
    value = arguments.get('initial_value')
    creation = _Creation(
      requested_name=made.path or str(arguments.get('name') or 'Variable'),
      requested_shape=arguments.get('shape') or getattr(value, 'shape', None),
      requested_dtype=arguments.get('dtype') or getattr(value, 'dtype', None),
      call=self.call,
      source=self.layers.line(made.path),
      creator=made.creator,
      layer=made.layer,
      make_value=value if callable(value) else None,
      draws_before=len(self._draws),
      of_keras3=made.path is not None,
    )
    self.creations.append(creation)
    self._being_created.append(creation)
    try:
      creation.variable = next_creator(**arguments)
    except ValueError as error:
      creation.refused_by_function = _raised_by_tf_function(error)
      raise
    finally:
      self._being_created.pop()
    if not self.keeps_values:
      return creation.variable
    with tf.init_scope():
      if tf.executing_eagerly() and hasattr(creation.variable, 'read_value'):
        # On the CPU this shares the variable's buffer until the variable changes.
        value = creation.variable.read_value()
        # In a function that is being traced a variable has no value yet.
        if creation.variable.shape.is_compatible_with(value.shape):
          creation.initial_value = value
    return creation.variable

  def _on_op(self, op: op_callbacks.Operation) -> None:
    kind, inputs, outputs, name, graph, _ = op
    if isinstance(graph, graphs.FuncGraph) and graph not in self._graphs:
      self._on_trace(graph)
    if graph is None and not self.keeps_values and kind not in _WITHOUT_VALUE:
      self.values_used = self.values_used or self._of_variable(inputs)
    if graph is None and kind not in _SHAPE_ONLY:
      marks = [mark for mark in map(inputs_behind, inputs) if mark]
      for output in outputs if marks else ():
        setattr(output, _FROM_INPUTS, frozenset().union(*marks))
    if is_random_op(kind) and outputs and not is_scratch_graph(graph):
      if op.seeds is not None:
        randomness.note_draw(op.seeds)
      creation = self._being_created[-1] if self._being_created else None
      shape = static_shape(outputs[0].shape)
      in_loop = graphs.is_in_loop(graph)
      drawn = None
      if graph is None and outputs[0].dtype.is_floating and 0 not in shape:
        values = np.asarray(outputs[0])
        drawn = EagerDraw(kind, values.size, points(values), ValueRange.of(values))
      source = user_line()
      self._draws.append(_Draw(kind, shape, creation, source, in_loop, name, self.call, drawn))
    elif kind in _VARIABLE_USES and inputs and self.call != MAKING:
      handle = _outside_of_functions(inputs[0], graph)
      self._uses.setdefault(id(handle), handle)

  def _of_variable(self, inputs: Sequence[Any]) -> bool:
    handles = {id(getattr(creation.variable, 'handle', None)) for creation in self.creations}
    return any(id(tensor) in handles for tensor in inputs)

  def _on_trace(self, graph: Any) -> None:
    self._graphs.add(graph)
    outer = getattr(graph, 'outer_graph', None)
    source = user_line()
    # A branch or a loop body belongs to the function around it.
    if not isinstance(outer, graphs.FuncGraph) and source is not None:
      self.traces.append(Trace(str(graph.name), self.call, source))

  def refused_by_function(self) -> tuple[VariableCreation, ...]:
    """Returns what a `tf.function` did not let the calls create."""
    return tuple(_creation_record(c) for c in self.creations if c.refused_by_function)

  def eager_draws(self, first: int = 0, end: int | None = None) -> tuple[EagerDraw, ...]:
    """Returns what was drawn eagerly, in order, by the random ops of these numbers."""
    return tuple(draw.drawn for draw in self._draws[first:end] if draw.drawn is not None)

  def draws_just_before(self, variable: str) -> tuple[EagerDraw, ...]:
    """Returns what was drawn eagerly between the creation of a variable and the one before it."""
    earlier = 0
    for creation in self.creations:
      if creation.variable is not None and variable_name(creation.variable) == variable:
        return self.eager_draws(earlier, creation.draws_before)
      earlier = creation.draws_before
    return ()

  def draws_of_last_call(self, first: int) -> tuple[RandomDraw, ...]:
    """Returns what a call draws besides initial values, from the random op of a number on.

    Also the ops of functions that were traced earlier; not what an earlier call drew
    eagerly: it need not draw that again.
    """
    own = self.random_draws((self.call,))
    found = [draw for draw in self.random_draws()[first:] if draw.op_name is not None]
    return tuple(draw for draw in (*found, *own) if draw.variable is None)

  def random_draws(self, calls: Sequence[str] | None = None) -> tuple[RandomDraw, ...]:
    """Returns the random ops in the order in which they were made.

    Args:
      calls: in which calls; None for all.
    """
    return tuple(
      RandomDraw(
        draw.op_type,
        draw.shape,
        None
        if draw.creation is None or draw.creation.variable is None
        else variable_name(draw.creation.variable),
        draw.source,
        draw.in_loop,
        draw.op_name,
        before_calls=draw.call == MAKING and draw.creation is None,
      )
      for draw in self._draws
      if calls is None or draw.call in calls
    )

  def creation_records(self, first: int = 0) -> tuple[VariableCreation, ...]:
    """Returns the creations from number `first` on."""
    return tuple(_creation_record(creation) for creation in self.creations[first:])

  def variables_used_beside(self, known: list[Any]) -> tuple[Any, ...]:
    """Returns the variables that calls made or used although they are not among `known`.

    What was made in `make_tf2_layer` and not used since is not a part of the model:
    an optimizer's learning rate, a metric's counter. A resource that no living
    variable owns (a lookup table, an iterator) is no variable.
    """
    known_ids = {id(variable) for variable in known}
    handles = {id(variable.handle) for variable in known if hasattr(variable, 'handle')}
    unknown = {key: handle for key, handle in self._uses.items() if key not in handles}
    found = [c.variable for c in self.creations if c.variable is not None and c.call != MAKING]
    if unknown:
      owners = [
        candidate
        for candidate in _living_objects()
        if issubclass(type(candidate), tf.Variable) and hasattr(candidate, '_handle')
      ]
      found += [variable for variable in owners if id(variable._handle) in unknown]
    return tuple({id(v): v for v in found if id(v) not in known_ids}.values())

  def keras3_paths_beside(self, known: list[Any]) -> tuple[str, ...]:
    """Returns the paths of the variables of Keras 3 among `variables_used_beside`."""
    made = {id(c.variable): c.requested_name for c in self.creations if c.of_keras3}
    found = self.variables_used_beside(known) if made else ()
    return tuple(made[id(variable)] for variable in found if id(variable) in made)


def _outside_of_functions(tensor: Any, graph: Any) -> Any:
  """Returns the tensor that the argument of a function stands for, as far out as it is known."""
  while graph is not None:
    captured = next(
      (outer for outer, inner in getattr(graph, 'captures', ()) if inner is tensor), None
    )
    if captured is None:
      break
    tensor, graph = captured, getattr(graph, 'outer_graph', None)
  return tensor


def _living_objects() -> list[Any]:
  """Returns what the garbage collector knows, also if it is frozen."""
  frozen = gc.get_freeze_count() > 0
  if frozen:
    gc.unfreeze()
  try:
    return gc.get_objects()
  finally:
    if frozen:
      gc.freeze()


def _creation_record(creation: _Creation) -> VariableCreation:
  variable = creation.variable
  how = creation.call, creation.source, creation.creator, creation.layer
  if variable is None:
    shape, dtype = creation.requested_shape, creation.requested_dtype
    return VariableCreation(
      creation.requested_name,
      static_shape(shape) if shape is not None else (None,),
      tf.as_dtype(dtype).name if dtype is not None else 'unknown dtype',
      *how,
      refused=True,
    )
  return VariableCreation(
    variable_name(variable), static_shape(variable.shape), variable.dtype.base_dtype.name, *how
  )
