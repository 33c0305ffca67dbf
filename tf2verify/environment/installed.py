"""Which TensorFlow packages are installed, and in which version.

TensorFlow is published under many names (`tensorflow-cpu`, `tensorflow-macos`,
`tf-nightly`, ...), and a Bazel build has no package metadata at all. So the
version of a module that is already imported counts first, then the metadata.
"""

import importlib.metadata
import importlib.util
import re
import sys

# The names under which one importable package is published.
_DISTRIBUTIONS = {
  'tensorflow': (
    'tensorflow',
    'tensorflow-cpu',
    'tensorflow-gpu',
    'tensorflow-intel',
    'tensorflow-macos',
    'tensorflow-rocm',
    'tensorflow-aarch64',
    'tensorflow-cpu-aws',
    'intel-tensorflow',
    'intel-tensorflow-avx512',
    'tf-nightly',
    'tf-nightly-cpu',
  ),
  'tf_keras': ('tf-keras', 'tf-keras-nightly'),
  'keras': ('keras', 'keras-nightly'),
  'tf_slim': ('tf-slim', 'tf-slim-nightly'),
  'numpy': ('numpy',),
  'absl': ('absl-py',),
}

UNKNOWN = 'unknown'


def version(package: str) -> str | None:
  """The version of an importable package, without importing it.

  Args:
    package: the import name, such as 'tf_keras'.

  Returns:
    The version; `UNKNOWN` for a package that can be found but states none;
    None for a package that is absent.
  """
  if package in sys.modules:
    module = sys.modules[package]
    # A None entry is Python's own way to say that an import must fail.
    if module is None:
      return None
    stated = vars(module).get('__version__')
    if isinstance(stated, str):
      return stated
  for distribution in _DISTRIBUTIONS.get(package, (package,)):
    try:
      return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
      continue
  return UNKNOWN if _can_be_found(package) else None


def minor(stated: str | None) -> tuple[int, int] | None:
  """Major and minor number of a version: (2, 21) of '2.21.0-dev20260101'."""
  numbers = re.match(r'(\d+)\.(\d+)', stated or '')
  return (int(numbers[1]), int(numbers[2])) if numbers else None


def _can_be_found(package: str) -> bool:
  if package in sys.modules:
    return True
  return importlib.util.find_spec(package) is not None
