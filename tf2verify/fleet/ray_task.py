"""One job in a worker of Ray, which hands it to a fork server of its own and keeps that.

Ray starts a worker process per processor and gives it one task after the other, so that
TensorFlow is imported once per worker; each case is a copy of a process that has run
nothing, as of the local engine, whose limits, verdicts and words these are.
"""

import dataclasses
import functools
import os
import sys
from collections.abc import Iterator, Mapping

from tf2verify.errors import EnvironmentProblem, Tf2VerifyError
from tf2verify.fleet.content import package_versions
from tf2verify.fleet.ended import Ended
from tf2verify.fleet.local_engine import Limits, LocalEngine, Request
from tf2verify.fleet.machine import memory_for_jobs, processors
from tf2verify.fleet.server_process import Surroundings
from tf2verify.fleet.shipping import Origin, PathMapping, shipped_code

# Set in workers, which import no TensorFlow themselves; see tf2verify/__init__.py.
SUPERVISES = 'TF2VERIFY_SUPERVISES'
# What Ray sets in its workers, and a process on this machine would not have.
_OF_RAY = ('RAY_', 'PYTHONPATH', 'PYTHONBREAKPOINT', 'OMP_NUM_THREADS', SUPERVISES)
# It is shipped, so that it is the same one.
_SHIPPED = 'tf2verify'


@dataclasses.dataclass(frozen=True)
class Task:
  """A job for a worker.

  Attributes:
    request: with the paths of the machine that it comes from.
    limits: without memory, an even share of the node's.
    module: as of `LocalEngine`.
    origin: that machine.
  """

  request: Request
  limits: Limits
  module: str
  origin: Origin


@dataclasses.dataclass(frozen=True)
class Began:
  """A worker has taken a task.

  Attributes:
    node: as Ray knows it.
  """

  node: str


@dataclasses.dataclass(frozen=True)
class Unfit:
  """A node cannot run cases.

  Attributes:
    why: for the reader.
    environment: whether its packages are the reason.
  """

  why: str
  environment: bool


def perform(task: Task) -> Iterator[Began | Ended | Unfit]:
  """Does a job: yields that it has begun, and how it ended."""
  import ray

  yield Began(ray.get_runtime_context().get_node_id())
  other = _other_versions(task.origin.versions)
  if other:
    yield Unfit(f'{other}; give all nodes the same packages', environment=True)
    return
  try:
    yield _done(task)
  except Tf2VerifyError as error:
    yield Unfit(str(error), isinstance(error, EnvironmentProblem))


def _other_versions(wanted: Mapping[str, str]) -> str:
  here = package_versions()
  names = [name for name in {**wanted, **here} if name != _SHIPPED]
  other = [
    f'{name} {here.get(name, "missing")} where the fleet was started with '
    f'{wanted.get(name, "none")}'
    for name in names
    if here.get(name) != wanted.get(name)
  ]
  return ', '.join(other)


def _done(task: Task) -> Ended:
  code = shipped_code(sys.path)
  to, back = task.origin.moves_to(code), task.origin.moves_back(code)
  request = dataclasses.replace(task.request, target=to.text(task.request.target))
  folder = task.origin.working_folder_at(code)
  os.makedirs(folder, exist_ok=True)  # empty folders are not shipped
  path = task.origin.path_at(code, sys.path)
  surroundings = Surroundings(path, _environment(task.origin), folder)
  ended = _kept_engine().do(request, _limits(task.limits), task.module, surroundings)
  return _moved(ended, back)


def _environment(origin: Origin) -> dict[str, str]:
  own = {name: value for name, value in os.environ.items() if not name.startswith(_OF_RAY)}
  return {**own, **origin.environment}


def _limits(limits: Limits) -> Limits:
  share = memory_for_jobs() // processors()
  return dataclasses.replace(limits, memory=share if limits.memory is None else limits.memory)


def _moved(ended: Ended, moves: PathMapping) -> Ended:
  return dataclasses.replace(
    ended,
    events=tuple(moves.everywhere(event) for event in ended.events),
    log=moves.text(ended.log),
    reason=moves.text(ended.reason),
  )


class _KeptEngine:
  """A local engine for as long as it fits what is asked for."""

  def __init__(self) -> None:
    self._made_of: object = None
    self._engine: LocalEngine | None = None

  def do(self, request: Request, limits: Limits, module: str, surroundings: Surroundings) -> Ended:
    """Does a job.

    Raises:
      Tf2VerifyError: as of `LocalEngine.run`.
    """
    made_of = (limits, module, surroundings)
    if self._made_of != made_of:  # of a GPU's number, for instance
      self.close()
    finished = False
    try:
      if self._engine is None:
        self._engine = LocalEngine(1, limits, module, surroundings).__enter__()
        self._made_of = made_of
      ((_, ended),) = self._engine.run([request], lambda _: None)
      finished = True
      return ended
    finally:
      if not finished:  # the job may still run: Ray has cancelled the task
        self.close()

  def close(self) -> None:
    """Ends the processes of the engine."""
    engine, self._engine, self._made_of = self._engine, None, None
    if engine is not None:
      engine.__exit__(None, None, None)


@functools.cache
def _kept_engine() -> _KeptEngine:
  """Returns the one of this process; it ends with it."""
  return _KeptEngine()
