"""How a cell of Keras may hold the variables of a cell of TF1."""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence

from tf2verify.relation.derived_layouts import Shape
from tf2verify.relation.map_entry import MapEntry

# The gates of TF1's cells, as BasicLSTMCell and LSTMCell have them, and as Keras has them.
_TF1_GATES, _KERAS_GATES = 'icfo', 'ifco'
_LSTM = ('kernel', 'recurrent_kernel', 'bias')
# The axes of the window of a convolution.
_WINDOW = 'uvw'


def cell_entries(
  scope: str, cell: Mapping[str, Shape], its: str, port: Mapping[str, Shape]
) -> Sequence[Sequence[MapEntry]]:
  """Returns the ways in which a cell of Keras holds one of tf1; nothing where it does not."""
  names = {key: f'{its}/{key}' for key in _LSTM}
  # Peepholes and a projection are variables of their own, with a role or a shape of their own.
  if not set(names) <= set(port) or len(port['kernel']) != 2:
    return ()
  (inputs, wide), (units, _) = port['kernel'], port['recurrent_kernel']
  if set(cell) == {'kernel', 'bias'} and wide % 4 == 0:
    if cell['kernel'] != (inputs + units, wide) or not port['bias'] == cell['bias'] == (wide,):
      return ()
    return lstm(
      *((f'{scope}/{key}', cell[key]) for key in ('kernel', 'bias')),
      *((names[key], port[key]) for key in names),
    )
  gates, candidate = cell.get('gates/kernel'), cell.get('candidate/kernel')
  if gates == (inputs + units, 2 * units) and candidate == (inputs + units, units):
    if port['bias'] != (3 * units,):
      return ()  # reset_after has two biases: another cell
    return gru(
      (f'{scope}/gates/kernel', f'{scope}/gates/bias'),
      (f'{scope}/candidate/kernel', f'{scope}/candidate/bias'),
      (names['kernel'], names['recurrent_kernel'], names['bias']),
      (inputs, units),
    )
  return ()


def raw_lstm(
  own: Sequence[tuple[str, Shape]], its: str, port: Mapping[str, Shape]
) -> list[tuple[MapEntry, ...]]:
  """Returns the ways in which a Keras LSTM can hold one that is written out, by the shapes.

  With one kernel for inputs and state, above each other in either order, or one for each.

  Args:
    own: names and shapes of the variables of one scope of tf1.
    its: the scope of the port's cell.
    port: shapes of the variables in it, by the rest of their names.
  """
  names = {key: (f'{its}/{key}', shape) for key, shape in port.items()}
  kernels = [(name, shape) for name, shape in own if len(shape) >= 2]
  biases = [(name, shape) for name, shape in own if len(shape) == 1]
  if set(port) != set(_LSTM) or len(biases) != 1 or len(kernels) + 1 != len(own):
    return []
  kernel, recurrent, bias = (names[key] for key in _LSTM)
  *window, units, wide = recurrent[1]
  if kernel[1][-1] != wide or wide != 4 * units or biases[0][1] != bias[1]:
    return []
  if list(kernel[1][:-2]) != window:
    return []
  whole = (*window, kernel[1][-2] + units, wide)
  if [shape for _, shape in kernels] == [whole]:
    found = lstm(kernels[0], biases[0], kernel, recurrent, bias)
    return found + [(_turned(one), other) for one, other in found]
  if sorted(shape for _, shape in kernels) != sorted((kernel[1], recurrent[1])):
    return []
  found = []
  for first, second in itertools.permutations(kernels):
    if first[1] == kernel[1] and second[1] == recurrent[1]:
      for known in lstm(('', whole), biases[0], kernel, recurrent, bias):
        left, right = (end.strip() for end in known[0].layout.split('->')[1].split(','))
        sizes = known[1].sizes
        ahead = left[: left.index('x')]
        parts = [
          MapEntry(
            (one[0],),
            (other[0],),
            f'{ahead}{axis} (i+c+f+o) -> {end}',
            (*sizes, (axis, one[1][-2])),
          )
          for one, other, axis, end in ((first, kernel, 'x', left), (second, recurrent, 'h', right))
        ]
        found.append((*parts, known[1]))
  return found


def _turned(entry: MapEntry) -> MapEntry:
  """Returns the same with the state above the inputs."""
  return dataclasses.replace(entry, layout=entry.layout.replace('(x+h)', '(h+x)', 1))


def lstm(
  kernel: tuple[str, Shape],
  bias: tuple[str, Shape],
  own: tuple[str, Shape],
  recurrent: tuple[str, Shape],
  keras_bias: tuple[str, Shape],
) -> list[tuple[MapEntry, ...]]:
  """Returns the ways in which a Keras LSTM can hold a cell of tf1; the usual one first.

  Kernels of convolutions have the axes of a window in front.

  Args:
    kernel: name and shape, of TF1's cell: inputs and state above each other.
    bias: likewise.
    own: of the port: the kernel of the inputs.
    recurrent: likewise, of the state.
    keras_bias: likewise.
  """
  *window, state, wide = recurrent[1]  # a projected state is shorter than the gates
  ahead = ''.join(f'{axis} ' for axis in _WINDOW[: len(window)])
  sizes = dict.fromkeys('icfo', wide // 4)
  found: list[tuple[MapEntry, ...]] = []
  for constant in (1.0, 0.0):
    for order in (_KERAS_GATES, *map(''.join, itertools.permutations(_TF1_GATES))):
      ends = '+'.join(order)
      both = {'x': own[1][-2], 'h': state, **sizes}
      one = MapEntry(
        (kernel[0],),
        (own[0], recurrent[0]),
        f'{ahead}(x+h) (i+c+f+o) -> {ahead}x ({ends}), {ahead}h ({ends})',
        tuple(both.items()),
      )
      other = MapEntry(
        (bias[0],),
        (keras_bias[0],),
        f'(i+c+f+o) -> ({ends})',
        tuple(sizes.items()),
        (('f', constant),) if constant else (),
      )
      if (one, other) not in found:
        found.append((one, other))
  return found


def gru(
  gates: tuple[str, str], candidate: tuple[str, str], port: tuple[str, str, str], sizes: Shape
) -> list[tuple[MapEntry, ...]]:
  """Returns the ways in which a Keras GRU without `reset_after` can hold a `GRUCell`.

  Args:
    gates: kernel and bias of tf1.
    candidate: likewise.
    port: kernel, recurrent kernel and bias.
    sizes: of inputs and state.
  """
  inputs, units = sizes
  known = {'x': inputs, 's': units, 'r': units, 'z': units, 'c': units}
  found: list[tuple[MapEntry, ...]] = []
  for order in ('z+r+c', 'r+z+c'):
    kernels = MapEntry(
      (gates[0], candidate[0]),
      port[:2],
      f'(x+s) (r+z), (x+s) c -> x ({order}), s ({order})',
      tuple(known.items()),
    )
    biases = MapEntry(
      (gates[1], candidate[1]),
      port[2:],
      f'(r+z), c -> ({order})',
      tuple((name, size) for name, size in known.items() if name not in 'xs'),
    )
    found.append((kernels, biases))
  return found


_CELL = re.compile(r'(.*?)/(kernel|bias|gates/kernel|gates/bias|candidate/kernel|candidate/bias)')


def scope(name: str) -> str:
  """Returns the scope of a cell of tf1 that a variable belongs to; '' for another variable."""
  found = _CELL.fullmatch(name)
  return found[1] if found else ''
