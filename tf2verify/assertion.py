"""The ladder as a plain function, for those who want no class."""

import dataclasses
import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tf2verify import hooks as table
from tf2verify.case import EquivalenceCase, verify
from tf2verify.errors import CaseDefinitionError
from tf2verify.hook_signatures import call_problem, may_leave_out
from tf2verify.numerics.tolerance import Tolerance, ToleranceTable
from tf2verify.optional_hooks import OptionalHooks
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict
from tf2verify.report import terminal
from tf2verify.tensorflow_internals import deprecations

# Parameters by which TF1 code gets its training mode.
_TRAINING = ('training', 'is_training')
_METHODS = {hook.name: hook for hook in table.HOOKS}
_ATTRIBUTES = {
  name
  for home in (EquivalenceCase, OptionalHooks)
  for name in home.__annotations__
  if not name.startswith('_')
} - {'tf1_recording'}
# What may also be a value; every other hook creates something at each call.
_CONSTANT = ('make_labels', 'tf1_checkpoint')
# What a layer, a model and a tf.Module have, and a function that makes one has not.
_OF_A_LAYER = 'trainable_variables'


def assert_equivalent(
  tf1_function: Callable[..., Any],
  layer: Callable[[], Any],
  inputs: Any,
  *,
  training: bool | Iterable[bool] | None = None,
  labels: Any = None,
  tolerance: Tolerance | Mapping[Any, Tolerance] | ToleranceTable | None = None,
  gradient_tolerance: Tolerance | Mapping[Any, Tolerance] | ToleranceTable | None = None,
  variable_names: Mapping[str, str] | Callable[[str], str] | None = None,
  stages: Iterable[str] | None = None,
  **hooks: Any,
) -> CaseVerdict:
  """Asserts that a port is the same model as a TF1 function; an `EquivalenceCase` without a class.

  Args:
    tf1_function: builds the TF1 model in the default graph, which is fresh at every call, and
      returns its outputs. It gets placeholders in the structure of `inputs`, as one argument,
      and `training` or `is_training` if it has a parameter with that name.
    layer: returns the port, a fresh, unbuilt one at every call: a class, or
      `lambda: Port(units=3)`.
    inputs: a nest of numpy arrays, the same for both sides; or a function that returns it.
    training: False for inference only, True for training only; both by default.
    labels: a nest of numpy arrays, for the losses.
    tolerance: as of `EquivalenceCase`.
    gradient_tolerance: as of `EquivalenceCase`.
    variable_names: as of `EquivalenceCase`.
    stages: names of the stages to run, in addition to those that they need; None for all.
    **hooks: other attributes and hooks of `EquivalenceCase`, by name; a hook is a function
      without `self`: `tf1_loss=lambda outputs, labels: ...`.

  Returns:
    The verdict, which is PASSED.

  Raises:
    AssertionError: the verdict is any other one, and the message is the report; or a stage of
      `stages` is not applicable.
    CaseDefinitionError: an argument is of no use.
  """
  __tracebackhide__ = True  # for pytest
  _check(tf1_function, layer)
  _check_hooks(hooks)
  asked = None if stages is None else (stages,) if isinstance(stages, str) else tuple(stages)
  if asked == ():
    raise CaseDefinitionError(
      'assert_equivalent: stages is empty, so that nothing would be compared: leave it out for all '
      'stages'
    )
  declared: dict[str, Any] = {
    'build_tf1_graph': _builder(tf1_function),
    'make_tf2_layer': lambda self: _called(layer, 'layer', _layer_slip(layer, tf1_function)),
    'make_inputs': _returning(inputs, 'inputs'),
    'tolerance': tolerance,
    'gradient_tolerance': gradient_tolerance,
    'variable_names': staticmethod(variable_names) if callable(variable_names) else variable_names,
    **{name: _method(value) if name in _METHODS else value for name, value in hooks.items()},
  }
  if training is not None:
    declared['training_modes'] = _modes(training)
  if labels is not None:
    declared['make_labels'] = _returning(labels, 'labels')
  caller = sys._getframe(1).f_globals.get('__name__', __name__)
  name = getattr(tf1_function, '__name__', type(tf1_function).__name__)
  case = type(
    name if name.isidentifier() else 'tf1_function',
    (EquivalenceCase,),
    {**declared, '__module__': caller, '__test__': False},
  )
  with deprecations.unsaid():
    # No command runs it again: there is no class to name.
    verdict = dataclasses.replace(verify(case, asked), run_again='')
  if verdict.passed:
    for stage in verdict.stages:
      if stage.status is Status.NOT_APPLICABLE and stage.stage in (asked or ()):
        raise AssertionError(
          f'assert_equivalent: {stage.stage} was asked for and was not run: {stage.reason}'
        )
    return verdict
  failure = verdict.first_failure
  raise AssertionError(
    verdict.to_text() if failure is None else terminal.exception_text(verdict, failure)
  )


def _modes(training: Any) -> tuple[bool, ...]:
  """Returns the training modes that are meant."""
  iterable = isinstance(training, Iterable) and not isinstance(training, str)
  modes = tuple(training) if iterable else (training,)
  if not modes or not all(isinstance(mode, bool) for mode in modes):
    raise CaseDefinitionError(
      f'assert_equivalent: training is {training!r:.80}; it must be False (inference only), True '
      '(training only) or (False, True), the default'
    )
  return modes


