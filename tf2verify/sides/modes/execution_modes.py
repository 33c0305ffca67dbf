"""The port run eagerly, in functions, compiled, embedded and replicated."""

import contextlib
import dataclasses
import gc
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import Tf2VerifyError, UserCodeError
from tf2verify.records import execution_mode as words
from tf2verify.records.execution_mode import ModeCall, ModeRun, ModeTensor
from tf2verify.records.tensor_key import TensorKey
from tf2verify.reference import nests
from tf2verify.reference.perturbation import Perturber
from tf2verify.reference.random_ops import is_random_op
from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_parts
from tf2verify.sides.modes import compilation, replicas
from tf2verify.sides.modes.callees import Callee, Callees, Maker, ModeState
from tf2verify.sides.modes.computation import for_wanted, mode_tensors
from tf2verify.sides.modes.embedding import NotEmbeddable
from tf2verify.sides.modes.errors import one_line
from tf2verify.sides.process import logical_devices, randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.layers.port import array_of
from tf2verify.tensorflow_internals import decorated_calls

# What is done with a call as soon as it is made; returns what is kept of it.
Seen = Callable[[ModeCall], ModeCall]

# Inception-ResNet-v2 has 11,218 operations with its gradients: to compile them takes XLA
# 26 s, and to trace them for two replicas 59 s (TensorFlow 2.21, 2 cores).
LARGE = 4000


def _kept(call: ModeCall) -> ModeCall:
  return call


