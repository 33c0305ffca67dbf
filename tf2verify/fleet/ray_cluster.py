"""The connection to a Ray cluster, with the files that its nodes need."""

import contextlib
import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf2verify.errors import EnvironmentProblem, UsageError
from tf2verify.fleet import shipping
from tf2verify.fleet.ray_task import SUPERVISES
from tf2verify.records.resources import Resources

_CONNECT_SECONDS = 10.0
_VARIABLE = 'RAY_ADDRESS'
_CLIENT = 'ray://'


def require() -> None:
  """Checks that Ray is installed.

  Raises:
    EnvironmentProblem: it is not.
  """
  try:
    import ray  # noqa: F401
  except ImportError as error:
    raise EnvironmentProblem(
      f'--engine ray needs ray, which this Python does not have ({error}): pip install '
      "'tf2verify[ray]'"
    ) from error


@contextlib.contextmanager
def connected(
  address: str | None, processors: int | None, roots: Sequence[str], without: Sequence[str]
) -> Iterator[None]:
  """Connects this process to a cluster until exit, and ships what its nodes need.

  Args:
    address: HOST:PORT; None for what RAY_ADDRESS names, else a cluster that this machine
      is in, else one of this machine alone, for as long as it is connected.
    processors: of the cluster of this machine alone; None for all.
    roots: folders to ship.
    without: files that are not shipped.

  Raises:
    EnvironmentProblem: Ray is not installed.
    UsageError: there is no such cluster, or too much to ship.
  """
  require()
  import ray

  address = address or os.environ.get(_VARIABLE) or None
  if address is not None:
    _check(address)
  with tempfile.TemporaryDirectory(prefix='tf2verify-ray-') as folder:
    shipping.stage(roots, folder, without)
    options = {
      # Not as `working_dir`, which nodes on one machine (of Ray's own tests, and of these)
      # take from under each other.
      'runtime_env': {
        'py_modules': [os.path.join(folder, name) for name in (shipping.OWN, shipping.CODE)],
        'env_vars': {SUPERVISES: '1'},
      },
      'log_to_driver': False,
      'logging_level': logging.ERROR,
    }
    with _own_signal_handlers():
      try:
        _connect(address, processors, options)
      except (OSError, RuntimeError, ValueError) as error:
        ray.shutdown()
        raise UsageError(_not_connected(address, error)) from error
  try:
    yield
  finally:
    ray.shutdown()


def _connect(address: str | None, processors: int | None, options: Mapping[str, Any]) -> None:
  import ray

  if address is not None:
    ray.init(address=address, **options)
    return
  try:
    ray.init(address='auto', **options)
  except ConnectionError:  # there is none
    os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
    ray.init(address='local', num_cpus=processors, include_dashboard=False, **options)


def _check(address: str) -> None:
  """Raises `UsageError` at once where Ray would try for a minute."""
  if address.startswith(_CLIENT):
    raise UsageError(
      f'--ray_address {address} is of the Ray client, which does not report lost nodes; start '
      'the fleet on a machine of the cluster (ray job submit does), with --ray_address HOST:6379'
    )
  host, _, port = address.rpartition(':')
  if not host:  # a word that Ray knows: auto, local
    return
  if not port.isdecimal():
    raise UsageError(f'--ray_address {address} is not HOST:PORT')
  try:
    socket.create_connection((host.strip('[]'), int(port)), _CONNECT_SECONDS).close()
  except (OSError, OverflowError) as error:
    raise UsageError(_not_connected(address, error)) from error


def _not_connected(address: str | None, error: Exception) -> str:
  there = f'the Ray cluster at {address}' if address else 'Ray on this machine'
  return (
    f'could not connect to {there}: {error}; `ray status --address HOST:PORT` shows a cluster that '
    f'is up, and --ray_address, or {_VARIABLE}, names it'
  )


@contextlib.contextmanager
def _own_signal_handlers() -> Iterator[None]:
  """Puts the handlers back that Ray replaces."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
  try:
    yield
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)


def alive_nodes() -> dict[str, dict[str, float]]:
  """Returns what each living node has, by its name; `memory` in bytes."""
  import ray

  return {node['NodeID']: node['Resources'] for node in ray.nodes() if node['Alive']}


def can_hold(node: Mapping[str, float], resources: Resources) -> bool:
  """Returns whether a node could run a case if nothing else ran there."""
  needed = {'CPU': resources.cpus, 'GPU': resources.gpus, 'memory': resources.memory or 0}
  return all(node.get(name, 0) >= amount for name, amount in needed.items())


def nodes_text(nodes: Mapping[str, Mapping[str, float]]) -> str:
  """Returns what the nodes have: `2 nodes of CPU 4, GPU 0, 7.5 GiB of memory`."""
  kinds: dict[str, int] = {}
  for node in nodes.values():
    memory = node.get('memory', 0) / 2**30
    text = f'CPU {node.get("CPU", 0):g}, GPU {node.get("GPU", 0):g}, {memory:.1f} GiB of memory'
    kinds[text] = kinds.get(text, 0) + 1
  told = [f'{count} node{"" if count == 1 else "s"} of {text}' for text, count in kinds.items()]
  return '; '.join(told) or 'no node'
