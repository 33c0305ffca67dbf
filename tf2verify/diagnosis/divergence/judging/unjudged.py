"""Operations that cannot be run alone, judged by what they yield as they are.

A resource, say, has no value that could be given to the port's operation. Where all that is found
elsewhere is rounding, what fails by much more begins at such an operation: from inputs that are
tf1's but for rounding it yields something else.
"""

from collections.abc import Iterable, Mapping

from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun, found_source
from tf2verify.numerics.agreement import IDENTICAL, Agreement
from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import TensorKey


def sources_as_they_are(
  pairs: Iterable[RegionPair],
  tf1: InspectableRun,
  tf2: InspectableRun,
  agreements: Mapping[TensorKey, Agreement],
  views: Mapping[TensorKey, Relayout],
) -> list[FoundSource]:
  """Returns the pairs that are sources, where their inputs agree but for rounding.

  Args:
    pairs: that differ.
    tf1: the tf1 side's run.
    tf2: the port's.
    agreements: of what was compared, by tf1 tensor.
    views: how the port holds variables that it has otherwise.
  """
  found: list[FoundSource] = []
  for pair in pairs:
    op, other = tf1.op_graph.ops[pair.tf1.end], tf2.op_graph.ops[pair.tf2.end]
    known = [n for n in range(len(op.tensors)) if (pair.tf1.end, n) in agreements]
    apart = [agreements[pair.tf1.end, n] for n in known]
    entering = (agreements.get(one, IDENTICAL) for one, _ in pair.entering if one is not None)
    if all(one.is_rounding for one in apart) or not all(map(_is_rounding, entering)):
      continue
    ones = tf1.fetch([op.tensors[n] for n in known])
    others = tf2.fetch([other.tensors[n] for n in known])
    source = found_source(pair, ones, others, known, False, op, views)
    if source is not None and not source.agreement.is_rounding:
      found.append(source)
  return found


def _is_rounding(found: Agreement) -> bool:
  return found.identical or (found.is_rounding and not found.is_doubtful)
