"""What a user declares."""

import abc
import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, final

import numpy as np
from absl.testing import absltest

from tf2verify import hooks
from tf2verify.blocked_tests import ShownFailures, shown_by_test
from tf2verify.environment import time_limit
from tf2verify.environment.case_files import place_of, runs_its_tests
from tf2verify.environment.taken_modules import check_taken_modules
from tf2verify.errors import CaseDefinitionError
from tf2verify.hook_signatures import check_signatures
from tf2verify.ladder import CaseName, Ladder, test_name
from tf2verify.misspelled_hooks import misspelled_hook, near_miss
from tf2verify.numerics.tolerance import Tolerance, ToleranceTable
from tf2verify.optional_hooks import OptionalHooks, check_train_op
from tf2verify.records.resources import Resources, resources_of
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.reference.fill_values import distinct_values
from tf2verify.reference.weighted_sum import weighted_sum
from tf2verify.report import terminal
from tf2verify.report.report_dir import default_report_dir
from tf2verify.report.shared_report_dir import write_reports
from tf2verify.report.tensorboard import writing
from tf2verify.selection import StageSelection, stage_names
from tf2verify.sides.graphs.lines.source_lines import forget_lines
from tf2verify.sides.hooks.places import with_place
from tf2verify.sides.kept.sources import source_for
from tf2verify.sides.recorded.recording import declaration_of
from tf2verify.sides.recorded.references import ReferenceSource
from tf2verify.sides.side import Progress
from tf2verify.sides.tf2.layers.call_arguments import by_default, takes_training
from tf2verify.stages import STAGES, Stage
from tf2verify.tensorflow_internals import deprecations

# Has unittest leave the frames of this module out of tracebacks.
__unittest = True

_FINAL = ('setUp', 'setUpClass', 'tearDownClass', 'runTest', 'declares')


