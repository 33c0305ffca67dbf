"""Far larger gradients in the place of those of a step: what becomes of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.numerics.gradient_clips import enlargement
from tf2verify.records.training import ClippingTrial
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient
from tf2verify.sides.tf1.graphs.train_graph import TrainGraph
from tf2verify.sides.tf1.sessions import session_values


def in_graph(
  session: Any,
  built: BuiltGraph,
  train: TrainGraph,
  feeds: Mapping[str, np.ndarray],
  factors: Mapping[str, float] | None = None,
) -> ClippingTrial | None:
  """Feeds them, and fetches what the updates would be given, without an update.

  Args:
    session: with the values of the variables.
    built: its graph.
    train: the train op.
    feeds: inputs and labels.
    factors: as `ReferenceSteps.try_clipping`.

  Returns:
    The trial; None where the updates are given the gradients as they are.

  Raises:
    NotApplicable: the gradients are not known, or cannot be fed.
  """
  pairs, graph = _pairs(train), built.graph
  if not pairs:
    return None
  # Those too of which it is not known what becomes of them: a norm of all depends on them.
  raw_gradients = [gradient for gradient in train.gradients if gradient.values is not None]
  fed = {raw.values: raw.variable for raw in raw_gradients if raw.values is not None}
  if not all(graph.is_feedable(graph.get_tensor_by_name(name)) for name in fed):
    raise NotApplicable('the gradients of the TF1 graph cannot be replaced')
  wanted_tensors = _tensors([*raw_gradients, *(applied for _, applied in pairs)])
  with session_values.values_kept(session, built.variables, wanted_tensors):
    known = session_values.fetched(session, wanted_tensors, feeds)
  raws = [session_values.gradient_record(raw, known) for raw in raw_gradients]
  of_all = enlargement(raws)
  wanted = {name: of_all if factors is None else factors[of] for name, of in fed.items()}
  larger = {
    name: np.asarray(known[name] * np.asarray(factor, known[name].dtype))
    for name, factor in wanted.items()
  }
  with session_values.values_kept(session, built.variables, wanted_tensors):
    large = session_values.fetched(session, wanted_tensors, {**feeds, **larger})
  return ClippingTrial(
    tuple(raws),
    tuple(session_values.gradient_record(applied, known) for _, applied in pairs),
    tuple(session_values.gradient_record(raw, large) for raw in raw_gradients),
    tuple(session_values.gradient_record(applied, large) for _, applied in pairs),
  )


def _pairs(train: TrainGraph) -> list[tuple[GraphGradient, GraphGradient]]:
  """Returns the gradients and what the updates are given for them; none if that is the same.

  Raises:
    NotApplicable: one of the two is not known.
  """
  raw = {gradient.variable: gradient for gradient in train.gradients}
  pairs = [
    (raw[applied.variable], applied)
    for applied in train.applied_gradients
    if applied.values is not None and applied.variable in raw
  ]
  pairs = [(one, other) for one, other in pairs if one.values is not None]
  if not pairs:
    raise NotApplicable('the train op of TF1 does not show how it changes the gradients')
  return [] if all(one.values == other.values for one, other in pairs) else pairs


def _tensors(gradients: Iterable[GraphGradient]) -> list[str]:
  return list(dict.fromkeys(name for gradient in gradients for name in gradient.tensors))
