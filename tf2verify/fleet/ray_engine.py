"""Jobs done by a Ray cluster: each is a task, with what its case needs."""

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tf2verify.errors import EnvironmentProblem, Tf2VerifyError
from tf2verify.fleet import ray_cluster, ray_task
from tf2verify.fleet.content import environment_of_cases, package_versions
from tf2verify.fleet.ended import Ended
from tf2verify.fleet.local_engine import Limits, Request
from tf2verify.fleet.ray_task import Began, Task, Unfit
from tf2verify.fleet.server_process import MODULE
from tf2verify.fleet.shipping import Origin, installed_folders

_LOOK_SECONDS = 0.5
# Tasks that Ray has at once, waiting ones among them: it plans, and may add nodes.
_MOST_TASKS = 1000
# How often a job may lose its worker on a node that lives on, and how often in all.
_MOST_LOST_WORKERS, _MOST_LOST = 3, 6


@dataclasses.dataclass(frozen=True)
class Cluster:
  """Which cluster, and what is shipped there."""

  address: str | None  # as of `ray_cluster.connected`
  roots: tuple[str, ...]  # folders to ship
  without: tuple[str, ...] = ()  # files that are not shipped: the journal
  patience: float = 60.0  # seconds to wait for a node that can hold a case while there is none


@dataclasses.dataclass
class _UnderWay:
  """A request that Ray has been given."""

  request: Request
  start: float
  has_begun: bool = False
  node: str = ''
  unmet_since: float | None = None
  lost_on: list[str] = dataclasses.field(default_factory=list)


