"""Every operation of a run, with what it read and what it gave."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.repeatability import digest
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import INPUT, TARGET
from tf2verify.records.repetition import RunOp
from tf2verify.sides.graphs.lines.source_lines import user_line
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.repetition.gpu_kernels import WATCHED
from tf2verify.tensorflow_internals import op_callbacks

Sources = dict[str, SourceLine | None]
# Of the outputs of one run: what comes after is not kept.
_KEPT_BYTES = 256 * 2**20
_OPAQUE = ('resource', 'variant')


class EagerOps:
  """Records the operations of eager execution.

  Attributes:
    ops: in the order in which they ran.
  """

  def __init__(self) -> None:
    self.ops: list[RunOp] = []
    self._kept = 0
    self._given: set[int] = set()

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Records until exit; what stands in a `tf.function` runs eagerly as well."""
    eager_functions = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
      with op_callbacks.called(self._on_op):
        yield
    finally:
      tf.config.run_functions_eagerly(eager_functions)

  def _on_op(self, op: op_callbacks.Operation) -> None:
    if op.graph is not None or self._kept > _KEPT_BYTES:
      return
    values = tuple(_value(tensor) for tensor in op.outputs)
    self._kept += sum(value.nbytes for value in values)
    self.ops.append(
      RunOp(
        op.kind,
        '',
        tuple(digest(_value(tensor)) for tensor in op.inputs),
        values,
        user_line(),
        # Handles of variables are opaque: what they hold is what some write gave them.
        tuple(tensor._id in self._given or _is_opaque(tensor) for tensor in op.inputs),
      )
    )
    self._given.update(tensor._id for tensor in op.outputs)


class OpSources:
  """The watched types of operations that ran, with the user's line of the first of each.

  Attributes:
    found: by type.
  """

  def __init__(self) -> None:
    self.found: Sources = {}

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Watches until exit, also what is traced as a graph."""
    with op_callbacks.called(self._on_op):
      yield

  def _on_op(self, op: op_callbacks.Operation) -> None:
    if op.kind in WATCHED and self.found.get(op.kind) is None:
      self.found[op.kind] = user_line()


def eager_ops(run: Callable[[], object]) -> Sequence[RunOp]:
  """Returns the operations of what a function runs eagerly."""
  recorder = EagerOps()
  with recorder.recording():
    run()
  return recorder.ops


def graph_ops(run: GraphRun) -> Sequence[RunOp]:
  """Runs a graph once and returns its operations, as far as their values can be had."""
  ops = run.op_graph.ops
  names: list[str] = []
  size = 0
  for op in ops:
    if op.op_type == TARGET:
      continue
    for (dtype, shape), name in zip(op.outputs, op.tensors, strict=True):
      if dtype not in _OPAQUE and size < _KEPT_BYTES:
        size += 4 * int(np.prod([dimension or 1 for dimension in shape or ()]))
        names.append(name)
  values = dict(zip(names, run.fetch(names), strict=True))
  run.close()
  digests = {name: digest(value) for name, value in values.items()}
  return [
    RunOp(
      op.op_type,
      op.name,
      tuple(_digest_of(ops[n].tensors, k, digests) for n, k in op.inputs),
      tuple(values[name] for name in op.tensors if name in values),
      op.source,
      tuple(True for _ in op.inputs),
    )
    for op in ops
    if op.op_type not in (TARGET, INPUT)
  ]


def _digest_of(tensors: Sequence[str], number: int, digests: dict[str, str]) -> str:
  return digests.get(tensors[number], '') if number < len(tensors) else ''


def _is_opaque(tensor: Any) -> bool:
  return tensor.dtype.base_dtype.name in _OPAQUE


def _value(tensor: Any) -> np.ndarray:
  if _is_opaque(tensor):
    return np.zeros(0)
  return np.array(tensor.numpy())
