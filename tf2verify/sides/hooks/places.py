"""Where the hooks of a case are written, for errors that no traceback of the user's belongs to."""

import inspect
from typing import Any

from tf2verify.sides.graphs.lines.source_lines import is_user_file, source_line


def hook_place(hook: Any) -> str:
  """Returns file and line of a hook's definition, as `my_case.py:14`.

  Args:
    hook: a method or function of the case; anything else has no place.

  Returns:
    The place; '' where it is not in a file of the user's.
  """
  if isinstance(hook, (staticmethod, classmethod)):
    hook = hook.__func__
  code = getattr(inspect.unwrap(hook), '__code__', None) if callable(hook) else None
  if code is None or not is_user_file(code.co_filename):
    return ''
  line = source_line(code.co_filename, code.co_firstlineno, code.co_name)
  return f'{line.path}:{line.line}'


def with_place(message: str, name: str, hook: Any) -> str:
  """Returns a message about a hook, and after it where the hook is written, if that is known."""
  place = hook_place(hook)
  return f'{message} ({name}: {place})' if place else message
