"""How folders and tags are called."""

import hashlib
import re

from tf2verify.safe_text import safe_line

# A file name may have 255 bytes.
_LONGEST = 150


def target_of(module: str, case: str) -> str:
  """Returns how a case of a report is called: `path::Case`, as a journal calls it."""
  return f'{module}::{case}'


def folder_name(target: str) -> str:
  """Returns the folder of a case: `examples.dense.equivalence_test.DenseCase`.

  Args:
    target: `path::Case`.

  Returns:
    Letters and digits of any language, `_`, `-` and `.`; another one for another target:
    where more than slashes had to be replaced, a part of a digest stands behind.
  """
  dotted = re.sub(r'\.py(?=::|$)', '', target).replace('::', '.').replace('/', '.')
  plain = re.sub(r'[^\w.-]+', '.', dotted).strip('.')
  short = plain.encode()[:_LONGEST].decode(errors='ignore')
  if short == dotted:
    return short
  digest = hashlib.sha256(target.encode(errors='surrogatepass')).hexdigest()
  return f'{short}-{digest[:8]}'.lstrip('-')


def tag(*parts: str) -> str:
  """Returns a tag of its parts; control characters, which TensorBoard drops, are escaped."""
  return '/'.join(safe_line(part).strip() for part in parts)
