"""Graphs of a reference kept in a folder, for the next run on the same machine."""

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, final

from tf2verify.errors import UsageError
from tf2verify.records.wording import listed
from tf2verify.sides.kept import dependencies, graph_entry
from tf2verify.sides.kept.fingerprint import Fingerprint
from tf2verify.sides.kept.installed import file_digest
from tf2verify.sides.kept.outside import Outside
from tf2verify.sides.process import own_arithmetic
from tf2verify.sides.side import Progress
from tf2verify.sides.tf1.graphs.build import BuiltGraph
from tf2verify.sides.tf1.graphs.live_graphs import GraphKey

_FORMAT = 3
_MANIFEST = 'kept.json'


@final
class Shelf:
  """Has the graphs of an earlier run as long as nothing that they depend on has changed.

  What they depend on is looked at before a graph is taken or built, each time; what is read of
  files and of the environment is recorded while one is built.
  """

  def __init__(self, case: Any, folder: str, progress: Progress) -> None:
    """Takes where to keep graphs; nothing is read yet.

    Args:
      case: an instance.
      folder: of the graphs of all cases.
      progress: called with one line of text before a graph is read.
    """
    self._case = case
    self._folder = os.path.join(folder, _name_of(case))
    self._progress = progress
    self._outside = Outside()
    self._code: Fingerprint | None = None
    self._process: dict[str, str] = {}
    self._manifest: dict[str, Any] = {}  # of the run that made the graphs, where they can be used
    self._why = ''  # what was kept cannot be used
    self._obstacles: dict[str, None] = {}  # why nothing is kept
    self._taken = 0
    self._made: dict[str, tuple[dict[str, Any], bytes]] = {}

  def find(
    self, key: GraphKey, with_gradients: bool
  ) -> tuple[BuiltGraph, graph_entry.Gradients | None] | None:
    """Returns a graph that was kept; None where it is to be built."""
    self._look()
    found = self._manifest.get('graphs', {}).get(_text_of(key, with_gradients))
    if found is None or self._obstacles:
      return None
    self._progress('reading a graph of the reference that was kept')
    with open(os.path.join(self._folder, found['file'] + '.json'), 'rb') as file:
      entry = file.read()
    with open(os.path.join(self._folder, found['file'] + '.pb'), 'rb') as file:
      data = file.read()
    if _sha256(entry) != found['entry'] or _sha256(data) != found['graph']:
      self._manifest, self._why = {}, 'a file of what was kept is damaged'
      return None
    self._taken += 1
    return graph_entry.graph_of(json.loads(entry), data)

  @contextlib.contextmanager
  def building(self) -> Iterator[None]:
    """Records what is read outside while a graph is built."""
    self._look()
    with self._outside.watched():
      yield

  def keep(self, key: GraphKey, built: BuiltGraph, gradients: graph_entry.Gradients | None) -> None:
    """Takes a graph that was built, to be written at the end."""
    self._obstacles |= self._outside.obstacles
    self._look()
    if self._obstacles:
      return
    try:
      self._made[_text_of(key, gradients is not None)] = graph_entry.entry_of(built, gradients)
    except graph_entry.NotKept as error:
      self._obstacles[str(error)] = None

  def said(self) -> str:
    """Returns what a report has to say of the reference."""
    if self._code is None:
      return ''
    if self._obstacles:
      return f'built here and not kept: {listed(list(self._obstacles))}'
    if self._taken:
      more = f', {len(self._made)} built here' if self._made else ''
      return f'reused: {self._taken} graphs that were built {self._manifest["made"]}{more}'
    return f'built here{f", since {self._why}" if self._why else ""}'

  def close(self) -> None:
    """Writes what was built."""
    if not self._made or self._obstacles or self._code is None:
      return
    os.makedirs(self._folder, mode=0o700, exist_ok=True)
    graphs = dict(self._manifest.get('graphs', {}))
    for text, (entry, data) in self._made.items():
      name = _sha256(text.encode())[:16]
      plain = json.dumps(entry).encode()
      _write(os.path.join(self._folder, f'{name}.json'), plain)
      _write(os.path.join(self._folder, f'{name}.pb'), data)
      graphs[text] = {'file': name, 'entry': _sha256(plain), 'graph': _sha256(data)}
    now = datetime.datetime.now(datetime.timezone.utc)
    manifest = {
      'format': _FORMAT,
      'made': self._manifest.get('made', f'{now:%Y-%m-%d %H:%M:%S} UTC'),
      'code': dict(self._code.parts),
      'process': self._process,
      'files': {**self._manifest.get('files', {}), **self._outside.files},
      'environ': {**self._manifest.get('environ', {}), **self._outside.environ},
      'graphs': graphs,
    }
    _write(os.path.join(self._folder, _MANIFEST), json.dumps(manifest).encode())
    self._made.clear()

  def _look(self) -> None:
    """Looks at what the reference depends on: whether it is as it was, and stays so."""
    try:
      code = dependencies.code_of(self._case)
    except Exception as error:  # noqa: BLE001 - it looks at anybody's objects
      code = Fingerprint({}, (f'its code cannot be looked at ({type(error).__name__}: {error})',))
    self._obstacles |= dict.fromkeys(code.obstacles)
    if self._code is None:
      with own_arithmetic.as_user_wants():
        self._code, self._process = code, dependencies.process_of()
      self._open()
      return
    changed = dependencies.changes(self._code.parts, code.parts)
    if changed:
      self._obstacles[f'{listed(changed)} changed while it was built or the port ran'] = None

  def _open(self) -> None:
    try:
      with open(os.path.join(self._folder, _MANIFEST), encoding='utf-8') as file:
        manifest = json.load(file)
    except FileNotFoundError:
      return
    except (OSError, ValueError) as error:
      self._why = f'what was kept cannot be read ({error!s:.80})'
      return
    self._manifest = manifest if isinstance(manifest, dict) else {}
    self._why = self._difference()
    if self._why:
      self._manifest = {}

  def _difference(self) -> str:
    """Returns what is not as it was when the graphs were made; '' where nothing is."""
    manifest = self._manifest
    if manifest.get('format') != _FORMAT:
      return 'what was stored is of a different tf2verify'
    if hasattr(os, 'getuid') and os.stat(self._folder).st_uid != os.getuid():
      return f'{self._folder} belongs to a different user'
    assert self._code is not None
    changed = dependencies.changes(manifest['code'], self._code.parts)
    self._process = dependencies.with_modules_of(manifest['process'], self._process)
    changed += dependencies.changes(manifest['process'], self._process)
    files = {path: file_digest(path) for path in manifest['files']}
    changed += dependencies.changes(manifest['files'], files)
    environ = {name: os.environ.get(name) for name in manifest['environ']}
    named = [name for name, value in manifest['environ'].items() if environ[name] != value]
    changed += [f'environment variable {name}' for name in named]
    return f'{listed(changed)} changed' if changed else ''


