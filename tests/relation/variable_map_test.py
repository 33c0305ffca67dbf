import math
import os
import random
import tempfile

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.errors import VariableMapError
from tf2verify.relation import variable_map_file
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.variable_map import VariableMap

_FC = MapEntry(('fc6/weights',), ('fc1/kernel',), 'h w i o -> (h w i) o', {'h': 2, 'w': 3, 'i': 4})
_LSTM = (
  MapEntry(
    ('rnn/kernel',),
    ('lstm/kernel', 'lstm/recurrent_kernel'),
    '(x+h) (i+c+f+o) -> x (i+f+c+o), h (i+f+c+o)',
    {'x': 3, 'h': 2, 'i': 2, 'c': 2, 'f': 2, 'o': 2},
  ),
  MapEntry(
    ('rnn/bias',),
    ('lstm/bias',),
    '(i+c+f+o) -> (i+f+c+o)',
    {'i': 2, 'c': 2, 'f': 2, 'o': 2},
    {'f': 1.0},
  ),
)


def numbered(*shape):
  return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


class EntryTest(parameterized.TestCase):
  def test_a_convolution_to_a_dense_layer(self):
    value = numbered(2, 3, 4, 5)
    (found,) = _FC.to_tf2([value])
    np.testing.assert_array_equal(found, value.reshape(24, 5))
    np.testing.assert_array_equal(_FC.to_tf1([found])[0], value)

  def test_transposed(self):
    value = numbered(2, 3)
    entry = MapEntry(('a',), ('b',), 'i o -> o i')
    np.testing.assert_array_equal(entry.to_tf2([value])[0], value.T)
    np.testing.assert_array_equal(entry.to_tf1([value.T])[0], value)

  def test_gates_of_an_lstm(self):
    kernel, bias = numbered(5, 8), numbered(8)
    own, recurrent = _LSTM[0].to_tf2([kernel])
    order = [0, 1, 4, 5, 2, 3, 6, 7]
    np.testing.assert_array_equal(own, kernel[:3, order])
    np.testing.assert_array_equal(recurrent, kernel[3:, order])
    (shifted,) = _LSTM[1].to_tf2([bias])
    np.testing.assert_array_equal(shifted, bias[order] + [0, 0, 1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(_LSTM[1].to_tf1([shifted])[0], bias)
    np.testing.assert_array_equal(_LSTM[1].to_tf2([bias], constants=False)[0], bias[order])

  def test_heads(self):
    value = numbered(1, 4, 12)
    entry = MapEntry(
      ('c_attn/w',),
      ('q', 'k', 'v'),
      '1 d ((qh qe)+(kh ke)+(vh ve)) -> d qh qe, d kh ke, d vh ve',
      {'qh': 2, 'qe': 2, 'kh': 2, 'ke': 2, 'vh': 2},
    )
    found = entry.to_tf2([value])
    for number, part in enumerate(found):
      np.testing.assert_array_equal(part, value[0, :, 4 * number : 4 * number + 4].reshape(4, 2, 2))
    np.testing.assert_array_equal(entry.to_tf1(found)[0], value)

  def test_every_third_column(self):
    value = numbered(2, 6)
    entry = MapEntry(
      ('w',),
      ('a', 'b', 'c'),
      'd (h (p+q+r)) -> d (h p), d (h q), d (h r)',
      {'p': 1, 'q': 1, 'r': 1},
    )
    found = entry.to_tf2([value])
    for number, part in enumerate(found):
      np.testing.assert_array_equal(part, value[:, number::3])
    np.testing.assert_array_equal(entry.to_tf1(found)[0], value)

  def test_a_scalar(self):
    entry = MapEntry(('a',), ('b',), '[] -> 1')
    self.assertEqual(entry.to_tf2([np.float32(3)])[0].shape, (1,))
    self.assertEqual(entry.to_tf1([numbered(1)])[0].shape, ())

  @parameterized.parameters(
    ('i o', 'needs one arrow'),
    ('i o -> o', "the part 'i o', which the other side does not have"),
    ('i i -> i', 'the axis i occurs twice'),
    ('(i+o) -> (i+i)', "the part 'i' occurs twice"),
    ('(i+o -> i o', r'a \) is missing'),
    ('i+o -> o i', r"'\+' is unexpected"),
    ('2 o -> o 2', '2 in the pattern'),
    ('i, o -> i o', '1 variables on the left, but 2 patterns'),
    ('i % -> i', "'%' in the pattern"),
    ('(i+) -> i', r'an operand is missing beside a \+'),
    (' -> i', 'a pattern is missing'),
  )
  def test_no_bijection_is_no_entry(self, layout, message):
    with self.assertRaisesRegex(VariableMapError, f'a -> b: .*{message}'):
      MapEntry(('a',), ('b',), layout)

  @parameterized.parameters(
    ('', True),
    ('i o -> i o', True),
    ('1 x i o -> (x i) o', True),
    ('h w (i o) -> (h w) i o', True),
    ('i o -> o i', False),
    ('x i o -> (i x) o', False),
    ('(i+j) -> (j+i)', False),
  )
  def test_whether_elements_keep_their_order(self, layout, keeps):
    self.assertEqual(MapEntry(('a',), ('b',), layout).keeps_order, keeps)

  def test_what_adds_a_constant_does_not_keep_its_elements(self):
    self.assertFalse(MapEntry(('a',), ('b',), 'o -> o', added=(('o', 1.0),)).keeps_order)

  def test_a_layout_that_says_nothing_is_left_out(self):
    names = ('a',), ('b',)
    self.assertEqual(MapEntry(*names, 'i o -> i o').simplified(), MapEntry(*names))
    self.assertEqual(MapEntry(*names, '[] -> []').simplified(), MapEntry(*names))
    for layout in ('i o -> o i', '1 o -> o'):
      self.assertEqual(MapEntry(*names, layout).simplified(), MapEntry(*names, layout))
    # A port of another shape is a finding, and no fault of the map.
    known = VariableMap((MapEntry(*names, 'i o -> i o'),))
    self.assertEqual(known.bound({'a': (2, 6)}, {'b': (6, 2)}).entries, (MapEntry(*names),))

  def test_several_variables_need_a_layout(self):
    with self.assertRaisesRegex(VariableMapError, 'several variables need a layout'):
      MapEntry(('a', 'b'), ('c',))

  def test_sizes_that_shapes_do_not_tell(self):
    entry = MapEntry(('a',), ('b', 'c'), '(x+h) -> x, h')
    with self.assertRaisesRegex(VariableMapError, r'how long the axis x is; add its size \(sizes'):
      entry.to_tf2([numbered(5)])
    self.assertEqual(entry.bound([(5,)], [(2,), (3,)]).sizes, (('x', 2), ('h', 3)))

  @parameterized.parameters(
    ([(5, 1)], [(2,), (3,)], r'has 1 axes, and the variable has the shape \(5, 1\)'),
    ([(6,)], [(2,), (3,)], 'has 5 elements, the shape 6'),
  )
  def test_shapes_that_do_not_fit(self, ones, others, message):
    entry = MapEntry(('a',), ('b', 'c'), '(x+h) -> x, h')
    with self.assertRaisesRegex(VariableMapError, message):
      entry.bound(ones, others)

  def test_an_axis_that_is_not_there(self):
    with self.assertRaisesRegex(VariableMapError, 'k is not an axis of the layout'):
      MapEntry(('a',), ('b',), 'i o -> o i', {'k': 3})


def random_entry(rng, number):
  """Returns an entry of random blocks, and shapes of its TF1 variables."""
  # A grid of named blocks, cut into variables differently on both sides.
  rows = [f'r{number}_{n}' for n in range(rng.randint(1, 3))]
  columns = [f'c{number}_{n}' for n in range(rng.randint(1, 4))]
  depth = [f'd{number}_{n}' for n in range(rng.randint(0, 2))]
  sizes = {axis: rng.randint(1, 4) for axis in (*rows, *columns, *depth)}

  def side():
    patterns = []
    left = list(rows)
    rng.shuffle(left)
    while left:
      taken = [left.pop() for _ in range(rng.randint(1, len(left)))]
      across = list(columns)
      rng.shuffle(across)
      axes = [f'({"+".join(taken)})', f'({"+".join(across)})', *depth]
      rng.shuffle(axes)
      if len(axes) > 2 and rng.random() < 0.5:
        axes = [f'({axes[0]} {axes[1]})', *axes[2:]]
      if rng.random() < 0.3:
        axes.insert(rng.randint(0, len(axes)), '1')
      patterns.append(' '.join(axes))
    return patterns

  ones, others = side(), side()
  entry = MapEntry(
    tuple(f'one{number}/{n}' for n in range(len(ones))),
    tuple(f'other{number}/{n}' for n in range(len(others))),
    f'{", ".join(ones)} -> {", ".join(others)}',
    sizes,
    reason='by chance',
  )
  return entry, [pattern.shape(sizes) for pattern in entry.patterns[0]]


class MapTest(parameterized.TestCase):
  @parameterized.parameters(range(40))
  def test_random_maps_and_back_bit_by_bit(self, seed):
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    made = [random_entry(rng, number) for number in range(rng.randint(1, 4))]
    known = VariableMap(tuple(entry for entry, _ in made), {'step': 'it counts'})
    values = {
      name: numbers.integers(0, 2**32, shape, np.uint32).view(np.float32)
      for entry, shapes in made
      for name, shape in zip(entry.tf1, shapes, strict=True)
    }
    there = known.to_tf2(values)
    self.assertEqual(tuple(there), known.tf2_names)
    # Every element is somewhere, once.
    self.assertEqual(sum(v.size for v in there.values()), sum(v.size for v in values.values()))
    back = known.to_tf1(there)
    self.assertEqual(set(back), set(values))
    for name, value in values.items():
      self.assertEqual(back[name].tobytes(), value.tobytes(), name)
      self.assertEqual(back[name].shape, value.shape)
    for name, value in known.to_tf2(back).items():
      self.assertEqual(value.tobytes(), there[name].tobytes(), name)
    # The file says the same.
    again = VariableMap(*variable_map_file.parse(known.to_text(), 'x.map'))
    self.assertEqual(again, known)
    # Shapes tell the sizes where each block is seen alone.
    shapes = {name: value.shape for name, value in values.items()}
    bound = known.bound({**shapes, 'step': ()}, {name: v.shape for name, v in there.items()})
    self.assertEqual(
      [dict(entry.sizes) for entry in bound.entries],
      [
        {axis: dict(entry.sizes)[axis] for axis in dict(found.sizes)}
        for entry, found in zip(known.entries, bound.entries, strict=True)
      ],
    )

  def test_every_variable_belongs_to_one_entry(self):
    with self.assertRaisesRegex(VariableMapError, 'the tf2 variable c twice: in a -> c and in b'):
      VariableMap((MapEntry(('a',), ('c',)), MapEntry(('b',), ('c',))))
    with self.assertRaisesRegex(VariableMapError, 'names the tf1 variable a twice: in tf1_only'):
      VariableMap((MapEntry(('a',), ('c',)),), tf1_only={'a': 'why'})

  def test_one_side_alone_needs_a_reason(self):
    with self.assertRaisesRegex(VariableMapError, 'no reason for gamma'):
      VariableMap((), tf2_only={'gamma': ' '})

  def test_values_that_do_not_fit(self):
    known = VariableMap.of_names({'a/weights:0': 'b/kernel'})
    with self.assertRaisesRegex(
      VariableMapError, 'no value for a/weights; the map does not name a/weight. Is a/weight meant?'
    ):
      known.to_tf2({'a/weight': numbered(2)})

  def test_names_that_a_side_has_not(self):
    known = VariableMap.of_names({'a/weights': 'b/kernel'})
    with self.assertRaisesRegex(
      VariableMapError, 'the tf2 side does not have. Is b/kernels meant?'
    ):
      known.bound({'a/weights': (2,)}, {'b/kernels': (2,)})
    with self.assertRaisesRegex(VariableMapError, 'The other side does: TF1 is on the left'):
      known.bound({'b/kernel': (2,)}, {'a/weights': (2,)})

  def test_axes_of_length_one_become_a_layout(self):
    known = VariableMap.of_names({'a': 'b'}).bound({'a': (1, 6)}, {'b': (6,)})
    self.assertEqual(known.entries[0].layout, '1 a -> a')
    self.assertEqual(known.to_tf2({'a': numbered(1, 6)})['b'].shape, (6,))

  def test_another_shape_is_left_to_the_comparison(self):
    known = VariableMap.of_names({'a': 'b'})
    self.assertEqual(known.bound({'a': (2, 6)}, {'b': (6, 2)}), known)

  def test_the_order_of_the_port(self):
    known = VariableMap((_FC, *_LSTM)).in_order_of(
      ['lstm/bias', 'lstm/kernel', 'lstm/recurrent_kernel', 'fc1/kernel']
    )
    self.assertEqual(known.tf2_names[:2], ('lstm/bias', 'lstm/kernel'))


class FileTest(parameterized.TestCase):
  def test_written_and_read(self):
    known = VariableMap(
      (_FC, *_LSTM, MapEntry(('odd, "name"',), ('only',), reason='a\nreason')),
      {'global_step': 'counts the steps'},
      {'seed state': 'draws'},
    )
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, 'x.map')
      known.write(path)
      found = VariableMap.read(path)
    self.assertEqual(found.source, path)
    self.assertEqual(found.entries[:3], known.entries[:3])
    self.assertEqual(found.entries[3].tf1, ('odd, "name"',))
    self.assertEqual(found.entries[3].reason, 'a reason')
    self.assertEqual((found.tf1_only, found.tf2_only), (known.tf1_only, known.tf2_only))

  def test_text(self):
    self.assertEqual(
      VariableMap((_LSTM[1],), {'global_step': 'counts the steps'}).to_text(),
      '# Variable map: the variables of TF1 on the left, those of the port on the right.\n'
      'rnn/bias -> lstm/bias\n'
      '  layout  (i+c+f+o) -> (i+f+c+o)\n'
      '  sizes   i=2 c=2 f=2 o=2\n'
      '  add     f=1.0\n'
      'only tf1 global_step\n'
      '  reason  counts the steps\n',
    )

  @parameterized.parameters(
    ('a => b', r'x.map:1: .* has no arrow; write TF1 -> PORT; instead of =>'),
    ('a b', 'x.map:1: .* has no arrow'),
    ('a -> b c', 'x.map:1: .* is not an entry; write names with commas'),
    ('# c\n  layout i o -> o i', 'x.map:2: .* and there is none'),
    ('a -> b\n  layouts i o -> o i', 'x.map:2: .* is layout meant'),
    ('a -> b\n  c -> d', 'x.map:2: .* an entry itself is not indented'),
    ('a -> b\n  layout i o -> o', "x.map:1: a -> b: .* the part 'i o'"),
    ('a -> b\n  layout i -> i\n  sizes i = 3', 'x.map:1: .* not an axis=number'),
    ('a -> b\n  layout i -> i\n  sizes i=3.0', "x.map:1: the size of i is '3.0'"),
    ('a -> b\n  layout i -> i\n  add i=one', "x.map:1: what is added to i is 'one'"),
    ('a -> b\n  layout i -> i\n  layout i -> i', 'x.map:3: layout is given twice'),
    ('a -> b\n  reason', 'x.map:2: nothing follows reason'),
    ('a -> b\n\nc -> b', 'x.map:3: the tf2 variable b is named in line 1 already'),
    ('only step', 'x.map:1: .* names no side and variable'),
    ('only tf1 step', 'x.map:1: step needs a reason'),
    ('only tf1 a, b\n  reason x', 'x.map:1: .* names several variables'),
    ('# nothing\n', 'x.map: the variable map is empty'),
  )
  def test_a_wrong_line_is_named(self, text, message):
    with self.assertRaisesRegex(VariableMapError, message):
      variable_map_file.parse(text, 'x.map')

  def test_no_file(self):
    with self.assertRaisesRegex(VariableMapError, 'cannot be read: No such file'):
      VariableMap.read('/nowhere/x.map')


if __name__ == '__main__':
  absltest.main()
