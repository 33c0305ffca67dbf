"""Tests of tf2verify.sides.graphs.lines.statements."""

import pathlib
import tempfile

from absl.testing import absltest, parameterized

from tf2verify.sides.graphs.lines import statements

CODE = """\
import keras
class Net:
  def __init__(self):
    self.pool = keras.layers.MaxPooling2D(
      3,
      padding='same',
    )
    self.stack = keras.Sequential([
      keras.layers.Dense(4,
                         activation='relu'),
      keras.layers.Dense(2),
    ])
  def call(self, x):
    with tf.name_scope(
        'net'):
      x = self.pool(x)
    return x
"""


SETTINGS = """\
SCALE = 3.0
RATE = 4.0; SIZE = 3
def made():
  return 4
class Net:
  def __init__(self, size, act):
    self.activation = tf.nn.relu if act else None
    self.units = (
        size * 2)
  def call(self, x, RATE=1):
    init = RandomNormal(stddev=0.02)
    options = {'use_bias': False}
    y = x
    y = CODE
    init = None
    self.size = size
"""


class StatementsTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.path = str(pathlib.Path(folder.name) / 'port.py')
    pathlib.Path(self.path).write_text(CODE, encoding='utf-8')

  @parameterized.named_parameters(
    ('a call over several lines', 4, 7, "self.pool = keras.layers.MaxPooling2D(3, padding='same')"),
    ('an element of a list', 9, 10, "keras.layers.Dense(4, activation='relu'),"),
    ('one line', 11, 11, 'keras.layers.Dense(2),'),
    ('only the head of a block', 14, 15, "with tf.name_scope('net'):"),
    ('the block', 16, 16, 'x = self.pool(x)'),
    ('a line that does not exist', 99, 99, ''),
  )
  def test_text_and_last_line(self, line, last, text):
    self.assertEqual(statements.last_line(self.path, line), last)
    self.assertEqual(statements.text(self.path, line), text)

  @parameterized.named_parameters(
    ('keywords', 'keras.layers.Dense(3, kernel_initializer=init, **options)', [11, 12]),
    ('the last one before it', 'f(init=init)', [11]),
    ('constants of the module', 'x / SCALE', [1]),
    ('sizes are none', 'x + SIZE', []),
    ('an argument of the function hides a constant', 'f(RATE=RATE)', []),
    ('what is computed from the inputs is none', 'f(y=y)', []),
    ('nothing is passed', 'x + 1', []),
    ('a function that makes an argument', 'f(init=made())', [3]),
    ('a function that is passed', 'f(activation=made)', [3]),
    ('attributes', '(self.activation, self.units)', [7, 8]),
  )
  def test_settings(self, code, lines):
    pathlib.Path(self.path).write_text(SETTINGS.replace('CODE', code), encoding='utf-8')
    found = statements.settings(self.path, 14)
    self.assertEqual([setting.first for setting in found], lines)
    for setting in found:
      function = {1: '<module>', 3: 'made', 7: '__init__', 8: '__init__'}
      self.assertEqual(setting.function, function.get(setting.first, 'call'))
      self.assertEqual(setting.last - setting.first, setting.first in (3, 8))

  def test_several_names_at_once(self):
    head = 'SIZE, RATE = 4, 0.5\n(A, *B) = 1.0, 2.0\nC = D = 0.25\n'
    codes = {'x * RATE': [1], 'x + SIZE': [], 'x * A': [], 'x * C + D': [3]}
    body = ''.join(f'  y = {code}\n' for code in codes)
    pathlib.Path(self.path).write_text(f'{head}def f(x):\n{body}', encoding='utf-8')
    for line, (code, lines) in enumerate(codes.items(), 5):
      found = statements.settings(self.path, line)
      self.assertEqual([setting.first for setting in found], lines, code)

  def test_a_whole_model_is_its_first_line(self):
    layers = ''.join(f'  layers.Dense({n}),\n' for n in range(20))
    pathlib.Path(self.path).write_text(f'net = Sequential([\n{layers}])\n', encoding='utf-8')
    self.assertEqual(statements.last_line(self.path, 1), 1)
    self.assertEqual(statements.text(self.path, 1), 'net = Sequential([')

  def test_what_python_cannot_read_is_shown_line_by_line(self):
    pathlib.Path(self.path).write_text('x = (1,\n  2', encoding='utf-8')
    self.assertEqual(statements.text(self.path, 1), 'x = (1,')


class SeveralLayersTest(absltest.TestCase):
  def test_which_of_several_layers_is_meant_no_setting_says(self):
    code = """\
class Net:
  def __init__(self):
    self.dense = Dense(4)
    self.norm = keras.layers.Norm()
    self.act = relu if True else None
  def call(self, x):
    y = self.act(self.norm(self.dense(x)))
    return self.norm(y)
"""
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder) / 'several.py'
      path.write_text(code, encoding='utf-8')
      lines = [[s.first for s in statements.settings(str(path), line)] for line in (7, 8)]
      inside = [[s.first for s in statements.settings(str(path), 8, made)] for made in ((4,), (9,))]
    self.assertEqual(lines, [[5], [4]])
    self.assertEqual(inside, [[], []])

  def test_what_a_layer_is_called_with_sets_none_of_its_arguments(self):
    code = """\
class Net:
  def __init__(self):
    self.mask = np.ones(3)
    self.dense = Dense(
      4)
  def call(self, x):
    return self.dense(x * self.mask)
"""
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder) / 'inner.py'
      path.write_text(code, encoding='utf-8')
      found = [
        [s.first for s in statements.settings(str(path), 7, made)]
        for made in ((4, 20), (5,), (20,), None)
      ]
    # Of the product itself the mask is one of two factors.
    self.assertEqual(found, [[], [], [3], [4, 3]])


if __name__ == '__main__':
  absltest.main()
