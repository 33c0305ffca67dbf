"""Variables that other optimizers, or one more of them, update on one side than on the other."""

from collections import Counter

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.training import TrainingStep
from tf2verify.records.wording import listed
from tf2verify.reference.slot_roles import SHADOW
from tf2verify.relation.slots import COUNTS

_EXPLAINS = (About.UPDATE, About.GRADIENTS, About.SHADOWS)


def updated_by_another(evidence: TrainingEvidence) -> Cause | None:
  """Names variables for which one side has the same slot more often: an optimizer each.

  Where the variables of two losses overlap, as those of an actor and its critic, one optimizer is
  easily given more variables than in TF1.
  """
  if len(evidence.tf2.optimizers) < 2 and len(evidence.tf1.optimizers) < 2:
    return None
  ones, others = (_slots(step) for step in evidence.steps)
  to_tf1 = {tf2: tf1 for tf1, tf2 in evidence.pairs}
  of_port = Counter({(to_tf1.get(name, name), role): n for (name, role), n in others.items()})
  more, fewer = [], []
  for pair in evidence.moves:
    counts = [
      (ones[key], of_port[key]) for key in {*ones, *of_port} if key[0] == pair.name and ones[key]
    ]
    if any(two > one for one, two in counts):
      more.append(pair.name)
    elif any(0 < two < one for one, two in counts):
      fewer.append(pair.name)
  if more:
    return Cause(
      f'{listed(more)}: the port updates {_them(more)} with one more of its optimizers than TF1: '
      'leave them out of the variables that this optimizer is given (the var_list of minimize in '
      'TF1)',
      'the port has the same slot of them for two optimizers',
      explains=_EXPLAINS,
      variables=tuple(more),
    )
  if fewer:
    return Cause(
      f'{listed(fewer)}: TF1 updates {_them(fewer)} with one more of its optimizers than the port: '
      'give them to that optimizer of the port too',
      'TF1 has the same slot of them for two optimizers',
      explains=_EXPLAINS,
      variables=tuple(fewer),
    )
  return _updated_by_the_other(evidence)


def _updated_by_the_other(evidence: TrainingEvidence) -> Cause | None:
  """Names variables for which the port keeps what it keeps for others that TF1 updates otherwise.

  Which optimizer updates a variable, what is kept for it tells: where two keep different slots.
  """
  to_tf1 = {tf2: tf1 for tf1, tf2 in evidence.pairs}
  ones, others = (_roles(step) for step in evidence.steps)
  others = {to_tf1.get(name, name): roles for name, roles in others.items()}
  agreeing = [p.name for p in evidence.moves if not p.differs_clearly]
  wrong: dict[tuple[str, str], list[str]] = {}
  for pair in evidence.moves:
    own = ones.get(pair.name), others.get(pair.name)
    if not pair.differs_clearly or None in own:
      continue
    as_in_tf1 = [n for n in agreeing if ones.get(n) == own[0] and others.get(n) != own[1]]
    as_in_port = [n for n in agreeing if others.get(n) == own[1] and ones.get(n) != own[0]]
    if as_in_tf1 and as_in_port:
      wrong.setdefault((as_in_tf1[0], as_in_port[0]), []).append(pair.name)
  if len(wrong) != 1:
    return None
  (((one, other), names),) = wrong.items()
  return Cause(
    f'{listed(names)}: TF1 updates {_them(names)} with the optimizer of {one}, and the port with '
    f'that of {other}: give {_them(names)} to the optimizer of {one} in the port',
    f'the port keeps {_kept(others[names[0]])} of {_them(names)}, TF1 {_kept(ones[names[0]])}',
    explains=_EXPLAINS,
    variables=tuple(names),
  )


def _roles(step: TrainingStep) -> dict[str, frozenset[str]]:
  """Returns the roles of what is kept for each variable."""
  found: dict[str, set[str]] = {}
  for slot in step.slots:
    if slot.variable and slot.role not in (*COUNTS, SHADOW):
      found.setdefault(slot.variable, set()).add(slot.role)
  return {name: frozenset(roles) for name, roles in found.items()}


def _kept(roles: frozenset[str]) -> str:
  return listed(sorted(roles)) or 'nothing'


def _slots(step: TrainingStep) -> Counter[tuple[str, str]]:
  """Returns how many slots of each role a variable has that hold anything."""
  return Counter(
    (slot.variable, slot.role)
    for slot in step.slots
    if slot.variable and slot.role not in (*COUNTS, SHADOW) and slot.holds_something
  )


def _them(names: list[str]) -> str:
  return 'it' if len(names) == 1 else 'them'
