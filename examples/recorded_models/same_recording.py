"""Whether two recordings of one model say the same.

Names, graphs' structure, random ops, inputs, fills and initial values have to be the same
bit by bit, wherever they were recorded. What a kernel computes may differ by rounding:
another processor has other instructions.
"""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.recordings.recording import Recording

# Not of the model: when and where it was recorded; noise is measured, within a time.
_LEFT_OUT = ('sha256', 'made', 'environment', 'arrays', 'noise', 'noise_runs', 'repeats')
# Serialized: the order of the attributes in it is not fixed.
_SERIALIZED = ('graph_def', 'constant_graph_def')
_DRAWN = ('initial_values', 'values_before')
_COMPUTED = ('value',)
# What the loss is given. The nests of inputs and labels have an `array` too, which nobody computes.
_COMPUTED_NESTS = ('/output_nest/',)
_RTOL, _ATOL = 1e-6, 1e-5


def differences(committed: str | pathlib.Path, anew: str | pathlib.Path) -> list[str]:
  """Returns what two recordings say differently, a line for each; empty for none.

  Raises:
    RecordingError: one of them is damaged.
  """
  recordings = [Recording.open(str(path)) for path in (committed, anew)]
  for recording in recordings:
    recording.check()
  manifests = [
    json.loads((pathlib.Path(path) / 'manifest.json').read_text(encoding='utf-8'))
    for path in (committed, anew)
  ]
  return list(_walk(manifests, recordings, manifests, ''))


def _walk(
  values: list[Any], recordings: list[Recording], manifests: list[dict[str, Any]], place: str
) -> Iterator[str]:
  one, other = values
  name = place.rpartition('/')[2]
  if name in _LEFT_OUT or name in _SERIALIZED:
    return
  if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
    for key in one:
      yield from _walk([one[key], other[key]], recordings, manifests, f'{place}/{key}')
  elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
    for number, pair in enumerate(zip(one, other, strict=True)):
      # Named entries are pairs: name, value.
      label = pair[0][0] if isinstance(pair[0], list) and pair[0] else number
      yield from _walk(list(pair), recordings, manifests, f'{place}/{label}')
  elif all(
    isinstance(value, str) and value in manifest['arrays']
    for value, manifest in zip(values, manifests, strict=True)
  ):
    yield from _arrays(values, recordings, manifests, place)
  elif one != other:
    yield f'{place}: {one!r:.60} was committed, now {other!r:.60}'


def _arrays(
  ids: list[str], recordings: list[Recording], manifests: list[dict[str, Any]], place: str
) -> Iterator[str]:
  digests = [manifest['arrays'][id]['sha256'] for id, manifest in zip(ids, manifests, strict=True)]
  if digests[0] == digests[1]:
    return
  drawn = any(f'/{word}/' in place for word in _DRAWN)
  computed = place.endswith(tuple(f'/{word}' for word in _COMPUTED))
  computed |= any(nest in place for nest in _COMPUTED_NESTS)
  if drawn or not computed:
    yield f'{place}: not the same bit by bit'
    return
  one, other = (recording.array(id) for id, recording in zip(ids, recordings, strict=True))
  if one.shape != other.shape or one.dtype != other.dtype:
    yield f'{place}: {one.dtype} {one.shape} was committed, now {other.dtype} {other.shape}'
  elif not np.allclose(other, one, _RTOL, _ATOL, equal_nan=True):
    greatest = np.max(np.abs(other - one))
    yield f'{place}: differs by {greatest:.2g}, more than rounding'