class EquivalenceCase(OptionalHooks, absltest.TestCase):  # type: ignore[misc]
  """Two implementations of one model, and the tests that they are the same.

  Subclass it and override three hooks: `build_tf1_graph`, `make_tf2_layer` and
  `make_inputs`. The subclass then has one test per stage of the ladder, under
  any unittest runner; `tf2verify.verify(Subclass)` runs them without one.

  If the reference was recorded under TensorFlow 1.x, set `tf1_recording` in place of
  `build_tf1_graph`; `make_inputs` and `make_labels` then come from the recording.

  For one model in several configurations, put what varies into class attributes,
  and write one subclass per configuration that sets them. A base class that
  declares only some of the hooks lists `abc.ABC` among its bases.

  Attributes:
    training_modes: the values of `training` to run; (False, True) is inference,
      then training.
    tolerance: of outputs, initial values and state: a `Tolerance` for all
      floating-point dtypes, or a mapping from dtype; None for the default by dtype
      (float32: rtol 1e-6, atol 1e-5, as in TensorFlow's guide).
    gradient_tolerance: of gradients, in the same forms.
    regularization_tolerance: of regularization losses, in the same forms.
    variable_names: from tf1 to tf2 variable name: a mapping, or a method that takes
      a tf1 name; None if both sides use the same names.
    stages: the whole ladder, or `tf2verify.all_stages_except(stage='why')`.
    tf1_recording: the folder written by `tf1_recorder.py` (see
      `python -m tf2verify recorder`), relative to the file of the case or to the working
      folder; None if the case builds its reference.
    resources: what the case needs from the machine, for `python -m tf2verify fleet`.
  """

  training_modes: tuple[bool, ...] = (False, True)
  tolerance: Tolerance | Mapping[Any, Tolerance] | ToleranceTable | None = None
  gradient_tolerance: Tolerance | Mapping[Any, Tolerance] | ToleranceTable | None = None
  regularization_tolerance: Tolerance | Mapping[Any, Tolerance] | ToleranceTable | None = None
  variable_names: Mapping[str, str] | Callable[[str], str] | None = None
  stages: Any = StageSelection()
  tf1_recording: str | None = None
  resources: Resources = Resources()

  _ladder: ClassVar[Ladder | None] = None
  _shown: ClassVar[ShownFailures] = ShownFailures()

  def build_tf1_graph(self, inputs: Any, training: bool) -> Any:
    """Builds the TF1 model in the default graph, which is fresh at every call.

    Args:
      inputs: placeholders in the structure of `make_inputs`.
      training: the training mode.

    Returns:
      The outputs: a tensor or any nest of tensors, also sparse and ragged ones.
    """
    raise CaseDefinitionError(_missing_hook(type(self), 'build_tf1_graph'))

  def make_tf2_layer(self) -> Any:
    """Returns the port: a fresh Keras layer (of Keras 2 or 3) or `tf.Module` at every call."""
    raise CaseDefinitionError(_missing_hook(type(self), 'make_tf2_layer'))

  def make_inputs(self) -> Any:
    """Returns a nest of numpy arrays, the same for both sides; called once.

    With `tf1_recording` the default is the recorded inputs, and an override has to return
    the same arrays.
    """
    raise CaseDefinitionError(_missing_hook(type(self), 'make_inputs'))

  @by_default
  def call_tf2_layer(self, layer: Any, inputs: Any, training: bool) -> Any:
    """Calls the port; the default passes `training` if the layer's call takes it.

    Args:
      layer: from `make_tf2_layer`.
      inputs: eager tensors in the structure of `make_inputs`.
      training: the training mode.

    Returns:
      The outputs, in the structure of `build_tf1_graph`'s.
    """
    if takes_training(layer):
      return layer(inputs, training=training)
    return layer(inputs)

  def loss(self, outputs: Any) -> Any:
    """Returns the scalar whose gradients are compared; runs on both sides.

    The default is a fixed weighted sum of all floating-point outputs, see
    `tf2verify.reference.weighted_sum.weighted_sum`; None if there are none.
    """
    return weighted_sum(outputs)

  def tf2_regularization_losses(self, layer: Any) -> Iterable[Any]:
    """Returns the port's regularization losses after a call; by default `layer.losses`.

    A `tf.Module` has no such attribute: override this if the port keeps them elsewhere.
    """
    return getattr(layer, 'losses', ())

  def fill_values(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the fixed value of a variable for the runs without randomness.

    Override it if a variable has a domain that its name does not show (a
    probability, a sorted table). The default is `tf2verify.distinct_values`.

    Args:
      name: the variable's tf1 name.
      shape: its shape.
      dtype: its dtype.

    Returns:
      The array; None to keep the variable's initial value.
    """
    return distinct_values(name, shape, dtype)

  @final
  @classmethod
  def tearDownClass(cls) -> None:
    """Writes the class's report if one is wanted, and releases graphs and layers."""
    super().tearDownClass()
    if cls._ladder is not None:
      cls._ladder.close()
      directory = default_report_dir()
      if directory:
        write_reports(cls._ladder.verdict(), climbed_cases(), directory)
      events = writing.default_directory()
      if events:
        writing.write_cases(events, [cls._ladder.verdict()])

  def __init_subclass__(cls, **arguments: Any) -> None:
    """Attaches one test per stage to the subclass."""
    super().__init_subclass__(**arguments)
    cls._ladder = None
    cls._shown = ShownFailures()
    for name in cls.__dict__:
      if name in _FINAL or name in _TESTS:
        raise CaseDefinitionError(
          f'{cls.__name__} overrides {name}, which is final: tf2verify controls the order and the '
          'state of the stages; put what the model needs into the hooks'
        )
    for name, stage in _TESTS.items():
      setattr(cls, name, None if abc.ABC in cls.__bases__ else _test_method(name, stage))

  def _check_stage(self, stage: type[Stage]) -> None:
    __tracebackhide__ = True  # for pytest
    cls = type(self)
    if '_incomplete' in vars(cls):  # one test has said it
      self.skipTest(f'{cls.__name__} is not a complete case: {cls._incomplete}')
    try:
      _check_hooks(cls)
    except CaseDefinitionError as error:
      cls._incomplete = str(error)
      raise
    progress = terminal.StageProgress()
    if cls._ladder is None:
      if writing.default_directory():
        writing.require(writing.default_directory())
      cls._ladder = new_ladder(cls, progress)
    with deprecations.unsaid_unless_asked():
      verdict = cls._ladder.stage(stage)
    progress.clear()
    terminal.say(f'{cls.__name__}: {terminal.stage_line(verdict)}')
    if verdict.status is Status.PASSED:
      return
    case = cls._ladder.verdict()
    found = shown_by_test(case, verdict)
    if verdict.status is Status.NOT_APPLICABLE or not cls._shown.shows(
      verdict, found.stage, cls.stages
    ):
      self.skipTest(verdict.reason)
    raise self.failureException(terminal.exception_text(case, found, verdict))


def _test_method(name: str, stage: type[Stage]) -> Callable[[EquivalenceCase], None]:
  def test(self: EquivalenceCase) -> None:
    self._check_stage(stage)

  test.__name__ = name
  test.__qualname__ = f'EquivalenceCase.{name}'
  test.__doc__ = f'{stage.name}: {stage.proves}.'
  return test


_TESTS = {test_name(stage): stage for stage in STAGES}
_DECLARABLE = tuple(
  name
  for home in (EquivalenceCase, OptionalHooks)
  for name in vars(home)
  if not name.startswith('_') and name not in _FINAL
)


def _missing_hook(cls: type, hook: str) -> str:
  near = near_miss(cls, EquivalenceCase, hook)
  guess = f' ({near} is close: is that meant?)' if near else ''
  return (
    f'{cls.__name__} does not override {hook}{guess}; a case declares '
    f'{", ".join(hooks.REQUIRED)} (or, with tf1_recording, make_tf2_layer). A base class that '
    'leaves a hook to its subclasses lists abc.ABC among its bases'
  )


def missing_hooks(cls: type[EquivalenceCase]) -> list[str]:
  """Returns the abstract hooks that a class does not override, and needs."""
  needed = hooks.REQUIRED if cls.tf1_recording is None else ('make_tf2_layer',)
  return [hook for hook in needed if getattr(cls, hook) is getattr(EquivalenceCase, hook)]


def _check_hooks(cls: type[EquivalenceCase]) -> None:
  """Raises `CaseDefinitionError` for a hook that is misspelled or missing."""
  # With a recording these are no hooks, so that nothing can be meant for them.
  recorded = () if cls.tf1_recording is None else hooks.OF_REFERENCE
  names = [name for name in _DECLARABLE if name not in recorded]
  found = misspelled_hook(cls, EquivalenceCase, names)
  if found is not None:
    home, name, hook = found
    said = (
      f'{home.__name__} defines {name}: did you mean {hook}? No stage looks at {name}, and no '
      f'method of the case uses it; if it is a helper, call it _{name}'
    )
    raise CaseDefinitionError(with_place(said, name, vars(home)[name]))
  missing = missing_hooks(cls)
  if missing:
    raise CaseDefinitionError(_missing_hook(cls, missing[0]))


def _check_reference(cls: type[EquivalenceCase]) -> None:
  """Raises `CaseDefinitionError` for a case with two references."""
  own = [
    hook for hook in hooks.OF_REFERENCE if getattr(cls, hook) is not getattr(EquivalenceCase, hook)
  ]
  if cls.tf1_recording is not None and own:
    raise CaseDefinitionError(
      f'{cls.__name__} sets tf1_recording and overrides {", ".join(own)}: which is the reference? '
      'Leave the hooks out, since the recording replaces them (record with --loss, '
      '--optimizer, ...); or leave tf1_recording out (tf1_recording = None in a subclass)'
    )


def declared_case(cls: type[EquivalenceCase]) -> Any:
  """Returns what a case class declares, as the ladder and both sides ask for it.

  Raises:
    CaseDefinitionError: the class is not a complete case.
  """
  if not (isinstance(cls, type) and issubclass(cls, EquivalenceCase)):
    raise CaseDefinitionError(
      f'verify takes a subclass of tf2verify.EquivalenceCase, the class itself; got {cls!r:.80}'
    )
  _check_hooks(cls)
  _check_reference(cls)
  check_train_op(cls)
  resources_of(cls)
  case = cls()
  check_signatures(case)
  return declaration_of(case, EquivalenceCase)


def new_ladder(
  cls: type[EquivalenceCase], progress: Progress, source: ReferenceSource | None = None
) -> Ladder:
  """Returns the ladder of a case class; raises as `declared_case` does."""
  declared = declared_case(cls)
  check_taken_modules(cls.__module__)
  path = getattr(sys.modules.get(cls.__module__), '__file__', None)
  place = place_of(cls)

  def run_again(test: str) -> str:
    if path is None:
      return f'tf2verify.verify({cls.__name__})'
    if runs_its_tests(path):
      return f'python {place} {cls.__name__}.{test}'
    return f'python -m tf2verify run {place}::{cls.__name__} --stages {_TESTS[test].name}'

  name = CaseName(cls.__name__, place, run_again)
  return Ladder(declared, name, progress, source or source_for(False))


def stage_of_test(test: str) -> str:
  """Returns the name of the stage that a test method of a case runs; '' for any other method."""
  return _TESTS[test].name if test in _TESTS else ''


def verdict_of(cls: type[EquivalenceCase]) -> CaseVerdict | None:
  """Returns what the tests of a case have found in this process; None if none has run."""
  return None if cls._ladder is None else cls._ladder.verdict()


def climbed_cases() -> list[CaseVerdict]:
  """Returns the verdicts of the case classes whose tests have run in this process."""
  found, pending = [], list(EquivalenceCase.__subclasses__())
  while pending:
    cls = pending.pop(0)
    pending += cls.__subclasses__()
    if cls._ladder is not None:
      found.append(cls._ladder.verdict())
  return found


def verify(
  case: type[EquivalenceCase],
  stages: Iterable[str] | None = None,
  on_stage: Callable[[StageVerdict], None] | None = None,
  progress: Progress | None = None,
  timeout: float | None = None,
  on_stuck: Callable[[CaseVerdict], object] | None = None,
  reuse_reference: bool | str = False,
) -> CaseVerdict:
  """Climbs the ladder without a test runner: in a notebook, a script or a scheduler.

  Args:
    case: a subclass of `EquivalenceCase`.
    stages: names or numbers of the stages to run, in addition to those they need; None for all.
    on_stage: called with every verdict as soon as it is available.
    progress: called with one line of text before every long step.
    timeout: in seconds, in the main thread only; see `tf2verify.environment.time_limit`. None for
      no limit.
    on_stuck: called in a different thread, with the results so far, if native code cannot be
      interrupted after the timeout.
    reuse_reference: whether to take the graphs of the reference from an earlier run, where nothing
      that they depend on has changed since, and to leave them for the next; a path is the folder,
      True the user's cache. See docs/loop.md.

  Returns:
    The verdict on the chosen stages and those that they need.

  Raises:
    CaseDefinitionError: the class is not a complete case, or a stage is unknown.
  """
  if isinstance(stages, str):
    raise CaseDefinitionError(f'stages is {stages!r}; it must be a list of names: [{stages!r}]')
  for name, told in (('on_stage', on_stage), ('progress', progress), ('on_stuck', on_stuck)):
    if told is not None and not callable(told):
      raise CaseDefinitionError(
        f'{name} is {told!r:.80}; it must be a function that is called with what there is to tell, '
        f'{name}=print, or None'
      )
  chosen = stage_names(range(1, len(STAGES) + 1) if stages is None else stages)
  forget_lines()  # a notebook may have edited and loaded a module again
  ladder = new_ladder(case, progress or (lambda _: None), source_for(reuse_reference))
  with contextlib.closing(ladder):
    stuck = lambda: on_stuck and on_stuck(ladder.given_up(timeout or 0))  # noqa: E731
    with time_limit.limited(timeout, stuck), deprecations.unsaid_unless_asked():
      for stage in STAGES:
        if stage.name in chosen:
          verdict = ladder.stage(stage)
          if on_stage is not None:
            on_stage(verdict)
    return ladder.verdict()
