"""Edits of the port that were tried where no operation of tf1 has to stand for them."""

import dataclasses
import math

import numpy as np

from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.places.looking import Place
from tf2verify.diagnosis.places.source_records import statistics
from tf2verify.numerics.agreement import agreement
from tf2verify.records.diagnosis import GraphDifference
from tf2verify.records.experiment import Edit
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.sides.graphs.edits.repairs import Repair


def lines_at(place: Place) -> list[tuple[str, int]]:
  """Returns path and number of the port's lines at a place, the most likely one first."""
  return [line.at for line in _lines_at(place)]


def _lines_at(place: Place) -> list[SourceLine]:
  source = place.evidence.source
  lines = (source.tf2_source, source.tf2_start, *source.tf2_lines)
  return [line for line in lines if line is not None]


def correction(
  place: Place,
  op: OpRecord,
  like: OpRecord | None,
  said: GraphDifference,
  outputs: tuple[np.ndarray | None, np.ndarray | None],
  repair: Repair,
  graph: OpGraph,
) -> Mistake:
  """Returns an edit as a mistake.

  Args:
    place: where the search has found a difference.
    op: the port's operation to show.
    like: the operation of tf1 to show; None for none.
    said: what is different.
    outputs: what the port's operation yields, as it is and corrected.
    repair: the edit.
    graph: of the port.
  """
  as_it_is, corrected = outputs
  record = dataclasses.replace(
    place.evidence.source,
    tf1_op=op.name,
    tf2_op=op.name,
    tf1_type=op.op_type,
    tf2_type=op.op_type,
    tf1_source=None if like is None else like.source,
    tf2_source=op.source,
    tf1_path=() if like is None else (like.op_type,),
    tf2_path=(op.op_type,),
    tf1_output=None,
    tf2_output=None if as_it_is is None else statistics(as_it_is),
    differences=(said,),
    tf1_first='',
    tf2_first='',
    rewired=False,
    alone=False,
    tf2_lines=(),
    values='',
    tf1_start=None,
    tf2_start=None,
    is_correction=True,
    began_at=(*_lines_at(place), *_lines_exchanged(repair, graph)),
    absolute=math.inf,
    relative=math.inf,
  )
  if as_it_is is not None and corrected is not None and as_it_is.shape == corrected.shape:
    apart = agreement(corrected, as_it_is)
    record = dataclasses.replace(record, absolute=apart.absolute, relative=apart.relative)
  evidence = dataclasses.replace(place.evidence, source=record, standings=())
  at = Place(place.source, evidence, (), frozenset())
  return Mistake((at,), Edit.SETTING, repair)


def _lines_exchanged(repair: Repair, graph: OpGraph) -> list[SourceLine]:
  """Returns the lines that make what operations are to read in place of something else."""
  other = {(one.op, slot) for one in repair.changes for slot, _ in one.other}
  other |= {(one.op, one.slot) for one in repair.inputs}
  read = {
    op.inputs[slot][0]
    for op in graph.ops
    for slot in range(len(op.inputs))
    if (op.name, slot) in other
  }
  return [line for n in sorted(read) if (line := graph.ops[n].source) is not None]
