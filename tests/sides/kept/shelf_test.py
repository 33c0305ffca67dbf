"""Graphs of the reference kept in a folder: used while nothing has changed, and never else."""

import abc
import contextlib
import dataclasses
import decimal
import functools
import importlib
import json
import logging
import os
import shutil
import sys
import tempfile
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.sides.kept import dependencies, installed
from tf2verify.sides.kept.fingerprint import fingerprint
from tf2verify.sides.kept.sources import KeptInFolder
from tf2verify.sides.process import state as process_state

_HERE = os.path.dirname(os.path.abspath(__file__))
_PROCESS = functools.cache(dependencies.process_of)


def _text(file, old, new):
  """Returns what changes a file that the modules are imported from."""

  def change(folder, _):
    path = os.path.join(folder, file)
    with open(path) as opened:
      text = opened.read()
    assert old in text, old
    with open(path, 'w') as opened:
      opened.write(text.replace(old, new))

  return change


def _model(old, new):
  return _text('kept_model.py', old, new)


def _state(folder, _):
  np.save(os.path.join(folder, 'state.npy'), np.asarray([3.0], np.float32))


def _config(folder, _):
  with open(os.path.join(folder, 'config.json'), 'w') as file:
    json.dump({'scale': 3.0}, file)


def _variable(name, value):
  return lambda *_: os.environ.update({name: value})


def _live(change):
  """Returns what changes the modules after they were imported."""
  change.live = True
  return change


def _cell(_, model):
  model.INNER.__closure__[0].cell_contents = 5.0


def _attribute(owner, name, value):
  def change(_, model):
    target = functools.reduce(getattr, owner.split('.'), model) if owner else model
    setattr(target, name, value)

  return _live(change)


CHANGES = {
  'a constant': _model('SCALE = 2.0', 'SCALE = 3.0'),
  'a constant of an imported module': _text('kept_base.py', 'LEVEL = 1.0', 'LEVEL = 3.0'),
  'code of an imported function': _text('kept_base.py', 'return x * LEVEL', 'return x - LEVEL'),
  'a method of a base class': _text('kept_base.py', 'x + self.level', 'x - self.level'),
  'an attribute of a base class': _text('kept_base.py', 'level = 2.0', 'level = 3.0'),
  'the code of the hook': _model('Net.constant() + read()', 'Net.constant() - read()'),
  'a helper of the case': _model('return x + 1.0', 'return x + 2.0'),
  'an attribute of the case': _model('factor = np.float32(2.0)', 'factor = np.float32(3.0)'),
  'the size of the case': _model('  units = 3\n', '  units = 4\n'),
  'a default argument': _model('def times(x, factor=2.0', 'def times(x, factor=4.0'),
  'a keyword default': _model('shift=0.0', 'shift=1.0'),
  'a closure': _model('INNER = adds(1.0)', 'INNER = adds(2.0)'),
  'an argument of a partial': _model('times, factor=3.0', 'times, factor=4.0'),
  'a lambda': _model('lambda x: x * SCALE', 'lambda x: x / SCALE'),
  'a global that only a lambda reads': _model('SCALE = 2.0', 'SCALE = 2.5'),
  'a number deep in a list': _model('(1.0, 2.0)', '(1.5, 2.0)'),
  'a set': _model("{'a', 'b'}", "{'a', 'c'}"),
  'a member of an enum': _model('PLAIN = 1.0', 'PLAIN = 2.0'),
  'a field of a dataclass': _model('rate: float = 0.25', 'rate: float = 0.5'),
  'a namespace': _model('SimpleNamespace(rate=0.5)', 'SimpleNamespace(rate=0.6)'),
  'a decorator': _model('function(x) * 2.0', 'function(x) * 4.0'),
  'a decorated function': _model('return x - 1.0', 'return x - 2.0'),
  'a property': _model('return 0.5', 'return 0.75'),
  'a static method': _model('return 4.0', 'return 5.0'),
  'an argument of an instance': _model('NET = Net()', 'NET = Net(2.0)'),
  'a table of a class': _model("{'one': 1.0}", "{'one': 2.0}"),
  'the lines of the code': _model('SCALE = 2.0', '\nSCALE = 2.0'),
  'a file that is read at import': _config,
  'a numpy file that is read at import': _state,
  'a file that is read while it is built': _text('data.txt', '1.5', '2.5'),
  'a variable of the environment, at import': _variable('KEPT_AT_IMPORT', 'longer'),
  'a variable of the environment, in the build': _variable('KEPT_IN_BUILD', '2'),
  'a patched constant': _attribute('', 'SCALE', 7.0),
  'a patched function': _attribute('', 'times', lambda x, factor=1.0, shift=0.0: x),
  'a patched method': _attribute('Net', '__call__', lambda self, x: x),
  'a patched method of a base class': _attribute('kept_base.Base', 'shifted', lambda self, x: x),
  'a patched function of another module': _attribute('kept_base', 'LEVEL', 9.0),
  'a patched attribute of an instance': _attribute('NET', 'rate', 9.0),
  'a patched attribute of the case': _attribute('KeptCase', 'units', 5),
  'a patched default': _attribute('times', '__defaults__', (9.0,)),
  'a patched closure': _live(_cell),
  'patched code': _live(lambda _, m: setattr(m.wrapped, '__wrapped__', m.times)),
  'an element of an array': _live(lambda _, m: m.STATE.__setitem__(0, 9.0)),
  'an entry of a dictionary': _live(lambda _, m: m.CONFIG.update(scale=9.0)),
}

