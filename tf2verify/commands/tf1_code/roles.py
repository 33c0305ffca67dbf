"""What the parameters of TF1 functions are for: tensors, settings, modes, labels."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from tf2verify.commands.tf1_code.syntax import (
  called,
  inner_function,
  passed,
  plain_parameters,
  text_of,
)

_TRAINING = ('training', 'is_training', 'train', 'is_train')
_LABELS = ('labels', 'label', 'targets', 'target')
_OBJECTS = ('params', 'hparams', 'hps', 'config', 'cfg', 'flags', 'options', 'args', 'settings')
# A parameter that is a number of something, and not a tensor, by the words of its name.
_NUMBER = re.compile(
  r'(^|_)(num|n|size|dim|dims|depth|units|classes|hidden|layers|channels|filters|heads|blocks|'
  r'vocab|vocabulary|width|height|'
  r'rate|prob|dropout|epsilon|decay|momentum|scale|factor|lr|stddev|actions)(_|\d*$)'
)
# A tensor with the length of each example, or how long all of them are: their use tells.
_LENGTH = re.compile(r'(^|_)(length|len)(_|\d*$)')
# What an annotation says of a parameter, by its last word.
_ANNOTATED = {'int': 'number', 'float': 'number', 'str': 'text', 'bool': 'text', 'Tensor': 'input'}
_TEXT = ('scope', 'name', 'activation', 'initializer', 'regularizer', 'data_format', 'reuse')
# Calls with a shape, whose sizes are settings; a reshape may also take those of a tensor.
_SHAPED = (
  'placeholder', 'get_variable', 'Variable', 'random_normal', 'random_uniform', 'truncated_normal',
)  # fmt: skip
_DEEPEST = 3


def role_of(
  name: str,
  has_default: bool,
  annotated: str,
  uses: Iterable[tuple[ast.FunctionDef, str]],
  functions: Mapping[str, ast.FunctionDef],
) -> str:
  """Returns the role of a parameter, as `Parameter` has it.

  Args:
    name: of the parameter.
    has_default: whether it may be left out.
    annotated: the last word of its annotation.
    uses: where to look for its uses: functions, and its name in them.
    functions: what these functions may call.
  """
  low = name.lower()
  for role, names in (('training', _TRAINING), ('mode', ('mode',)), ('labels', _LABELS)):
    if low in names:
      return role
  if low in _OBJECTS:
    return 'object'
  if low in _TEXT or has_default:
    return 'text'
  if annotated in _ANNOTATED:
    return _ANNOTATED[annotated]
  if _NUMBER.search(low):
    return 'number'
  places = list(uses)
  if any(_is_size(function, text) for function, text in places):
    return 'number'
  if _LENGTH.search(low) and not any(_is_passed(*one, functions, 0) for one in places):
    return 'number'
  return 'input'


def _is_size(function: ast.FunctionDef, text: str) -> bool:
  """Returns whether something is a size in the shape of a placeholder or variable."""
  return any(
    text_of(size) == text
    for call in _calls(function)
    if called(call) in _SHAPED
    for value in (*call.args, *(word.value for word in call.keywords))
    for part in ast.walk(value)
    if isinstance(part, (ast.List, ast.Tuple))
    for element in part.elts
    for size in _terms(element)
  )


def _terms(node: ast.expr) -> Iterator[ast.expr]:
  """Yields the parts of a sum or product."""
  if isinstance(node, ast.BinOp):
    yield from _terms(node.left)
    yield from _terms(node.right)
  else:
    yield node


def _is_passed(
  function: ast.FunctionDef,
  text: str,
  functions: Mapping[str, ast.FunctionDef],
  depth: int,
) -> bool:
  """Returns whether something is passed to a call as a tensor may be; not as the end of a range."""
  for call in _calls(function):
    inner = inner_function(call, functions)
    if inner is not None and depth < _DEEPEST:
      names = [
        name for name, value in passed(call, plain_parameters(inner)) if text_of(value) == text
      ]
      if any(_is_passed(inner, name, functions, depth + 1) for name in names):
        return True
    elif called(call) != 'range' and any(
      text_of(value) == text for value in (*call.args, *(word.value for word in call.keywords))
    ):
      return True
  return False


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
  yield from (node for node in ast.walk(function) if isinstance(node, ast.Call))
