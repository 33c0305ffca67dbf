"""What a function's code reads by name."""

import dataclasses
import dis
import types
from collections.abc import Iterator

_GLOBALS = ('LOAD_GLOBAL', 'LOAD_NAME')
_ATTRIBUTES = ('LOAD_ATTR', 'LOAD_METHOD')
_BETWEEN = ('CACHE', 'PRECALL', 'PUSH_NULL', 'NOP', 'EXTENDED_ARG')


@dataclasses.dataclass(frozen=True)
class CodeReads:
  """What some code, and the functions within it, may read of what is outside."""

  # A global name, and the attributes that are read of it at once: `('tf', 'nn', 'relu')`.
  chains: tuple[tuple[str, ...], ...]
  imports: tuple[tuple[int, str], ...]  # level and name of the modules that it imports when it runs
  names: frozenset[str]  # every name of an attribute, of any object


def reads_of(code: types.CodeType) -> CodeReads:
  """Returns what code reads by name; what it is given, and computes by itself, is not among it."""
  chains: dict[tuple[str, ...], None] = {}
  imports: dict[tuple[int, str], None] = {}
  names: set[str] = set()
  for one in codes_of(code):
    names.update(one.co_names)
    constants: list[object] = []
    chain: tuple[str, ...] = ()
    for step in dis.get_instructions(one):
      if step.opname in _BETWEEN:
        continue
      if chain and step.opname in _ATTRIBUTES:
        chain = (*chain, str(step.argval))
        continue
      if chain:
        chains[chain] = None
        chain = ()
      if step.opname in _GLOBALS:
        chain = (str(step.argval),)
      elif step.opname == 'LOAD_CONST' or step.opname == 'LOAD_SMALL_INT':
        constants.append(step.argval)
      elif step.opname == 'IMPORT_NAME':
        level = constants[-2] if len(constants) > 1 else 0
        imports[(level if isinstance(level, int) else 0, str(step.argval))] = None
    if chain:
      chains[chain] = None
  return CodeReads(tuple(chains), tuple(imports), frozenset(names))


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
  """Yields code, and the code of what is defined within it."""
  yield code
  for constant in code.co_consts:
    if isinstance(constant, types.CodeType):
      yield from codes_of(constant)
