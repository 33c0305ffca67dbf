"""Maps tried with numbers: the layouts that the graphs leave open, and how far a map fits."""

import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.same_numbers import are_same
from tf2verify.records.observation import VariableRecord
from tf2verify.records.op_graph import OpGraph
from tf2verify.relation.derivation import flattened_rows
from tf2verify.relation.derivation.name_contradictions import by_name
from tf2verify.relation.derivation.named_exchanges import named_exchanges
from tf2verify.relation.derivation.part_activations import order_of_parts
from tf2verify.relation.derivation.result import Derivation
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.names.roles import telling_words
from tf2verify.relation.variable_map import VariableMap
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import Inventory, RunSpec
from tf2verify.stages.variables.map_doubts import doubts_of
from tf2verify.stages.variables.map_found import DerivedMap
from tf2verify.stages.variables.value_overlap import ValueOverlap

# So many times as many values that both sides compute tell more than what a port starts as.
_CLEARLY = 1.5

Values = dict[str, np.ndarray]


class NotDerivable(Tf2VerifyError):
  """No map can be derived; the message says why."""


@dataclasses.dataclass(frozen=True)
class _Score:
  """How far a map fits; the greater the better."""

  outputs_agree: bool
  agreeing: int
  agreed: frozenset[int] = dataclasses.field(default=frozenset(), compare=False)

  @property
  def rank(self) -> tuple[bool, int]:
    return self.outputs_agree, self.agreeing