def folder_for(given: str | bool) -> str:
  """Returns the folder that graphs are kept in: the one that is given, or the user's cache.

  Raises:
    UsageError: it is a file.
  """
  if isinstance(given, str) and given not in ('', '1'):
    folder = os.path.abspath(given)
  else:
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    folder = os.path.join(cache, 'tf2verify', 'references')
  if os.path.exists(folder) and not os.path.isdir(folder):
    raise UsageError(f'reuse_reference = {folder}: it is a file; give a folder')
  return folder


def _name_of(case: Any) -> str:
  """Returns the name of the folder of a case, of which there may be several of one name."""
  cls = type(case)
  path = getattr(sys.modules.get(cls.__module__), '__file__', None) or cls.__module__
  place = f'{os.path.abspath(path)}::{cls.__qualname__}'
  return f'{cls.__name__[:60]}-{_sha256(place.encode())[:12]}'


def _text_of(key: GraphKey, with_gradients: bool) -> str:
  return json.dumps([*dataclasses.astuple(key), with_gradients])


def _sha256(data: bytes) -> str:
  return hashlib.sha256(data).hexdigest()


def _write(path: str, data: bytes) -> None:
  """Writes a file as a whole, so that another run sees the old one or the new one."""
  handle, name = tempfile.mkstemp(dir=os.path.dirname(path))
  try:
    with os.fdopen(handle, 'wb') as file:
      file.write(data)
    os.replace(name, path)
  except BaseException:
    with contextlib.suppress(OSError):
      os.unlink(name)
    raise
