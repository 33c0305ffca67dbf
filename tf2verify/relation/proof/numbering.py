"""The terms of all that a graph computes."""

from collections.abc import Collection, Mapping, Sequence

from tf2verify.numerics.relayout import without_ones
from tf2verify.records.op_graph import (
  CONSTANT,
  INPUT,
  TARGET,
  VARIABLE,
  OpGraph,
  OpRecord,
  TensorKey,
)
from tf2verify.reference.random_ops import is_random_op
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.proof.held_variables import Held, Kind
from tf2verify.relation.proof.normal_forms import contractions
from tf2verify.relation.proof.normal_forms.folding import folded
from tf2verify.relation.proof.normal_forms.operation import Operation, Rule
from tf2verify.relation.proof.normal_forms.polynomials import total
from tf2verify.relation.proof.normal_forms.shapes import reshape
from tf2verify.relation.proof.normal_forms.sizes import with_shapes
from tf2verify.relation.proof.normal_forms.states import Multiple, States
from tf2verify.relation.proof.normal_forms.terms import Terms
from tf2verify.relation.proof.rules import (
  arithmetic,
  gradients,
  lists,
  structure,
  table_rows,
  windows,
)
from tf2verify.relation.proof.rules.loops import Compute, Rounds, taken_apart

RULES: Mapping[str, Rule] = {
  **arithmetic.RULES,
  **structure.RULES,
  **contractions.RULES,
  **windows.RULES,
  **gradients.RULES,
  **table_rows.RULES,
}
# Attributes that do not change what an operation computes, or that its inputs tell.
_WITHOUT_EFFECT = frozenset(
  (
    *('seed', 'seed2', 'N', 'num', 'parallel_iterations', 'grad_x', 'grad_y', 'use_cudnn_on_gpu'),
    *('validate_indices', 'swap_memory', '_gradient_op_type', 'body', 'cond', 'then_branch'),
    *('else_branch', 'output_shapes', 'message', 'name', 'shared_name', 'container'),
    *('bad_indices_policy', 'unique_by_name', 'num_elements'),
  )
)
_LOOPS = ('While', 'StatelessWhile', 'If', 'StatelessIf')
_AFTER = ' after its update'
_TF2 = 'tf2'

# Dtype and shape in tf1, by tf1 name, of the variables that both sides have.
Variables = Mapping[str, Kind]