# What stands in place of the return of the hook, and a word of the reason.
REFUSED = {
  'the clock': ('import time', 'x = x + time.time()', 'time'),
  'the date': ('import datetime', 'x = x + datetime.date.today().year', 'today'),
  "Python's generator": ('import random', 'x = x + random.random()', 'random'),
  "numpy's generator": ('', 'x = x + np.random.normal()', 'random'),
  'a generator of numpy': ('', 'x = x + np.random.default_rng().normal()', 'random'),
  'whether a file exists': ('', 'x = x + float(os.path.exists(_HERE))', 'exists'),
  'a folder': ('', 'x = x + len(os.listdir(_HERE))', 'listdir'),
  'eval': ('', 'x = x + eval("1.0")', 'eval'),
  'globals': ('', 'x = x + globals()["SCALE"]', 'globals'),
  'modules by name': ('import sys', 'x = x + len(sys.modules)', 'sys.modules'),
  'an import by name': ('import importlib', 'importlib.import_module("json")', 'importlib'),
  'an import of what is not loaded': ('', 'import kept_later', 'kept_later'),
  'a hash of text': ('', 'x = x + hash("a")', 'hash'),
  'a process': ('import subprocess', 'x = x + subprocess.call(["true"])', 'subprocess'),
  'a generator object': ('ITEMS = (n for n in range(9))', 'x = x + next(ITEMS)', 'generator'),
  'an open file': ('FILE = open(__file__)', 'x = x + len(FILE.name)', 'TextIOWrapper'),
  'a full cache': ('remembered_once = None', 'x = x + remembered()', 'cache of remembered'),
  'a Python function in the graph': (
    '',
    'x = x + tf.numpy_function(lambda: np.float32(1.0), [], tf.float32)',
    'PyFunc',
  ),
  'a file of TensorFlow': (
    '',
    'x = x + len(tf.io.gfile.GFile(os.path.join(_HERE, "data.txt")).read())',
    'tensorflow.python',
  ),
  'a file that is written': (
    '',
    'with open(os.path.join(_HERE, "out.txt"), "w") as f: f.write("1")',
    'writes',
  ),
  'the process, by an import of its own': (
    '',
    'import os as system; x = x + system.getpid()',
    'os.getpid',
  ),
  'a module of Python that is passed on': ('', 'x = x + getattr(os, "getpid")()', 'module os'),
  'a link that is followed': (
    'import pathlib',
    'x = x + len(pathlib.Path(_HERE).resolve().name)',
    'resolve',
  ),
  'globals of a function': ('', 'x = x + read.__globals__["SCALE"]', '__globals__'),
  'all subclasses': ('', 'x = x + len(Net.__subclasses__())', '__subclasses__'),
  'variables in bytes': ('', 'x = x + len(os.environ._data)', 'os.environ._data'),
  'a Python function of numpy': (
    'TWICE = np.frompyfunc(lambda a: 2.0 * a, 1, 1)',
    'x = x + np.float32(TWICE(1.0))',
    'vectorized',
  ),
  'the clock of numpy': ('', 'x = x + np.datetime64("now").astype(np.int64)', 'datetime64'),
  'a file of HDF5': ('import h5py', 'x = x + len(h5py.File.__name__)', 'h5py'),
  'what the build itself changes': ('COUNT = [0.0]', 'COUNT[0] += 1.0', 'changed while'),
}


class ShelfTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.code = self.enter_context(tempfile.TemporaryDirectory())
    self.folder = self.enter_context(tempfile.TemporaryDirectory())
    for name in ('kept_model.py', 'kept_base.py'):
      shutil.copy(os.path.join(_HERE, name), self.code)
    np.save(os.path.join(self.code, 'state.npy'), np.asarray([2.0], np.float32))
    with open(os.path.join(self.code, 'config.json'), 'w') as file:
      json.dump({'scale': 2.0}, file)
    with open(os.path.join(self.code, 'data.txt'), 'w') as file:
      file.write('1.5')
    self.enter_context(mock.patch.dict(os.environ))
    self.enter_context(mock.patch.object(sys, 'path', [self.code, *sys.path]))
    self.enter_context(mock.patch.object(sys, 'dont_write_bytecode', True))
    # It is asked for in a test of its own: it takes longer than all else here.
    self.enter_context(mock.patch.object(dependencies, 'process_of', _PROCESS))
    self.addCleanup(self._unload)

  def _unload(self):
    for name in ('kept_model', 'kept_base', 'kept_later'):
      sys.modules.pop(name, None)

  def _imported(self):
    self._unload()
    importlib.invalidate_caches()
    return importlib.import_module('kept_model')

  def _run(self, model):
    source = KeptInFolder(self.folder)
    reference = source.reference(model.KeptCase(), lambda _: None, lambda: False)
    with process_state.preserved():
      reference.graph.inventory()
    said = source.said()
    source.close()
    return said

  def test_unchanged_it_is_reused(self):
    self.assertEqual(self._run(self._imported()), 'built here')
    said = self._run(self._imported())
    self.assertStartsWith(said, 'reused: 2 graphs that were built 20')
    self.assertEqual(self._run(self._imported()), said)

  def test_a_change_of_the_port_alone_changes_nothing(self):
    self.assertEqual(self._run(self._imported()), 'built here')
    _model('tf.keras.layers.Dense(3)', 'tf.keras.layers.Dense(4)')(self.code, None)
    self.assertStartsWith(self._run(self._imported()), 'reused')

  @parameterized.named_parameters((name.replace(' ', '_'), name) for name in CHANGES)
  def test_seen(self, name):
    change = CHANGES[name]
    self._run(self._imported())
    if not hasattr(change, 'live'):
      change(self.code, None)
    model = self._imported()
    if hasattr(change, 'live'):
      change(self.code, model)
    said = self._run(model)
    self.assertStartsWith(said, 'built here, since ')
    self.assertEndsWith(said, 'changed')

  @parameterized.named_parameters((name.replace(' ', '_'), name) for name in REFUSED)
  def test_refused(self, name):
    above, line, word = REFUSED[name]
    _model('class Kind', f'{above}\n\n\nclass Kind')(self.code, None)
    _model('    w = v1.get_variable', f'    {line}\n    w = v1.get_variable')(self.code, None)
    with open(os.path.join(self.code, 'kept_later.py'), 'w') as file:
      file.write('x = 1')
    for _ in range(2):
      self._unload()
      model = self._imported()
      model.remembered()
      said = self._run(model)
      self.assertStartsWith(said, 'built here and not kept: ')
      self.assertIn(word, said)

  def test_what_was_damaged_is_not_used(self):
    self._run(self._imported())
    for folder, _, names in os.walk(self.folder):
      for name in names:
        if name.endswith('.pb'):
          with open(os.path.join(folder, name), 'r+b') as file:
            file.write(b'\0\0\0\0')
    self.assertEqual(
      self._run(self._imported()), 'built here, since a file of what was kept is damaged'
    )

  def test_other_inputs_have_other_graphs(self):
    self._run(self._imported())
    _model('np.ones((2, 2)', 'np.ones((3, 2)')(self.code, None)
    self.assertFalse(self._run(self._imported()).startswith('reused'))


