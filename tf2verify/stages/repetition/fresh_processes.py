"""A case repeated in processes of their own."""

import dataclasses
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.variation import OtherProcesses
from tf2verify.errors import CaseDefinitionError
from tf2verify.numerics.repeatability import differing
from tf2verify.records.repetition import Variation
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.stage import CaseUnderTest

_MODULE = 'tf2verify.commands.fingerprint'
_SHOWN_LINES = 6


@dataclasses.dataclass(frozen=True)
class Environment:
  """What a process is given."""

  hash_seed: int  # PYTHONHASHSEED, by which the order of a set of strings goes
  one_thread: bool = False  # whether TensorFlow has one thread within and one between operations
  op_determinism: bool = False  # whether `enable_op_determinism` is called

  def __str__(self) -> str:
    words = ['one thread'] if self.one_thread else []
    words += ['op determinism'] if self.op_determinism else []
    return ', '.join([f'PYTHONHASHSEED={self.hash_seed}', *words])

  @property
  def is_plain(self) -> bool:
    """Whether the process differs from this one in nothing that may change bits."""
    return not (self.one_thread or self.op_determinism)


@dataclasses.dataclass(frozen=True)
class AcrossProcesses:
  """What the processes have shown."""

  processes: int = 1  # how many, with this one
  tf1: tuple[Variation, ...] = ()  # tensors of the reference that vary from process to process
  tf2: tuple[Variation, ...] = ()  # of the port
  cause: str = ''  # of what varies, where it was seen
  notes: tuple[str, ...] = ()  # for a report
  blind_spots: tuple[str, ...] = ()  # what could not be run


# A process's digests: side, then tensor.
Digests = Mapping[str, Mapping[TensorKey, str]]


def written(digests: Digests) -> str:
  """Returns what a process writes of its digests; see `read`."""
  return json.dumps(
    {
      side: [(key.quantity, key.name, key.run, text) for key, text in found.items()]
      for side, found in digests.items()
    }
  )


def read(text: str) -> Digests:
  """Returns the digests that a process has written."""
  return {
    side: {TensorKey(quantity, name, run): digest for quantity, name, run, digest in rows}
    for side, rows in json.loads(text).items()
  }


def environments(count: int) -> list[Environment]:
  """Returns what each of the processes is given; the first four are of four kinds.

  None has the PYTHONHASHSEED of this process, with which the order of a set would be the same.
  """
  kinds = ((False, False), (True, False), (False, True), (True, True))
  here = os.environ.get('PYTHONHASHSEED')
  seeds = [seed for seed in range(1, count + 2) if str(seed) != here][:count]
  return [
    Environment(seed, *(kinds[at] if at < len(kinds) else kinds[0]))
    for at, seed in enumerate(seeds)
  ]


def repeated(
  case: CaseUnderTest, tf1: Mapping[TensorKey, str], tf2: Mapping[TensorKey, str]
) -> AcrossProcesses:
  """Runs the case in as many processes as it asks for.

  Args:
    case: both sides.
    tf1: digests of the reference's tensors in this process.
    tf2: of the port's.

  Raises:
    CaseDefinitionError: `fresh_processes` is not a number of processes.
  """
  count = case.declaration.fresh_processes
  if type(count) is not int or count < 0:
    raise CaseDefinitionError(
      f'fresh_processes is {count!r}; it must be the number of processes that repeat the case: 0, 2'
    )
  if not count:
    return AcrossProcesses(
      notes=('repeated in this process only: fresh_processes = 2 repeats it in two others',)
    )
  target = _target(case)
  if not target:
    return AcrossProcesses(
      blind_spots=(
        'not repeated across processes: the case is not declared at the top of a Python file, '
        'where a different process could find it',
      )
    )
  here: Digests = {'tf1': tf1, 'tf2': tf2}
  found = AcrossProcesses()
  for environment in environments(count):
    found = _with_process(found, target, environment, here)
  return found


def _with_process(
  found: AcrossProcesses, target: str, environment: Environment, here: Digests
) -> AcrossProcesses:
  """Returns what was found so far, and what one process more shows."""
  there, failure = _digests_of(target, environment)
  if there is None:
    spot = f'the process with {environment} ended with an error: {failure}'
    return dataclasses.replace(found, blind_spots=(*found.blind_spots, spot))
  found = dataclasses.replace(found, processes=found.processes + 1)
  what = 'different bits in a different process'
  differ = {name: tuple(differing(here[name], there[name], what)) for name in ('tf1', 'tf2')}
  if not any(differ.values()):
    return found
  if not environment.is_plain:
    count = sum(map(len, differ.values()))
    note = f'{count} tensors have different bits in a process with {environment}'
    return dataclasses.replace(found, notes=(*found.notes, note))
  cause = found.cause or _cause(target, environment, there)
  return dataclasses.replace(
    found,
    tf1=found.tf1 or differ['tf1'],
    tf2=found.tf2 or differ['tf2'],
    cause=cause,
  )


def _cause(target: str, environment: Environment, there: Digests) -> str:
  """Runs two more processes, to tell whether it is Python's hash seed that matters."""
  again, _ = _digests_of(target, environment)
  other = dataclasses.replace(environment, hash_seed=environment.hash_seed + 1000)
  otherwise, _ = _digests_of(target, other)
  return first_cause(
    OtherProcesses(
      repeats=None if again is None else again == there,
      hash_seed_counts=otherwise is not None and otherwise != there,
    )
  )


def _target(case: CaseUnderTest) -> str:
  """Returns `FILE::Case`; '' where another process could not find the case."""
  cls = getattr(case.declaration, 'case_class', type(case.declaration))
  try:
    path = inspect.getfile(cls)
  except (OSError, TypeError):
    return ''
  if cls.__qualname__ != cls.__name__ or not os.path.isfile(path):
    return ''
  return f'{os.path.abspath(path)}::{cls.__name__}'


def _digests_of(target: str, environment: Environment) -> tuple[Digests | None, str]:
  """Returns what a process of its own finds, or the end of its error."""
  threads = {'TF_NUM_INTEROP_THREADS': '1', 'TF_NUM_INTRAOP_THREADS': '1'}
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, 'digests.json')
    options = ['--op_determinism'] if environment.op_determinism else []
    done = subprocess.run(
      [sys.executable, '-m', _MODULE, *options, target, path],
      env={
        **os.environ,
        'PYTHONPATH': os.pathsep.join(filter(None, sys.path)),
        'PYTHONHASHSEED': str(environment.hash_seed),
        **(threads if environment.one_thread else {}),
      },
      capture_output=True,
      text=True,
      errors='replace',
      check=False,
    )
    if done.returncode:
      return None, ' '.join(done.stderr.splitlines()[-_SHOWN_LINES:])
    with open(path, encoding='utf-8') as file:
      return read(file.read()), ''
