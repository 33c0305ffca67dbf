"""Functions of a graph put in the places of what calls them: a branch, the rounds of a loop."""

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.records import rounds
from tf2verify.tensorflow_internals import graphs

# Of the names of what a function holds. No scope of TensorFlow is called so.
BRANCHES = {True: 'tf2verify_then', False: 'tf2verify_else'}
# Passes on what a condition has chosen. TensorFlow has it nowhere before Grappler.
KEPT_CHOICE = 'Snapshot'
_DECIDED, _TAKEN = '/tf2verify_decided', '/tf2verify_taken'
_CHOSEN = re.compile(r'/tf2verify_chosen_(\d+)$')
_LAST_NUMBER = re.compile(r'_\d+$')
_PLACES = re.compile(rf'/({"|".join(BRANCHES.values())}|{rounds.WORD}\d+)/')


def choice_name(condition: str, number: int) -> str:
  """Returns the name of what passes a result of a condition on, a name that no branch has."""
  return f'{condition}/tf2verify_chosen_{number}'


def decision_name(condition: str) -> str:
  """Returns the name of what passes on the tensor that decides a condition."""
  return f'{condition}{_DECIDED}'


def taken_name(condition: str) -> str:
  """Returns the same of a condition in place of which the branch stands that a run takes."""
  return f'{condition}{_TAKEN}'


def decides_branch(name: str) -> bool:
  """Returns whether an operation passes on what decides a condition, under either name."""
  return name.endswith((_DECIDED, _TAKEN))


def is_decision(name: str) -> bool:
  """Returns whether an operation passes on what decides a condition."""
  return name.endswith(_DECIDED)


def condition_of(name: str) -> str:
  """Returns the condition of a `choice_name`; other names as they are."""
  return _CHOSEN.sub('', name)


def shown_choice(name: str) -> str:
  """Returns how a reader is told of a `choice_name`; other names as they are."""
  return _CHOSEN.sub(lambda found: '' if found[1] == '0' else f':{found[1]}', name)


def is_in_branch(name: str) -> bool:
  """Returns whether an operation was put in the place of a condition whose branch it is."""
  return any(f'/{branch}/' in name for branch in BRANCHES.values())


def operation(graph: tf.Graph, name: str) -> tf.Operation | None:
  """Returns an operation of a graph, or of a function that was put in the place of its call.

  Where the graph of the function is not known, that is the call; None without an operation.
  """
  found = _PLACES.search(name)
  if found is None:
    for known in (name, rounds.whole(name)):
      with contextlib.suppress(KeyError):
        return graph.get_operation_by_name(known)
    return None
  call = operation(graph, name[: found.start()])
  if call is None:
    return None
  inner = _function(call, found[1])
  if inner is None:
    return call
  rest = name[found.end() :]
  for known in (rest, f'{call.name}/{rest}'):
    # Of what is called as a result of the function, the name there has a number more.
    whole = rounds.whole(known)
    for own in (known, _LAST_NUMBER.sub('', known), whole, _LAST_NUMBER.sub('', whole)):
      made = operation(inner, own)
      if made is not None:
        return made
  return call


def _function(call: tf.Operation, word: str) -> Any:
  for is_true, branch in BRANCHES.items():
    if word == branch:
      return graphs.branch_of(call, is_true)
  return graphs.loop_body_of(call)


def inlined(
  call: str, arguments: Sequence[str], waits: Sequence[str], body: Any, prefix: str
) -> tuple[list[Any], list[str]]:
  """Returns the operations of a function, under names of their own, and the tensors it yields.

  Args:
    call: the name of what calls it.
    arguments: the tensors that it is called with.
    waits: what the call waits for, as control inputs.
    body: the function's graph.
    prefix: of the names.
  """
  graph_def = body.as_graph_def()
  names = _short_names(call, [node.name for node in graph_def.node])
  given: dict[str, str] = dict(
    zip((tensor.op.name for tensor in body.inputs), arguments, strict=True)
  )

  def outer(name: str) -> str:
    op, _, number = name.partition(':')
    if op in given:
      return given[op]
    return prefix + names[op] + (f':{number}' if number else '')

  added = []
  for known in graph_def.node:
    if known.name in given:
      continue
    copied = type(known)()
    copied.CopyFrom(known)
    copied.name = outer(known.name)
    copied.attr.pop('_class', None)  # what it names has another name here
    del copied.input[:]
    for name in known.input:
      if not name.startswith('^'):
        copied.input.append(outer(name))
      elif name[1:] not in given:
        copied.input.append('^' + outer(name[1:]))
    copied.input.extend(wait for wait in waits if wait not in copied.input)
    added.append(copied)
  return added, [outer(tensor.name) for tensor in body.outputs]


def _short_names(call: str, names: Sequence[str]) -> dict[str, str]:
  """Returns the names of a function's operations without that of the call, where it is known."""
  own = set(names)
  short = {name: name.removeprefix(f'{call}/') for name in names}
  return {name: name if short[name] in own else short[name] for name in names}


def data_inputs(node: Any) -> list[str]:
  """Returns what an operation reads."""
  return [name for name in node.input if not name.startswith('^')]


def control_inputs(node: Any) -> list[str]:
  """Returns what an operation waits for."""
  return [name for name in node.input if name.startswith('^')]


def become(node: Any, op: str, inputs: Iterable[str] = (), **types: int) -> None:
  """Makes an operation another one, under its name, that waits for what it waited for."""
  controls = control_inputs(node)
  node.op = op
  node.attr.clear()
  for name, dtype in types.items():
    node.attr[name].type = dtype
  del node.input[:]
  node.input.extend([*inputs, *controls])


def pass_on(node: Any, outputs: Sequence[str], dtypes: Sequence[tf.DType]) -> None:
  """Makes a call an operation that yields some tensors, to be asked for by its name."""
  become(node, 'IdentityN', outputs)
  node.attr['T'].list.type.extend(dtype.as_datatype_enum for dtype in dtypes)


def redirect(graph_def: Any, outputs: Mapping[str, Sequence[str]]) -> None:
  """Lets what reads some operations read other tensors.

  Args:
    graph_def: the graph, which is changed.
    outputs: what stands for their outputs, by their names.
  """
  for node in graph_def.node:
    for number, name in enumerate(node.input):
      node.input[number] = _redirected(name, outputs)


def _redirected(name: str, outputs: Mapping[str, Sequence[str]]) -> str:
  op, _, number = name.partition(':')
  known = outputs.get(op)
  if known is None:
    return name
  # What a call passes on may be what another one, in the same graph, yields.
  return _redirected(known[int(number or 0)], {k: v for k, v in outputs.items() if k != op})


def with_output(name: str) -> str:
  """Returns the full name of a tensor."""
  return name if ':' in name else f'{name}:0'