class PortModes:
  """Runs the same calls of a port in one mode after the other.

  All modes but that of replicas share a layer, whose variables start every call from
  the same values. In each training mode there are two calls, the second with other
  inputs of the same shapes: what a trace has frozen is the same in both.
  """

  def __init__(
    self,
    declaration: side.Declaration,
    tf2: Tf2Layer,
    labels: Any,
    runs: Sequence[side.RunSpec],
    progress: side.Progress,
  ) -> None:
    """Takes one run per training mode, with the inputs of the first call."""
    self._declaration = declaration
    self._tf2 = tf2
    self._callees = Callees(declaration, labels)
    self._runs = tuple(runs)
    self._progress = progress
    self._shared: ModeState | None = None
    self._spare: ModeState | None = None
    self._used = False
    self.narrow_bits = 0
    self._second_inputs: dict[bool, Any] = {}
    self.notes: tuple[str, ...] = ()

  def run_of(self, training: bool, number: int) -> side.RunSpec:
    """Returns the run that a call is; number 2 after `eager` only."""
    run = next(run for run in self._runs if run.training == training)
    return dataclasses.replace(run, inputs=self._second_inputs[training]) if number == 2 else run

  def eager(self) -> ModeRun:
    """Runs the port eagerly, which the other modes are compared with.

    Raises:
      UserCodeError: the first call of a training mode raised.
    """
    self._progress('running the TF2 layer, eager mode')
    self._shared = state = self._fresh()
    calls: list[ModeCall] = []
    draws: dict[bool, bool] = {}  # training mode, and whether in a loop
    seen = 0  # functions that the call before has traced count as those of the first mode
    for run in self._runs:
      with randomness.seeded(randomness.CONSTANT), _recording(state, words.EAGER, run):
        calls.append(self._first_eager_call(state, run))
        calls.append(self._second_call(state, run))
      if drawn := state.port.recorder.draws_of_last_call(seen):
        draws[run.training] = any(draw.in_loop for draw in drawn)
      seen = len(state.port.recorder.random_draws())
    in_loops = frozenset(training for training, in_loop in draws.items() if in_loop)
    return ModeRun(words.EAGER, tuple(calls), draws=frozenset(draws), draws_in_loops=in_loops)

  def _first_eager_call(self, state: ModeState, run: side.RunSpec) -> ModeCall:
    """Calls the port, without losses where these are not made for its outputs in inference."""
    try:
      return self._called(state, run, 1, self._callees.eager(state, run))
    except UserCodeError as error:
      self.notes += (self._callees.leave_losses_out(run, error),)
    return self._called(state, run, 1, self._callees.eager(state, run))

  def _second_call(self, state: ModeState, run: side.RunSpec) -> ModeCall:
    """Calls the port with other inputs, or with the same ones where it takes no others."""
    callee = self._callees.eager(state, run)
    self._second_inputs[run.training] = other_inputs(run.inputs)
    try:
      return self._called(state, run, 2, callee)
    except Tf2VerifyError:
      self._second_inputs[run.training] = run.inputs
      return self._called(state, run, 2, callee)

  def calls_alike(self, training: bool) -> tuple[tuple[int, ...], ...]:
    """Returns the numbers of the calls after `eager`, those with the same inputs together."""
    run = self.run_of(training, 1)
    both = (run.inputs, self._second_inputs[training])
    first, second = (nests.leaves_by_path(inputs).values() for inputs in both)
    same = all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    return ((1, 2),) if same else ((1,), (2,))

  def release(self) -> None:
    """Lets go of all functions: what follows are eager calls of the layer, see `renew`."""
    self._spare, self._shared = self._shared, None
    if self._spare is not None:
      self._spare.traced.clear()
    self._used = True
    gc.collect()

  def renew(self) -> bool:
    """Takes a layer that was in no mode for what follows; returns whether it was another."""
    if not self._used:
      return False
    self._spare, self._used = None, False
    gc.collect()
    return True

  def again(
    self,
    training: bool,
    number: int,
    times: int = 1,
    perturber: Perturber | None = None,
    wanted: words.Wanted | None = None,
  ) -> tuple[ModeCall, ...]:
    """Repeats a call of the eager mode.

    Args:
      training: the training mode.
      number: of the call.
      times: how often, each time from the same values.
      perturber: moves inputs and values; None leaves them.
      wanted: of what it computes; None for all.
    """
    run = self.run_of(training, number)
    if wanted is not None:
      run = for_wanted(run, wanted)
    if self._spare is None:
      self._spare = self._fresh()
    state = self._spare
    with randomness.seeded(randomness.CONSTANT), _recording(state, 'eager mode again', run):
      callee = self._callees.eager(state, run)
      return tuple(
        self._called(state, run, number, callee, perturber, wanted) for _ in range(times)
      )

  def python_draws(self, training: bool) -> str:
    """Returns which generator of Python's an eager call draws from; '' if from none."""
    run = self.run_of(training, 1)
    state = self._fresh()
    with randomness.seeded(randomness.CONSTANT):
      python, numpy = random.getstate(), repr(np.random.get_state())
      self._called(state, run, 1, self._callees.eager(state, run))
      if repr(np.random.get_state()) != numpy:
        return 'numpy.random'
      return "Python's random" if random.getstate() != python else ''

  def loss_alone(self, training: bool, number: int) -> np.ndarray:
    """Returns `tf2_loss` of a function that is given the outputs of eager mode as constants."""
    run = self.run_of(training, number)
    state = self._spare or self._fresh()
    computation = self._callees.eager(state, run).computation
    state.reset()
    with _quietly(), randomness.seeded(randomness.CONSTANT), user_code(side.TF2, 'tf2_loss'):
      outputs, labels = computation.outputs_and_labels(computation.leaves(run.inputs))

      def loss() -> Any:
        return loss_parts.main_of(self._declaration.tf2_loss(outputs, labels), 'tf2_loss')

      return array_of(tf.function(loss, autograph=False)())

  def observe(self, mode: str, limited: bool = False, seen: Seen = _kept) -> ModeRun:
    """Runs the port in a mode, after `eager`; what it raises is in the record.

    Args:
      mode: of `MODES`.
      limited: whether what takes long for a large graph is left out.
      seen: is given every call; the record has what it returns. The calls of a mode
        together would take much memory: each has the gradients of all variables.
    """
    assert self._shared is not None
    self._progress(f'running the TF2 layer, {mode}')
    with _quietly():
      return self._observe(mode, limited, self._shared, seen)

  def _observe(self, mode: str, limited: bool, shared: ModeState, seen: Seen) -> ModeRun:
    graphs = [found for callee in shared.traced.values() for found in _graphs(callee.function)]
    operations = max((graph.count for graph in graphs), default=0)
    if mode in (words.JIT, words.REPLICAS) and limited and operations > LARGE:
      why = (
        f'its graph has {operations:,} operations, for which this takes a long time; name {mode!r} '
        'in modes_to_run to have it run'
      )
      return ModeRun(mode, (), why)
    if mode == words.REPLICAS:
      return self._replicated(seen)
    if mode == words.JIT:
      if limited and compilation.untried():
        return ModeRun(mode, (), compilation.untried())
      missing = compilation.without_kernel(name for graph in graphs for name in graph.types)
      if missing:
        return ModeRun(mode, (), f'XLA has no kernel for {", ".join(missing)}')
    if mode == words.NO_ARITHMETIC:
      with process_state.without_arithmetic_optimization():
        return self._calls(mode, shared, self._callees.traced, seen)
    makers: dict[str, Maker] = {
      words.FUNCTION: self._callees.traced,
      words.JIT: self._callees.compiled,
      words.FUNCTIONAL: self._callees.embedded,
    }
    return self._calls(mode, shared, makers[mode], seen)

  def _replicated(self, seen: Seen) -> ModeRun:
    if not logical_devices.two_cpus():
      return ModeRun(words.REPLICAS, (), replicas.ONE_DEVICE)
    strategy = replicas.two_replicas()
    make = self._callees.replicated(strategy)
    with strategy.scope(), replicas.mean_over_each_replica() as refused:
      try:
        state = self._fresh()
      except UserCodeError as error:
        return ModeRun(words.REPLICAS, (), _reason(error), raised=True)
      found = self._calls(words.REPLICAS, state, make, seen)
    return dataclasses.replace(found, remark=replicas.refusal(refused))

  def _calls(self, mode: str, state: ModeState, make: Maker, seen: Seen) -> ModeRun:
    """Makes all calls of a mode, as far as they go."""
    calls: list[ModeCall] = []
    reasons: dict[str, list[str]] = {}
    traces: list[int] = []
    draws: set[bool] = set()
    in_loops: set[bool] = set()
    raised = False
    created = len(state.port.recorder.creations)
    for run in self._runs:
      try:
        with randomness.seeded(randomness.CONSTANT), _recording(state, mode, run):
          callee, first = self._first_call(state, run, make)
          calls.append(seen(first))
          del first
          if callee.function is not None:  # without one, nothing is frozen
            calls.append(seen(self._called(state, run, 2, callee)))
      except NotEmbeddable as reason:
        reasons.setdefault(str(reason), [])
      except Tf2VerifyError as error:
        raised = True
        reasons.setdefault(_reason(error), []).append(side.training_name(run.training))
        if mode == words.JIT:
          break  # each failure takes long and logs much
      else:
        if callee.function is not None:
          traces.append(callee.function.experimental_get_tracing_count())
        if mode == words.FUNCTION:
          for graph in _graphs(callee.function):
            self.narrow_bits = graph.narrow_bits or self.narrow_bits
            draws |= {run.training} if any(map(is_random_op, graph.types)) else set()
            in_loops |= {run.training} if any(map(is_random_op, graph.types_in_loops)) else set()
    why = '; '.join(
      f'{" and ".join(modes)}: {reason}' if modes else reason for reason, modes in reasons.items()
    )
    records = state.port.recorder.creation_records(created)
    return ModeRun(
      mode, tuple(calls), why, raised, records, tuple(traces), frozenset(draws), frozenset(in_loops)
    )

  def _first_call(
    self, state: ModeState, run: side.RunSpec, make: Maker
  ) -> tuple[Callee, ModeCall]:
    """Makes a first call; where Python meets a symbolic tensor, another one with autograph."""
    created = len(state.port.recorder.creations)
    try:
      with user_code(side.TF2, 'call_tf2_layer'):
        callee = make(state, run, False)
      return callee, self._called(state, run, 1, callee)
    except UserCodeError as error:
      refused = len(state.port.recorder.creations) > created
      if refused or isinstance(error.__cause__, tf.errors.OpError):
        raise
    # Python's `if` and `for` over tensors, which autograph rewrites.
    with user_code(side.TF2, 'call_tf2_layer'):
      callee = make(state, run, True)
    return callee, self._called(state, run, 1, callee)

  def _called(
    self,
    state: ModeState,
    run: side.RunSpec,
    number: int,
    callee: Callee,
    perturber: Perturber | None = None,
    wanted: words.Wanted | None = None,
  ) -> ModeCall:
    """Makes one call from the state's values."""
    state.reset(None if perturber is None else self._moving(perturber))
    inputs = self.run_of(run.training, number).inputs
    leaves = callee.computation.leaves(side.moved_inputs(inputs, perturber))
    with user_code(side.TF2, 'call_tf2_layer'):
      computed = callee.compute(leaves)
    tensors = [
      tensor
      for replica, values in enumerate(computed)
      for tensor in mode_tensors(callee.computation, values, replica, wanted)
    ]
    if run.training:
      tensors += [
        ModeTensor(words.STATE, record.name, np.asarray(record.value))
        for record in state.port.values()
        if wanted is None or TensorKey(words.STATE, record.name) in wanted
      ]
    return ModeCall(run.training, number, tuple(tensors))

  def _fresh(self) -> ModeState:
    """Returns a layer that was called once, with its values."""
    port = self._tf2.filled_port(self._runs[0])
    if len(port.inventory()) < len(self._tf2.inventory().variables):
      # The other training mode has more of them.
      with randomness.seeded(randomness.CONSTANT):
        for run in self._runs[1:]:
          self._tf2.call(port, run.inputs, run.training, 'the call that makes more variables')
      self._tf2.assign(port, self._runs[0])
    port.forget_initial_values(port.variables())
    return ModeState(port, [variable.read_value() for variable in port.variables()])

  def _moving(self, perturber: Perturber) -> Callable[[Any, Any], np.ndarray]:
    names = self._runs[0].tf1_names

    def moved(variable: Any, value: Any) -> np.ndarray:
      name = variable_name(variable)
      return perturber.variable(names.get(name, name), array_of(value))

    return moved


