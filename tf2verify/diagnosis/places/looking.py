"""The sources between two runs, with what differs in the graphs there."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.effects.all_rounds import AllRounds
from tf2verify.diagnosis.divergence.effects.cuts import TimeForCuts, pair_cuts
from tf2verify.diagnosis.divergence.effects.interventions import arriving_sources
from tf2verify.diagnosis.divergence.effects.narrowing import Narrowing
from tf2verify.diagnosis.divergence.effects.no_effect import sources_without_effect
from tf2verify.diagnosis.divergence.effects.trials import Trials, explains
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.evidence.failed_stage import SourceEvidence, Standing
from tf2verify.diagnosis.patterns.graph_difference import GraphComparison
from tf2verify.diagnosis.places.adjacent import part_adjacent
from tf2verify.diagnosis.places.bench import Left, LookedAt
from tf2verify.diagnosis.places.source_records import source_record
from tf2verify.records.op_graph import NodeChange, OpGraph

# How graphs call what a stage compares.
TARGET_OF = {
  'output': 'output',
  'regularization loss': 'regularization loss',
  'gradient': 'gradient',
  'state after the call': 'update of',
  'loss': 'loss',
  'loss gradient': 'loss gradient',
  'model loss': 'model loss',
  'learning rate': 'learning rate',
  'applied gradient': 'applied gradient',
  'slot': 'update of',
  'update': 'update of',
  'state': 'update of',
  'shadow': 'update of shadow of',
  'global step': 'update of global step',
}
_GRADIENT = 'gradient '
_MASKING = ('Mul', 'MulNoNan', 'Select', 'SelectV2')

# Searches past sources without an effect: what they hide may be one again.
_MOST_SEARCHES = 3


def targets_of(compared: Iterable[tuple[str, str]]) -> list[str]:
  """Returns the graphs' names of what is compared, by quantity and tf1 subject."""
  return [f'{TARGET_OF[quantity]} {name}' for quantity, name in compared if quantity in TARGET_OF]


def first_targets(graph: OpGraph, targets: Sequence[str]) -> list[str]:
  """Returns targets without those that are computed from gradients which differ as well.

  An optimizer has operations for each variable, and those of tf1 and of the port are often pairs
  where those of the gradients are none: what is wrong before them would seem to be in them.

  Args:
    graph: of the tf1 side.
    targets: names of what differs.
  """
  ends = graph.targets()
  of_gradients = [ends[name] for name in targets if name.startswith(_GRADIENT) and name in ends]
  made = {n for end in of_gradients for n, _ in graph.ops[end].inputs}
  made = {n for n in made if not graph.ops[n].is_leaf}

  def follows(name: str) -> bool:
    is_gradient = name.startswith(_GRADIENT) or name not in ends
    return not is_gradient and not made.isdisjoint(graph.ancestors([ends[name]]))

  return [name for name in targets if not follows(name)] if made else list(targets)


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
  """A source that was looked at closely."""

  source: FoundSource  # the operation on both sides, narrowed down
  evidence: SourceEvidence  # what rules look at
  # The changes of attributes and constants that mend it, each of them needed.
  settings: tuple[NodeChange, ...]
  # Side and name of the operations before it that have no partner.
  unpaired: frozenset[tuple[str, str]]
  # Whether the port alone masks what it yields: tf1 may have done that before, in another way.
  masked_behind: bool = False


