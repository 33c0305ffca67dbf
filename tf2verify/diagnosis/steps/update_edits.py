"""Edits of an update that a port writes itself, each alike for all variables.

Which value of a slot is read, that of before its update or the new one, and in which order
clipping, decay and scaling are computed: no operation is another one then, and none is missing.
"""

import dataclasses
from collections.abc import Iterator

from tf2verify.diagnosis.divergence.tensors.outputs import written_variable
from tf2verify.diagnosis.places.like_in_tf1 import like_in_tf1
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal
from tf2verify.diagnosis.steps.update_moves import other_orders
from tf2verify.diagnosis.steps.update_part import Rewired, UpdatePart
from tf2verify.records.op_graph import TARGET, VARIABLE, TensorKey
from tf2verify.sides.graphs.edits.wiring import CannotRepair

_UPDATE = 'update of '
_WORD_OF = ' of '
# They write what is added to a variable, not what it becomes.
_ADDING = ('AssignAdd', 'AssignSub')


def update_edits(looking: Looking) -> Iterator[tuple[Line, Proposal]]:
  """Yields edits with which all updates that differ agree in the step that is looked into.

  Args:
    looking: the search in the port as it is.
  """
  part = UpdatePart(looking)
  if not part.is_known:
    return
  for edit in part.mending([*_other_times(part), *other_orders(part)]):
    corrected = part.yielded(edit)
    like = None if corrected is None else like_in_tf1(looking, corrected)
    line = Line(part.graph, (edit.place,))
    try:
      repair = part.repair(edit.wiring)
    except CannotRepair:
      continue
    proposal = Proposal(repair.changes, edit.tf1, edit.tf2, edit.text, like, edit.what)
    yield line, dataclasses.replace(proposal, transplants=repair.transplants)


def _other_times(part: UpdatePart) -> list[Rewired]:
  """Returns variables read after their update where the port reads them before it, or back.

  All operations of one line that read the same slot of a variable, at once.
  """
  graph = part.graph
  leaves = {op.name: n for n, op in enumerate(graph.ops) if op.op_type == VARIABLE}
  reads: dict[int, list[tuple[int, str, TensorKey, bool]]] = {}
  for name, key in _new_values(part).items():
    if name not in leaves:
      continue
    leaf = leaves[name], 0
    for own, other, is_old in ((leaf, key, True), (key, leaf, False)):
      for n, slot in part.consumers[own[0]]:
        if graph.ops[n].inputs[slot] == own and not (is_old and _is_update(part, n)):
          reads.setdefault(n, []).append((slot, name, other, is_old))
  found: dict[object, Rewired] = {}
  for n in part.from_the_end(reads.keys() & set(part.positions)):
    op = graph.ops[n]
    line = None if op.source is None else op.source.at
    for slot, name, other, is_old in reads[n]:
      one, two = ('after', 'before') if is_old else ('before', 'after')
      text = (
        f'{op.name} ({op.op_type}) reads {name} as it is {two} its update in the port; as it is '
        f'{one} the update it yields what tf1 does'
      )
      edit = Rewired({(n, slot): other}, n, text, f'{one} its update', f'{two} its update', name)
      role = name.partition(_WORD_OF)[0] if _WORD_OF in name else ''
      kind = line, op.op_type, slot, is_old, role
      found[kind] = found[kind].joined(edit) if kind in found else edit
  return [*found.values()]


def _is_update(part: UpdatePart, position: int) -> bool:
  """Returns whether an operation yields what a variable becomes."""
  return any(part.graph.ops[n].op_type == TARGET for n, _ in part.consumers[position])


def _new_values(part: UpdatePart) -> dict[str, TensorKey]:
  """Returns what variables become in the step, by name, where the graph computes that."""
  graph, found = part.graph, dict[str, TensorKey]()
  for name, n in graph.targets().items():
    op = graph.ops[n]
    adds = str(op.attribute('op')).startswith(_ADDING)
    if name.startswith(_UPDATE) and len(op.inputs) == 1 and not adds:
      found.setdefault(written_variable(op), op.inputs[0])
  return found
