"""Texts that no writer may pass on as they are."""

import dataclasses
import os
import re

# Half a surrogate pair, a byte that is not UTF-8, an ANSI escape, the other direction, NUL,
# line ends, what Markdown, HTML and JSON take for marks, and no character at all.
NASTY = (
  '\ud800'
  + os.fsdecode(b'caf\xe9')
  + '\x1b[2J\x1b[31m\x9b2J\u202e\u2066\x00\x07\r|`<b>&"\\\'\u2028\ufffe'
)
LONG = NASTY + 'y' * 20_000_000
# Of these nothing may reach a reader.
UNSAFE = re.compile(
  '[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe]'
)


def nasty(value, text=NASTY):
  """Returns a record with a text added to every text in it."""
  if isinstance(value, str):
    return value + text
  if isinstance(value, tuple):
    return tuple(nasty(item, text) for item in value)
  if dataclasses.is_dataclass(value):
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    changed = {name: nasty(item, text) for name, item in fields.items()}
    return dataclasses.replace(value, **changed)
  return value
