"""Which cases a fleet has to run."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tf2verify.errors import UsageError
from tf2verify.fleet import job as jobs
from tf2verify.fleet.content import Digests
from tf2verify.fleet.ended import Ended
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.local_engine import Request
from tf2verify.fleet.places import Place
from tf2verify.fleet.results import Discovery
from tf2verify.records.resources import Resources


@dataclasses.dataclass(frozen=True)
class Unit:
  """A case to be run, or a file whose cases could not be found."""

  key: str  # how the journal names it: `path::Case`, or `path`
  target: str  # what `run` takes, the path absolute
  place: Place  # the file or module
  failed: Ended | None = None  # how the process ended that was to find the cases; None for a case
  resources: Resources = dataclasses.field(default_factory=Resources)  # what the case needs


@dataclasses.dataclass(frozen=True)
class Plan:
  """What there is to run."""

  units: tuple[Unit, ...]  # in order
  files: tuple[str, ...]  # names of the files and modules that were looked into
  empty: tuple[str, ...]  # names of those that declare no case
  declared: frozenset[str]  # the keys of all cases that these files declare, asked for or not


def discovered(
  places: Sequence[Place],
  journal: Journal,
  digests: Digests,
  ended: Iterable[tuple[Request, Ended]],
) -> Plan:
  """Looks for the cases of files.

  Args:
    places: the files.
    journal: gets what was found.
    digests: of files.
    ended: the processes that `requests` asks for.

  Raises:
    UsageError: a case is asked for that is not there, or a file that has none.
  """
  found = dict(_known(places, journal, digests))
  failed: dict[str, Ended] = {}
  homes: dict[str, str] = {}
  for request, process in ended:
    place = request.key
    told = process.last(jobs.FOUND)
    refused = process.last(jobs.REFUSED)
    if refused is not None and refused['usage']:
      raise UsageError(refused['error'])
    if told is None:
      failed[place.key] = process
      continue
    cases = {name: Resources.from_fields(fields) for name, fields in told['cases'].items()}
    found[place.key] = cases
    homes[place.key] = told['file'] or ''
    if place.is_file:
      # A module's file depends on the folder that it is looked for from.
      journal.write_discovery(Discovery(place.key, told['files'], cases))
  paths = {place.target for place in places if place.is_file}
  places = [place for place in places if place.is_file or homes.get(place.key) not in paths]
  units: list[Unit] = []
  for place in places:
    if place.key in failed:
      units.append(Unit(place.key, place.target, place, failed[place.key]))
    else:
      units += _units(place, found[place.key])
  empty = [place.key for place in places if place.key in found and not found[place.key]]
  declared = {f'{place.key}::{case}' for place in places for case in found.get(place.key, ())}
  files = tuple(place.key for place in places)
  return Plan(tuple(units), files, tuple(empty), frozenset(declared | failed.keys()))


def requests(places: Sequence[Place], journal: Journal, digests: Digests) -> Iterator[Request]:
  """Yields a request for each file of which the journal does not know the cases."""
  known = {key for key, _ in _known(places, journal, digests)}
  for place in places:
    if place.key not in known:
      yield Request(jobs.DISCOVER, place.target, None, place)


def _known(
  places: Sequence[Place], journal: Journal, digests: Digests
) -> Iterator[tuple[str, Mapping[str, Resources]]]:
  for place in places:
    known = journal.discovery(place.key)
    if known is not None and place.target in known.files and digests.are_unchanged(known.files):
      yield place.key, known.cases


def _units(place: Place, cases: Mapping[str, Resources]) -> Iterator[Unit]:
  unknown = sorted(place.wanted - set(cases))
  if unknown:
    raise UsageError(
      f'{place.key} has no case {unknown[0]}; it has {", ".join(sorted(cases)) or "none"}'
    )
  if place.named and not cases:
    raise UsageError(
      f'{place.key} declares no complete EquivalenceCase: a case overrides build_tf1_graph, '
      'make_tf2_layer and make_inputs'
    )
  for case, resources in cases.items():
    if not place.wanted or case in place.wanted:
      key, target = f'{place.key}::{case}', f'{place.target}::{case}'
      yield Unit(key, target, place, resources=resources)