class ProcessTest(parameterized.TestCase):
  """What belongs to no case, and decides about graphs all the same."""

  def _changes(self, change):
    before = dependencies.process_of()
    with change:
      return dependencies.changes(before, dependencies.process_of())

  def test_nothing(self):
    self.assertEmpty(self._changes(contextlib.nullcontext()))

  def test_what_is_not_loaded_yet_is_looked_at(self):
    module = 'module numpy.lib.npyio'
    then = dependencies.process_of()
    now = {name: value for name, value in then.items() if name != module}
    self.assertTrue(module in then)
    self.assertEqual(dependencies.with_modules_of(then, now), then)
    patched = {**then, module: 'of another function'}
    found = dependencies.with_modules_of(patched, now)
    self.assertEqual(dependencies.changes(patched, found), [module])

  def test_what_is_gone_is_a_change(self):
    then = {'module tensorflow.no_such_module': 'a digest'}
    found = dependencies.with_modules_of(then, {})
    self.assertEqual(dependencies.changes(then, found), ['module tensorflow.no_such_module'])

  def test_a_function_of_tensorflow_is_replaced(self):
    change = mock.patch.object(tf.nn, 'relu', tf.nn.elu)
    self.assertNotEmpty([n for n in self._changes(change) if n.startswith('module tensorflow')])

  @parameterized.parameters('tanh', 'sigmoid', 'relu', 'elu', 'softmax')
  def test_a_function_of_tensorflow_has_a_name(self, name):
    function = getattr(tf.nn, name)
    self.assertTrue(installed.is_known(function))
    with mock.patch.object(tf.nn, name, functools.wraps(function)(lambda x: x)):
      self.assertFalse(installed.is_known(getattr(tf.nn, name)))

  def test_a_setting_of_keras(self):
    @contextlib.contextmanager
    def float64():
      tf.keras.backend.set_floatx('float64')
      try:
        yield
      finally:
        tf.keras.backend.set_floatx('float32')

    self.assertIn('Keras floatx of this process', self._changes(float64()))

  def test_a_dtype_policy(self):
    @contextlib.contextmanager
    def bfloat16():
      before = tf.keras.mixed_precision.global_policy()
      tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')
      try:
        yield
      finally:
        tf.keras.mixed_precision.set_global_policy(before)

    self.assertIn('Keras dtype policy of this process', self._changes(bfloat16()))

  def test_classes_that_python_makes_for_the_user(self):
    def made(default):
      fields = [('x', float, dataclasses.field(default=default))]
      return fingerprint([('made', dataclasses.make_dataclass('Made', fields))], [], {})

    def registered(*classes):
      class Base(abc.ABC):  # noqa: B024
        pass

      for one in classes:
        Base.register(one)
      return fingerprint([('base', Base)], [], {})

    self.assertEqual(made(1.0), made(1.0))
    self.assertNotEqual(made(1.0), made(2.0))
    self.assertEqual(registered(), registered())
    self.assertNotEqual(registered(), registered(dict))

  def test_settings_of_modules_of_python_and_numpy(self):
    @contextlib.contextmanager
    def level():
      logging.getLogger('of_the_case').setLevel(17)
      try:
        yield
      finally:
        logging.getLogger('of_the_case').setLevel(logging.NOTSET)

    self.assertIn('logging', self._changes(level()))
    self.assertIn('decimal context', self._changes(decimal.localcontext(decimal.Context(prec=5))))
    options = np.printoptions(precision=2)
    self.assertIn('print options of numpy', self._changes(options))

  def test_a_flag_of_tensorflow(self):
    change = mock.patch.dict(os.environ, {'TF_ENABLE_ONEDNN_OPTS': '0'})
    self.assertIn('environment variable TF_ENABLE_ONEDNN_OPTS', self._changes(change))


if __name__ == '__main__':
  absltest.main()