class RayEngine:
  """Does jobs by Ray tasks, until it is closed.

  A task whose worker or node is lost is given to Ray again; a job that loses its worker
  three times on nodes that live on is to blame. Ray's own retries are off, since they
  cannot tell the two apart.

  Args:
    cluster: which.
    limits: of each job; without memory, an even share of the node's.
    jobs: how many at once; None for as many as the cluster has room for.
    module: the program of the processes that are copied.
  """

  def __init__(
    self, cluster: Cluster, limits: Limits, jobs: int | None = None, module: str = MODULE
  ) -> None:
    self._cluster = cluster
    self._limits = limits
    self._jobs = jobs
    self._module = module
    self._under_way: dict[Any, _UnderWay] = {}  # by the stream of what the task tells
    self._connection = contextlib.ExitStack()
    self._perform: Any = None
    self._origin = Origin(
      cluster.roots,
      os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
      os.getcwd(),
      tuple(sys.path),
      installed_folders(),
      environment_of_cases(),
      package_versions(),
    )

  def __enter__(self) -> 'RayEngine':
    cluster = self._cluster
    self._connection.enter_context(
      ray_cluster.connected(cluster.address, self._jobs, cluster.roots, cluster.without)
    )
    import ray

    self._perform = ray.remote(num_returns='streaming', max_retries=0)(ray_task.perform)
    return self

  def __exit__(self, *_: object) -> None:
    try:
      self._cancel_all()
    finally:
      self._connection.close()

  def run(
    self, requests: Iterable[Request], started: Callable[[Request], None]
  ) -> Iterator[tuple[Request, Ended]]:
    """Does jobs, and yields each as soon as it has ended.

    Args:
      requests: asked for one by one, when there is room.
      started: called when a worker begins with a job.

    Raises:
      EnvironmentProblem: a node has other packages, or cannot run TF1-style code.
      Tf2VerifyError: Ray cannot run tasks.
    """
    import ray

    waiting = iter(requests)
    looked = time.monotonic()
    while True:
      while len(self._under_way) < (self._jobs or _MOST_TASKS):
        request = next(waiting, None)
        if request is None:
          break
        self._submit(_UnderWay(request, time.monotonic()))
      if not self._under_way:
        return
      ready, _ = ray.wait(list(self._under_way), num_returns=1, timeout=_LOOK_SECONDS)
      for stream in ready:
        yield from self._heard(stream, started)
      if time.monotonic() - looked > _LOOK_SECONDS:
        yield from self._without_node()
        looked = time.monotonic()

  def _submit(self, under_way: _UnderWay) -> None:
    """Gives a request to Ray, with what its case needs."""
    resources = under_way.request.resources
    request = dataclasses.replace(under_way.request, key=None)
    memory = self._limits.memory_of(request)
    options = {'memory': memory} if memory is not None else {}
    task = Task(request, self._limits, self._module, self._origin)
    remote = self._perform.options(num_cpus=resources.cpus, num_gpus=resources.gpus, **options)
    under_way.node, under_way.unmet_since = '', None
    self._under_way[remote.remote(task)] = under_way

  def _heard(
    self, stream: Any, started: Callable[[Request], None]
  ) -> Iterator[tuple[Request, Ended]]:
    """Takes what a task tells next."""
    import ray
    from ray import exceptions

    under_way = self._under_way[stream]
    try:
      told = ray.get(next(stream))
    except exceptions.RuntimeEnvSetupError as error:
      raise Tf2VerifyError(f'Ray could not set up the files on a node: {error}') from error
    except exceptions.RayTaskError as error:
      raise Tf2VerifyError(f'a worker of Ray failed: {error}') from error
    except (exceptions.RayError, StopIteration) as error:
      del self._under_way[stream]
      yield from self._lost(under_way, error)
      return
    if isinstance(told, Began):
      under_way.node = told.node
      if not under_way.has_begun:
        under_way.has_begun = True
        started(under_way.request)
      return
    if isinstance(told, Unfit):
      kind = EnvironmentProblem if told.environment else Tf2VerifyError
      raise kind(f'the node {_address_of(under_way.node)} of the Ray cluster: {told.why}')
    del self._under_way[stream]
    yield under_way.request, told

  def _lost(self, under_way: _UnderWay, error: Exception) -> Iterator[tuple[Request, Ended]]:
    """Gives a request to Ray again, unless it has been lost too often."""
    under_way.lost_on.append(under_way.node)
    alive = ray_cluster.alive_nodes()
    workers = sum(node in alive for node in under_way.lost_on)
    if workers < _MOST_LOST_WORKERS and len(under_way.lost_on) < _MOST_LOST:
      self._submit(under_way)
      return
    if workers >= _MOST_LOST_WORKERS:
      reason = (
        f'the Ray worker that ran it ended {workers} times, on nodes that stayed up: the case ends '
        'processes that are not its own, or takes memory that the node does not have'
      )
    else:
      reason = (
        f'it was lost with its node {len(under_way.lost_on)} times: the cluster loses nodes, or '
        'the case brings them down; --retry runs it again'
      )
    said = ' '.join(str(error).split())
    yield under_way.request, _error(under_way, f'{reason}; Ray: {type(error).__name__} {said}')

  def _without_node(self) -> Iterator[tuple[Request, Ended]]:
    """Gives up what no node can hold, if none has come for a while."""
    pending = [(stream, one) for stream, one in self._under_way.items() if not one.node]
    if not pending:
      return
    nodes, now = ray_cluster.alive_nodes(), time.monotonic()
    for stream, one in pending:
      needed = dataclasses.replace(
        one.request.resources, memory_gib=_gib(self._limits.memory_of(one.request))
      )
      if any(ray_cluster.can_hold(node, needed) for node in nodes.values()):
        one.unmet_since = None
        continue
      one.unmet_since = one.unmet_since or now
      if now - one.unmet_since >= self._cluster.patience:
        del self._under_way[stream]
        _cancel(stream)
        yield (
          one.request,
          _error(
            one,
            f'no node of the Ray cluster can hold the case: it needs {needed}; there is '
            f'{ray_cluster.nodes_text(nodes)}',
          ),
        )

  def _cancel_all(self) -> None:
    for stream in self._under_way:
      _cancel(stream)
    self._under_way.clear()


def _gib(memory: int | None) -> float | None:
  return None if memory is None else memory / 2**30


def _cancel(stream: Any) -> None:
  import ray
  from ray import exceptions

  with contextlib.suppress(exceptions.RayError):
    ray.cancel(stream, force=True)  # what the worker has started ends with it


def _address_of(node: str) -> str:
  import ray

  found = [one['NodeManagerAddress'] for one in ray.nodes() if one['NodeID'] == node]
  return found[0] if found else node


def _error(under_way: _UnderWay, reason: str) -> Ended:
  seconds = time.monotonic() - under_way.start
  return Ended(None, (), '', reason, seconds, 0)
