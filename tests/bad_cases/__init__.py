"""Cases with one mistake each, and what a report has to say of it."""

import types

from tests.bad_cases import builder, declaration, layer, raising
from tests.small_case import SmallCase


def _cases(module: types.ModuleType) -> tuple[type[SmallCase], ...]:
  found = [item for item in vars(module).values() if isinstance(item, type)]
  return tuple(c for c in found if issubclass(c, SmallCase) and c is not SmallCase)


BAD_CASES = tuple(case for m in (builder, layer, raising, declaration) for case in _cases(m))