class Numbering:
  """The terms of one graph's tensors.

  Attributes:
    graph: the graph.
    values: terms, by tensor.
    draws: how many random operations there were of each kind.
    made: of every operation, how many terms there were after it.
  """

  def __init__(
    self,
    terms: Terms,
    graph: OpGraph,
    variables: Variables,
    scope: str,
    arguments: Sequence[int] | None = None,
    known: Mapping[TensorKey, int] | None = None,
    passed: Collection[int] = (),
    states: States | None = None,
    multiples: Mapping[str, Multiple] | None = None,
    held: Mapping[str, Held] | None = None,
    rounds: Rounds | None = None,
  ) -> None:
    """Numbers the tensors of a graph.

    Args:
      terms: the terms of both graphs.
      graph: one of them, or a function.
      variables: those that both sides have.
      scope: tells what this graph alone computes from that of any other.
      arguments: of a function, the terms of its arguments.
      known: terms of some tensors that are taken for granted.
      passed: positions of operations that are taken to yield what they read.
      states: of a training step, variables that are functions of the steps taken, by name.
      multiples: likewise, variables that hold a multiple of one of `variables`.
      held: variables that hold elements of some of `variables` in another layout, by name.
      rounds: loops are taken apart into their rounds, and a function is one of such: it is
        given its arguments as they are; None where loops are operations.
    """
    self.graph = graph
    self.values: dict[TensorKey, int] = {}
    self.draws: dict[object, int] = {}
    self.made: list[int] = []
    self._terms = terms
    self._scope = scope
    self._variables = variables
    self._arguments = arguments
    self._known = known or {}
    self._states = states or {}
    self._multiples = multiples or {}
    self._held = held or {}
    self._rounds = rounds
    self._written = _written(graph)
    for position, op in enumerate(graph.ops):
      if op.op_type == TARGET:
        self.made.append(len(terms))
        continue
      outputs = self._outputs(position, op)
      if position in passed:
        outputs = [term for term in self.read(op) if terms.value(term) is None][:1]
      for number, value in enumerate(outputs):
        key = (position, number)
        self.values[key] = self._known.get(key, value)
      self.made.append(len(terms))

  def read(self, op: OpRecord) -> list[int]:
    """Returns the terms that an operation reads."""
    return [self.values[key] for key in op.inputs]

  def target(self, position: int) -> tuple[int, ...]:
    """Returns the terms of a target, as tf1 has it: of an update, what is there after it."""
    found, name = self._own_target(position), self.graph.ops[position].name
    of = _updated(name)[0] or name.removeprefix('applied ').removeprefix('gradient ')
    held = self._held.get(of)
    if held is None or len(found) != 1 or of not in self._variables or of == name:
      return found
    shape = self._terms.shape(self._whole(of))
    moved = (
      None if shape is None else held.as_tf1(self._terms, found[0], shape, bool(_updated(name)[0]))
    )
    return found if moved is None else (moved,)

  def _own_target(self, position: int) -> tuple[int, ...]:
    """Returns the terms of a target, as its side has it."""
    op = self.graph.ops[position]
    found = tuple(self.values[key] for key in op.inputs)
    kind = str(op.attribute('op') or '')
    name, number = _updated(op.name)
    if not kind:
      return self._in_unit_of_tf1(name, found, op.name)
    signs = {'AssignAdd': 1, 'AssignSub': -1, 'AssignAddVariableOp': 1, 'AssignSubVariableOp': -1}
    shape = self._terms.shape(found[0]) if len(found) == 1 else None
    if kind in ('Assign', 'AssignVariableOp') and len(found) == 1:
      return found
    if kind not in signs or shape is None or number != 1 or 'float' not in op.outputs[0][0]:
      return (self._terms.add(f'written by {kind}', found, op.name, op.outputs[0][0], shape),)
    before = self._variable(name, op.outputs[0][0], shape)
    parts = ((before, 1), (found[0], signs[kind]))
    return (total(self._terms, parts, op.outputs[0][0], shape),)

  def _rows_of(self, target: str) -> int | None:
    """Returns how many rows the variable has whose gradient a target is; None for no such one."""
    variable = target.removeprefix('applied ').removeprefix('gradient ')
    shape = self._variables[variable][1] if variable in self._variables else None
    return shape[0] if shape else None

  def _in_unit_of_tf1(self, name: str, found: tuple[int, ...], of: str) -> tuple[int, ...]:
    """Returns a target as the reference has it: a gradient of rows as that of the whole table."""
    if len(found) == 2 and (rows := self._rows_of(of)) is not None:
      dtype = self._terms.dtype(found[0])
      dense = table_rows.added_to_rows(self._terms, *found, rows, dtype)
      return found if dense is None else (dense,)
    multiple = self._multiples.get(name)
    shape = self._terms.shape(found[0]) if len(found) == 1 else None
    if multiple is None or shape is None:
      return found
    parts = ((found[0], 1 / multiple.factor),)
    return (total(self._terms, parts, self._terms.dtype(found[0]), shape),)

  def _opaque(self, op: OpRecord, position: int, number: int = 0) -> int:
    """Returns a term that no other tensor has."""
    dtype, shape = op.outputs[number] if number < len(op.outputs) else ('', None)
    return self._terms.add('unknown', (), (self._scope, position, number), dtype, shape)

  def _outputs(self, position: int, op: OpRecord) -> Sequence[int]:
    if op.is_leaf:
      return [self._leaf(position, op)]
    inputs = [self.values[key] for key in op.inputs]
    if is_random_op(op.op_type) and not op.pure:
      return self._draw(op, inputs)
    if op.op_type in _LOOPS:
      return self._call(position, op, inputs)
    if op.op_type == 'ResourceGather' and self._reads_unwritten(op):
      return self._computed(op, inputs)
    if not op.pure or not op.outputs:
      return [self._opaque(op, position, number) for number in range(max(len(op.outputs), 1))]
    return self._computed(op, inputs)

  def _reads_unwritten(self, op: OpRecord) -> bool:
    leaf = self.graph.ops[op.inputs[0][0]]
    return leaf.op_type == VARIABLE and leaf.name not in self._written

  def _computed(self, op: OpRecord, inputs: Sequence[int]) -> Sequence[int]:
    attributes = dict(op.attributes)
    outputs = with_shapes(self._terms, op.op_type, inputs, attributes, op.outputs)
    operation = Operation(self._terms, op.op_type, inputs, attributes, outputs)
    found = folded(operation)
    if found is None and self._rounds is not None and op.op_type in lists.RULES:
      found = lists.RULES[op.op_type](operation)
    rule = RULES.get(op.op_type)
    if found is None and rule is not None and len(inputs) == len(op.inputs):
      found = rule(operation)
    if found is not None and len(found) >= len(op.outputs):
      return found
    kind, detail = family(op.op_type), _detail(op)
    return [
      self._terms.add(kind, inputs, (number, detail), dtype, shape)
      for number, (dtype, shape) in enumerate(outputs)
    ]

  def _leaf(self, position: int, op: OpRecord) -> int:
    dtype, shape = op.outputs[0] if op.outputs else ('', None)
    if op.op_type == CONSTANT:
      if op.constant is not None:
        return self._terms.constant(op.constant, dtype)
      if op.digest:
        return self._terms.add('constant by digest', (), op.digest, dtype, shape)
      return self._opaque(op, position)
    if op.op_type == INPUT and self._arguments is not None:
      place = int(op.name.rpartition(' ')[2])
      # Of a variable, a function does not say the shape.
      if dtype == 'resource' or self._rounds is not None:
        return self._arguments[place]
      return self._terms.add('argument', (), place, dtype, shape)
    if op.op_type == INPUT:
      return self._terms.add(INPUT, (), op.name, dtype, shape)
    state, multiple = self._states.get(op.name), self._multiples.get(op.name)
    if state is not None and dtype != 'resource':
      return state.term(self._terms, dtype)
    if multiple is not None and shape is not None and None not in shape:
      whole = tuple(size for size in shape if size is not None)
      held = self._variable(multiple.of, dtype, shape)
      return total(self._terms, ((held, multiple.factor),), dtype, whole)
    name, _, number = op.name.partition(_AFTER)
    if name not in self._variables and name not in self._held:
      return self._opaque(op, position)
    if op.name != name:
      return self._after_update(position, op, f'update of {name}{number}')
    return self._variable(name, dtype, shape)

  def _variable(self, name: str, dtype: str, shape: tuple[int | None, ...] | None) -> int:
    """Returns the term of a variable before the run, in the shape that a side has it in."""
    if name in self._held:
      return self._in_own_layout(name, dtype, shape)
    own_dtype, own = self._variables[name]
    number = self._whole(name)
    known = self._terms.shape(number)
    if dtype == 'resource':  # its handle, which a look-up or a loop takes
      return number
    if dtype != own_dtype:
      return self._terms.add(VARIABLE, (), (name, shape), dtype, shape)
    if shape == own or known is None or shape is None or None in shape:
      return number if shape == own else self._terms.add(VARIABLE, (), (name, shape), dtype, shape)
    if without_ones(known) != without_ones(shape):
      return self._terms.add(VARIABLE, (), (name, shape), dtype, shape)
    return reshape(self._terms, number, tuple(size for size in shape if size is not None))

  def _in_own_layout(self, name: str, dtype: str, shape: tuple[int | None, ...] | None) -> int:
    """Returns the term of a variable that has elements of tf1's in a layout of its own."""
    held = self._held[name]
    dtypes = [self._variables[one][0] for one in held.tf1 if one in self._variables]
    if len(dtypes) == len(held.tf1):
      kind = dtypes[0] if dtype == 'resource' else dtype  # a handle stands for what it holds
      found = held.term(self._terms, self._whole, dtypes, kind)
      if found is not None and (dtype == 'resource' or self._terms.shape(found) == shape):
        return found
    return self._terms.add(f'{VARIABLE} of {self._scope}', (), (name, shape), dtype, shape)

  def _whole(self, name: str) -> int:
    """Returns the term of a variable of tf1."""
    return self._terms.add(VARIABLE, (), name, *self._variables[name])

  def _after_update(self, position: int, op: OpRecord, write: str) -> int:
    """Returns what a variable holds after a write to it; unknown where that is not known.

    Args:
      position: of what reads it.
      op: what reads it.
      write: the target that says what was written: of a port, the last one before.
    """
    name, ends = _updated(write)[0], self.graph.targets()
    count = sum(_updated(end)[0] == name for end in ends)
    # The port is traced in the order of its lines. Of TF1, which of several writes came first is
    # not known.
    end = ends.get(write) if count == 1 or self.graph.side == _TF2 else None
    if end is None or any(key not in self.values for key in self.graph.ops[end].inputs):
      return self._opaque(op, position)
    found = self._own_target(end)
    return found[0] if len(found) == 1 else self._opaque(op, position)

  def _draw(self, op: OpRecord, inputs: Sequence[int]) -> Sequence[int]:
    """Returns the terms of random numbers: those of the n-th operation that draws such ones."""
    kind = (op.op_type, tuple(inputs), _detail(op), op.outputs)
    number = self.draws[kind] = self.draws.get(kind, -1) + 1
    return [
      self._terms.add('draw', inputs, (op.op_type, _detail(op), number, n, self._depth()), *output)
      for n, output in enumerate(op.outputs)
    ]

  def _depth(self) -> bool:
    return self._arguments is not None

  def _call(self, position: int, op: OpRecord, inputs: Sequence[int]) -> Sequence[int]:
    """Returns the terms of a loop or a condition, by what its functions compute."""
    if not op.pure or not op.functions:
      return [self._opaque(op, position, number) for number in range(len(op.outputs))]
    if self._rounds is not None:
      apart = taken_apart(self._terms, op, inputs, self._round_of(op), self._rounds)
      if apart is not None and len(apart) == len(op.outputs):
        return apart
    passed = inputs[1:] if op.op_type.endswith('If') else inputs
    names = {'StatelessWhile': 'While', 'StatelessIf': 'If'}
    signature: list[object] = [names.get(op.op_type, op.op_type)]
    drawn = False
    for attribute, body in sorted(op.functions, key=lambda item: item[0]):
      arguments = [
        self._terms.add('argument', (), n, self._terms.dtype(one), self._terms[one].shape)
        for n, one in enumerate(passed)
      ]
      scope = f'{self._scope}/{op.name}/{attribute}'
      inner = Numbering(self._terms, body, {}, scope, arguments)
      results = tuple(inner.target(n) for n, one in enumerate(body.ops) if one.op_type == TARGET)
      signature += [attribute, results]
      drawn = drawn or bool(inner.draws)
    if drawn:
      kind = (*signature, tuple(inputs))
      self.draws[kind] = self.draws.get(kind, -1) + 1
      signature.append(self.draws[kind])
    return [
      self._terms.add('call', inputs, (n, *signature), dtype, shape)
      for n, (dtype, shape) in enumerate(op.outputs)
    ]

  def _round_of(self, op: OpRecord) -> Compute:
    """Returns what computes the functions of a loop or a condition for given arguments."""

    def compute(body: OpGraph, name: str, arguments: Sequence[int]) -> Sequence[int] | None:
      rounds = self._rounds
      scope = f'{self._scope}/{op.name}/{name}'
      inner = Numbering(self._terms, body, {}, scope, arguments, rounds=rounds)
      if inner.draws or rounds is None:
        return None  # every round draws other numbers
      rounds.inside.update(inner.values.values())
      ends = sorted(body.targets().items(), key=lambda end: int(end[0].rpartition(' ')[2]))
      results = [inner.target(end) for _, end in ends]
      known = [result[0] for result in results if len(result) == 1]
      return known if len(known) == len(results) else None

    return compute


def _detail(op: OpRecord) -> tuple[tuple[str, object], ...]:
  """Returns the attributes that tell what an operation computes."""
  return tuple(
    (name, value)
    for name, value in op.attributes
    if name not in _WITHOUT_EFFECT and not (name.startswith('T') and name != 'Truncate')
  )


def _updated(name: str) -> tuple[str, int]:
  """Returns the variable and the number of an update, by its target's name."""
  if not name.startswith('update of '):
    return '', 0
  name = name.removeprefix('update of ')
  before, _, number = name.rpartition(' (')
  if before and number.endswith(')') and number[:-1].isdigit():
    return before, int(number[:-1])
  return name, 1


def _written(graph: OpGraph) -> Collection[str]:
  """Returns the variables that a graph writes; of a training step, writes are results."""
  targets = (op for op in graph.ops if op.op_type == TARGET and op.attribute('op'))
  return {_updated(op.name)[0] for op in targets}