def _graphs(function: Any) -> list[compilation.GraphOps]:
  # There is no public way to ask a function for its traces.
  concrete = function._list_all_concrete_functions()
  return [compilation.GraphOps(traced.graph) for traced in concrete]


def other_inputs(inputs: Any) -> Any:
  """Returns inputs of the same shapes and from the same domain: each reversed along its batch."""
  return nests.map_leaves(lambda _, leaf: leaf[::-1].copy() if leaf.ndim else leaf, inputs)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
  """Runs functions as such, without warnings of what is meant: functions made anew, no GPU."""
  verbosity, eagerly = tf.compat.v1.logging.get_verbosity(), tf.config.functions_run_eagerly()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  tf.config.run_functions_eagerly(False)
  try:
    with decorated_calls.kept():  # the layer of the next mode is made of the class as it was
      yield
  finally:
    tf.compat.v1.logging.set_verbosity(verbosity)
    tf.config.run_functions_eagerly(eagerly)


def _recording(
  state: ModeState, mode: str, run: side.RunSpec
) -> contextlib.AbstractContextManager[None]:
  return state.port.recorder.recording(f'{mode}, {side.training_name(run.training)}')


def _reason(error: Tf2VerifyError) -> str:
  """Returns on one line what a mode has raised."""
  raised = error.__cause__ if isinstance(error, UserCodeError) else None
  return one_line(raised) if raised is not None else str(error)