def _required(function: Any) -> list[str]:
  """Returns the names of the arguments that a function, or creating a class, cannot do without."""
  try:
    signature = inspect.signature(function.__init__ if inspect.isclass(function) else function)
  except (TypeError, ValueError):
    return []
  variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
  found = [
    name
    for name, one in signature.parameters.items()
    if one.default is one.empty and one.kind not in variable
  ]
  return found[1:] if inspect.isclass(function) else found  # without self


def _called(function: Callable[[], Any], argument: str, slip: str) -> Any:
  """Returns what a function without arguments returns, and names the likely slip if it takes some.

  That is only known once it was called: a decorator may give it what it takes.
  """
  try:
    return function()
  except TypeError as error:
    needed = _required(function)
    if not needed:
      raise
    kind = 'class' if inspect.isclass(function) else 'function'
    raise CaseDefinitionError(
      f'assert_equivalent: {argument}, the {kind} {getattr(function, "__name__", function)!s:.80}, '
      f'takes {", ".join(needed)}, and is called without arguments: {slip} ({error})'
    ) from error


def _layer_slip(layer: Any, tf1_function: Any) -> str:
  if inspect.isclass(layer):
    return f'pass a function that creates the port, lambda: {layer.__name__}(...)'
  if not _required(tf1_function):
    return (
      'tf1_function takes none, so that the two are probably swapped: the function that builds '
      'the TF1 model comes first, then the one that creates the port'
    )
  return (
    'pass a function that creates the port, a Keras layer or tf.Module, as lambda: Port(); what '
    'computes outputs from inputs is the call of that layer'
  )


def _returning(nest: Any, argument: str) -> Callable[[EquivalenceCase], Any]:
  """Returns the hook for an argument that is a nest of arrays, or a function that returns it."""
  if not callable(nest):
    return lambda self: nest
  return lambda self: _called(nest, argument, f'pass the arrays, or lambda: {argument}(...)')


def _check(tf1_function: Any, layer: Any) -> None:
  if not callable(tf1_function):
    raise CaseDefinitionError(
      f'assert_equivalent: tf1_function is {tf1_function!r:.80}; it must be the function that '
      'builds the TF1 model from its inputs'
    )
  if not callable(layer) or (hasattr(layer, _OF_A_LAYER) and not inspect.isclass(layer)):
    raise CaseDefinitionError(
      f'assert_equivalent: layer is a {type(layer).__name__} that has already been created; the '
      'port '
      'is created again for every run, with controlled seeds: pass a function that creates it, '
      f'lambda: {type(layer).__name__}(...)'
    )


def _check_hooks(hooks: Mapping[str, Any]) -> None:
  known = {*_METHODS, *_ATTRIBUTES} - {'build_tf1_graph', 'make_tf2_layer', 'make_inputs', 'stages'}
  for name, value in hooks.items():
    if name not in known:
      close = difflib.get_close_matches(name, known, 1)
      guess = f' (did you mean {close[0]}?)' if close else ''
      raise CaseDefinitionError(
        f'assert_equivalent: {name} is not an attribute or hook of a case{guess}; available: '
        f'{", ".join(sorted(known))}'
      )
    if name in _METHODS and not callable(value) and name not in _CONSTANT:
      raise CaseDefinitionError(
        f'assert_equivalent: {name} is a {type(value).__name__}; it is called again for every run: '
        f'pass a function, {name}=lambda: ...'
      )
    if name in _METHODS and callable(value) and _takes_self(value):
      raise CaseDefinitionError(
        f'assert_equivalent: {name} has the parameter self; a hook is passed here as a function '
        'without it, and outside of a class: leave self out'
      )
    problem = call_problem(_METHODS[name], value) if name in _METHODS and callable(value) else ''
    if problem:
      arguments = ', '.join((*_METHODS[name].arguments, *_METHODS[name].taken))
      function = f'lambda {arguments}'.rstrip()
      raise CaseDefinitionError(
        f'assert_equivalent: {name} cannot be called: {problem}; pass a function without self, '
        f'{name}={function}: ...{may_leave_out(_METHODS[name])}'
      )


def _takes_self(function: Callable[..., Any]) -> bool:
  try:
    return next(iter(inspect.signature(function).parameters), '') == 'self'
  except (TypeError, ValueError):
    return False


def _builder(tf1_function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns the hook that calls the TF1 function, with what it takes."""
  try:
    parameters = set(inspect.signature(tf1_function).parameters)
  except (TypeError, ValueError):
    parameters = set()
  word = next((word for word in _TRAINING if word in parameters), '')

  def build_tf1_graph(self: EquivalenceCase, inputs: Any, training: bool) -> Any:
    return tf1_function(inputs, **({word: training} if word else {}))

  return build_tf1_graph


def _method(value: Any) -> Any:
  """Returns what a case has as a method: a function without `self`, or what is to be returned."""
  return staticmethod(value) if callable(value) else lambda self: value
