"""What lies on the way from one variable of a model to the next: a label that both sides share.

Query and key of an attention are told apart by nothing but the axis of their product that each
makes: one is summed over, or is that of a softmax; the other one stays. A port may write the
product the other way round and transpose it afterwards, which is the same.
"""

import enum
from collections.abc import Sequence

from tf2verify.records.op_graph import OpRecord
from tf2verify.relation.operations.op_pairs import family

Label = frozenset[str]

_SPLITTING = ('Split', 'SplitV', 'Unpack')
_PRODUCTS = ('MatMul', 'Einsum')
# What is told apart on the way; a pool is not, since one over the whole image is a mean elsewhere.
_TOLD = ('Softmax', 'ReverseV2', 'ReverseSequence')
# Activations; which one is told in detail only: a wrong one is no other place.
_BENDING = (
  *('Relu', 'Relu6', 'LeakyRelu', 'Elu', 'Selu', 'Softplus'),
  *('Sigmoid', 'Tanh', 'Erf', 'Exp'),
)
# What else tells one branch of a computation from another, in detail.
_ARITHMETIC = ('Sub', 'Mul', 'RealDiv', 'Square', 'Sqrt', 'Log', 'Maximum', 'Minimum', 'Neg', 'Abs')
_ACTIVATION, _KIND = 'activation ', 'operation '


class Detail(enum.IntEnum):
  """How much of a label is looked at."""

  NOTHING = 0
  WAY = 1
  ACTIVATIONS = 2
  ARITHMETIC = 3

  def of(self, label: Label) -> Label:
    """Returns what is looked at."""
    if self is Detail.NOTHING:
      return frozenset()
    left_out = (_ACTIVATION, _KIND)[self - 1 :]
    return frozenset(token for token in label if not token.startswith(left_out))

  def bends(self, label: Label) -> Label:
    """Returns the activations, and the arithmetic where that is looked at, alone."""
    kinds = (_ACTIVATION, _KIND)[: max(self - 1, 0)]
    return frozenset(token for token in label if token.startswith(kinds))


# Of a product: the last axis comes from this factor, or another one.
_LAST, _OTHER = 'last axis', 'other axis'
# Of a product that another one takes: this axis is summed over, or it stays.
_SUMMED, _STAYING = 'summed axis', 'staying axis'
_EXCHANGED = {_LAST: _OTHER, _OTHER: _LAST}
_TAKEN = {_LAST: _SUMMED, _OTHER: _STAYING}


class Step:
  """One step of a way: an operation, and which of its inputs the way takes."""

  def __init__(
    self,
    op: OpRecord,
    slot: int,
    ops: Sequence[OpRecord],
    source: tuple[int, int],
    is_free: bool,
  ) -> None:
    """Reads a step.

    Args:
      op: the operation.
      slot: which of its inputs.
      ops: all operations of the graph.
      source: the position of the operation that yields this input, and which of its outputs it is.
      is_free: whether the operation reads no variable.
    """
    self._op, self._slot, self._ops = op, slot, ops
    self._kind = family(op.op_type)
    self._is_product = is_free and self._kind in _PRODUCTS and len(op.inputs) > 1
    producer = ops[source[0]]
    self._splits = producer.op_type in _SPLITTING
    self._number = source[1]

  def label_after(self, label: Label) -> Label:
    """Returns the label of a way after this step, from the one before it."""
    if self._is_product:
      label = self._taken(label)
    elif _moves_last_axis(self._op, self._ops):
      label = frozenset(_EXCHANGED.get(token, token) for token in label)
    return label | self._tokens()

  def _taken(self, label: Label) -> Label:
    """Returns the label of what a product takes: the axis that it sums over is the last one."""
    if not label & _EXCHANGED.keys():
      return label
    if not _sums_last_axis(self._op, self._slot):
      label = frozenset(_EXCHANGED.get(token, token) for token in label)
    return frozenset(_TAKEN.get(token, token) for token in label)

  def _tokens(self) -> Label:
    found = set()
    if self._splits:
      found.add(f'part {self._number}')
    if self._kind == 'ConcatV2':
      found.add(f'concat {self._slot}')
    elif self._kind in _TOLD:
      found.add(self._kind)
    elif self._kind in _BENDING:
      found.update(('bend', f'{_ACTIVATION}{self._kind}'))
    elif self._kind in _ARITHMETIC:
      found.add(f'{_KIND}{self._kind}')
    elif self._is_product:
      found.add(_LAST if self._slot == _last_axis_from(self._op) else _OTHER)
    return frozenset(found)


def _moves_last_axis(op: OpRecord, ops: Sequence[OpRecord]) -> bool:
  """Returns whether an operation only moves axes, and another one is the last one afterwards."""
  if op.op_type == 'Transpose' and len(op.inputs) > 1:
    order = ops[op.inputs[1][0]].constant
    return order is not None and order.size > 0 and int(order.flat[-1]) != order.size - 1
  equation = _equation(op)
  if equation is None or len(equation[0]) != 1:
    return False
  return equation[0][0][-1:] != equation[1][-1:]


def _equation(op: OpRecord) -> tuple[list[str], str] | None:
  """Returns the axes of the factors of an einsum, and those of its result."""
  text = op.attribute('equation')
  if not isinstance(text, (str, bytes)):
    return None
  factors, _, result = (text.decode() if isinstance(text, bytes) else text).partition('->')
  return factors.split(','), result


def _last_axis_from(op: OpRecord) -> int:
  """Returns which factor of a product the last axis of the result comes from."""
  equation = _equation(op)
  if equation is None:
    return 1
  factors, result = equation
  for number, factor in enumerate(factors):
    others = ''.join(one for n, one in enumerate(factors) if n != number)
    if result and result[-1] in factor and result[-1] not in others:
      return number
  return 1


def _sums_last_axis(op: OpRecord, slot: int) -> bool:
  """Returns whether a product sums over the last axis of one of its factors."""
  equation = _equation(op)
  if equation is not None:
    factors, result = equation
    return slot >= len(factors) or factors[slot][-1:] not in result
  names = ('transpose_a', 'adj_x') if slot == 0 else ('transpose_b', 'adj_y')
  is_flipped = any(bool(op.attribute(name)) for name in names)
  return is_flipped if slot else not is_flipped
