"""Draws of a line from the distribution that tf1 draws from."""

from collections.abc import Iterator

from tf2verify.diagnosis.patterns.operations.draws import Draws
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal
from tf2verify.records.op_graph import NodeChange

_SEEDS = ('seed', 'seed2')


def other_draws(line: Line, otherwise: tuple[Draws, Draws] | None) -> Iterator[Proposal]:
  """Yields what a line draws, drawn as tf1 does, where the operations take the same inputs.

  Args:
    line: the line.
    otherwise: what tf1 alone draws, and what the port alone draws, see `drawn_otherwise`.
  """
  if otherwise is None:
    return
  tf1, tf2 = otherwise
  like = tf1.ops[0]
  own = tf2.ops[0].op_type, tf2.ops[0].input_names
  alike = [op for op in line.ops if (op.op_type, op.input_names) == own]
  if not alike or own[1] != like.input_names:
    return
  settings = [one for one in like.attributes if one[0] not in _SEEDS]
  other_type = '' if like.op_type == own[0] else like.op_type
  changes = tuple(
    NodeChange(
      op.name, tuple(one for one in settings if one not in op.attributes), op_type=other_type
    )
    for op in alike
  )
  text = f'{alike[0].name} is {tf2.text} in the port, {tf1.text} in tf1'
  yield Proposal(changes, tf1.text, tf2.text, text, tf1.position)