class Trial:
  """Tries the layouts that the graphs leave open, with numbers."""

  def __init__(
    self,
    found: Derivation,
    run: RunSpec,
    ones: Inventory,
    reference: GraphRun,
    port: GraphRun,
    given: Values,
    own: Values,
    until: float,
  ) -> None:
    self._found, self._ones = found, ones
    self._port, self._reference = port, reference
    self._overlap: ValueOverlap | None = None
    self._given = given
    self._own = own
    self._values = _values(run, ones.variables)
    graphs = reference.op_graph, port.op_graph
    outputs = [_outputs(graph) for graph in graphs]
    self._outputs = [(outputs[0][name], outputs[1].get(name, '')) for name in outputs[0]]
    self._places = [
      (number, graphs[0].ops[place.tf1].tensors[0], graphs[1].ops[place.tf2].tensors[0])
      for number, place in enumerate(found.places)
      if _sizes_fit(graphs[0], place.tf1, graphs[1], place.tf2)
    ]
    wanted = [one for one, _ in self._outputs] + [one for _, one, _ in self._places]
    values = reference.refetched(wanted, {})
    if values is None:
      raise NotDerivable('the reference does not run at the values that fill_values gives')
    self._expected = dict(zip(wanted, values, strict=True))
    self._until = until

  def judged(self, others: Inventory) -> DerivedMap:
    """Returns the map that fits best, and what is left open."""
    chosen = [0] * len(self._found.choices)
    best = self._score(chosen)
    groups = self._alike()
    best, chosen, undecided = self._settled(groups, best, chosen)
    for position in undecided if len(undecided) < len(groups) else ():
      # What comes later may decide what was open before, if then everything agrees. Parts in
      # another order would hide that the port exchanges them.
      if any(self._found.choices[n].is_split for n in groups[position]):
        continue
      score, order, _ = self._tried(groups[position], best, chosen)
      if score.outputs_agree:
        best, chosen = score, order
        break
    ambiguous = [name for position in undecided for name in self._names(groups[position])]
    entries, best, kept = self._by_names(self._entries(chosen, best), best, others)
    if best.outputs_agree:
      undecided, ambiguous = {}, []  # what was open before is confirmed
    else:
      ambiguous += self._found.exchangeable
    turned = [
      choice.alternatives[number][0]
      for choice, number in zip(self._found.choices, chosen, strict=True)
      if number
      and choice.is_split
      and len(choice.alternatives[number]) == 1
      and _is_turned(choice.alternatives[number][0])
    ]
    flattened = [
      choice.alternatives[number][0]
      for choice, number in zip(self._found.choices, chosen, strict=True)
      if number < choice.turned
    ]
    apart = next((n for n, _, _ in self._places if n not in best.agreed), None)
    agree = best.outputs_agree, kept.outputs_agree
    doubts = doubts_of(self._found, agree, apart, turned, flattened)
    is_exchange = best.outputs_agree and not kept.outputs_agree
    return DerivedMap(
      VariableMap(tuple(entries)).in_order_of([variable.name for variable in others.variables]),
      kept.outputs_agree,
      kept.agreeing,
      len(self._places),
      (*doubts, *undecided.values()),
      ambiguous=tuple(dict.fromkeys(ambiguous)),
      unpaired=len(self._found.tf1_left),
      exchanged=self._found.crossed if is_exchange else (),
      confirmed=self._confirmed(kept),
    )

  def _by_names(
    self, entries: Sequence[MapEntry], best: _Score, others: Inventory
  ) -> tuple[Sequence[MapEntry], _Score, _Score]:
    """Returns entries as names tell, what fits best, and how far the entries do.

    Names that contradict the graphs are kept: a map must not hide that the port exchanges
    variables. Where no outputs agree, others are tried, and kept if they agree then.
    """
    entries = by_name(entries, self._found.crossed)
    # The numbers that count are those of the map that is returned.
    kept = self._score_of(entries) if self._found.crossed else best
    if best.outputs_agree or kept.outputs_agree:
      return entries, best, kept
    ones, theirs = (
      {v.name: tuple(size or 0 for size in v.shape) for v in known.variables}
      for known in (self._ones, others)
    )
    for changed in named_exchanges(entries, ones, theirs):
      score = self._score_of(changed)
      if score.outputs_agree:
        return changed, score, score
    return entries, best, kept

  def agrees(self, entries: Iterable[MapEntry]) -> bool:
    """Returns whether the outputs of both sides agree through a map."""
    return self._score_of(entries).outputs_agree

  def _settled(
    self, groups: Sequence[Sequence[int]], best: _Score, chosen: list[int]
  ) -> tuple[_Score, list[int], dict[int, str]]:
    """Returns what fits best of the alternatives of groups, and what is said of those left open.

    By the positions of these groups.
    """
    undecided: dict[int, str] = {}
    for position, group in enumerate(groups):
      if best.outputs_agree:
        break
      best, chosen, ranks = self._tried(group, best, chosen)
      decided = [n for n, rank in ranks.items() if rank == max(ranks.values())]
      if len(ranks) > 1 and not best.outputs_agree:
        decided = self._of_most_values(group, chosen, ranks)
        chosen = [decided[0] if n in group else known for n, known in enumerate(chosen)]
        best = self._score(chosen)
      if len(decided) > 1:
        likely = self._likely(group, decided)
        if likely is not None:
          chosen = [likely if n in group else known for n, known in enumerate(chosen)]
          best = self._score(chosen)
        entry = self._found.choices[group[0]].alternatives[likely or 0][0]
        layout = f', {entry.layout}' if entry.layout else ''
        which = 'usual one' if likely is None else 'one whose parts meet the same activations'
        undecided[position] = (
          f'{entry}: {len(decided)} layouts fit equally well; the {which} is taken{layout}'
        )
    return best, chosen, undecided

  def _tried(
    self, group: Sequence[int], best: _Score, chosen: list[int]
  ) -> tuple[_Score, list[int], dict[int, tuple[bool, int]]]:
    """Returns what fits best of the alternatives of a group, and how far each one fits."""
    known = chosen[group[0]]
    ranks = {known: best.rank}
    for number in range(len(self._found.choices[group[0]].alternatives)):
      if time.monotonic() > self._until:
        break
      if number == known:
        continue
      trial = [number if n in group else known for n, known in enumerate(chosen)]
      score = self._score(trial)
      ranks[number] = score.rank
      if score.rank > best.rank:
        best, chosen = score, trial
      if score.outputs_agree:
        break
    return best, chosen, ranks

  def _of_most_values(
    self, group: Sequence[int], chosen: Sequence[int], ranks: Mapping[int, tuple[bool, int]]
  ) -> list[int]:
    """Returns with which alternatives the port computes most of what the reference computes.

    Of alternatives that add something to a bias, or do not, those count that the port starts as,
    since a mistake elsewhere does not change that; unless far more values say otherwise.

    Args:
      group: the choices that are made together.
      chosen: the alternative of each choice.
      ranks: how far each of the group's alternatives fits.
    """
    if self._overlap is None:
      self._overlap = ValueOverlap(self._reference, self._port)
    alternatives = self._found.choices[group[0]].alternatives
    fitting = [n for n in ranks if self._starts_alike(alternatives[n])] or list(ranks)
    numbers = [n for n in fitting if ranks[n] == max(ranks[n] for n in fitting)]
    others = [n for n in ranks if n not in fitting and ranks[n] == max(ranks.values())]
    counts: dict[int, int] = {}
    for number in (*numbers, *others) if len(numbers) + len(others) > 1 else ():
      if time.monotonic() > self._until:
        return numbers
      trial = [number if n in group else known for n, known in enumerate(chosen)]
      self._give(self._chosen(trial))
      counts[number] = self._overlap.count(self._port.refetched(self._overlap.wanted, {}) or ())
    most = max((counts[n] for n in numbers if n in counts), default=0)
    # What the port starts as may be the mistake, or is loaded: then nearly all cells say so.
    if any(counts.get(n, 0) > _CLEARLY * max(most, 1) for n in others):
      most = max(counts[n] for n in others if n in counts)
      return [n for n in others if counts.get(n) == most]
    return [n for n in numbers if counts.get(n) == most] or numbers

  def _likely(self, group: Sequence[int], decided: Sequence[int]) -> int | None:
    """Returns the alternative that activations tell, the same for all variables of a group."""
    told = {self._found.choices[n].likely for n in group} - {None}
    (one,) = told if len(told) == 1 else (None,)
    return one if one in decided else None

  def _starts_alike(self, entries: Sequence[MapEntry]) -> bool:
    """Returns whether the port starts all gates' biases with one number, but for what is added."""
    for entry in entries:
      own = [self._own[name] for name in entry.tf2]
      if all(value.ndim == 1 for value in own):
        starts = np.concatenate(entry.to_tf1(own))
        if not np.isclose(starts, starts[0]).all():
          return False
    return True

  def _names(self, group: Sequence[int]) -> list[str]:
    entries = [entry for n in group for entry in self._found.choices[n].alternatives[0]]
    return [name for entry in entries for name in entry.tf1]

  def _alike(self) -> list[list[int]]:
    """Returns the choices that are open, those of one kind together: the layers of a model."""
    groups: dict[object, list[int]] = {}
    for number, choice in enumerate(self._found.choices):
      if len(choice.alternatives) > 1:
        # Kernel and bias are split alike, in all layers of a kind.
        entry = choice.alternatives[0][0]
        parts = entry.tf2 if len(entry.tf1) == 1 else entry.tf1
        words = tuple(telling_words(parts)) if len(parts) > 1 else ()
        # A kernel and the vectors of the length of its rows are read after one operation.
        rows = flattened_rows.order_of_rows(entry) if choice.turned else ()
        counts = len(choice.alternatives), len(choice.alternatives[0])
        key = *counts, len(entry.tf1), len(entry.tf2), words, rows
        groups.setdefault(key, []).append(number)
    return list(groups.values())

  def _chosen(self, chosen: Sequence[int]) -> Iterator[MapEntry]:
    for choice, number in zip(self._found.choices, chosen, strict=True):
      yield from choice.alternatives[number]

  def _score(self, chosen: Sequence[int]) -> _Score:
    """Runs the port through the alternatives that are chosen."""
    return self._score_of(self._chosen(chosen))

  def _give(self, entries: Iterable[MapEntry]) -> None:
    """Has the next run of the port go through a map."""
    self._given.clear()
    for entry in entries:
      values = [self._values.get(name) for name in entry.tf1]
      known = [value for value in values if value is not None]
      if len(known) < len(values):
        continue
      moved = dict(zip(entry.tf2, entry.to_tf2(known), strict=True))
      # A variable of another size is a finding; the port goes on with what it has.
      if all(value.shape == self._own[name].shape for name, value in moved.items()):
        self._given.update(moved)
    self._port.prepare_again()

  def _score_of(self, entries: Iterable[MapEntry]) -> _Score:
    """Runs the port through a map and compares what comes out of its operations."""
    self._give(entries)
    wanted = [other for _, other in self._outputs if other]
    wanted += [other for _, _, other in self._places]
    computed = self._port.refetched(wanted, {})
    if computed is None:  # shapes that do not fit
      return _Score(False, -1)
    found = dict(zip(wanted, computed, strict=True))
    agreed = frozenset(
      number for number, one, other in self._places if are_same(self._expected[one], found[other])
    )
    # Outputs without a finite number agree through any map.
    tells = any(np.isfinite(self._expected[one]).any() for one, _ in self._outputs)
    outputs = tells and all(
      bool(other) and are_same(self._expected[one], found[other]) for one, other in self._outputs
    )
    return _Score(outputs, len(agreed), agreed)

  def _confirmed(self, score: _Score) -> frozenset[str]:
    """Returns the tf1 names of the variables at whose places both sides agree."""
    places = [self._found.places[number] for number in score.agreed]
    return frozenset(name for place in places for name in place.variables)

  def _entries(self, chosen: Sequence[int], best: _Score) -> list[MapEntry]:
    """Returns the entries with their reasons."""
    agreed = self._confirmed(best)
    found = []
    for choice, number in zip(self._found.choices, chosen, strict=True):
      for entry in choice.alternatives[number]:
        reason = entry.reason
        if any(name in agreed for name in entry.tf1):
          reason += '; both sides compute the same numbers with it'
        found.append(dataclasses.replace(entry, reason=reason))
    return found


def _is_turned(entry: MapEntry) -> bool:
  """Returns whether the parts of a variable lie in another order than that of their side."""
  order = order_of_parts(entry)
  return not order or order != sorted(order)


def _values(run: RunSpec, variables: Sequence[VariableRecord]) -> Values:
  found = ((variable.name, run.value_for(variable)) for variable in variables)
  return {name: value for name, value in found if value is not None}


def _outputs(graph: OpGraph) -> Mapping[str, str]:
  return {
    name: graph.ops[position].tensors[0]
    for name, position in graph.targets().items()
    if name.startswith('output ')
  }


def _sizes_fit(one: OpGraph, tf1: int, other: OpGraph, tf2: int) -> bool:
  """Returns whether two operations yield as many numbers each, and can be asked for them."""
  ends = one.ops[tf1], other.ops[tf2]
  if any(not op.tensors or op.outputs[0][0] not in ('float32', 'float64') for op in ends):
    return False
  sizes = []
  for op in ends:
    shape = op.outputs[0][1]
    if shape is None or None in shape:
      return False
    sizes.append(int(np.prod([size or 0 for size in shape])))
  return sizes[0] == sizes[1]