class Looking:
  """Finds the sources between two runs, and looks at each once.

  Attributes:
    tf1: the tf1 side's run.
    tf2: the port's.
    divergence: the search.
    comparison: of the two graphs.
    all_rounds: finds what an edit edits in all rounds of a loop.
    one_round: finds it where it is, alone.
    without_effect: sources that were passed over, since they explain nothing of what fails.
  """

  def __init__(
    self,
    tf1: InspectableRun,
    tf2: InspectableRun,
    targets: Sequence[str],
    least: float = 0.0,
    whole: bool = False,
    further: Sequence[str] = (),
    cuts: bool = True,
    for_cuts: TimeForCuts | None = None,
  ) -> None:
    """Searches; see `Divergence`.

    Args:
      tf1: the tf1 side's run.
      tf2: the port's.
      targets: names of targets that differ.
      least: a source that differs by no more of a tensor's size is none, if there are others.
      whole: see `Divergence`.
      further: targets besides these, in this search and those that follow it.
      cuts: whether long regions are cut short where that can be.
      for_cuts: how long that may take, in this search and those that follow it.
    """
    self._cuts = cuts
    self._for_cuts = TimeForCuts() if for_cuts is None else for_cuts
    known = first_targets(tf1.op_graph, targets)
    self._targets = [*known, *further] if targets else []
    self._behind_too = further
    self._least = least
    self.tf1 = tf1
    self.tf2 = tf2
    self._whole = whole
    self.without_effect: list[FoundSource] = []
    self._arriving: list[FoundSource] | None = None
    self._search()

  def _search(self) -> None:
    tf1, tf2 = self.tf1, self.tf2
    self.divergence = Divergence(tf1, tf2, self._targets, self._whole, self._least)
    self._has_cuts = self._cuts and pair_cuts(self.divergence, tf1, tf2, self._for_cuts)
    part_adjacent(self.divergence, tf1, tf2)
    self._narrowing = Narrowing(tf1, tf2, self.divergence)
    self.comparison = GraphComparison(self.divergence.pairing)
    self._trials = Trials(tf1, tf2, self.divergence.ends, self.divergence.as_tf2)
    self._narrowed: dict[int, FoundSource] = {}
    self._places: dict[int, Place] = {}
    self.all_rounds = AllRounds(self.divergence.pairing)
    self.one_round = AllRounds(self.divergence.pairing, in_one_round=True)

  def again(self, found: LookedAt, left: Left) -> 'Looking':
    """Returns the same search with an edited port, for what is left."""
    targets = targets_of((quantity, name) for quantity, name, run in left if run == found.name)
    known = self._least, False, self._behind_too, True, self._for_cuts
    return Looking(found.tf1, found.tf2, targets or self._targets, *known)

  @property
  def targets(self) -> Sequence[str]:
    """Names of what differs that is looked behind."""
    return self._targets

  @property
  def is_of_changes(self) -> bool:
    """Whether what differs is by how much variables change, each by the same code."""
    return self.is_of_step and not self.is_of_gradients

  @property
  def is_of_step(self) -> bool:
    """Whether it is in a training step."""
    return self._least > 0

  @property
  def is_of_gradients(self) -> bool:
    """Whether gradients differ, from which updates follow that are not looked at."""
    return any(name.startswith(_GRADIENT) for name in self._targets)

  def of(self, targets: Sequence[str]) -> 'Looking':
    """Returns the search behind some of what differs alone."""
    known = self._least, False, self._behind_too, True, self._for_cuts
    return Looking(self.tf1, self.tf2, targets, *known)

  def of_all_variables(self) -> 'Looking':
    """Returns the search behind the updates of all variables, whether they differ or not.

    What a step adds to a variable may be too little for float32 to show the mistake there; in
    a later step it does. They are updated by one code: where that has no cuts, none has.
    """
    targets = [name for name in self.tf1.op_graph.targets() if name.startswith('update of ')]
    known = self._least, True, (), self._has_cuts, self._for_cuts
    return Looking(self.tf1, self.tf2, targets, *known)

  def without_small(self, found: Sequence[FoundSource]) -> list[FoundSource]:
    """Returns sources without those that differ by too little, if there are others."""
    return [one for one in found if one.agreement.relative > self._least] or list(found)

  @property
  def clearly_without_effect(self) -> list[FoundSource]:
    """The sources without an effect that differ by more than how settings are spelled."""
    return [one for one in self.without_effect if not self.are_small([one])]

  def are_small(self, found: Sequence[FoundSource]) -> bool:
    """Returns whether all sources differ by so little, beside a tensor's size."""
    return all(one.agreement.relative <= self._least for one in found)

  def arriving(self) -> list[FoundSource]:
    """Returns the sources whose difference arrives at what reads them, and at what fails.

    From one without an effect on that the port goes on with TF1's value.
    """
    if self._arriving is None:
      self._arriving = arriving_sources(self.divergence, self.tf1, self.tf2)
      if part_adjacent(self.divergence, self.tf1, self.tf2, at_ends_alone=True):
        self._arriving = arriving_sources(self.divergence, self.tf1, self.tf2)
      for _ in range(_MOST_SEARCHES):
        found = sources_without_effect(self.divergence, self.tf1, self.tf2)
        self._pass_over([one.source for one in found])
        given = {name: value for one in found for name, value in one.given.items()}
        if not given:
          break
        self.tf2.give(given)
        self._search()
        self._arriving = arriving_sources(self.divergence, self.tf1, self.tf2)
      passed = {one.regions.tf1.end for one in self.without_effect}
      self._arriving = [one for one in self._arriving if one.regions.tf1.end not in passed]
    return self._arriving

  def _pass_over(self, sources: Iterable[FoundSource]) -> None:
    known = {one.regions.tf1.end for one in self.without_effect}
    self.without_effect += [one for one in sources if one.regions.tf1.end not in known]

  def narrowed(self, source: FoundSource) -> FoundSource:
    """Returns a source narrowed down; what is found to be alike becomes a pair."""
    end = source.regions.tf1.end
    if end not in self._narrowed:
      self._narrowed[end] = self._narrowing.narrowed(source)
    return self._narrowed[end]

  def place(self, source: FoundSource) -> Place:
    """Returns a source with what differs in the graphs there, tried out."""
    end = source.regions.tf1.end
    if end not in self._places:
      self._places[end] = self._looked_at(self.narrowed(source))
    return self._places[end]

  def is_before_the_end(self, place: Place) -> bool | None:
    """Returns whether all that differs at a place is before its last operation; None if unknown."""
    return self._trials.is_before_the_end(place.source)

  def is_mended(self, source: FoundSource, given: Mapping[str, np.ndarray]) -> bool:
    """Returns whether a place of the port yields what tf1 yields where other tensors are given."""
    if source.output is None:
      return False
    end = self.tf2.op_graph.ops[source.regions.tf2.end]
    found = self.tf2.refetched([end.tensors[source.output]], given)
    return found is not None and found[0].shape == source.tf2.shape and explains(source, found[0])

  def has(self, place: Place) -> bool:
    """Returns whether this search has found a place."""
    return any(place is known for known in self._places.values())

  def _looked_at(self, source: FoundSource) -> Place:
    graphs = self.tf1.op_graph, self.tf2.op_graph
    differences = self.comparison.at(source.regions)
    changes = self.comparison.changes(differences)
    standings = self._trials.standings(source, changes)
    known = zip((difference for difference, _ in changes), standings, strict=True)
    record = source_record(source, *graphs, differences)
    evidence = SourceEvidence(record, source.tf1, source.tf2_as_tf1, tuple(known))
    judged = zip(changes, standings, strict=True)
    sole = tuple(change for (_, change), standing in judged if standing is Standing.SOLE)
    return Place(source, evidence, sole, self._unpaired(source), self._is_masked_behind(source))

  def _is_masked_behind(self, source: FoundSource) -> bool:
    """Returns whether the port multiplies what it yields, or chooses from it, and tf1 does not."""
    graph, partners = self.tf2.op_graph, self.divergence.pairing.tf1_of
    readers = [n for n, _ in graph.consumers()[source.regions.tf2.end]]
    own = {n for n, _ in self.tf1.op_graph.consumers()[source.regions.tf1.end]}
    return any(partners[n] not in own and graph.ops[n].op_type in _MASKING for n in readers)

  def _unpaired(self, source: FoundSource) -> frozenset[tuple[str, str]]:
    pair = source.regions
    regions = (self.tf1, pair.tf1), (self.tf2, pair.tf2)
    return frozenset(
      (run.op_graph.side, run.op_graph.ops[n].name) for run, region in regions for n in region.inner
    )
